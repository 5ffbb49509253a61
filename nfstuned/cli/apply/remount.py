"""`nfstuned apply --remount`: mount the mounts of a server again, so that they get the right nconnect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import click

from nfstuned.cli.apply.groups import ALL, GroupPlans, GroupWish, candidates, change_groups
from nfstuned.cli.apply.read_ahead import COULD_NOT_TRY
from nfstuned.cli.policy import usable_policy
from nfstuned.cli.talk import live_outside
from nfstuned.core.nconnect.busy import places, silent
from nfstuned.core.nconnect.remount import carry_out, cases, plan_remount
from nfstuned.host.change.remount import LOCK, MountGround
from nfstuned.host.network.ask import Outside
from nfstuned.host.network.reach import Place
from nfstuned.host.root import Root
from nfstuned.model.connections import REMOUNT_KIND, Ended, Hands, Left, MountNode, RemountPlan, Sight
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.view.change import finish_lines, plan_lines, planned, remount_cells

_READ_AHEAD = "The service gives them their read-ahead; where it does not run: sudo nfstuned apply"


class RemountGround(Protocol):
    """The host beyond files. A test has one of its own."""

    def obstacle(self) -> str:
        """Return why nothing can be unmounted from here, "" where it can."""

    def nodes(self) -> tuple[MountNode, ...]:
        """Return all mounts of this mount namespace."""

    def sight(self, devices: frozenset[str], units: Sequence[str]) -> Sight:
        """Return who uses superblocks, and what systemd says of units."""

    def hands(self, places: Sequence[Place], signals: Sequence[int]) -> Hands:
        """Return who carries out a plan."""


@dataclass(frozen=True, slots=True)
class _Again:
    """What is to be done to one group, and where its server answers."""

    plan: RemountPlan
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Remount:
    """The change of this command, and where it happens."""

    kind: ClassVar[str] = REMOUNT_KIND
    question: ClassVar[str] = "Unmount them and mount them again?"
    nothing: ClassVar[str] = (
        "Nothing to do: the mounts have the nconnect that their profiles and files ask for."
    )
    root: Root
    policy: Policy
    ground: RemountGround
    outside: Outside

    def obstacle(self) -> str:
        return self.ground.obstacle()

    def look(self, place: str | None) -> GroupPlans[_Again] | None:
        """Return what is to be done; None where there is no such mount.

        Servers are asked before processes are looked at: one that waits for a dead server can hold up the
        reader.
        """
        groups = candidates(self.root, self.policy, self.outside, self.ground.nodes(), place)
        if groups is None:
            return None
        facts, sight, network = groups.facts, groups.sight, groups.facts.network
        alive = [case for case in groups.cases if not silent(case, network)]
        if alive:
            devices = frozenset[str]().union(*(case.devices for case in alive))
            sight = self.ground.sight(devices, [name for case in alive for name in case.units])
        drawn = [
            (plan_remount(case, silent(case, network)), places(case, network))
            for case in cases(facts, sight, place)
        ]
        return GroupPlans(
            tuple(_Again(plan, where) for plan, where in drawn if isinstance(plan, RemountPlan)),
            tuple(plan for plan, _ in drawn if isinstance(plan, Left)),
        )

    def same(self, plan: _Again) -> object:
        return plan.plan.going, plan.plan.coming, plan.plan.reload

    def lines(self, plan: _Again) -> Iterable[str]:
        return plan_lines(plan.plan)

    def untouched(self, plan: _Again, result: Result, reason: str = "") -> Iterable[Ended]:
        return planned(plan.plan, result, reason)

    def carry_out(self, plan: _Again, signals: Sequence[int]) -> Iterable[Ended]:
        return carry_out(plan.plan, self.ground.hands(plan.places, signals))

    def cells(self, one: Ended) -> tuple[str, ...]:
        return remount_cells(one)

    def afterwards(self, _plans: Sequence[_Again], ended: Sequence[Ended]) -> Iterable[str]:
        yield from finish_lines(ended)
        if any(one.result is Result.DONE for one in ended):
            yield _READ_AHEAD


def remount(
    root: Root, wish: GroupWish, ground: RemountGround | None = None, outside: Outside | None = None
) -> int:
    """Show the plan, ask, carry it out, and print what came of it.

    A test answers as `ground` and `outside`.
    """
    if wish.point != ALL and not wish.point.startswith("/"):
        raise click.UsageError(f"--remount takes a mount point, which begins with a slash, or {ALL}")
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    change = _Remount(root, policy, ground or MountGround(root), outside or live_outside(root))
    return change_groups(change, wish, root.path(LOCK))
