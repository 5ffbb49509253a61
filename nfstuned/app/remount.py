"""The mounts of a server, mounted again so that they have another number of connections."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from nfstuned.app.change import Ended, Host, Plan, Way, refusal_after
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect import remount
from nfstuned.core.nconnect.obstacles import cannot_mount_again, host_names, open_places, servers_of
from nfstuned.host.files.replace import locked
from nfstuned.host.network.outside import Questions
from nfstuned.host.network.reach import Place
from nfstuned.host.observe import observe_host
from nfstuned.host.remount import LOCK, uninterrupted
from nfstuned.model.change import Change, ChangeKind, settled
from nfstuned.model.facts import Facts, Need
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import Result
from nfstuned.model.remount import Hands, Left, RemountPlan, Sight
from nfstuned.view.change import finish_lines, remount_lines

_READ_AHEAD = "The service gives them their read-ahead; where it does not run: sudo nfstuned apply"


@dataclass(frozen=True, slots=True)
class GroupWish:
    """The groups that are to get other connections."""

    point: str | None
    """The group of the mount there, as the kernel writes it; None for all."""
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
            host.dialog.note(f"{point}: no NFS mount is there, or the kernel does not tell its server")
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
            if isinstance(plan, Left):
                values = (plan.old, plan.new, plan.result, plan.reason)
                left += [Change(ChangeKind.REMOUNT, point, *values) for point in plan.points]
            else:
                groups.append(GroupRemount(plan, open_places(case, facts.network)))
                changes += remount.planned(plan)
        return Plan(
            (*changes, *left),
            tuple(groups),
            "Nothing to do: the mounts have the nconnect that their profiles and files ask for.",
            todo=bool(groups),
            lines=tuple(line for group in groups for line in remount_lines(group.plan)),
            same=[(group.plan.going, group.plan.coming, group.plan.reload) for group in groups],
            refusal=refusal,
        )

    def carry_out(self, plan: Plan[tuple[GroupRemount, ...]]) -> Ended:
        """Unmount and mount the groups one after another, under the lock, with signals put off."""
        lock = self._host.root.path(LOCK)
        with ExitStack() as held:
            try:
                held.enter_context(locked(lock))
            except OSError as error:
                busy = isinstance(error, BlockingIOError)
                why = "another nfstuned is at it" if busy else f"{lock}: {error.strerror}"
                return Ended(settled(plan.changes, Result.FAILED, f"nothing was done: {why}"))
            signals = held.enter_context(uninterrupted())
            ended = [
                change
                for group in plan.detail
                for change in remount.remount(group.plan, self._ground.hands(group.places, signals))
            ]
        changes = (*ended, *(change for change in plan.changes if change.result is not Result.PLANNED))
        done = any(change.result is Result.DONE for change in changes)
        return Ended(changes, (*finish_lines(changes), *((_READ_AHEAD,) if done else ())))
