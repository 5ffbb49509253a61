"""Values to what programs and people read: the JSON contracts, and the cells and lines of text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nfstuned.model.change import Change, ImageChange, Kind, SectionChange
from nfstuned.model.mounts import Outcome, Result
from nfstuned.model.status import StatusRow, StatusRules
from nfstuned.parse.fields import count

Document = dict[str, object]

STATUS_KEYS = (
    "mount_point",
    "source",
    "fstype",
    "device",
    "provider",
    "profile",
    "read_ahead_kb",
    "read_ahead_target_kb",
    "nconnect_requested",
    "nconnect_requested_by",
    "nconnect",
    "nconnect_target",
    "connections",
)
STATUS_HEADER = ("MOUNT", "SERVER", "PROFILE", "READ-AHEAD KiB", "", "NCONNECT", "", "CONN")
"""Read-ahead is now/target, nconnect requested/now/target; the column after each says how that is."""
NONE = "-"
_AGAIN = "sudo nfstuned apply --remount --all"
_FIRST = f"which only the first mount of a server sets: {_AGAIN}"
_NOBODY = f"which nothing asks for: sudo nfstuned apply --persist (or --fstab), then {_AGAIN}"
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF
"""How a byte that is not UTF-8 looks in a string (PEP 383)."""


def to_json(document: Document) -> str:
    """Return a document as text: ASCII, bytes that are not UTF-8 as escaped lone surrogates."""
    return json.dumps(document, indent=2)


def status_document(rows: Sequence[StatusRow], rules: Sequence[StatusRules]) -> Document:
    """Return `nfstuned.status/1` (docs/schema/nfstuned.status.1.json)."""
    mounts = [{key: getattr(row, key) for key in STATUS_KEYS} for row in rows]
    writers = [{"file": one.file, "masked_by": one.masked_by} for one in rules]
    return {"schema": "nfstuned.status/1", "mounts": mounts, "udev_rules": writers}


def rule_lines(rules: Sequence[StatusRules]) -> tuple[str, ...]:
    """Return who writes read-aheads beside the service, and who is kept from it."""
    return tuple(
        f"udev: {one.file} is masked by {one.masked_by} while the service runs"
        if one.masked_by
        else f"udev: {one.file} writes read-aheads, too: nfstuned check"
        for one in rules
    )


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


def read_ahead_mark(row: StatusRow) -> str:
    """Return in a word how the read-ahead is: ok, low, high, undone, unknown, or "-" without a target."""
    now, target = row.read_ahead_kb, row.read_ahead_target_kb
    if target is None:
        return NONE
    if now is None:
        return "unknown"
    if now == target or (now > target and not row.lower):
        return "ok"
    if row.undone:
        return "undone"
    return "low" if now < target else "high"


def nconnect_mark(row: StatusRow) -> str:
    """Return in a word how nconnect is: ok, low, high, ignored (not what was asked for), or "-"."""
    carrying = max(row.nconnect, row.nconnect_carrying or 0)
    if row.nconnect_target is not None and carrying < row.nconnect_target:
        return "low"
    if row.nconnect_max is not None and row.nconnect > row.nconnect_max:
        return "high"
    if row.nconnect_requested is not None and not row.nconnect <= row.nconnect_requested <= carrying:
        return "ignored"
    return NONE if row.nconnect_target is None else "ok"


def status_cells(row: StatusRow) -> tuple[str, ...]:
    """Return a row under STATUS_HEADER."""
    return (
        printable(row.mount_point),
        printable(row.source),
        text(row.profile),
        f"{text(row.read_ahead_kb)}/{text(row.read_ahead_target_kb)}",
        read_ahead_mark(row),
        f"{text(row.nconnect_requested)}/{row.nconnect}/{text(row.nconnect_target)}",
        nconnect_mark(row),
        text(row.connections),
    )


def hints(rows: Sequence[StatusRow], unseen: Sequence[str]) -> tuple[str, ...]:
    """Return what to do about what is not as it should be, one line each."""
    wrong = sum(1 for row in rows if read_ahead_mark(row) in {"low", "high"})
    undone = sum(1 for row in rows if read_ahead_mark(row) == "undone")
    few = [row for row in rows if nconnect_mark(row) == "low"]
    unasked = sum(1 for row in few if _most_asked(row) < (row.nconnect_target or 1))
    asked = len(few) - unasked
    ignored = sum(1 for row in rows if nconnect_mark(row) == "ignored")
    lines = (
        (wrong, f"{count(wrong, 'mount')} off the profile's read-ahead: sudo nfstuned apply"),
        (undone, f"{count(undone, 'mount')} undone by the administrator; to tune again: sudo nfstuned apply"),
        (unasked, f"{count(unasked, 'mount')} below the profile's nconnect, {_NOBODY}"),
        (asked, f"{count(asked, 'mount')} below the profile's nconnect, {_FIRST}"),
        (ignored, f"{count(ignored, 'mount')} without the nconnect that was asked for, {_FIRST}"),
        (len(unseen), f"{count(len(unseen), 'file system')} without a visible mount: {', '.join(unseen)}"),
    )
    return tuple(line for number, line in lines if number)


def _most_asked(row: StatusRow) -> int:
    """Return what a mount asked for, or what it asks for the next time where files say more since."""
    return max(row.nconnect_requested or 1, row.nconnect_coming or 1)


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
    if change.kind is Kind.FILE:
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


def text(value: object) -> str:
    """Return a cell's text; "-" for what is not there."""
    return NONE if value is None else str(value)


def printable(name: str) -> str:
    r"""Return a name as a terminal may show it: control characters and stray bytes as `\x0a`.

    A server or a user chooses names; they must not move the cursor or begin a line of their own.
    """
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _escape(char) for char in name)


def _escape(char: str) -> str:
    code = ord(char)
    if _FIRST_BYTE <= code <= _LAST_BYTE:
        return f"\\x{code - _FIRST_BYTE + 0x80:02x}"
    return char.encode("unicode_escape").decode("ascii")


def shorten(name: str, width: int) -> str:
    """Return a name cut in its middle to `width` characters: server and export both stay recognisable."""
    if len(name) <= width:
        return name
    kept = width - len("...")
    head = (kept + 1) // 2
    return f"{name[:head]}...{name[len(name) - (kept - head) :]}"
