"""What the counters of one superblock and of one transport group grew by, none of it ever negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.core.differences import Elsewhere, operations, totals
from nfstuned.core.growth import ResetError, Span, grown
from nfstuned.core.rates import GROUP_OPS
from nfstuned.core.samples import kind_of
from nfstuned.model.kernel import Stanza, Transport
from nfstuned.model.totals import GroupTotals, OpTotals
from nfstuned.parse.mountstats import Row

UNBOUNDED = Span(0.0, 2.0**64, 2.0**64)
"""That of counters from their own zero on, whenever that was."""
_BYTES = 6
_STILL = (0,) * _BYTES
_ERRORS = 8
_MOST_SUM = 2.0**63


class Growth(NamedTuple):
    """What one superblock's counters grew by; the operations of its whole group are apart."""

    bytes: tuple[int, ...] = _STILL
    kinds: Mapping[str, OpTotals] = MappingProxyType({})
    upkeep: int = 0


def superblock_growth(old: Stanza, now: Stanza, span: Span, without: Elsewhere) -> Growth:
    """Return what a superblock's counters grew by, but for operations that are counted elsewhere.

    Where a counter fell that did not wrap, or grew beyond reason, its growth is none: the next look goes on
    from what it is now. Raises ParseError for damage.
    """
    kinds, upkeep = _kinds(old, now, span, without)
    return Growth(_bytes(old, now, span), kinds, upkeep)


def _bytes(old: Stanza, now: Stanza, span: Span) -> tuple[int, ...]:
    try:
        before, after = totals(old, now)
        if before is after:
            return _STILL
        return tuple(grown(before[n], after[n], span.most_bytes, (64,)) for n in range(_BYTES))
    except ResetError:
        return _STILL


def _kinds(old: Stanza, now: Stanza, span: Span, without: Elsewhere) -> tuple[dict[str, OpTotals], int]:
    """Return the growth of each kind, and how many operations were the group's own."""
    kinds: dict[str, OpTotals] = {}
    upkeep = 0
    try:
        changed = list(operations(old, now, without))
    except ResetError:
        return kinds, upkeep
    for name, before, after in changed:
        growth = _op(before, after, span)
        if name in GROUP_OPS:
            upkeep += growth.ops
        else:
            kind = kind_of(name)
            kinds[kind] = add(kinds.get(kind, OpTotals()), growth)
    return kinds, upkeep


def _op(before: Row, after: Row, span: Span) -> OpTotals:
    """Return the growth of one operation; none where a counter of it fell that did not wrap."""
    most = span.most_ops
    has_errors = len(before) > _ERRORS and len(after) > _ERRORS
    try:
        ops = grown(before[0], after[0], most)
        sent = grown(before[1], after[1], most)
        timeouts = grown(before[2], after[2], most)
        errors = grown(before[_ERRORS], after[_ERRORS], most) if has_errors else None
    except ResetError:
        return OpTotals(errors=0 if has_errors else None)
    times = [_milliseconds(before[n], after[n]) for n in (5, 6, 7)]
    return OpTotals(ops, max(0, sent - ops), timeouts, errors, *times)


def _milliseconds(before: int, after: int) -> int:
    """Return the growth of a sum of times: the kernel adds negative ones now and then, without their sign."""
    growth = (after - before) % (1 << 64)
    return growth if growth < (1 << 63) else 0


def add(one: OpTotals, other: OpTotals) -> OpTotals:
    """Return both together."""
    errors = None if one.errors is None and other.errors is None else (one.errors or 0) + (other.errors or 0)
    return OpTotals(
        one.ops + other.ops,
        one.retransmissions + other.retransmissions,
        one.timeouts + other.timeouts,
        errors,
        one.queue_ms + other.queue_ms,
        one.rtt_ms + other.rtt_ms,
        one.execute_ms + other.execute_ms,
    )


def connected(had: GroupTotals, lines: tuple[Transport, ...], now_s: float) -> GroupTotals:
    """Return the group with what its connections did since its last look, by their order.

    A connection with smaller numbers than before is another one, and counted from its own zero, as one more
    than ever before is. When there are fewer, nobody can say which went: nothing is counted in this look,
    and of those that come back nothing of before.
    """
    span = Span.of(now_s - had.looked_s) if had.lines else UNBOUNDED
    back = lines[len(had.lines) : had.most_lines]
    known = [*had.lines, *back, *[None] * (len(lines) - len(had.lines) - len(back))]
    pairs = zip(known, lines, strict=True) if len(known) == len(lines) else ()
    growth = [_line(old, new, span) for old, new in pairs]
    sums = [sum(column) for column in zip(*growth, strict=True)] or [0, 0, 0, 0]
    return replace(
        had,
        looked_s=now_s,
        lines=lines,
        most_lines=max(had.most_lines, len(lines)),
        sends=had.sends + sums[0],
        connects=had.connects + sums[1],
        in_flight_sum=had.in_flight_sum + sums[2],
        backlog_sum=had.backlog_sum + sums[3],
    )


def _line(old: Transport | None, new: Transport, span: Span) -> tuple[int, int, int, int]:
    after = (new.sends, new.connects or 0, new.in_flight_sum, new.backlog_sum)
    if old is None:
        return after
    try:
        return (
            grown(old.sends, new.sends, span.most_ops),
            grown(old.connects or 0, new.connects or 0, span.most_ops),
            grown(old.in_flight_sum, new.in_flight_sum, _MOST_SUM, (64,)),
            grown(old.backlog_sum, new.backlog_sum, _MOST_SUM, (64,)),
        )
    except ResetError:
        another = new.sends <= old.sends and (new.connects or 0) <= (old.connects or 0)
        return after if another else (0, 0, 0, 0)
