"""What `apply --live` plans and has done, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nfstuned.core.render import count, printable
from nfstuned.model.live import LivePlan
from nfstuned.model.remount import Ended
from nfstuned.model.work import Result

SWITCHES = "/sys/kernel/sunrpc/xprt-switches"


def planned(plan: LivePlan, result: Result = Result.PLANNED, reason: str = "") -> tuple[Ended, ...]:
    """Return the mounts of a plan that was not carried out."""
    return tuple(Ended(point, plan.old, plan.new, result, reason or plan.reason) for point in plan.points)


def plan_lines(plan: LivePlan) -> Iterator[str]:
    """Yield what will happen, and to which file it is written."""
    mounts, more = count(len(plan.points), "mount"), count(plan.adding, "connection")
    yield f"{mounts} of one server, connections {plan.old} -> {plan.new} ({printable(plan.reason)}):"
    yield f"  add {more} through {SWITCHES}/{plan.switch.name}/add_xprt, one by one"
    spot = printable(plan.spot.point)
    yield f"  after each, send requests over {spot}, and take all back if a connection carries none"


def live_cells(one: Ended) -> tuple[str, ...]:
    """Return a mount's line, in the columns of `outcome_cells`."""
    change = f"connections {one.old} -> {one.new}"
    return printable(one.point), change, one.result.value, f"({printable(one.reason)})"


def lasting(plans: Sequence[LivePlan]) -> Iterator[str]:
    """Yield what is to be known of connections that were added."""
    for shown in sorted({plan.shown for plan in plans}):
        yield f"They last until the mounts are unmounted; /proc/mounts goes on to show nconnect={shown}."
