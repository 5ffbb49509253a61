"""Three ways to another number of connections: /etc/fstab, nfstuned's own drop-in, and mounting again.

`nconnect_steps` returns the next step of each group, for `nfstuned status`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from nfstuned.app.change import Ended, Host, Plan, Way, refusal_after
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect import remount
from nfstuned.core.nconnect.fstab import fstab_users, owner, plan_fstab, with_counts
from nfstuned.core.nconnect.obstacles import (
    cannot_mount_again,
    host_names,
    open_places,
    reason_to_skip,
    servers_of,
)
from nfstuned.core.nconnect.persist import (
    FOREIGN,
    DropIn,
    plan_persist,
    section_uses,
    sections,
    with_sections,
)
from nfstuned.core.nconnect.server import MemberT, Users, with_answers
from nfstuned.host.files.replace import (
    LOCK,
    LinkError,
    Original,
    locked,
    read_original,
    read_own_file,
    replace_file,
    write_own_file,
)
from nfstuned.host.network.outside import Questions
from nfstuned.host.network.reach import Place
from nfstuned.host.observe import observe_host
from nfstuned.host.remount import REMOUNT_LOCK, mount_nodes, uninterrupted
from nfstuned.host.root import Root
from nfstuned.host.tools import new_errors
from nfstuned.model.change import (
    Change,
    ChangeKind,
    Hands,
    LeftGroup,
    NconnectStep,
    RemountPlan,
    Sight,
    settled,
)
from nfstuned.model.facts import Facts, Need
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import PERSISTED, Result, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network
from nfstuned.parse.etc.settings import read_nfs_utils
from nfstuned.parse.tree import FSTAB
from nfstuned.view.change import diff_lines, finish_lines, remount_lines

_NO_ENTRY = "Nothing to do: the NFS entries of /etc/fstab have the nconnect of their profiles."
_EDITED = (
    "A mount gets the new number at its next mount, after all mounts of its server are unmounted: see "
    "nfstuned check.\nsystemd reads the file at boot, or now: sudo systemctl daemon-reload"
)
_WRITTEN = (
    f"Written to {PERSISTED}.\nA server gets the new number at its next mount, after all of its mounts are "
    "unmounted: see nfstuned check."
)


@dataclass(frozen=True, slots=True)
class FstabEdit:
    """The file as it was read, and as it is to be."""

    original: Original
    text: str


class FstabWay(Way[FstabEdit | None]):
    """Let the entries of /etc/fstab ask for the nconnect of their profiles."""

    question: ClassVar[str] = "Change it?"
    yes_does: ClassVar[str] = "changes it"

    def __init__(self, host: Host, *, follow: bool) -> None:
        self._host = host
        self._follow = follow
        """A symbolic link instead of the file may be followed."""

    def look(self) -> Plan[FstabEdit | None] | None:
        """Return the changes; None, reported, where the file cannot be read."""
        root = self._host.root
        try:
            original, refusal = self._load()
        except FileNotFoundError:
            return Plan((), None, _NO_ENTRY, todo=False)
        except OSError as error:
            self._host.dialog.note(f"{root.shown(FSTAB)}: {error.strerror}")
            return None
        text = original.data.decode("utf-8", "surrogateescape")
        with root.faults.block() as faults:
            # The snapshot must be of the text that is edited, also when the file changes meanwhile.
            root.propose(root.shown(FSTAB), text)
            users = fstab_users(text, _snapshot(self._host), self._host.policy)
            plan = plan_fstab(users, _addresses(self._host, users))
        new = with_counts(text, plan.counts)
        refusal = refusal or refusal_after(faults.values())
        if not refusal and (name := owner(text)):
            refusal = f"its comments name {name} as the writer of this file: change it there"
        return Plan(
            plan.changes,
            FstabEdit(original, new),
            _NO_ENTRY,
            todo=new != text,
            lines=tuple(diff_lines(text, new, root.shown(FSTAB))),
            refusal=refusal,
        )

    def _load(self) -> tuple[Original, str]:
        """Return the file, and why it will not be changed where it is a link. Raises OSError."""
        root = self._host.root
        path = root.path(FSTAB)
        try:
            return read_original(path, follow=self._follow), ""
        except LinkError as error:
            reason = f"{root.shown(FSTAB)} {error.strerror}: --follow-symlink changes the link's target"
            return read_original(path, follow=True), reason

    def carry_out(self, plan: Plan[FstabEdit | None]) -> Ended:
        """Replace the file, unless it is no longer the one that was read."""
        edit = plan.detail
        if edit is None:
            return Ended(plan.changes)
        original = edit.original
        data, lock = edit.text.encode("utf-8", "surrogateescape"), self._host.root.path(LOCK)
        done = replace_file(original, data, lock, lambda path: new_errors(original.path, path))
        if done.problem:
            return Ended(settled(plan.changes, Result.FAILED, done.problem))
        return Ended(settled(plan.changes, Result.DONE), (f"The old file is {done.backup}.", _EDITED))


@dataclass(frozen=True, slots=True)
class DropInEdit:
    """nfstuned's drop-in as it was read, and the sections that it is to have."""

    original: Original | None
    sections: dict[str, int]


