"""What differs between two looks at one superblock, read from the kernel's text only where it differs.

MountStats are read already. Of a Stanza, a section that stayed the same is not read at all, and of its
operations only the lines that changed. A test holds both to the same rates (tests/core/test_differences.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import compress
from operator import attrgetter, ne
from typing import NamedTuple

from nfstuned.model.kernel import ByteCounters, MountStats, OpCounters, Stanza, Transport
from nfstuned.parse.mountstats import Row, operation_row, parse_transports, total_row

_UNUSED = (0,) * 9
_NOTHING = (0,) * 8
_total_row = attrgetter(*(field.name for field in fields(ByteCounters)))
_operation_row = attrgetter(*(field.name for field in fields(OpCounters)))


class Elsewhere(NamedTuple):
    """Operations that are counted at another superblock, and how their lines changed there.

    They change in all mounts of a server at once, mostly in the same way: where nothing else did, nothing is
    to be read.
    """

    names: frozenset[str]
    lines: tuple[tuple[bytes, bytes], ...] = ()

    def undone(self, text: bytes) -> bytes:
        """Return the text as it was before these changes."""
        for old, new in self.lines:
            text = text.replace(new, old)
        return text


NOTHING_ELSEWHERE = Elsewhere(frozenset())


class ResetError(Exception):
    """A counter fell, or grew beyond reason, or is not there: it is not the one that was seen before."""


def totals(before: MountStats | Stanza, now: MountStats | Stanza) -> tuple[Row, Row]:
    """Return the numbers of `bytes:`, or one object twice where nothing changed; ResetError, ParseError."""
    if isinstance(before, Stanza) and isinstance(now, Stanza):
        if before.totals is None or now.totals is None:
            raise ResetError
        if before.totals == now.totals:
            return _NOTHING, _NOTHING
        return total_row(before.totals), total_row(now.totals)
    if isinstance(before, Stanza) or isinstance(now, Stanza) or before.bytes is None or now.bytes is None:
        raise ResetError
    return _total_row(before.bytes), _total_row(now.bytes)


def elsewhere(before: MountStats | Stanza, now: MountStats | Stanza, names: frozenset[str]) -> Elsewhere:
    """Return that these operations were counted at this superblock, and how their lines changed here."""
    if not (isinstance(before, Stanza) and isinstance(now, Stanza)):
        return Elsewhere(names)
    old, new = before.operations.split(b"\n"), now.operations.split(b"\n")
    pairs = zip(old, new, strict=False)
    return Elsewhere(
        names, tuple((a, b) for a, b in pairs if a != b and _name(a) == _name(b) and _name(a) in names)
    )


def operations(
    before: MountStats | Stanza, now: MountStats | Stanza, counted: Elsewhere = NOTHING_ELSEWHERE
) -> Iterator[tuple[str, Row, Row]]:
    """Yield the operations whose counters differ, as they were and are. Raises ResetError, ParseError.

    An operation that the later look alone shows was never used before. Those counted elsewhere are left out.
    """
    without = counted.names
    if isinstance(before, Stanza) and isinstance(now, Stanza):
        if before.operations == now.operations or before.operations == counted.undone(now.operations):
            return
        earlier, later = _changed(before.operations, now.operations, without)
    elif isinstance(before, Stanza) or isinstance(now, Stanza):
        raise ResetError
    else:
        earlier, later = _rows(before, without), _rows(now, without)
    if not earlier.keys() <= later.keys():
        raise ResetError
    for name, new in later.items():
        old = earlier.get(name, _UNUSED)
        if old != new:
            yield name, old, new


def transports(stats: MountStats | Stanza) -> tuple[Transport, ...]:
    """Return the connections in their order; ParseError for any damage."""
    return parse_transports(stats.transports) if isinstance(stats, Stanza) else stats.transports


def _changed(before: bytes, now: bytes, without: frozenset[str]) -> tuple[dict[str, Row], dict[str, Row]]:
    """Return the operations of the lines that differ; of all lines where they are of other operations."""
    old, new = before.split(b"\n"), now.split(b"\n")
    if len(old) == len(new):
        differ = list(map(ne, old, new))
        less, more = list(compress(old, differ)), list(compress(new, differ))
        names = list(map(_name, more))
        if names == list(map(_name, less)):
            wanted = [name not in without for name in names]
            return _used(compress(less, wanted)), _used(compress(more, wanted))
    return _but(_used(old), without), _but(_used(new), without)


def _name(line: bytes) -> str:
    return line.partition(b": ")[0].strip().decode("utf-8", "surrogateescape")


def _used(lines: Iterable[bytes]) -> dict[str, Row]:
    """Return the operations of these lines, as `ops` of MountStats without those that were never used."""
    rows = (row for row in map(operation_row, lines) if row is not None)
    return {name: row for name, row in rows if any(row)}


def _but(rows: dict[str, Row], without: frozenset[str]) -> dict[str, Row]:
    return {name: row for name, row in rows.items() if name not in without}


def _rows(stats: MountStats, without: frozenset[str]) -> dict[str, Row]:
    rows = ((name, _operation_row(counters)) for name, counters in stats.ops.items() if name not in without)
    return {name: row if row[-1] is not None else row[:-1] for name, row in rows}
