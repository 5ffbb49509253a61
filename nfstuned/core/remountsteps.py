"""The order of a remount, and what is done when a step fails: whoever carries it out is given as `hands`.

All mounts go, then the connections must be gone, then all come back. When something fails before that, what
is gone comes back as it was; when something fails after that, everything else comes back all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nfstuned.model.remount import Ended, Hands, Part, Plan, Way
from nfstuned.model.work import Result


@dataclass
class _Run:
    """A plan under way."""

    plan: Plan
    hands: Hands
    problem: str = ""
    """The first thing that failed; from then on everything is to be as it was."""
    failures: dict[str, str] = field(default_factory=dict)
    """By mount point: what failed there."""


def carry_out(plan: Plan, hands: Hands) -> tuple[Ended, ...]:
    """Do what is planned, or put everything back; return what came of each mount, as it is now."""
    run = _Run(plan, hands)
    _unmount_all(run)
    _mount_all(run)
    return tuple(_ended(part, run) for part in sorted(plan.coming, key=lambda part: part.point))


def _unmount_all(run: _Run) -> None:
    run.problem = run.hands.reload(run.plan) if run.plan.reload else ""
    for part in run.plan.going:
        if run.problem:
            return
        said = run.hands.unmount(part)
        if run.hands.mounted(part.point):
            why = said or "it is still mounted, or somebody mounted it again at once"
            run.problem = f"{part.point} could not be unmounted: {why}"
    said = "" if run.problem else run.hands.held(run.plan)
    # An automount may have brought one back already, with the number that all are to have.
    right = said and any(run.hands.nconnect(part.point) == run.plan.new for part in run.plan.coming)
    run.problem = run.problem or ("" if right else said)


def _mount_all(run: _Run) -> None:
    """Mount all that is not: a mount that fails is no reason to leave another one away."""
    for part in run.plan.coming:
        if run.hands.mounted(part.point):
            continue
        if outer := _missing(part, run):
            # It would be hidden, or end up in the folder below the outer one.
            run.failures[part.point] = f"it lies in {outer}"
            continue
        ways = part.back if run.problem else _with_fallback(part)
        why = _mount(part, ways, run.hands)
        if why:
            run.failures[part.point] = why
            run.problem = run.problem or f"{part.point} could not be mounted: {why}"


def _missing(part: Part, run: _Run) -> str:
    """Return which mount that a mount lies in is not there; "" for none."""
    outer = (one.point for one in run.plan.coming if _lies_in(part, one))
    return next((point for point in outer if not run.hands.mounted(point)), "")


def _with_fallback(part: Part) -> Sequence[Way]:
    return (part.make,) if part.before is None else (part.make, part.before)


def _mount(part: Part, ways: Sequence[Way], hands: Hands) -> str:
    """Mount by the first way that does it; return why the first one did not, "" where it did."""
    said = ""
    for way in ways:
        why = hands.mount(way)
        if hands.mounted(part.point):
            break
        said = said or f"{way}: {why or 'it ended well, and nothing is mounted'}"
    return said


def _lies_in(inner: Part, outer: Part) -> bool:
    return inner.point.startswith(outer.point.rstrip("/") + "/")


def _ended(part: Part, run: _Run) -> Ended:
    plan, own = run.plan, run.failures.get(part.point, "")
    if not run.hands.mounted(part.point):
        way = part.make if part.from_file or part.before is None else part.before
        why = own or "it was unmounted since"
        reason = f"not mounted now: {why}"
        return Ended(part.point, plan.old, plan.new, Result.FAILED, reason, mounted=False, way=way)
    count = run.hands.nconnect(part.point)
    if count == plan.new and not own:
        return Ended(part.point, plan.old, plan.new, Result.DONE, plan.reason)
    again = "it is mounted, with the options from before" if own else "it is mounted"
    why = own or run.problem or "another mount of the server came first"
    return Ended(part.point, plan.old, plan.new, Result.FAILED, f"{why}; {again} and has nconnect={count}")
