"""What `apply --remount` plans and has done, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nfstuned.core.render import Document, count, printable
from nfstuned.model.remount import KIND, Ended, Left, Plan, Way
from nfstuned.model.work import Result


def planned(plan: Plan, result: Result = Result.PLANNED, reason: str = "") -> tuple[Ended, ...]:
    """Return the mounts of a plan that was not carried out."""
    points = sorted(part.point for part in plan.coming)
    return tuple(Ended(point, plan.old, plan.new, result, reason or plan.reason) for point in points)


def left(found: Left) -> tuple[Ended, ...]:
    """Return the mounts that are left as they are."""
    return tuple(Ended(point, found.old, found.new, found.result, found.reason) for point in found.points)


def remount_document(ended: Sequence[Ended], kind: str = KIND) -> Document:
    """Return `nfstuned.apply/1` of mounts that were, or are to be, mounted again, or changed otherwise."""
    actions = [
        {
            "kind": kind,
            "target": one.point,
            "old": one.old,
            "new": one.new,
            "outcome": one.result.value,
            "reason": one.reason if one.way is None else f"{one.reason}; to finish: {_sudo(one.way)}",
            "mounted": one.mounted,
            "command": None if one.way is None else str(one.way),
        }
        for one in ended
    ]
    return {"schema": "nfstuned.apply/1", "actions": actions}


def remount_cells(one: Ended) -> tuple[str, ...]:
    """Return a mount's line, in the columns of `outcome_cells`."""
    change = f"nconnect {one.old} -> {one.new}"
    return printable(one.point), change, one.result.value, f"({printable(one.reason)})"


def remount_summary(ended: Sequence[Ended]) -> str:
    """Return the counts of outcomes in one line: "2 done, 1 failed"."""
    numbers = {result: sum(1 for one in ended if one.result is result) for result in Result}
    return ", ".join(f"{number} {result.value}" for result, number in numbers.items() if number)


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield what will happen: to how many mounts, and the commands in their order."""
    mounts = count(len(plan.going), "mount")
    yield f"{mounts} of one server, nconnect {plan.old} -> {plan.new} ({printable(plan.reason)}):"
    for way in plan.commands:
        yield f"  {printable(str(way))}"


def finish_lines(ended: Sequence[Ended]) -> Iterator[str]:
    """Yield what is still to be done where something is not mounted."""
    ways = [one.way for one in ended if one.way is not None]
    if ways:
        yield "These are not mounted now; to finish:"
        yield from (f"  {printable(_sudo(way))}" for way in ways)


def _sudo(way: Way) -> str:
    return f"sudo {way}"
