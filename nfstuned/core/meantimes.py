"""How many intervals had which mean round trip: what can be told without timing each operation.

The kernel sums up round trips, so that of an interval only their mean is known. An interval counts once, with
one operation in it or a million. The longest means say that something was slow for a while; how slow the
slowest operations were they do not say, and no percentile of a latency can be made of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from nfstuned.core.samples import KINDS
from nfstuned.model.samples import OpRate

BOUNDS_MS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""The upper ends of all buckets but the last, each within its bucket."""


class MeanTimes(NamedTuple):
    """The intervals in which operations of a kind ended, by their mean round trip, in the order of BOUNDS_MS.

    The last number is of those above.
    """

    kind: str
    intervals: tuple[int, ...]


class MeanTimesCount:
    """Takes the samples of one mount."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, of_kind: Mapping[str, OpRate]) -> None:
        """Take a sample's operations by their kind."""
        for kind, op in of_kind.items():
            if op.rtt_ms is not None:
                counts = self._counts.setdefault(kind, [0] * (len(BOUNDS_MS) + 1))
                counts[bisect_left(BOUNDS_MS, op.rtt_ms)] += 1

    def counted(self) -> tuple[MeanTimes, ...]:
        """Return what was counted, of each kind that occurred."""
        kinds = (kind for kind in (*KINDS, "other") if kind in self._counts)
        return tuple(MeanTimes(kind, tuple(self._counts[kind])) for kind in kinds)
