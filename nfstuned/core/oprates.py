"""The rates of operations between two looks at one superblock."""

from __future__ import annotations

from itertools import repeat
from operator import sub, truediv

from nfstuned.core.differences import Elsewhere, operations, plainly
from nfstuned.core.growth import Span, grown
from nfstuned.model.kernel import Stanza
from nfstuned.model.samples import OpRate
from nfstuned.parse.mountstats import Row
from nfstuned.parse.plain import Operations

_OPS, _SENT, _TIMEOUTS, _QUEUE, _RTT, _EXECUTE, _ERRORS = 0, 1, 2, 5, 6, 7, 8
"""The columns of an operation."""
_LEAST_COLUMNS = 8
_MOST_TIME = 1 << 63


def op_rates(before: Stanza, now: Stanza, span: Span, counted: Elsewhere) -> dict[str, OpRate]:
    """Return the rates of the operations that ended in the interval, but those that are counted elsewhere.

    Raises ResetError, ParseError.
    """
    changed = plainly(before, now, counted)
    together = _together(changed, span) if changed is not None else None
    if together is not None:
        return together
    return {
        name: _op(old, new, span) for name, old, new in operations(before, now, counted) if new[:2] != old[:2]
    }


def _together(changed: Operations, span: Span) -> dict[str, OpRate] | None:
    """Return the rates of operations that all ended some time, and of which no counter fell.

    That is nearly always so, and takes a third of the time that `_op` needs for one after the other. None
    where it is not.
    """
    names = changed.names
    if not names:
        return {}
    columns = len(changed.later) // len(names)
    more = list(map(sub, changed.later, changed.earlier))
    ops, sent, timeouts = more[_OPS::columns], more[_SENT::columns], more[_TIMEOUTS::columns]
    errors = more[_ERRORS::columns] if columns > _ERRORS else []
    likely = columns >= _LEAST_COLUMNS and min(more) >= 0 and max(more) < _MOST_TIME
    if not (likely and min(ops) > 0 and max([*ops, *sent, *timeouts, *errors]) <= span.most_ops):
        return None
    seconds = span.seconds
    again = list(map(sub, sent, ops)) if sent != ops else []
    rates = zip(
        [growth / seconds for growth in ops],
        map(truediv, more[_RTT::columns], ops),
        map(truediv, more[_QUEUE::columns], ops),
        map(truediv, more[_EXECUTE::columns], ops),
        [max(0, growth) / seconds for growth in again] if again else repeat(0.0),
        [growth / seconds for growth in errors] if errors else repeat(None),
        [growth / seconds for growth in timeouts] if any(timeouts) else repeat(0.0),
        strict=False,
    )
    # OpRate(...) would be a call of Python for each.
    return dict(zip(names, map(tuple.__new__, repeat(OpRate), rates), strict=True))


def _op(old: Row, new: Row, span: Span) -> OpRate:
    """Return the rates of one operation (net/sunrpc/stats.c, rpc_count_iostats_metrics).

    The kernel counts all of an operation when it ends: what it was sent for, more than once if need be, how
    often it timed out, and its times. One that was given up before it was sent has no round trip.
    """
    seconds, most = span.seconds, span.most_ops
    ops = grown(old[_OPS], new[_OPS], most)
    known = len(old) > _ERRORS and len(new) > _ERRORS
    return OpRate(
        per_s=ops / seconds,
        queue_ms=mean(old[_QUEUE], new[_QUEUE], ops),
        rtt_ms=mean(old[_RTT], new[_RTT], ops),
        exe_ms=mean(old[_EXECUTE], new[_EXECUTE], ops),
        retrans_per_s=max(0, grown(old[_SENT], new[_SENT], most) - ops) / seconds,
        errors_per_s=grown(old[_ERRORS], new[_ERRORS], most) / seconds if known else None,
        timeouts_per_s=grown(old[_TIMEOUTS], new[_TIMEOUTS], most) / seconds,
    )


def mean(before: int, now: int, count: int) -> float | None:
    """Return the growth of a sum per event; None when nothing happened, or when the sum fell.

    The kernel adds negative times now and then, and prints the 64-bit sum without its sign.
    """
    grown = (now - before) % (1 << 64)
    return grown / count if count and grown < (1 << 63) else None