class PersistWay(Way[DropInEdit]):
    """Let mount.nfs by itself ask for the nconnect of each server's profile."""

    def __init__(self, host: Host, *, prune: bool) -> None:
        self._host = host
        self._prune = prune
        """Remove the sections of servers that nothing uses."""

    def look(self) -> Plan[DropInEdit] | None:
        """Return the changes; None, reported, where the file cannot be read."""
        nothing = f"Nothing to do: {PERSISTED} has the numbers of the profiles."
        try:
            original = read_own_file(self._host.root.path(PERSISTED[1:]))
        except OSError as error:
            self._host.dialog.note(f"{PERSISTED}: {error.strerror}")
            return None
        has = {} if original is None else sections(original.data.decode("utf-8", "surrogateescape"))
        if has is None:
            foreign = Change(ChangeKind.PERSIST, PERSISTED, None, None, Result.FAILED, FOREIGN)
            return Plan((foreign,), DropInEdit(original, {}), nothing, todo=False)
        held = DropIn(has, self._prune)
        with self._host.root.faults.block() as faults:
            utils = read_nfs_utils(self._host.root)
            users = section_uses(_snapshot(self._host), self._host.policy)
            plan = plan_persist(users, _addresses(self._host, users), utils, held)
        for name in plan.unused:
            self._host.dialog.note(f"{PERSISTED}: nothing here uses {name}; --prune removes its section")
        todo = any(change.result is Result.PLANNED for change in plan.changes)
        edit = DropInEdit(original, plan.sections(held))
        return Plan(plan.changes, edit, nothing, todo=todo, refusal=refusal_after(faults.values()))

    def carry_out(self, plan: Plan[DropInEdit]) -> Ended:
        """Replace the file, unless it is no longer the one that was read."""
        root, edit = self._host.root, plan.detail
        text = with_sections(edit.sections)
        problem = write_own_file(root.path(PERSISTED[1:]), edit.original, text, root.path(LOCK))
        if problem:
            return Ended(settled(plan.changes, Result.FAILED, problem))
        return Ended(settled(plan.changes, Result.DONE), (_WRITTEN,))


def _snapshot(host: Host) -> Snapshot:
    """Return the host, and report the files that could not be read."""
    snapshot = observe_host(host.root)
    host.dialog.unreadable_lines(snapshot.problems)
    host.dialog.unreadable_lines(host.root.faults.denied((f"{host.root.view}/mountstats",)))
    return snapshot


def _addresses(host: Host, users: Users[MemberT]) -> Network:
    names = users.names_to_resolve()
    return host.dialog.ask(host.outside, Questions(names)) if names else Network()


