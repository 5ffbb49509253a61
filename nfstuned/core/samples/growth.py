"""How much the counters of a superblock grew between two looks; rates and totals both ask here.

The kernel's text is only read where it differs: a section that stayed the same is not read at all, and of the
operations only the lines that changed. A test holds the rates to what reading all of both texts says
(tests/core/test_growth.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import compress
from operator import ne, sub
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import OpCounters, Stanza
from nfstuned.model.samples import Look
from nfstuned.parse.proc.mountstats import Row, event_row, operation_row, parse_transports, total_row
from nfstuned.parse.proc.stanzas import Operations, plain_numbers, plain_operations

MOST_BYTES_PER_S, MOST_OPS_PER_S = 1e14, 1e8
"""No machine does more. What seems to is a counter that began anew, and a wrap that cannot be one."""


class Span(NamedTuple):
    """An interval, and what a counter can grow by in it."""

    seconds: float
    most_bytes: float
    most_ops: float

    @classmethod
    def of(cls, seconds: float) -> Span:
        """Return the span of an interval."""
        return cls(seconds, min(MOST_BYTES_PER_S * seconds, 2.0**63), min(MOST_OPS_PER_S * seconds, 2.0**63))


class ResetError(Exception):
    """A counter fell, or grew beyond reason, or is not there: it is not the one that was seen before."""


def continues(before: Stanza, now: Stanza, seconds: float) -> bool:
    """Tell whether both are of one superblock, and whole: its age grew by the time between the looks.

    Ages are whole seconds, and each look takes a while: two seconds and a tenth are allowed for that. They
    come from jiffies, which like CLOCK_MONOTONIC stand still while the machine is suspended.
    """
    if not (before.whole and now.whole):
        return False
    if before.age_s is None or now.age_s is None:
        return True
    grown = now.age_s - before.age_s
    return grown >= 0 and 0.9 * seconds - 2 <= grown <= 1.1 * seconds + 2


def grown(before: int, now: int, most: float, widths: tuple[int, ...] = (32, 64)) -> int:
    """Return how much a counter grew; a fall may be a wrap at one of the `widths`, in bits.

    The kernel's `unsigned long` has 32 bits on 32-bit machines. A wrap must be likely: less than a quarter of
    the range away, and no more than `most`. Raises ResetError when no growth explains the numbers.
    """
    if 0 <= now - before <= most:
        return now - before
    for bits in widths:
        grown = now - before + (1 << bits)
        if now < before < (1 << bits) and grown <= min(most, 1 << (bits - 2)):
            return grown
    raise ResetError


def sum_grown(before: int, now: int) -> int:
    """Return how much a sum of 64 bits grew; less than nothing where it fell.

    The kernel adds negative times now and then, and prints the sum without its sign.
    """
    growth = (now - before) % (1 << 64)
    return growth if growth < (1 << 63) else growth - (1 << 64)


OPS, SENT, TIMEOUTS, BYTES_SENT, BYTES_RECEIVED, QUEUE, RTT, EXECUTE, ERRORS = range(9)
"""The columns of an operation."""


class OpGrowth(NamedTuple):
    """What the counters of an operation grew by; times in milliseconds and bytes are as of `sum_grown`."""

    ops: int
    retransmissions: int
    timeouts: int
    errors: int | None
    """None where the kernel does not count them (before Linux 5.3)."""
    queue_ms: int
    rtt_ms: int
    execute_ms: int
    bytes_sent: int
    bytes_received: int


def op_grown(old: Row, new: Row, most: float) -> OpGrowth:
    """Return the growth of an operation (net/sunrpc/stats.c, rpc_count_iostats_metrics); or ResetError.

    The kernel counts all of an operation when it ends: what it was sent for, more than once if need be, how
    often it timed out, and its times. What was given up before it was sent has no round trip. `most` is what
    a counter can grow by.
    """
    ops = grown(old[OPS], new[OPS], most)
    counted = len(old) > ERRORS and len(new) > ERRORS
    return OpGrowth(
        ops,
        max(0, grown(old[SENT], new[SENT], most) - ops),
        grown(old[TIMEOUTS], new[TIMEOUTS], most),
        grown(old[ERRORS], new[ERRORS], most) if counted else None,
        sum_grown(old[QUEUE], new[QUEUE]),
        sum_grown(old[RTT], new[RTT]),
        sum_grown(old[EXECUTE], new[EXECUTE]),
        sum_grown(old[BYTES_SENT], new[BYTES_SENT]),
        sum_grown(old[BYTES_RECEIVED], new[BYTES_RECEIVED]),
    )


GROUP_OPS = frozenset({
    "NULL", "RENEW", "SETCLIENTID", "SETCLIENTID_CONFIRM", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION",
    "DESTROY_CLIENTID", "SEQUENCE", "GET_LEASE_TIME", "RECLAIM_COMPLETE", "BIND_CONN_TO_SESSION",
})  # fmt: skip
"""Sent by the nfs_client itself. Every mount of the server shows them, since net/sunrpc/stats.c adds the
parent client's counters to each (rpc_clnt_show_stats)."""

_BYTES = 6
"""How many of the byte counters are of bytes, not of pages."""
STILL = (0,) * _BYTES
"""The growth of byte counters that did not change."""
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


def bytes_grown(before: Stanza, now: Stanza, span: Span) -> tuple[int, ...]:
    """Return what the byte counters grew by: programs' buffered and direct, then the server's.

    Raises ResetError, ParseError.
    """
    old, new = totals(before, now)
    if old is new:
        return STILL
    more = list(map(sub, new[:_BYTES], old[:_BYTES]))
    if min(more) >= 0 and max(more) <= span.most_bytes:
        return tuple(more)
    return tuple(grown(old[n], new[n], span.most_bytes, (64,)) for n in range(_BYTES))


class EventGrowth(NamedTuple):
    """What counters of the `events:` line grew by; None where the kernel does not show them, or one fell."""

    silly_renames: int | None = None
    short_reads: int | None = None
    short_writes: int | None = None
    delays: int | None = None
    pnfs_reads: int | None = None
    pnfs_writes: int | None = None


_EVENTS_UNKNOWN, NO_EVENTS = EventGrowth(), EventGrowth(0, 0, 0, 0, 0, 0)
_FIRST_EVENT, _MOST_DIGITS = 21, 20
"""The column of silly renames; the others follow it (include/linux/nfs_iostat.h, nfs_stat_eventcounters),
and the digits of 64 bits."""
_EVENTS = _FIRST_EVENT + len(NO_EVENTS)


@lru_cache(maxsize=1024)
def _is_whole(line: bytes) -> bool:
    """Return whether a line of events tells all of EventGrowth; kept, as idle mounts show it again."""
    numbers = line.split()
    return len(numbers) >= _EVENTS and _are_numbers(numbers)


def _are_numbers(texts: list[bytes]) -> bool:
    return b"".join(texts).isdigit() and max(map(len, texts)) <= _MOST_DIGITS


def events_grown(before: Stanza, now: Stanza, span: Span) -> EventGrowth:
    """Return what the counters of events grew by; a line that is damaged costs these alone."""
    if before.events is None or now.events is None:
        return _EVENTS_UNKNOWN
    if before.events == now.events and _is_whole(now.events):
        return NO_EVENTS
    # Nearly no look meets one of these events.
    shown = now.events.split()[_FIRST_EVENT:_EVENTS]
    if shown == before.events.split()[_FIRST_EVENT:_EVENTS] and len(shown) == len(NO_EVENTS):
        return NO_EVENTS if _are_numbers(shown) else _EVENTS_UNKNOWN
    try:
        old, new = (event_row(line)[_FIRST_EVENT:_EVENTS] for line in (before.events, now.events))
        return EventGrowth(*(grown(was, grew, span.most_ops) for was, grew in zip(old, new, strict=False)))
    except (ResetError, ParseError):
        return _EVENTS_UNKNOWN


def unused(stats: Stanza) -> Stanza:
    """Return the superblock as it was before anything was counted."""
    zeros = None if stats.totals is None else b" ".join([b"0"] * len(_NOTHING))
    events = None if stats.events is None else b" ".join([b"0"] * len(stats.events.split()))
    return stats._replace(totals=zeros, transports=b"", operations=b"", events=events)


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


_NEW_SESSION = frozenset({"CREATE_SESSION", "SETCLIENTID_CONFIRM"})


def sessions_between(earlier: Look, later: Look) -> Mapping[str, int]:
    """Return per device how often the client of its server began anew: its sessions, or ids of NFSv4.0.

    Without those that the server refused, and without superblocks whose stanzas are damaged.
    """
    known = {(counted.device, counted.bdi): counted.stats for counted in earlier.superblocks}
    begun: dict[str, int] = {}
    for counted in later.superblocks:
        stats = known.get((counted.device, counted.bdi))
        if stats is None:
            continue
        with suppress(ParseError, ResetError):
            for name, old, new in operations(stats, counted.stats):
                if name in _NEW_SESSION:
                    begun[counted.device] = well_ended(new) - well_ended(old)
    return MappingProxyType(begun)


def well_ended(row: Row) -> int:
    """Return how many of an operation ended without an error, as far as the kernel counts errors."""
    counters = OpCounters(*row)
    return counters.ops - (counters.errors or 0)


def sends_between(earlier: Look, later: Look) -> Mapping[str, tuple[int, ...]]:
    """Return per device what each connection sent, in the kernel's order.

    A superblock that is another now has none, nor has a superblock whose connections came, went or began
    anew, or whose stanza is damaged.
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
