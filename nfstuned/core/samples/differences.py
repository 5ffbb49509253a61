"""What differs between two looks at one superblock, read from the kernel's text only where it differs.

A section that stayed the same is not read at all, and of the operations only the lines that changed. A test
holds the rates to what reading all of both texts says (tests/core/test_differences.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from operator import ne
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.core.samples.growth import ResetError
from nfstuned.errors import ParseError
from nfstuned.model.kernel import Stanza
from nfstuned.model.samples import Look
from nfstuned.parse.proc.mountstats import Row, operation_row, parse_transports, total_row
from nfstuned.parse.proc.stanzas import Operations, plain_numbers, plain_operations

_UNUSED = (0,) * 9
_NOTHING = (0,) * 8
_NO_OPERATIONS = Operations([], [], [])


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


def totals(before: Stanza, now: Stanza) -> tuple[Row, Row]:
    """Return the numbers of `bytes:`, or one object twice where nothing changed; ResetError, ParseError."""
    if before.totals is None or now.totals is None:
        raise ResetError
    if before.totals == now.totals:
        return _NOTHING, _NOTHING
    # The kernel prints a space after each number.
    numbers = plain_numbers([before.totals.removesuffix(b" "), now.totals.removesuffix(b" ")])
    if numbers is None or len(numbers) < 2 * len(_NOTHING):
        return total_row(before.totals), total_row(now.totals)
    half = len(numbers) // 2
    return tuple(numbers[:half]), tuple(numbers[half:])


def unused(stats: Stanza) -> Stanza:
    """Return the superblock as it was before anything was counted."""
    zeros = None if stats.totals is None else b" ".join([b"0"] * len(_NOTHING))
    return stats._replace(totals=zeros, transports=b"", operations=b"")


def elsewhere(before: Stanza, now: Stanza, names: frozenset[str]) -> Elsewhere:
    """Return that these operations were counted at this superblock, and how their lines changed here."""
    old, new = before.operations.split(b"\n"), now.operations.split(b"\n")
    pairs = zip(old, new, strict=False)
    return Elsewhere(
        names, tuple((a, b) for a, b in pairs if a != b and _name(a) == _name(b) and _name(a) in names)
    )


def plainly(before: Stanza, now: Stanza, counted: Elsewhere) -> Operations | None:
    """Return the operations whose lines differ, but those counted elsewhere, read together.

    None where any of them must be read alone, by `operations`.
    """
    old, new = before.operations, now.operations
    if old != new:
        new = counted.undone(new)
    if old == new:
        return _NO_OPERATIONS
    old, new = _without_end(old, new)
    less, more = old.split(b"\n"), new.split(b"\n")
    return plain_operations(*_differing(less, more), counted.names) if len(less) == len(more) else None


def _without_end(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return both without lines at their end that are the same.

    What programs use stands before what hardly anybody uses, in the order of all versions of NFS: to compare
    the second half, or the last quarter, is a fraction of what it costs to split it into lines.
    """
    for place in (len(old) // 2, len(old) * 3 // 4):
        at = old.find(b"\n", place)
        if at >= 0 and new.endswith(old[at:]):
            return old[:at], new[: at - len(old)]
    return old, new


def operations(
    before: Stanza, now: Stanza, counted: Elsewhere = NOTHING_ELSEWHERE
) -> Iterator[tuple[str, Row, Row]]:
    """Yield the operations whose counters differ, as they were and are. Raises ResetError, ParseError.

    An operation that the later look alone shows was never used before. Those counted elsewhere are left out.
    """
    if before.operations == now.operations or before.operations == counted.undone(now.operations):
        return
    earlier, later = _changed(before.operations, now.operations, counted.names)
    if not earlier.keys() <= later.keys():
        raise ResetError
    for name, new in later.items():
        old = earlier.get(name, _UNUSED)
        if old != new:
            yield name, old, new


def _differing(old: list[bytes], new: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the lines that are not the same, of equally many."""
    differ = list(map(ne, old, new))
    return list(compress(old, differ)), list(compress(new, differ))


def _changed(before: bytes, now: bytes, without: frozenset[str]) -> tuple[dict[str, Row], dict[str, Row]]:
    """Return the operations of the lines that differ; of all lines where they are of other operations."""
    old, new = before.split(b"\n"), now.split(b"\n")
    if len(old) == len(new):
        less, more = _differing(old, new)
        names = list(map(_name, more))
        if names == list(map(_name, less)):
            wanted = [name not in without for name in names]
            return _used(compress(less, wanted)), _used(compress(more, wanted))
    return _but(_used(old), without), _but(_used(new), without)


def _name(line: bytes) -> str:
    return line.partition(b": ")[0].strip().decode("utf-8", "surrogateescape")


def _used(lines: Iterable[bytes]) -> dict[str, Row]:
    """Return the operations of these lines, without those that were never used."""
    rows = (row for row in map(operation_row, lines) if row is not None)
    return {name: row for name, row in rows if any(row)}


def _but(rows: dict[str, Row], without: frozenset[str]) -> dict[str, Row]:
    return {name: row for name, row in rows.items() if name not in without}


def sends_between(earlier: Look, later: Look) -> Mapping[str, tuple[int, ...]]:
    """Return per device what each connection sent, in the kernel's order.

    A superblock that is another one now has none, nor one whose connections came, went or began anew, or
    whose stanza is damaged.
    """
    known = {(counted.device, counted.bdi): counted.stats for counted in earlier.superblocks}
    counters: dict[str, tuple[int, ...]] = {}
    for counted in later.superblocks:
        stats = known.get((counted.device, counted.bdi))
        try:
            now = parse_transports(counted.stats.transports)
            before = parse_transports(stats.transports) if stats is not None else ()
        except ParseError:
            continue
        if len(before) == len(now):
            sent = tuple(new.sends - old.sends for old, new in zip(before, now, strict=True))
            if min(sent, default=-1) >= 0:
                counters[counted.device] = sent
    return MappingProxyType(counters)
