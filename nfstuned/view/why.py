"""`nfstuned why` as lines for people, and as the JSON contract nfstuned.why/1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nfstuned.core.mounts.status import StatusRow
from nfstuned.core.mounts.why import Origin, Why
from nfstuned.model.change import NconnectStep
from nfstuned.model.mounts import UTAB
from nfstuned.model.policy import WORKLOAD_MARK
from nfstuned.parse.fields import count, quote
from nfstuned.view.status import nconnect_mark, nconnect_remedy, read_ahead_mark
from nfstuned.view.words import DASH, Document, cell, printable, wrapped

CONFIG = "/etc/nfstuned/nfstuned.toml"
_LEAST = 30
"""The least width of the reasons' column; below it they have lines of their own."""


def why_document(why: Why, step: NconnectStep | None) -> Document:
    """Return `nfstuned.why/1` (docs/schema/nfstuned.why.1.json)."""
    row = why.row
    return {
        "schema": "nfstuned.why/1",
        "mount_point": row.mount_point,
        "source": row.source,
        "fstype": row.fstype,
        "device": row.device,
        "provider": row.provider,
        "profile": why.profile,
        "profile_reason": why.choice.why,
        "profile_place": why.choice.place or None,
        "read_ahead_kb": row.read_ahead_kb,
        "read_ahead_target_kb": row.read_ahead_target_kb,
        "read_ahead_origins": [_origin(origin) for origin in why.read_ahead],
        "nconnect_requested": row.nconnect_requested,
        "nconnect": row.nconnect,
        "nconnect_target": row.nconnect_target,
        "connections": row.connections,
        "nconnect_origins": [_origin(origin) for origin in why.nconnect],
        "remedies": list(remedies(why, step)),
    }


def _origin(origin: Origin) -> Document:
    return {"value": origin.value, "place": origin.place, "reason": origin.reason, "wins": origin.wins}


def why_lines(why: Why, step: NconnectStep | None, width: int | None) -> Iterator[str]:
    """Yield the lines for people; `width` is the terminal's, None for a file."""
    row = why.row
    yield f"{printable(row.mount_point)}  {printable(row.source)}  {row.fstype}  {row.device}"
    if why.profile is not None:
        reason = f"[[policy]] at {why.choice.place}" if why.choice.place else why.choice.why
        yield from wrapped(f"profile {why.profile}: {printable(reason)}", width)
    yield ""
    target = "" if row.read_ahead_target_kb is None else f", target {row.read_ahead_target_kb}"
    now = "unknown" if row.read_ahead_kb is None else f"{row.read_ahead_kb} KiB now"
    yield f"Read-ahead: {now}{target}{_judgement(read_ahead_mark(row))}"
    yield from _table(why.read_ahead, width)
    yield ""
    asked = "none" if row.nconnect_requested is None else str(row.nconnect_requested)
    target = "" if row.nconnect_target is None else f", target {row.nconnect_target}"
    yield (
        f"nconnect: {row.nconnect} now, {asked} requested{target}"
        f"{_judgement(nconnect_mark(row))}; {_connections(row)}"
    )
    yield from _table(why.nconnect, width)
    for number, remedy in enumerate(remedies(why, step)):
        yield from wrapped(remedy, width) if number else ("", *wrapped(remedy, width))


def _judgement(mark: str) -> str:
    return "" if mark == DASH else f": {mark}"


def _connections(row: StatusRow) -> str:
    if row.connections is None:
        return "connections unknown"
    more = (row.nconnect_carrying or 0) > row.nconnect
    added = f", {row.nconnect_carrying} with requests" if more else ""
    return f"{count(row.connections, 'connection')}{added}"


def _table(origins: Sequence[Origin], width: int | None) -> Iterator[str]:
    """Yield a line for each place; reasons go on in further lines where the width asks for it."""
    values = max(len(cell(origin.value)) for origin in origins)
    places = max(len(printable(origin.place)) for origin in origins)
    indent = 2 + values + 2 + places + 2
    beside = width is None or width - indent >= _LEAST
    indent = indent if beside else 2 + values + 4
    for origin in origins:
        mark = "*" if origin.wins else " "
        lead = f"{mark} {cell(origin.value):>{values}}  {printable(origin.place):<{places}}"
        lines = wrapped(printable(origin.reason), None if width is None else max(width - indent, _LEAST))
        if beside:
            lead, lines = f"{lead}  {lines[0]}", lines[1:]
        yield lead.rstrip()
        yield from (" " * indent + line for line in lines if line)


def remedies(why: Why, step: NconnectStep | None) -> Iterator[str]:
    """Yield the commands that bring the targets, or else the files that have the numbers."""
    row, mark = why.row, read_ahead_mark(why.row)
    if mark in {"low", "high", "undone", "existing"} or why.is_earlier:
        yield "To set the read-ahead: sudo nfstuned apply"
    if step is not None:
        yield f"To change the connections: {nconnect_remedy(step, quote(row.mount_point))}"
    elif mark in {"ok", "adapted", DASH} and row.profile is not None:
        profile, _, work = row.profile.partition(WORKLOAD_MARK)
        table = f"workload.{work}" if why.wanted.startswith("built-in workload") else f"profile.{profile}"
        place = why.wanted if ".toml:" in why.wanted else f"read_ahead_kb of [{table}] in {CONFIG}"
        asks = next((origin.place for origin in why.nconnect if _is_line(origin)), "")
        yield f"To have other numbers: {place}{f'; nconnect: {asks}' if asks else ''}"


def _is_line(origin: Origin) -> bool:
    """Whether somebody can edit it."""
    return origin.place.startswith("/") and ":" in origin.place and not origin.place.startswith(UTAB)
