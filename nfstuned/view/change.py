"""Changes of mounts, files and images, planned and done, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff

from nfstuned.model.change import IMAGE_KINDS, Argv, Change, ChangeKind, RemountPlan
from nfstuned.model.mounts import Result
from nfstuned.parse.fields import count, mask_row, shell_line
from nfstuned.view.words import DASH, Document, cell, printable, wrapped

_LEAST_WIDTH, _RESULT_WIDTH = 30, 9
"""The least width of a change, and the width of the result before it."""
_UNENDED = "\\ No newline at end of file"


def apply_document(changes: Sequence[Change]) -> Document:
    """Return `nfstuned.apply/1` (docs/schema/nfstuned.apply.1.json), which undo prints, too."""
    return {"schema": "nfstuned.apply/1", "actions": [_action(change) for change in changes]}


def bake_document(root: str, changes: Sequence[Change]) -> Document:
    """Return `nfstuned.bake/1` (docs/schema/nfstuned.bake.1.json) of the image in the folder `root`."""
    return {"schema": "nfstuned.bake/1", "root": root, "actions": [_action(change) for change in changes]}


def _action(change: Change) -> Document:
    action: Document = {"kind": change.kind.value, "target": change.target}
    if change.kind is ChangeKind.FSTAB:
        action["mount_point"] = change.place
    elif change.kind in IMAGE_KINDS:
        action["path"] = change.place or None
    command, reason = change.command, change.reason
    if command is not None:
        reason = f"{reason}; to finish: {_sudo(command)}"
    action |= {"old": change.old, "new": change.new, "outcome": change.result.value, "reason": reason}
    if change.kind is ChangeKind.REMOUNT:
        action |= {"mounted": change.mounted, "command": None if command is None else shell_line(command)}
    return action


def cells(change: Change) -> tuple[str, ...]:
    """Return the cells of a change: its target (in an image its file), the values, the result, the reason."""
    target = change.place or DASH if change.kind in IMAGE_KINDS else change.target
    return printable(target), _values(change), change.result.value, f"({printable(change.reason)})"


def _values(change: Change) -> str:
    kind = change.kind
    old, new = ("none" if value is None else value for value in (change.old, change.new))
    if kind is ChangeKind.READ_AHEAD:
        return f"read-ahead {old} -> {new} KiB"
    if kind is ChangeKind.FSTAB:
        return f"{printable(change.place)} nconnect {old} -> {new}"
    if kind is ChangeKind.PERSIST and old == new:
        return DASH
    if kind in {ChangeKind.PERSIST, ChangeKind.REMOUNT}:
        return f"nconnect {old} -> {new}"
    if kind is ChangeKind.FILE:
        return printable(cell(change.new))
    about = f"{kind.value} {change.target}"
    return printable(about if old == new else f"{about} {old} -> {new}")


def change_lines(change: Change, width: int) -> Iterator[tuple[str, str]]:
    """Yield a change in lines of this width, each behind the result: in the first line its text, then blanks.

    The target, the values and the reason share a line where they fit.
    """
    target, values, result, reason = cells(change)
    lines, room = [""], max(_LEAST_WIDTH, width - _RESULT_WIDTH)
    for part in (target, values, reason):
        joined = f"{lines[-1]}  {part}".strip()
        if part != DASH:
            fits = len(joined) <= room
            lines[-1:] = [joined] if fits else [*filter(None, lines[-1:]), *wrapped(part, room)]
    for line in lines:
        yield f"{result:{_RESULT_WIDTH}}", line
        result = ""


def summary(changes: Sequence[Change]) -> str:
    """Return the counts of results in one line: "2 done, 1 failed"."""
    numbers = {result: sum(1 for change in changes if change.result is result) for result in Result}
    return ", ".join(f"{number} {result.value}" for result, number in numbers.items() if number)


def remount_lines(plan: RemountPlan) -> Iterator[str]:
    """Yield the number of mounts, and the commands in their order."""
    mounts = count(len(plan.going), "mount")
    yield f"{mounts} of one server, nconnect {plan.old} -> {plan.new} ({printable(plan.reason)}):"
    for command in plan.commands:
        yield f"  {printable(shell_line(command))}"


def finish_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield the commands for the mounts that a remount left unmounted."""
    commands = [change.command for change in changes if change.command is not None]
    if commands:
        yield "These are not mounted now; to finish:"
        yield from (f"  {printable(_sudo(command))}" for command in commands)


def _sudo(command: Argv) -> str:
    return f"sudo {shell_line(command)}"


def diff_lines(old: str, new: str, name: str) -> Iterator[str]:
    r"""Yield the lines of a unified diff, as diff -u would; no line where both texts are the same.

    The texts are of fstab. Tabs stay; other control characters and stray bytes are shown as escapes, a CR as
    `\r`; secrets are masked.
    """
    header_lines = 2
    for number, line in enumerate(unified_diff(_lines(old), _lines(new), name, f"{name} (new)", lineterm="")):
        body = line.removesuffix("\n")
        yield "\t".join(printable(part) for part in mask_row(body).split("\t"))
        if number >= header_lines and body == line and not line.startswith("@@"):
            yield _UNENDED


def _lines(content: str) -> list[str]:
    # str.splitlines() would also split at other characters.
    lines = [line + "\n" for line in content.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines
