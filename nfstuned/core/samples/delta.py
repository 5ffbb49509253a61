"""The growth of a superblock's counters between two looks, from which rates, totals and stalls follow.

The kernel's text is only read where it differs: a line that stayed the same is not read at all. A test holds
the result to the growth that the full parser sees (tests/core/test_delta.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import compress
from operator import le, ne, sub
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Stanza
from nfstuned.parse.fields import LARGEST
from nfstuned.parse.proc.mountstats import Row, event_row, operation_row, total_row

MOST_BYTES_PER_S, MOST_OPS_PER_S = 1e14, 1e8
"""No machine does more: a greater growth means that the counter began again."""
_MOST_SUM = 1 << 63

GROUP_OPS = frozenset({
    "NULL", "RENEW", "SETCLIENTID", "SETCLIENTID_CONFIRM", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION",
    "DESTROY_CLIENTID", "SEQUENCE", "GET_LEASE_TIME", "RECLAIM_COMPLETE", "BIND_CONN_TO_SESSION",
})  # fmt: skip
"""Sent by the nfs_client itself. Every mount of the server shows them, since net/sunrpc/stats.c adds the
parent client's counters to each (rpc_clnt_show_stats)."""


class Span(NamedTuple):
    """An interval, and the most that a counter can grow by in it."""

    seconds: float
    most_bytes: float
    most_ops: float

    @classmethod
    def of(cls, seconds: float) -> Span:
        """Return the span of an interval."""
        return cls(seconds, min(MOST_BYTES_PER_S * seconds, 2.0**63), min(MOST_OPS_PER_S * seconds, 2.0**63))


UNBOUNDED = Span(0.0, 2.0**64, 2.0**64)
"""The span of a counter since its own zero, however long ago that was."""


class ResetError(Exception):
    """A counter fell, or grew beyond reason, or is not there: it is not the one that was seen before."""


def continues(before: Stanza, now: Stanza, seconds: float) -> bool:
    """Return whether both are complete and of one superblock: its age grew by the time between the looks.

    Ages are whole seconds, and a look takes a while: two seconds and a tenth of the time are allowed. They
    come from jiffies, which like CLOCK_MONOTONIC stand still in suspend. An unknown age fits.
    """
    if not (before.whole and now.whole):
        return False
    if before.age_s is None or now.age_s is None:
        return True
    older = now.age_s - before.age_s
    return older >= 0 and 0.9 * seconds - 2 <= older <= 1.1 * seconds + 2


def began_again(before: Stanza, now: Stanza) -> bool:
    """Return whether a counter of bytes fell; a line that is missing or damaged does not show it."""
    with suppress(ParseError):
        totals = zip(total_row(before.totals or b""), total_row(now.totals or b""), strict=False)
        return any(new < old for old, new in totals)
    return False


def is_moment_later(before: Stanza, now: Stanza) -> bool:
    """Return whether the counters of operations can be those of one busy superblock, printed in two lines.

    The kernel prints all mounts within milliseconds: the counters grew by at most a thousandth together, and
    only those of operations that ended.
    """
    if before.operations == now.operations:
        return True
    with suppress(ParseError):
        old, new = (_used((each.operations or b"").split(b"\n")) for each in (before, now))
        pairs = [(old.get(name, ()), row) for name, row in new.items()]
        ended = all(row == was or (was[:1] < row[:1] and all(map(le, was, row))) for was, row in pairs)
        total = sum(map(sum, old.values()))
        growth = sum(map(sum, new.values())) - total
        return old.keys() <= new.keys() and ended and 1000 * growth <= total
    return False


def grown(before: int, now: int, most: float, widths: tuple[int, ...] = (32, 64)) -> int:
    """Return the growth of a counter; a fall may be a wrap at one of the `widths`, in bits.

    The kernel's `unsigned long` has 32 bits on 32-bit machines. A wrap must be likely: less than a quarter of
    the range away, and no more than `most`. Raises ResetError when no growth explains the numbers.
    """
    if 0 <= now - before <= most:
        return now - before
    for bits in widths:
        growth = now - before + (1 << bits)
        if now < before < (1 << bits) and growth <= min(most, 1 << (bits - 2)):
            return growth
    raise ResetError


def known_growth(before: int | None, now: int | None, span: Span) -> int | None:
    """Return the growth of a count; None where the kernel does not show it, or it began again."""
    if before is None or now is None:
        return None
    with suppress(ResetError):
        return grown(before, now, span.most_ops)
    return None


def sum_grown(before: int, now: int) -> int:
    """Return the growth of a sum of 64 bits; negative where it fell.

    The kernel adds negative times now and then, and prints the sum without its sign.
    """
    growth = (now - before) % (1 << 64)
    return growth if growth < _MOST_SUM else growth - (1 << 64)


class OpDelta(NamedTuple):
    """The growth of an operation's counters, in the order of OpCounters; sums may have fallen.

    The kernel counts all of an operation when it ends (net/sunrpc/stats.c, rpc_count_iostats_metrics): the
    numbers of its sends and timeouts, and its times. An operation that was given up before it was sent has no
    round trip.
    """

    ops: int = 0
    transmissions: int = 0
    timeouts: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    queue_ms: int = 0
    rtt_ms: int = 0
    execute_ms: int = 0
    errors: int | None = None
    """None where the kernel does not count them (before Linux 5.3)."""

    @property
    def retransmissions(self) -> int:
        """How often an operation was sent again."""
        return max(0, self.transmissions - self.ops)


_COLUMNS = len(OpDelta._fields)
_ERRORS = _COLUMNS - 1
_COUNTERS, _SUMS = (0, 1, 2), range(3, _ERRORS)
_UNUSED = (0,) * _COLUMNS


class EventDelta(NamedTuple):
    """The growth of counters in `events:`; None where the kernel does not show them, or one fell."""

    silly_renames: int | None = None
    short_reads: int | None = None
    short_writes: int | None = None
    delays: int | None = None
    pnfs_reads: int | None = None
    pnfs_writes: int | None = None
    read_ahead_calls: int | None = None
    """How often the kernel's read-ahead called NFS (vfsreadpages of nfsiostat)."""


class Delta(NamedTuple):
    """The growth of a superblock's counters; a part is None where no growth explains its numbers."""

    bytes: tuple[int, ...] | None
    """Bytes read and written through the page cache, then with O_DIRECT, then from and to the server."""
    ops: Mapping[str, OpDelta] | None
    """The operations with changed counters."""
    events: EventDelta
    restarted: bool = False
    """Calls of an operation ended, and one of its counters began again: the growth is lost."""


_BYTES = 6
"""How many of the byte counters are of bytes, not of pages."""
NO_BYTES = (0,) * _BYTES
"""The growth of byte counters that did not change."""
NO_OPS: Mapping[str, OpDelta] = MappingProxyType({})
NO_EVENTS = EventDelta(0, 0, 0, 0, 0, 0, 0)
_EVENTS_UNKNOWN = EventDelta()
NO_GROWTH = Delta(NO_BYTES, NO_OPS, NO_EVENTS)
_READ_AHEAD, _FIRST_EVENT, _MOST_DIGITS = 9, 21, 20
"""The column of read-ahead; the column of silly renames, where the other counters of EventDelta begin
(include/linux/nfs_iostat.h, nfs_stat_eventcounters); the digits of 64 bits."""
_EVENTS = _FIRST_EVENT + len(NO_EVENTS) - 1


class Elsewhere(NamedTuple):
    """Operations that are counted at another superblock, and how their lines changed there.

    They change in all mounts of a server at once, mostly in the same way: then there is nothing to read.
    """

    names: frozenset[str] = frozenset()
    lines: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of(cls, before: Stanza, now: Stanza) -> Elsewhere:
        """Return the group's operations as they changed at this superblock."""
        old, new = (stanza.operations or b"" for stanza in (before, now))
        pairs = zip(old.split(b"\n"), new.split(b"\n"), strict=False) if old is not new else ()
        changed = ((a, b) for a, b in pairs if a != b and _name(a) == _name(b))
        return cls(GROUP_OPS, tuple((a, b) for a, b in changed if _name(a) in GROUP_OPS))

    def undone(self, text: bytes) -> bytes:
        """Return the text as it was before these changes."""
        for old, new in self.lines:
            text = text.replace(new, old)
        return text


NOTHING_ELSEWHERE = Elsewhere()


def zeroed(stanza: Stanza) -> Stanza:
    """Return the superblock as it was before anything was counted."""
    zeros = None if stanza.totals is None else b" ".join([b"0"] * len(stanza.totals.split()))
    events = None if stanza.events is None else b" ".join([b"0"] * len(stanza.events.split()))
    operations = None if stanza.operations is None else b""
    return stanza._replace(totals=zeros, transports=b"", operations=operations, events=events)


def delta(before: Stanza, now: Stanza, span: Span, counted: Elsewhere = NOTHING_ELSEWHERE) -> Delta:
    """Return the growth of a superblock's counters, without the operations that are `counted` elsewhere.

    Raises ParseError for damage.
    """
    # Most mounts of a large host end here: parse_stanzas returns unchanged operations as the same object.
    if (
        before.operations is now.operations
        and before.totals is not None
        and before.totals == now.totals
        and before.events is not None
        and before.events == now.events
        and _is_complete(before.events)
    ):
        return NO_GROWTH
    ops, restarted = _ops(before.operations, now.operations, span.most_ops, counted)
    events = _events(before, now, span)
    return Delta(_bytes(before.totals, now.totals, span.most_bytes), ops, events, restarted)


def _bytes(before: bytes | None, now: bytes | None, most: float) -> tuple[int, ...] | None:
    if before is None or now is None:
        return None
    if before == now:
        return NO_BYTES
    # The kernel prints a space after each number.
    numbers = plain_numbers([before.removesuffix(b" "), now.removesuffix(b" ")])
    if numbers is None or len(numbers) < 2 * (_BYTES + 2):
        old, new = total_row(before), total_row(now)
    else:
        half = len(numbers) // 2
        old, new = tuple(numbers[:half]), tuple(numbers[half:])
    growths = tuple(map(sub, new[:_BYTES], old[:_BYTES]))
    if min(growths) >= 0 and max(growths) <= most:
        return growths
    try:
        return tuple(grown(old[n], new[n], most, (64,)) for n in range(_BYTES))
    except ResetError:
        return None


@lru_cache(maxsize=1024)
def _is_complete(line: bytes) -> bool:
    """Return whether a line of events has all of EventDelta; cached, as idle mounts show it again."""
    numbers = line.split()
    return len(numbers) >= _EVENTS and _are_numbers(numbers)


def _are_numbers(texts: list[bytes]) -> bool:
    return b"".join(texts).isdigit() and max(map(len, texts)) <= _MOST_DIGITS


def _events(before: Stanza, now: Stanza, span: Span) -> EventDelta:
    """Return the growth of the counters of events; a damaged line costs these alone."""
    if before.events is None or now.events is None:
        return _EVENTS_UNKNOWN
    if before.events == now.events and _is_complete(now.events):
        return NO_EVENTS
    old, new = before.events.split(), now.events.split()
    # Nearly no look meets one of the rare events.
    if len(new) >= _EVENTS and new[_FIRST_EVENT:_EVENTS] == old[_FIRST_EVENT:_EVENTS]:
        calls = old[_READ_AHEAD], new[_READ_AHEAD]
        if _are_numbers([*calls, *new[_FIRST_EVENT:_EVENTS]]):
            return NO_EVENTS._replace(read_ahead_calls=known_growth(int(calls[0]), int(calls[1]), span))
    try:
        was, shown = event_row(before.events), event_row(now.events)
        pairs = zip(was[_FIRST_EVENT:_EVENTS], shown[_FIRST_EVENT:_EVENTS], strict=False)
        rare = EventDelta(*(grown(*pair, span.most_ops) for pair in pairs))
        return rare._replace(read_ahead_calls=known_growth(was[_READ_AHEAD], shown[_READ_AHEAD], span))
    except (ResetError, ParseError, IndexError):
        return _EVENTS_UNKNOWN


def _ops(
    before: bytes | None, now: bytes | None, most: float, counted: Elsewhere
) -> tuple[Mapping[str, OpDelta] | None, bool]:
    """Return the growth of the operations with changed counters, and whether one that ended began again.

    An operation that the later look alone shows was never used before.
    """
    if before is now or before is None or now is None:  # as parse_stanzas returns unchanged lines
        return NO_OPS, False
    undone = counted.undone(now) if before != now else now
    if before == undone:
        return NO_OPS, False
    old, new = (text.split(b"\n") for text in _without_end(before, undone))
    if len(old) == len(new):
        differ = list(map(ne, old, new))
        changed = plain_operations(list(compress(old, differ)), list(compress(new, differ)), counted.names)
        plain = _plain_deltas(changed, most) if changed is not None else None
        if plain is not None:
            return plain, False
    earlier, later = _changed(before, now, counted.names)
    if not earlier.keys() <= later.keys():
        return None, False
    deltas: dict[str, OpDelta] = {}
    restarted = False
    for name, row in later.items():
        was = earlier.get(name, _UNUSED)
        if was != row:
            try:
                deltas[name] = _op_delta(was, row, most)
            except ResetError:
                restarted = restarted or was[:2] != row[:2]
                deltas[name] = OpDelta(errors=0 if min(len(was), len(row)) > _ERRORS else None)
    return deltas, restarted


def _plain_deltas(changed: Operations, most: float) -> dict[str, OpDelta] | None:
    """Return the growth of operations; None where a counter fell, which hardly ever happens."""
    names = changed.names
    if not names:
        return {}
    width = len(changed.later) // len(names)
    growths = list(map(sub, changed.later, changed.earlier))
    if width <= _SUMS[-1] or min(growths) < 0 or max(growths) >= _MOST_SUM:
        return None
    limited = (*_COUNTERS, _ERRORS) if width > _ERRORS else _COUNTERS
    if max(max(growths[column::width]) for column in limited) > most:
        return None
    rows: Iterable[tuple[int | None, ...]] = zip(*[iter(growths)] * width, strict=True)
    if width != _COLUMNS:
        rows = [(*row, None)[:_COLUMNS] for row in rows]
    return dict(zip(names, map(OpDelta._make, rows), strict=True))


def _op_delta(old: Row, new: Row, most: float) -> OpDelta:
    """Return the growth of an operation. Raises ResetError."""
    counted = min(len(old), len(new)) > _ERRORS
    return OpDelta._make(
        (
            *(grown(old[column], new[column], most) for column in _COUNTERS),
            *(sum_grown(old[column], new[column]) for column in _SUMS),
            grown(old[_ERRORS], new[_ERRORS], most) if counted else None,
        )
    )


def _without_end(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return both without lines at their end that are the same.

    The operations that programs use stand before those that hardly anybody uses, in the order of all versions
    of NFS: to compare the second half, or the last quarter, costs a fraction of splitting it into lines.
    """
    for place in (len(old) // 2, len(old) * 3 // 4):
        at = old.find(b"\n", place)
        if at >= 0 and new.endswith(old[at:]):
            return old[:at], new[: at - len(old)]
    return old, new


def _changed(before: bytes, now: bytes, without: frozenset[str]) -> tuple[dict[str, Row], dict[str, Row]]:
    """Return the operations of the lines that differ; of all lines where the two texts list others."""
    old, new = before.split(b"\n"), now.split(b"\n")
    if len(old) == len(new):
        differ = list(map(ne, old, new))
        old_lines, new_lines = list(compress(old, differ)), list(compress(new, differ))
        names = list(map(_name, new_lines))
        if names == list(map(_name, old_lines)):
            wanted = [name not in without for name in names]
            return _used(compress(old_lines, wanted)), _used(compress(new_lines, wanted))
    earlier, later = _used(old), _used(new)
    for name in without:
        earlier.pop(name, None)
        later.pop(name, None)
    return earlier, later


def _name(line: bytes) -> str:
    return line.partition(b": ")[0].strip().decode("utf-8", "surrogateescape")


def _used(lines: Iterable[bytes]) -> dict[str, Row]:
    """Return the operations of these lines, without those that were never used."""
    rows = (row for row in map(operation_row, lines) if row is not None)
    return {name: row for name, row in rows if any(row)}


# Most of a number's cost in Python is the call that reads it: the functions below read all numbers of a mount
# in a few calls, and leave lines that are not plain digits and single spaces to operation_row.
_SEPARATOR = b"|"
_PLAIN = b"0123456789 " + _SEPARATOR
_MOST_OPERATIONS = 256
"""No version of NFS has half as many operations."""


class Operations(NamedTuple):
    """The same operations at two moments: their names, and at each moment the numbers of all in a row."""

    names: list[str]
    earlier: list[int]
    later: list[int]


def plain_numbers(lines: Sequence[bytes]) -> list[int] | None:
    """Return the numbers of these lines in a row; None where they are not plain digits and single spaces.

    Every line must have as many numbers as the first.
    """
    text = b" | ".join(lines)
    if text.translate(None, _PLAIN):
        return None
    tokens = text.split(b" ")
    width = tokens.index(_SEPARATOR) if len(lines) > 1 else len(tokens)
    if tokens[width :: width + 1] != [_SEPARATOR] * (len(lines) - 1):
        return None
    del tokens[width :: width + 1]
    try:
        values = list(map(int, tokens))
    except ValueError:
        return None
    return values if len(values) == width * len(lines) and max(values) <= LARGEST else None


def plain_operations(earlier: list[bytes], later: list[bytes], without: frozenset[str]) -> Operations | None:
    """Return the numbers of lines of the per-op statistics; None where only operation_row can read them.

    Line for line `earlier` and `later` must name the same operation, and no operation twice. The operations
    `without` are left out.
    """
    count = len(earlier)
    text = b"\n".join(earlier + later)
    # Each line begins with a tab: so a line without a name cannot make up for a line with two.
    if not text.startswith(b"\t") or text.count(b"\n\t") != 2 * count - 1:
        return None
    parts = text.replace(b": ", b"\n").split(b"\n")
    if len(parts) != 4 * count or parts[: 2 * count : 2] != parts[2 * count :: 2]:
        return None
    names, numbers = list(map(_operation_name, parts[: 2 * count : 2])), parts[1::2]
    if "" in names or len(set(names)) != count:
        return None
    for name in without.intersection(names):
        at = names.index(name)
        del numbers[len(names) + at], numbers[at], names[at]
    values = plain_numbers(numbers) if names else []
    if values is None:
        return None
    half = len(values) // 2
    return Operations(names, values[:half], values[half:])


@lru_cache(_MOST_OPERATIONS)
def _operation_name(text: bytes) -> str:
    """Return the name of an operation, "" where no kernel would give it."""
    name = text.strip(b"\t ").decode("latin-1")
    return name if re.fullmatch("[A-Z0-9_]+", name) else ""
