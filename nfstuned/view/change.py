"""Changes of mounts and files, planned and done, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from nfstuned.model.change import Change, ImageChange, ImageKind, SectionChange
from nfstuned.model.connections import REMOUNT_KIND, Ended, Left, LivePlan, RemountPlan, Way
from nfstuned.model.mounts import Outcome, Result
from nfstuned.parse.fields import count
from nfstuned.view.words import NONE, Document, printable, text

SWITCHES = "/sys/kernel/sunrpc/xprt-switches"


def planned_live(plan: LivePlan, result: Result = Result.PLANNED, reason: str = "") -> tuple[Ended, ...]:
    """Return the mounts of a plan that was not carried out."""
    return tuple(Ended(point, plan.old, plan.new, result, reason or plan.reason) for point in plan.points)


def live_lines(plan: LivePlan) -> Iterator[str]:
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


def planned(plan: RemountPlan, result: Result = Result.PLANNED, reason: str = "") -> tuple[Ended, ...]:
    """Return the mounts of a plan that was not carried out."""
    points = sorted(part.point for part in plan.coming)
    return tuple(Ended(point, plan.old, plan.new, result, reason or plan.reason) for point in points)


def left(found: Left) -> tuple[Ended, ...]:
    """Return the mounts that are left as they are."""
    return tuple(Ended(point, found.old, found.new, found.result, found.reason) for point in found.points)


def remount_document(ended: Sequence[Ended], kind: str = REMOUNT_KIND) -> Document:
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


def plan_lines(plan: RemountPlan) -> Iterator[str]:
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


_UNENDED = "\\ No newline at end of file"


def diff_lines(old: str, new: str, name: str) -> Iterator[str]:
    r"""Yield the lines of a unified diff, as diff -u would; none where both texts are the same.

    Tabs stay; other control characters and stray bytes are shown as escapes, a CR as `\r`.
    """
    heads = 2
    for number, line in enumerate(unified_diff(_lines(old), _lines(new), name, f"{name} (new)", lineterm="")):
        body = line.removesuffix("\n")
        yield "\t".join(printable(part) for part in body.split("\t"))
        if number >= heads and body == line and not line.startswith("@@"):
            yield _UNENDED


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def changes_document(changes: Sequence[Change]) -> Document:
    """Return `nfstuned.apply/1` of changes of files."""
    actions = [
        {
            "kind": change.kind,
            "target": change.target,
            "mount_point": change.point,
            "old": change.old,
            "new": change.new,
            "outcome": change.result.value,
            "reason": change.reason,
        }
        for change in changes
    ]
    return {"schema": "nfstuned.apply/1", "actions": actions}


def sections_document(changes: Sequence[SectionChange]) -> Document:
    """Return `nfstuned.apply/1` of sections of nfstuned's own drop-in."""
    actions = [
        {
            "kind": "persist",
            "target": change.server,
            "old": change.old,
            "new": change.new,
            "outcome": change.result.value,
            "reason": change.reason,
        }
        for change in changes
    ]
    return {"schema": "nfstuned.apply/1", "actions": actions}


def apply_document(outcomes: Sequence[Outcome]) -> Document:
    """Return `nfstuned.apply/1` (docs/schema/nfstuned.apply.1.json), which undo prints, too."""
    actions = [
        {
            "kind": outcome.action.kind,
            "target": outcome.action.target,
            "old": outcome.action.old_kb,
            "new": outcome.action.new_kb,
            "outcome": outcome.result.value,
            "reason": outcome.reason,
        }
        for outcome in outcomes
    ]
    return {"schema": "nfstuned.apply/1", "actions": actions}


def bake_document(root: str, changes: Sequence[ImageChange]) -> Document:
    """Return `nfstuned.bake/1` (docs/schema/nfstuned.bake.1.json)."""
    actions = [
        {
            "kind": change.kind.value,
            "target": change.target,
            "path": change.path or None,
            "old": change.old,
            "new": change.new,
            "outcome": change.result.value,
            "reason": change.reason,
        }
        for change in changes
    ]
    return {"schema": "nfstuned.bake/1", "root": root, "actions": actions}


def outcome_cells(outcome: Outcome) -> tuple[str, ...]:
    """Return an outcome's line: what, the change, what came of it, why."""
    action = outcome.action
    change = f"{action.kind} {action.old_kb} -> {action.new_kb} KiB"
    return printable(action.target), change, outcome.result.value, f"({printable(outcome.reason)})"


def change_cells(change: Change) -> tuple[str, ...]:
    """Return a change's line, in the columns of `outcome_cells`."""
    old = "none" if change.old is None else change.old
    what = f"{printable(change.point)} nconnect {old} -> {change.new}"
    return printable(change.target), what, change.result.value, f"({printable(change.reason)})"


def section_cells(change: SectionChange) -> tuple[str, ...]:
    """Return a section's line, in the columns of `outcome_cells`."""
    old, new = ("none" if number is None else number for number in (change.old, change.new))
    what = NONE if change.old == change.new else f"nconnect {old} -> {new}"
    return printable(change.server), what, change.result.value, f"({printable(change.reason)})"


def image_cells(change: ImageChange) -> tuple[str, ...]:
    """Return a change's line, in the columns of `outcome_cells`: the file, what it is about, and so on."""
    if change.kind is ImageKind.FILE:
        what = text(change.new)
    elif change.old == change.new:
        what = f"{change.kind.value} {change.target}"
    else:
        old = "none" if change.old is None else change.old
        new = "none" if change.new is None else change.new
        what = f"{change.kind.value} {change.target} {old} -> {new}"
    path = printable(change.path) or NONE
    return path, printable(what), change.result.value, f"({printable(change.reason)})"


def summary(outcomes: Sequence[Outcome | Change | SectionChange | ImageChange]) -> str:
    """Return the counts of outcomes in one line: "2 done, 1 failed"."""
    numbers = {result: sum(1 for outcome in outcomes if outcome.result is result) for result in Result}
    return ", ".join(f"{number} {result.value}" for result, number in numbers.items() if number)