_READ_AHEAD_HINT = "The service gives them their read-ahead; without the service: sudo nfstuned apply"


@dataclass(frozen=True, slots=True)
class GroupWish:
    """The groups that are to get other connections."""

    point: str | None
    """A mount point of the group, as the kernel writes it; None for all groups."""
    dry_run: bool
    """Only a plan is wanted, so that obstacles to carrying it out here do not matter."""


class RemountGround(Protocol):
    """The host beyond its files (host.remount.MountGround; a test has its own)."""

    def obstacle(self) -> str:
        """Return why nothing can be changed from here, "" where it can."""

    def nodes(self) -> tuple[MountNode, ...]:
        """Return all mounts of this mount namespace."""

    def sight(self, devices: frozenset[str], units: Sequence[str]) -> Sight:
        """Return who uses superblocks, and the states of units."""

    def hands(self, places: Sequence[Place], signals: Sequence[int]) -> Hands:
        """Return the calls that carry out a plan."""


@dataclass(frozen=True, slots=True)
class GroupRemount:
    """The plan of a group, and the addresses and ports at which its server answers."""

    plan: RemountPlan
    places: tuple[Place, ...]


class RemountWay(Way[tuple[GroupRemount, ...]]):
    """Mount the mounts of a server again, so that they get the right nconnect."""

    question: ClassVar[str] = "Unmount them and mount them again?"

    def __init__(self, host: Host, wish: GroupWish, ground: RemountGround) -> None:
        self._host = host
        self._wish = wish
        self._ground = ground
        # To leave a mount alone is a failure only where the user named it.
        skipped = () if wish.point is None else (Result.SKIPPED,)
        self.failures = frozenset({Result.FAILED, *skipped})

    def look(self) -> Plan[tuple[GroupRemount, ...]] | None:
        """Return the remounts; None where none can be planned, which is reported.

        Servers are asked before processes are looked at: a process that waits for a dead server can hold up
        whoever reads its files in /proc.
        """
        host, ground, point = self._host, self._ground, self._wish.point
        if obstacle := ground.obstacle():
            host.dialog.note(obstacle if self._wish.dry_run else f"nothing was changed: {obstacle}")
            if not self._wish.dry_run:
                return None
        with host.root.faults.block() as faults:
            snapshot, sight = observe_host(host.root), Sight(nodes=ground.nodes())
        host.dialog.unreadable_lines(snapshot.problems)
        facts = Facts(frozenset({Need.LIVE}), snapshot, host.policy, targets(snapshot, host.policy))
        if point is not None and not remount.group_at(facts, sight, point):
            host.dialog.note(f"{point}: no NFS mount is there, or the kernel does not show its server")
            return None
        cases, refusal = remount.cases(facts, sight, point), ""
        if cases:
            names = dict.fromkeys(name for case in cases for name in host_names(case))
            servers = dict.fromkeys(server for case in cases for server in servers_of(case))
            network = host.dialog.ask(host.outside, Questions(names=tuple(names), servers=tuple(servers)))
            facts = replace(facts, network=network)
            refusal = refusal_after(faults.values())
            alive = [
                case for case in remount.cases(facts, sight, point) if not cannot_mount_again(case, network)
            ]
            if alive:
                devices = frozenset[str]().union(*(case.devices for case in alive))
                sight = ground.sight(devices, [name for case in alive for name in case.units])
        return self._plan(facts, sight, refusal)

    def _plan(self, facts: Facts, sight: Sight, refusal: str) -> Plan[tuple[GroupRemount, ...]]:
        changes, groups, left = list[Change](), list[GroupRemount](), list[Change]()
        for case in remount.cases(facts, sight, self._wish.point):
            plan = remount.plan_remount(case, cannot_mount_again(case, facts.network))
            if isinstance(plan, LeftGroup):
                values = (plan.old, plan.new, plan.result, plan.reason)
                left += [Change(ChangeKind.REMOUNT, point, *values) for point in plan.points]
            else:
                groups.append(GroupRemount(plan, open_places(case, facts.network)))
                changes += remount.planned(plan)
        return Plan(
            (*changes, *left),
            tuple(groups),
            "Nothing to do: the mounts have the nconnect of their profiles and files.",
            todo=bool(groups),
            lines=tuple(line for group in groups for line in remount_lines(group.plan)),
            must_stay=[(group.plan.going, group.plan.coming, group.plan.reload) for group in groups],
            refusal=refusal,
        )

    def carry_out(self, plan: Plan[tuple[GroupRemount, ...]]) -> Ended:
        """Unmount and mount the groups one after another, under the lock, with signals put off."""
        lock = self._host.root.path(REMOUNT_LOCK)
        with ExitStack() as held:
            try:
                held.enter_context(locked(lock))
            except OSError as error:
                busy = isinstance(error, BlockingIOError)
                why = "another nfstuned is remounting" if busy else f"{lock}: {error.strerror}"
                return Ended(settled(plan.changes, Result.FAILED, f"nothing was done: {why}"))
            signals = held.enter_context(uninterrupted())
            ended = [
                change
                for group in plan.detail
                for change in remount.remount(group.plan, self._ground.hands(group.places, signals))
            ]
        changes = (*ended, *(change for change in plan.changes if change.result is not Result.PLANNED))
        done = any(change.result is Result.DONE for change in changes)
        return Ended(changes, (*finish_lines(changes), *((_READ_AHEAD_HINT,) if done else ())))


