"""How much a counter of the kernel grew between two looks; rates and totals both ask here."""

from __future__ import annotations

from typing import NamedTuple

from nfstuned.model.kernel import Stanza

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
