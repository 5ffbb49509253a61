"""The mounts of a server, mounted again so that they have another number of connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

from nfstuned.app.change import Ended, Host, Plan, Way, refusal_after
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect import remount
from nfstuned.core.nconnect.busy import cannot_mount_again, host_names, open_places, servers
from nfstuned.core.nconnect.case import Case
from nfstuned.host.change.remount import LOCK, uninterrupted
from nfstuned.host.files.replace import locked
from nfstuned.host.network.ask import Questions
from nfstuned.host.network.reach import Place
from nfstuned.host.observe import observe
from nfstuned.model.change import Change, ChangeKind, settled
from nfstuned.model.connections import Hands, Left, RemountPlan, Sight
from nfstuned.model.facts import Facts
from nfstuned.model.finding import Need
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import Result
from nfstuned.view.change import finish_lines, remount_lines

_READ_AHEAD = "The service gives them their read-ahead; where it does not run: sudo nfstuned apply"
_FAILED_OR_SKIPPED = frozenset({Result.FAILED, Result.SKIPPED})


@dataclass(frozen=True, slots=True)
class GroupWish:
    """Whose connections are to be changed."""

    point: str | None
    """The group of the mount there, as the kernel writes it; None for all."""
    dry_run: bool
    """Only a plan is wanted, so that what is against carrying it out here does not matter."""


class RemountGround(Protocol):
    """The host beyond its files (host.change.remount.MountGround; a test has its own)."""

    def obstacle(self) -> str:
        """Return why nothing can be changed from here, "" where it can."""

    def nodes(self) -> tuple[MountNode, ...]:
        """Return all mounts of this mount namespace."""

    def sight(self, devices: frozenset[str], units: Sequence[str]) -> Sight:
        """Return who uses superblocks, and what systemd says of units."""

    def hands(self, places: Sequence[Place], signals: Sequence[int]) -> Hands:
        """Return who carries out a plan."""


class Candidates(NamedTuple):
    """Groups that should have another number of connections, before anybody looks closer at them."""

    facts: Facts
    """They hold whether the servers of the groups answer."""
    sight: Sight
    cases: tuple[Case, ...] = ()
    refusal: str = ""
    """Why no group may be changed: a file that may decide could not be read."""


@dataclass(frozen=True, slots=True)
class GroupRemount:
    """How a group is mounted again, and the addresses and ports at which its server answers."""

    plan: RemountPlan
    places: tuple[Place, ...]


class RemountWay(Way[tuple[GroupRemount, ...]]):
    """Mount the mounts of a server again, so that they get the right nconnect."""

    question: ClassVar[str] = "Unmount them and mount them again?"

    def __init__(self, host: Host, wish: GroupWish, ground: RemountGround) -> None:
        self._host = host
        self._wish = wish
        self._ground = ground
        self.failures = _failures(wish)

    def look(self) -> Plan[tuple[GroupRemount, ...]] | None:
        """Return what is to be done; None where nothing can be: the user has been told why.

        Servers are asked before processes are looked at: a process that waits for a dead server can hold up
        whoever reads its files in /proc.
        """
        candidates = _candidates(self._host, self._wish, self._ground)
        if candidates is None:
            return None
        facts, sight, network = candidates.facts, candidates.sight, candidates.facts.network
        alive = [case for case in candidates.cases if not cannot_mount_again(case, network)]
        if alive:
            devices = frozenset[str]().union(*(case.devices for case in alive))
            sight = self._ground.sight(devices, [name for case in alive for name in case.units])
        cases = remount.cases(facts, sight, self._wish.point)
        results = [
            (remount.plan_remount(case, cannot_mount_again(case, network)), open_places(case, network))
            for case in cases
        ]
        groups = tuple(GroupRemount(plan, where) for plan, where in results if isinstance(plan, RemountPlan))
        left = [plan for plan, _ in results if isinstance(plan, Left)]
        return Plan(
            (
                *(change for group in groups for change in remount.planned(group.plan)),
                *_changes_of_left(ChangeKind.REMOUNT, left),
            ),
            groups,
            "Nothing to do: the mounts have the nconnect that their profiles and files ask for.",
            todo=bool(groups),
            lines=tuple(line for group in groups for line in remount_lines(group.plan)),
            same=[(group.plan.going, group.plan.coming, group.plan.reload) for group in groups],
            refusal=candidates.refusal,
        )

    def carry_out(self, plan: Plan[tuple[GroupRemount, ...]]) -> Ended:
        """Unmount and mount one group after the other."""

        def each(signals: Sequence[int]) -> Iterable[Change]:
            for group in plan.detail:
                yield from remount.carry_out(group.plan, self._ground.hands(group.places, signals))

        changes = _run_exclusively(self._host, plan.changes, each)
        done = any(change.result is Result.DONE for change in changes)
        return Ended(changes, (*finish_lines(changes), *((_READ_AHEAD,) if done else ())))


def _candidates(host: Host, wish: GroupWish, ground: RemountGround) -> Candidates | None:
    """Return the groups, their servers asked; None where none can be changed: the user has been told why."""
    if obstacle := ground.obstacle():
        host.talk.note(obstacle if wish.dry_run else f"nothing was changed: {obstacle}")
        if not wish.dry_run:
            return None
    with host.root.faults.block() as faults:
        snapshot, sight, point = observe(host.root), Sight(nodes=ground.nodes()), wish.point
    host.talk.unreadable_lines(snapshot.problems)
    facts = Facts(frozenset({Need.LIVE}), snapshot, host.policy, targets(snapshot, host.policy))
    if point is not None and not remount.members(facts, sight, point):
        host.talk.note(f"{point}: no NFS mount is there, or the kernel does not tell its server")
        return None
    cases = remount.cases(facts, sight, point)
    if not cases:
        return Candidates(facts, sight)
    wanted = Questions(
        names=tuple(dict.fromkeys(name for case in cases for name in host_names(case))),
        servers=tuple(dict.fromkeys(server for case in cases for server in servers(case))),
    )
    facts = replace(facts, network=host.talk.ask(host.outside, wanted))
    return Candidates(facts, sight, remount.cases(facts, sight, point), refusal_after(faults.values()))


def _failures(wish: GroupWish) -> frozenset[Result]:
    """Return what is a failure: to leave a mount alone is none, unless it was asked for by name."""
    return frozenset({Result.FAILED}) if wish.point is None else _FAILED_OR_SKIPPED


def _changes_of_left(kind: ChangeKind, left: Sequence[Left]) -> tuple[Change, ...]:
    """Return a change for each mount of the groups that are left as they are."""
    return tuple(
        Change(kind, point, group.old, group.new, group.result, group.reason)
        for group in left
        for point in group.points
    )


def _run_exclusively(
    host: Host, planned: Sequence[Change], each: Callable[[Sequence[int]], Iterable[Change]]
) -> tuple[Change, ...]:
    """Carry out each step under the lock, with signals put off, and return what came of each mount.

    Where the lock cannot be had, nothing was done.
    """
    lock = host.root.path(LOCK)
    with ExitStack() as held:
        try:
            held.enter_context(locked(lock))
        except OSError as error:
            busy = isinstance(error, BlockingIOError)
            why = "another nfstuned is at it" if busy else f"{lock}: {error.strerror}"
            return settled(planned, Result.FAILED, f"nothing was done: {why}")
        ended = tuple(each(held.enter_context(uninterrupted())))
    return (*ended, *(change for change in planned if change.result is not Result.PLANNED))