def nconnect_steps(root: Root, snapshot: Snapshot, policy: Policy) -> tuple[NconnectStep, ...]:
    """Return the next step for each group of mounts that should have another number of connections.

    No name server and no file server is asked: the command may still find an obstacle.
    """
    known = with_answers(
        Facts(frozenset({Need.LIVE}), snapshot, policy, targets(snapshot, policy)), Network()
    )
    volumes = frozenset(superblock.device for superblock in snapshot.superblocks)
    files = {
        **dict.fromkeys(_points_of_sections(root, snapshot, policy), ChangeKind.PERSIST),
        **dict.fromkeys(_points_of_fstab(root, snapshot, policy), ChangeKind.FSTAB),
    }
    steps = []
    for case in remount.cases(known, Sight(mount_nodes(root), volumes=volumes)):
        points = tuple(target.point for target in case.group)
        file = next((files[point] for point in points if point in files), None)
        plan = remount.plan_remount(case)
        obstacle = reason_to_skip(case) or case.remount_obstacle()
        if file is None and isinstance(plan, LeftGroup):
            obstacle = plan.reason
        steps.append(NconnectStep(points, file, obstacle))
    return tuple(steps)


def _points_of_fstab(root: Root, snapshot: Snapshot, policy: Policy) -> set[str]:
    """Return the mount points of the entries that `nconnect fstab` changes."""
    text = root.read_or_empty(FSTAB)
    plan = plan_fstab(fstab_users(text, snapshot, policy), Network())
    planned = {change.place for change in plan.changes if change.result is Result.PLANNED}
    return set() if owner(text) else planned


def _points_of_sections(root: Root, snapshot: Snapshot, policy: Policy) -> set[str]:
    """Return the mount points of the servers to which `nconnect persist` gives a section."""
    text = root.read_or_empty(PERSISTED[1:])
    has = sections(text) if text else {}
    if has is None:
        return set()
    users = section_uses(snapshot, policy)
    plan = plan_persist(users, Network(), read_nfs_utils(root), DropIn(has))
    planned = {change.target for change in plan.changes if change.result is Result.PLANNED and change.new}
    # Where another option decides a mount's nconnect, the section of its server does not.
    return {use.target.point for use in users.members if use.section in planned and use.decider is None}
