"""`nfstuned status` as the JSON contract nfstuned.status/1, and as the cells and lines of its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from nfstuned.core.mounts.status import StatusRow, StatusRules
from nfstuned.model.change import ChangeKind, NconnectStep
from nfstuned.model.mounts import Hold, PodVolume
from nfstuned.model.system import Unit
from nfstuned.parse.fields import count
from nfstuned.view.words import DASH, Document, cell, duration, printable

if TYPE_CHECKING:
    from nfstuned.model.effect import Seen

STATUS_KEYS = (
    "mount_point",
    "source",
    "fstype",
    "device",
    "provider",
    "profile",
    "read_ahead_kb",
    "read_ahead_target_kb",
    "adapted",
    "hold",
    "nconnect_requested",
    "nconnect_requested_by",
    "nconnect",
    "nconnect_target",
    "nconnect_depends",
    "connections",
    "stalled_s",
    "recovering",
    "stalled_operations",
)
STATUS_HEADER = ("MOUNT", "SERVER", "PROFILE", "READ-AHEAD KiB", "", "NCONNECT", "", "CONN")
"""READ-AHEAD is now/target and NCONNECT is requested/now/target; the column after it has the mark."""
DEPENDS = "depends"
ADAPTED = "adapted"
STALLED_HEADER = "STALLED"
"""The header of one more column, which the table has where any mount is stalled."""
_JOURNAL = "journalctl -u nfstuned"
_REMOUNT = "sudo nfstuned nconnect remount {}, which unmounts all mounts of the server for a moment"
_OTHERS_DECIDE = ", as other mounts of the server decide"
_HELD = {
    Hold.UNDONE: "undone by the administrator; to tune again",
    Hold.EXISTING: "mounted before the installation, left unchanged until the next boot; to tune now",
}
"""The words for each reason why the service leaves a mount alone."""
_COLUMNS = {
    "READ-AHEAD": "now/target in KiB",
    "NCONNECT": "requested/now/target; the first mount of a server decides for all of them",
    "CONN": "the connections that exist",
}
_WORDS = {
    "ok": "right: the target, or more where more is allowed",
    ADAPTED: "the target, to which the mount's reads have moved it (nfstuned.toml(5))",
    "low": "below the target",
    "high": "above the target or the profile's limit",
    "undone": "put back by nfstuned undo; left alone until nfstuned apply",
    "existing": "from before the installation; left alone until the next boot",
    "ignored": "another number than the mount asked for",
    "unknown": "could not be read",
    DEPENDS: "the vendor names several numbers: nfstuned why MOUNT",
    DASH: "nothing: not requested, no target, or not shown by the kernel",
    STALLED_HEADER: "for how long the server has left requests unanswered",
    "(recovering)": "the server answers again, and programs still wait",
}
"""The words of the table in `legend`."""
_OFF = {
    "low": "below the profile's nconnect",
    "high": "above the profile's nconnect",
    "ignored": "without the nconnect that they asked for",
}
"""The words for each mark of nconnect that is not right."""


def status_document(
    rows: Sequence[StatusRow], rules: Sequence[StatusRules], mode: str | None, service: Unit
) -> Document:
    """Return `nfstuned.status/1` (docs/schema/nfstuned.status.1.json); `mode` is the policy's."""
    mounts = [
        {key: getattr(row, key) for key in STATUS_KEYS}
        | _seen_document(row.seen)
        | (row.volume or PodVolume())._asdict()
        for row in rows
    ]
    writers = [{"file": rule.file, "masked_by": rule.masked_by} for rule in rules]
    head = {"schema": "nfstuned.status/1", "mode": mode, "service_active": service.active}
    return {**head, "mounts": mounts, "udev_rules": writers}


def _seen_document(seen: Seen | None) -> Document:
    change: Document | None = None
    if seen is not None and seen.effect is not None:
        before, after, unlike = seen.effect
        change = {"before": before._asdict(), "after": after._asdict(), "unlike": unlike or None}
    return {"bdp_bytes": seen and seen.bdp_bytes, "read_ahead_change": change}


