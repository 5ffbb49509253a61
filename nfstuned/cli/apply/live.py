"""`nfstuned apply --live`: add connections to mounts that stay mounted, where that was proven to be safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import click

from nfstuned.cli.apply.groups import ALL, GroupPlans, GroupWish, candidates, change_groups
from nfstuned.cli.apply.read_ahead import COULD_NOT_TRY
from nfstuned.cli.policy import usable_policy
from nfstuned.cli.talk import live_outside
from nfstuned.core.nconnect.busy import unanswered
from nfstuned.core.nconnect.live import carry_out, plan_live
from nfstuned.errors import ParseError
from nfstuned.host.change.live import SunrpcGround
from nfstuned.host.change.remount import LOCK
from nfstuned.host.network.ask import Outside
from nfstuned.host.root import Root
from nfstuned.model.connections import (
    LIVE_KIND,
    ConnectionHands,
    Ended,
    Left,
    LivePlan,
    MountNode,
    SwitchSeen,
)
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.view.change import lasting, live_cells, live_lines, planned_live


class LiveGround(Protocol):
    """The host beyond the files that every command reads. A test has one of its own."""

    def obstacle(self) -> str:
        """Return why no connection can be added from here, "" where one can."""

    def nodes(self) -> tuple[MountNode, ...]:
        """Return all mounts of this mount namespace."""

    def switches(self, devices: frozenset[str]) -> Mapping[str, SwitchSeen | ParseError | None]:
        """Return the connections of superblocks."""

    def hands(self, plan: LivePlan, signals: Sequence[int]) -> ConnectionHands:
        """Return who carries out a plan."""


@dataclass(frozen=True, slots=True)
class _Live:
    """The change of this command, and where it happens."""

    kind: ClassVar[str] = LIVE_KIND
    question: ClassVar[str] = "Add them?"
    nothing: ClassVar[str] = (
        "Nothing to do: the mounts have the connections that their profiles and files ask for."
    )
    root: Root
    policy: Policy
    ground: LiveGround
    outside: Outside

    def obstacle(self) -> str:
        return self.ground.obstacle()

    def look(self, place: str | None) -> GroupPlans[LivePlan] | None:
        groups = candidates(self.root, self.policy, self.outside, self.ground.nodes(), place)
        if groups is None:
            return None
        network = groups.facts.network
        switches = self.ground.switches(frozenset[str]().union(*(case.devices for case in groups.cases)))
        drawn = [
            plan_live(case, switches, unanswered(case, network))
            for case in groups.cases
            if place is not None or case.goal.new > case.goal.old
        ]
        return GroupPlans(
            tuple(plan for plan in drawn if isinstance(plan, LivePlan)),
            tuple(plan for plan in drawn if isinstance(plan, Left)),
        )

    def same(self, plan: LivePlan) -> object:
        return plan.same

    def lines(self, plan: LivePlan) -> Iterable[str]:
        return live_lines(plan)

    def untouched(self, plan: LivePlan, result: Result, reason: str = "") -> Iterable[Ended]:
        return planned_live(plan, result, reason)

    def carry_out(self, plan: LivePlan, signals: Sequence[int]) -> Iterable[Ended]:
        return carry_out(plan, self.ground.hands(plan, signals))

    def cells(self, one: Ended) -> tuple[str, ...]:
        return live_cells(one)

    def afterwards(self, plans: Sequence[LivePlan], ended: Sequence[Ended]) -> Iterable[str]:
        done = {one.point for one in ended if one.result is Result.DONE}
        return lasting([plan for plan in plans if done & set(plan.points)])


def live(
    root: Root, wish: GroupWish, ground: LiveGround | None = None, outside: Outside | None = None
) -> int:
    """Show the plan, ask, carry it out, and print what came of it.

    A test answers as `ground` and `outside`.
    """
    if wish.point != ALL and not wish.point.startswith("/"):
        raise click.UsageError(
            "--live takes a mount point, which begins with a slash, or nothing for all mounts"
        )
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    change = _Live(root, policy, ground or SunrpcGround(root), outside or live_outside(root))
    return change_groups(change, wish, root.path(LOCK))
