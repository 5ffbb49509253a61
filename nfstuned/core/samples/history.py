"""Many samples as a few numbers: for each mount its throughput, over-fetch and round trips over the time.

The kernel sums up round trips, so that of an interval only their mean is known. An interval counts once, with
one operation in it or a million. The longest means say that something was slow for a while; how slow the
slowest operations were they do not say, and no percentile of a latency can be made of them.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter, sub
from statistics import median
from typing import NamedTuple

from nfstuned.core.readahead.evidence import Tally, Verdict
from nfstuned.core.samples.sample import ALL_KINDS, label, rtt_ms, stalled_percent
from nfstuned.model.samples import OpRate, Sample

BOUNDS_MS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""The upper ends of all buckets but the last, each within its bucket."""


class MeanTimes(NamedTuple):
    """The intervals in which operations of a kind ended, by their mean round trip, in the order of BOUNDS_MS.

    The last number is of those above.
    """

    kind: str
    intervals: tuple[int, ...]


class MeanTimesCount:
    """Counts the intervals of one mount by kind of operation and mean round trip."""

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
        kinds = (kind for kind in ALL_KINDS if kind in self._counts)
        return tuple(MeanTimes(kind, tuple(self._counts[kind])) for kind in kinds)


COLUMNS = 30
"""The most points of time that a row has."""
METRICS = ("read", "write", "over-fetch", "read RTT", "write RTT", "stalled")
_LEAST_PART = 0.1
"""The least overlap that counts, as a part of the shorter of column and interval.

Intervals differ by microseconds, and would otherwise reach into the next column.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of one mount: its means over each column while the mount was in use, and its extremes."""

    name: str
    means: tuple[float | None, ...]
    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True)
class MountHistory:
    """A mount: how many samples it has, for how long it was in use, and its figures; not those unknown."""

    label: str
    source: str
    samples: int
    used_s: float
    rows: tuple[Row, ...]
    read_ahead: tuple[Verdict, ...] = ()
    """What its reads tell of each read-ahead that it had."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The time that all mounts are shown over, in Unix seconds, in equal columns."""

    start: float
    end: float
    columns: int

    @property
    def width_s(self) -> float:
        """The seconds of one column."""
        return (self.end - self.start) / self.columns


def _numbers() -> array[float]:
    return array("d")


@dataclass(slots=True, eq=False)
class _MountSamples:
    """What is kept of a mount's samples: 8 * (2 + len(METRICS)) bytes for each."""

    label: str = ""
    """The label of the sample that was added last: bind mounts come and go."""
    time: array[float] = field(default_factory=_numbers)
    interval_s: array[float] = field(default_factory=_numbers)
    metrics: tuple[array[float], ...] = field(default_factory=lambda: tuple(_numbers() for _ in METRICS))
    """Of METRICS; what is not known is NaN."""
    tally: Tally = field(default_factory=Tally)

    def add(self, sample: Sample) -> None:
        self.label = label(sample)
        self.tally.add(sample)
        self.time.append(sample.time)
        self.interval_s.append(sample.interval_s)
        values = (
            sample.read_bytes_per_s,
            sample.write_bytes_per_s,
            sample.over_fetch_ratio,
            rtt_ms(sample, "read"),
            rtt_ms(sample, "write"),
            stalled_percent(sample),
        )
        for metric, value in zip(self.metrics, values, strict=True):
            metric.append(math.nan if value is None else value)


class History:
    """Takes samples one by one, in any order, and keeps of each only what is shown."""

    def __init__(self) -> None:
        self._mounts: dict[tuple[str, str], _MountSamples] = {}

    def add(self, sample: Sample) -> None:
        """Take a sample; those of one source at one first mount point belong together."""
        key = series_key(sample)
        mount = self._mounts.get(key)
        if mount is None:
            mount = self._mounts[key] = _MountSamples()
        mount.add(sample)

    def axis(self) -> Axis | None:
        """Return the time that the samples are of; None when there are none."""
        mounts = self._mounts.values()
        if not mounts:
            return None
        start = min(min(map(sub, mount.time, mount.interval_s)) for mount in mounts)
        end = max(max(mount.time) for mount in mounts)
        shortest = max(min(min(mount.interval_s) for mount in mounts), 1e-3)
        # A column that is narrower than the interval between samples would tell nothing new.
        return Axis(start, max(end, start + shortest), max(1, min(COLUMNS, round((end - start) / shortest))))

    def mounts(self, axis: Axis) -> Iterator[MountHistory]:
        """Yield each mount in the order of their names."""
        for (_, source), mount in sorted(self._mounts.items(), key=itemgetter(0)):
            used_s = math.fsum(mount.interval_s)
            rows = tuple(_rows(mount, axis))
            verdicts = mount.tally.verdicts()
            yield MountHistory(mount.label, source, len(mount.time), used_s, rows, verdicts)


def series_key(sample: Sample) -> tuple[str, str]:
    """Return what samples of one mount share: its source, and its first mount point or else device number."""
    return sample.mount_points[0] if sample.mount_points else sample.device, sample.source


def overlaps(start: float, end: float, width: float) -> Iterator[tuple[int, float]]:
    """Yield each column, `width` seconds wide, that an interval overlaps, and the overlap in seconds.

    Times count from the left of column 0. An overlap below _LEAST_PART is left out.
    """
    for column in range(math.floor(start / width), math.floor(end / width) + 1):
        overlap = min(end, (column + 1) * width) - max(start, column * width)
        if overlap >= _LEAST_PART * min(width, end - start) and overlap > 0:
            yield column, overlap


def _rows(mount: _MountSamples, axis: Axis) -> Iterator[Row]:
    for name, values in zip(METRICS, mount.metrics, strict=True):
        known = [value for value in values if not math.isnan(value)]
        # Nearly no mount ever stalls, and a row of zeros says no more than none.
        if known and (name != "stalled" or max(known) > 0):
            means = tuple(_means(zip(mount.time, mount.interval_s, values, strict=True), axis))
            yield Row(name, means, min(known), median(known), max(known))


def _means(samples: Iterable[tuple[float, float, float]], axis: Axis) -> Iterator[float | None]:
    """Yield the mean of each column, weighted by time; None where no sample says anything."""
    sums, weights = [0.0] * axis.columns, [0.0] * axis.columns
    width = axis.width_s
    for time, interval_s, value in samples:
        if math.isnan(value):
            continue
        end = time - axis.start
        for column, overlap in overlaps(end - interval_s, end, width):
            if 0 <= column < axis.columns:
                sums[column] += value * overlap
                weights[column] += overlap
    for total, weight in zip(sums, weights, strict=True):
        yield total / weight if weight else None
