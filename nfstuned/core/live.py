"""Which transport groups get connections while they are mounted, and why others do not."""

from __future__ import annotations

from collections.abc import Mapping

from nfstuned.core.endpoint import NFS_PORT
from nfstuned.core.groups import Groups, members
from nfstuned.core.livechecks import AGAINST, BY_OPTIONS, Sought
from nfstuned.core.remountcase import Case
from nfstuned.core.remountgoal import goal
from nfstuned.core.remountservers import servers
from nfstuned.errors import ParseError
from nfstuned.model.facts import Facts, Target
from nfstuned.model.live import LivePlan, Spot, SwitchSeen
from nfstuned.model.remount import Left, Sight

Switches = Mapping[str, SwitchSeen | ParseError | None]
"""By the device number of a superblock."""


def plan_live(case: Case, switches: Switches, silent: str = "") -> LivePlan | Left:
    """Return what is added to a group, or why nothing is; `silent` is why its server does not answer."""
    sought = Sought(case, tuple(switches.get(device) for device in sorted(case.devices)))
    against = next((why for check in AGAINST if (why := check(sought))), "") or silent
    spot = _spot(case)
    if against or spot is None:
        unknown = "the mount has no superblock or no counters that could be read"
        return Left(_points(case), case.goal.old, case.goal.new, against or unknown)
    return LivePlan(
        points=_points(case),
        old=sought.switch.info.active,
        new=case.goal.new,
        shown=case.group[0].options.number("nconnect") or 1,
        reason=case.goal.reason,
        spot=spot,
        switch=sought.switch,
        place=next(iter(servers(case)), ("", NFS_PORT)),
    )


def promising(target: Target, facts: Facts, known: Groups) -> bool:
    """Return whether nothing in the options of a live mount's group is against it: the rest is tried."""
    group = members(target, facts, known) if target.live is not None else ()
    found = goal(group, facts, known) if group else None
    if found is None:
        return False
    sought = Sought(Case(facts, Sight(), group, group, (), found), ())
    return not any(check(sought) for check in BY_OPTIONS)


def _points(case: Case) -> tuple[str, ...]:
    return tuple(sorted(one.point for one in case.group))


def _spot(case: Case) -> Spot | None:
    """Return the mount over which its connections are tried; one that a file or somebody asked for."""
    return next((spot for one in (*case.parts, *case.own) if (spot := _of(one)) is not None), None)


def _of(target: Target) -> Spot | None:
    block, live = target.superblock, target.live
    if block is None or block.bdi is None or live is None or target.stats is None:
        return None
    return Spot(target.point, live.mount_id, target.source, block.device, block.bdi)