def path_lines(rows: Sequence[StatusRow]) -> Iterator[str]:
    """Yield a line for each mount that the table names by its volume: the whole mount point."""
    for row in rows:
        if row.label:
            yield f"{printable(row.label)}: {printable(row.path)}"


def seen_lines(rows: Sequence[StatusRow]) -> Iterator[str]:
    """Yield a line for each mount with reads that the service saw: the last change, and its link."""
    from nfstuned.core.samples.effect import effect_text  # noqa: PLC0415 - few ask for it
    from nfstuned.core.samples.sample import amount  # noqa: PLC0415 - as above

    for row in rows:
        if row.seen is None:
            continue
        parts = [] if row.seen.effect is None else [effect_text(row.seen.effect)]
        if row.seen.bdp_bytes is not None:
            parts.append(f"in flight to fill the link: {amount(row.seen.bdp_bytes)}")
        if parts:
            yield f"{printable(row.mount_point)}: {'; '.join(parts)}"


def service_line(service: Unit) -> tuple[str, ...]:
    """Return the line on an installed service that does not run; none where nobody knows."""
    if not service.installed or service.active is not False:
        return ()
    return ("nfstuned.service does not run, and sets no new mount's read-ahead: systemctl status nfstuned",)


def rule_lines(rules: Sequence[StatusRules]) -> tuple[str, ...]:
    """Return the other writers of read-aheads, also those that the service masks."""
    return tuple(
        f"udev: {rule.file.rpartition('/')[2]} is masked while the service runs ({rule.masked_by})"
        if rule.masked_by
        else f"udev: {rule.file} writes read-aheads of NFS mounts, too"
        for rule in rules
    )


def read_ahead_mark(row: StatusRow) -> str:
    """Return the judgement on the read-ahead in a word; "-" without a target."""
    now, target = row.read_ahead_kb, row.read_ahead_target_kb
    if target is None:
        return DASH
    if now is None:
        return "unknown"
    if now == target or (now > target and not row.lower):
        return ADAPTED if row.adapted and now == target else "ok"
    if row.hold:
        return row.hold.value
    return "low" if now < target else "high"


def wait_reason(mount_point: str, row: StatusRow | None) -> str | None:
    """Return why `nfstuned wait` waits for a mount, None where it has its read-ahead; no `row`: no mount."""
    if row is None:
        return f"{mount_point}: no NFS mount is there"
    if read_ahead_mark(row) in {"ok", ADAPTED, DASH}:
        return None
    if row.hold:
        return f"{mount_point}: the service leaves it alone: {_HELD[row.hold]}: sudo nfstuned apply"
    now = "an unknown read-ahead" if row.read_ahead_kb is None else f"a read-ahead of {row.read_ahead_kb} KiB"
    return f"{mount_point}: it has {now} instead of {row.read_ahead_target_kb}: systemctl status nfstuned"


def nconnect_mark(row: StatusRow) -> str:
    """Return in a word how nconnect is: low, high, ignored, ok, or "-" where the profile names no number.

    "low" is below the profile's nconnect, "high" is above its nconnect_max, and "ignored" is another number
    than the mount asked for. The first of these that fits is returned.
    """
    carrying = max(row.nconnect, row.nconnect_carrying or 0)
    if row.nconnect_target is not None and carrying < row.nconnect_target:
        return "low"
    if row.nconnect_max is not None and row.nconnect > row.nconnect_max:
        return "high"
    if row.nconnect_requested is not None and not row.nconnect <= row.nconnect_requested <= carrying:
        return "ignored"
    return DASH if row.nconnect_target is None else "ok"


def stalled_cell(row: StatusRow) -> str:
    """Return for how long a mount has been stalled; "-" where nobody knows, or its server answers.

    "(recovering)" is added where the server answers again and programs still wait.
    """
    if not row.stalled_s:
        return DASH
    return f"{duration(row.stalled_s)}{' (recovering)' if row.recovering else ''}"


def status_cells(row: StatusRow) -> tuple[str, ...]:
    """Return a row under STATUS_HEADER; the nconnect of a vendor who names several numbers "depends"."""
    depends = row.nconnect_target is None and row.nconnect_depends
    return (
        printable(row.label or row.mount_point),
        printable(row.source),
        cell(row.profile),
        f"{cell(row.read_ahead_kb)}/{cell(row.read_ahead_target_kb)}",
        read_ahead_mark(row),
        f"{cell(row.nconnect_requested)}/{row.nconnect}/{DEPENDS if depends else cell(row.nconnect_target)}",
        nconnect_mark(row),
        cell(row.connections),
    )


def legend(rows: Sequence[StatusRow]) -> Iterator[str]:
    """Yield an empty line, and a line for each column and word that the table has."""
    if not rows:
        return
    stalled = [stalled_cell(row) for row in rows if row.stalled_s]
    cells = [text for row in rows for text in status_cells(row)[3:]]
    shown = {word for text in (*cells, *stalled) for word in text.replace("/", " ").split()}
    shown |= {STALLED_HEADER} if stalled else set()
    terms = _COLUMNS | {word: text for word, text in _WORDS.items() if word in shown}
    width = max(map(len, terms))
    yield ""
    yield from (f"{term:<{width}}  {text}" for term, text in terms.items())


def hints(
    rows: Sequence[StatusRow], unseen: Sequence[str], steps: Sequence[NconnectStep] = ()
) -> tuple[str, ...]:
    """Return a line for each kind of problem, with the number of its mounts and the remedy.

    `unseen` are the file systems without a visible mount, `steps` those of nconnect.
    """
    wrong = sum(1 for row in rows if read_ahead_mark(row) in {"low", "high"})
    adapted = sum(1 for row in rows if read_ahead_mark(row) == ADAPTED)
    held = Counter(row.hold for row in rows if read_ahead_mark(row) in _HELD)
    remedies = {point: f": {nconnect_remedy(step)}" for step in steps for point in step.points}
    off = Counter(
        (mark, remedies.get(row.mount_point, _OTHERS_DECIDE))
        for row in rows
        if (mark := nconnect_mark(row)) in _OFF
    )
    stalled = sum(1 for row in rows if row.stalled_s)
    lines = (
        (
            stalled,
            f"{count(stalled, 'mount')} with requests that the server leaves unanswered: nfstuned check",
        ),
        (adapted, f"{count(adapted, 'mount')} with a read-ahead that their reads moved: {_JOURNAL}"),
        (wrong, f"{count(wrong, 'mount')} off the profile's read-ahead: sudo nfstuned apply"),
        *((held[hold], f"{count(held[hold], 'mount')} {_HELD[hold]}: sudo nfstuned apply") for hold in _HELD),
        *(
            (number, f"{count(number, 'mount')} {_OFF[mark]}{remedy}")
            for (mark, remedy), number in off.items()
        ),
        (len(unseen), f"{count(len(unseen), 'file system')} without a visible mount: {', '.join(unseen)}"),
    )
    return tuple(line for number, line in lines if number)


def nconnect_remedy(step: NconnectStep, mounts: str = "--all") -> str:
    """Return the commands that lead to another number of connections, or why none does.

    `mounts` are the operand of `nfstuned nconnect remount`.
    """
    again = _REMOUNT.format(mounts)
    if step.file is None:
        return printable(step.obstacle) or again
    command = "fstab" if step.file is ChangeKind.FSTAB else "persist"
    after = f"for the next boot ({printable(step.obstacle)})" if step.obstacle else f"then {again}"
    return f"sudo nfstuned nconnect {command}, {after}"
