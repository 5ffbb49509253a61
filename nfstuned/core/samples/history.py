"""Kept samples of a mount over time: rows of a few columns for a terminal, lines of many for a page.

The kernel sums up round trips: only the mean over an interval is known. An interval counts once, with
one operation in it or a million. The longest means show that something was slow for a while, not how slow the
slowest operations were: no percentile of a latency follows from them.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter, sub
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.core.samples.effect import effect, is_reading
from nfstuned.core.samples.evidence import ReadAheadVerdict, Tally
from nfstuned.core.samples.sample import (
    ALL_KINDS,
    combine,
    kinds,
    label,
    names_of,
    rtt_ms,
    stalled_percent,
)
from nfstuned.model.effect import Effect
from nfstuned.model.samples import OpRate, ReadAheadStep, Sample

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
        self._counts: Counter[tuple[str, int]] = Counter()

    def add(self, of_kind: Mapping[str, OpRate]) -> None:
        """Take a sample's operations by their kind."""
        for kind, op in of_kind.items():
            if op.rtt_ms is not None:
                self._counts[kind, bisect_left(BOUNDS_MS, op.rtt_ms)] += 1

    def counted(self) -> tuple[MeanTimes, ...]:
        """Return the counts of each kind that occurred."""
        buckets = range(len(BOUNDS_MS) + 1)
        every = (MeanTimes(kind, tuple(self._counts[kind, at] for at in buckets)) for kind in ALL_KINDS)
        return tuple(times for times in every if any(times.intervals))


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


class OpMeans(NamedTuple):
    """An operation while the mount was in use: how often it ended, and its mean times in milliseconds."""

    name: str
    per_s: float
    rtt_ms: float | None
    queue_ms: float | None
    exe_ms: float | None


@dataclass(frozen=True, slots=True)
class MountHistory:
    """A mount: how many samples it has, for how long it was in use, and its known figures."""

    label: str
    source: str
    samples: int
    used_s: float
    rows: tuple[Row, ...]
    read_ahead: tuple[ReadAheadVerdict, ...] = ()
    """The verdict of its reads on each read-ahead that it had."""
    ops: tuple[OpMeans, ...] = ()
    """Its operations, the most frequent first."""


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


@dataclass(slots=True, eq=False)
class _MountSamples:
    """The values of a mount's samples: 8 * (2 + len(METRICS)) bytes for each."""

    label: str = ""
    """The label of the sample that was added last: bind mounts come and go."""
    time: array[float] = field(default_factory=lambda: array("d"))
    interval_s: array[float] = field(default_factory=lambda: array("d"))
    metrics: tuple[array[float], ...] = field(default_factory=lambda: tuple(array("d") for _ in METRICS))
    """Of METRICS; an unknown value is NaN."""
    tally: Tally = field(default_factory=Tally)
    ops: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0] * 5))
    """How often each operation ended, how often with known times, and these in all."""

    def add(self, sample: Sample) -> None:
        self.label = label(sample)
        for name, op in sample.ops.items():
            number, sums = op.per_s * sample.interval_s, self.ops[name]
            sums[0] += number
            if op.rtt_ms is not None and op.queue_ms is not None and op.exe_ms is not None:
                sums[1] += number
                sums[2] += number * op.rtt_ms
                sums[3] += number * op.queue_ms
                sums[4] += number * op.exe_ms
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

    def operations(self, used_s: float) -> tuple[OpMeans, ...]:
        """Return the means of each operation over `used_s` seconds."""
        often = sorted(self.ops.items(), key=lambda item: (-item[1][0], item[0]))
        return tuple(
            OpMeans(name, number / used_s, *(time_ms / timed if timed else None for time_ms in times_ms))
            for name, (number, timed, *times_ms) in often
            if number
        )


class History:
    """Takes samples one by one, in any order; keeps the figures of METRICS of each, and operations in all."""

    def __init__(self) -> None:
        self._mounts: defaultdict[tuple[str, str], _MountSamples] = defaultdict(_MountSamples)

    def add(self, sample: Sample) -> None:
        """Take a sample; those of one source at one first mount point belong together."""
        self._mounts[series_key(sample)].add(sample)

    def axis(self) -> Axis | None:
        """Return the time that the samples are of; None when there are none."""
        mounts = self._mounts.values()
        if not mounts:
            return None
        start = min(min(map(sub, mount.time, mount.interval_s)) for mount in mounts)
        end = max(max(mount.time) for mount in mounts)
        shortest = max(min(min(mount.interval_s) for mount in mounts), 1e-3)
        # A column that is narrower than the interval between samples would show nothing new.
        return Axis(start, max(end, start + shortest), max(1, min(COLUMNS, round((end - start) / shortest))))

    def mounts(self, axis: Axis) -> Iterator[MountHistory]:
        """Yield each mount in the order of their names."""
        for (_, source), mount in sorted(self._mounts.items(), key=itemgetter(0)):
            used_s = math.fsum(mount.interval_s)
            rows = tuple(_rows(mount, axis))
            verdicts = mount.tally.verdicts()
            ops = mount.operations(used_s)
            yield MountHistory(mount.label, source, len(mount.time), used_s, rows, verdicts, ops)


def series_key(sample: Sample) -> tuple[str, str]:
    """Return the key of a mount's samples: its first mount point or else device number, and its source."""
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


MOST_POINTS = 400
MOST_STEPS = 100
"""The most changes of a read-ahead that a mount's charts mark."""
MOST_EFFECTS = 10
"""The most effects of a mount; the journal has every change."""
WIDTHS_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
"""The seconds of a point; each is a multiple of the one before. Then tenfold."""
_OF_KIND = {"ops": "per_s", "rtt": "rtt_ms", "queue": "queue_ms", "exe": "exe_ms"}
_OF_SAMPLE = {
    "read": "read_bytes_per_s",
    "write": "write_bytes_per_s",
    "server-read": "server_read_bytes_per_s",
    "server-write": "server_write_bytes_per_s",
    "over-fetch": "over_fetch_ratio",
}
_OF_OPERATIONS = {"retrans": "retrans_per_s", "errors": "errors_per_s", "timeouts": "timeouts_per_s"}
_OF_TRANSPORT = {"connections": "connections", "in-flight": "in_flight", "backlog": "backlog"}
NAMES = (
    *_OF_SAMPLE,
    "stalled",
    *_OF_OPERATIONS,
    *_OF_TRANSPORT,
    *(f"{kind}-{name}" for kind in ALL_KINDS for name in _OF_KIND),
)
_NEARLY = 0.9
"""An interval of 60.01 s is one of 60 s."""


@dataclass(frozen=True, slots=True)
class MountSeries:
    """A mount: its means over each point while it was in use, and its bytes in all."""

    points: tuple[str, ...]
    """The mount points of the last sample, or else its device number."""
    source: str
    keys: frozenset[str]
    """Its mount points and device numbers, of all samples: events name it by these."""
    group: str
    samples: int
    used_s: float
    read_bytes: float
    """The bytes that programs asked for, in all."""
    written_bytes: float
    server_read_bytes: float
    lines: Mapping[str, tuple[float | None, ...]]
    """By NAMES; without those that were never known."""
    most: Mapping[str, float]
    """The greatest of single samples; 0 where nothing was known."""
    means: Mapping[str, float]
    """Over all samples, weighted by time."""
    read_ahead: tuple[ReadAheadVerdict, ...] = ()
    """The verdict of its reads on each read-ahead that it had."""
    mean_times: tuple[MeanTimes, ...] = ()
    effects: tuple[Effect, ...] = ()
    """The effects of the last changes of its read-ahead, in their order."""
    steps: tuple[ReadAheadStep, ...] = ()
    """The last changes of its read-ahead that its samples show, in their order."""
    pods: Mapping[str, str] = field(default_factory=dict)
    """By UID: the names of pods that its samples have."""


def _values(sample: Sample, of_kind: Mapping[str, OpRate]) -> list[tuple[int, float]]:
    """Return the known figures of a sample, by their place in NAMES; `of_kind` are its operations."""
    # Summed over the kinds, at most four, and not over all operations: rates add up.
    every = combine(list(of_kind.values()))
    values = [
        *(getattr(sample, name) for name in _OF_SAMPLE.values()),
        stalled_percent(sample),
        *(getattr(every, name) for name in _OF_OPERATIONS.values()),
        *(getattr(sample.transport, name) for name in _OF_TRANSPORT.values()),
    ]
    for kind in ALL_KINDS:
        op = of_kind.get(kind)
        values += [None if op is None else getattr(op, name) for name in _OF_KIND.values()]
    return [(index, value) for index, value in enumerate(values) if value is not None]


def _row() -> array[float]:
    """Return a sum and a weight for each of NAMES."""
    return array("d", bytes(16 * len(NAMES)))


@dataclass(slots=True, eq=False)
class _Sums:
    """The sums of a mount's samples."""

    points: tuple[str, ...] = ()
    group: str = ""
    keys: set[str] = field(default_factory=set)
    samples: int = 0
    used_s: float = 0.0
    bins: dict[int, array[float]] = field(default_factory=dict)
    every: array[float] = field(default_factory=_row)
    most: array[float] = field(default_factory=lambda: array("d", bytes(8 * len(NAMES))))
    tally: Tally = field(default_factory=Tally)
    mean_times: MeanTimesCount = field(default_factory=MeanTimesCount)
    last: Sample | None = None
    """The last sample with reads."""
    effects: deque[Effect] = field(default_factory=lambda: deque(maxlen=MOST_EFFECTS))
    known: tuple[float, int] | None = None
    """The last known read-ahead in KiB, and when that was."""
    steps: deque[ReadAheadStep] = field(default_factory=lambda: deque(maxlen=MOST_STEPS))
    pods: dict[str, str] = field(default_factory=dict)

    def add(self, sample: Sample, columns: list[tuple[int, float]]) -> None:
        """Take a sample; `columns` are its seconds in each."""
        self.points, self.group = sample.mount_points or (sample.device,), sample.transport.group
        self.keys.update((*sample.mount_points, sample.device))
        self.pods.update(names_of(sample).pods)
        self.samples += 1
        self.used_s += sample.interval_s
        self.tally.add(sample)
        if is_reading(sample) and (self.last is None or sample.time > self.last.time):
            found = effect(self.last, sample) if self.last is not None else None
            self.effects.extend((found,) if found else ())
            self.last = sample
        if sample.read_ahead_kb is not None and (self.known is None or sample.time > self.known[0]):
            if self.known is not None and self.known[1] != sample.read_ahead_kb:
                start = max(self.known[0], sample.time - sample.interval_s)
                self.steps.append(ReadAheadStep(self.known[0], start, self.known[1], sample.read_ahead_kb))
            self.known = sample.time, sample.read_ahead_kb
        of_kind = kinds(sample)
        self.mean_times.add(of_kind)
        values = _values(sample, of_kind)
        for index, value in values:
            self.most[index] = max(self.most[index], value)
        _add(self.every, values, sample.interval_s)
        for column, seconds in columns:
            _add(self.bins.setdefault(column, _row()), values, seconds)

    def merge(self, factor: int) -> None:
        """Make one column of each `factor` of them."""
        merged: dict[int, array[float]] = {}
        for column, row in self.bins.items():
            into = merged.setdefault(column // factor, _row())
            for index, value in enumerate(row):
                into[index] += value
        self.bins = merged

    def finished(self, source: str, first: int, columns: int) -> MountSeries:
        """Return the means of the columns from `first` on."""
        rows = [self.bins.get(column) for column in range(first, first + columns)]
        lines: dict[str, tuple[float | None, ...]] = {}
        means = {}
        for index, name in enumerate(NAMES):
            line = tuple(None if row is None else _mean(row, index) for row in rows)
            if any(value is not None for value in line):
                lines[name] = line
            if (mean := _mean(self.every, index)) is not None:
                means[name] = mean
        return MountSeries(
            points=self.points,
            source=source,
            keys=frozenset(self.keys),
            group=self.group,
            samples=self.samples,
            used_s=self.used_s,
            read_bytes=self.every[2 * NAMES.index("read")],
            written_bytes=self.every[2 * NAMES.index("write")],
            server_read_bytes=self.every[2 * NAMES.index("server-read")],
            lines=MappingProxyType(lines),
            most=MappingProxyType(dict(zip(NAMES, self.most, strict=True))),
            means=MappingProxyType(means),
            read_ahead=self.tally.verdicts(),
            mean_times=self.mean_times.counted(),
            effects=tuple(self.effects),
            steps=tuple(self.steps),
            pods=self.pods,
        )


def _add(row: array[float], values: list[tuple[int, float]], seconds: float) -> None:
    for index, value in values:
        row[2 * index] += value * seconds
        row[2 * index + 1] += seconds


def _mean(row: array[float], index: int) -> float | None:
    weight = row[2 * index + 1]
    return row[2 * index] / weight if weight else None


class Series:
    """Takes samples one by one, in any order; `most_points` is 2 or more.

    No point reaches across the start of the sample that was added first.
    """

    def __init__(self, most_points: int = MOST_POINTS) -> None:
        self._most_points = most_points
        self._mounts: defaultdict[tuple[str, str], _Sums] = defaultdict(_Sums)
        self._origin = 0.0
        self._width_s = 0
        self._span = (math.inf, -math.inf)

    def add(self, sample: Sample) -> None:
        """Take a sample; those of one source at one first mount point belong together."""
        end = sample.time
        start = end - sample.interval_s
        if not self._width_s:
            self._origin = start
            self._width_s = WIDTHS_S[0]
            while self._width_s < _NEARLY * sample.interval_s:
                self._width_s = _wider(self._width_s)
        self._span = min(start, self._span[0]), max(end, self._span[1])
        while self._columns > self._most_points:
            wider = _wider(self._width_s)
            for sums in self._mounts.values():
                sums.merge(wider // self._width_s)
            self._width_s = wider
        columns = list(overlaps(start - self._origin, end - self._origin, self._width_s))
        self._mounts[series_key(sample)].add(sample, columns)

    def axis(self) -> Axis | None:
        """Return the time that the points are of, in columns as wide as a point; None without samples."""
        if not self._mounts:
            return None
        first, columns = self._first, self._columns
        start = self._origin + first * self._width_s
        return Axis(start, start + columns * self._width_s, columns)

    @property
    def span(self) -> tuple[float, float] | None:
        """The beginning of the first sample and the end of the last, in Unix seconds."""
        return self._span if self._mounts else None

    def mounts(self) -> Iterator[MountSeries]:
        """Yield each mount in the order of their names; a line has a value for each column of the axis."""
        for (_, source), sums in sorted(self._mounts.items(), key=lambda item: item[0]):
            yield sums.finished(source, self._first, self._columns)

    @property
    def _first(self) -> int:
        return math.floor((self._span[0] - self._origin) / self._width_s)

    @property
    def _columns(self) -> int:
        # A column that is only touched at its left edge does not count.
        last = math.ceil((self._span[1] - self._origin) / self._width_s) - 1
        return max(1, last - self._first + 1)


def _wider(width_s: int) -> int:
    return next((wider for wider in WIDTHS_S if wider > width_s), width_s * 10)
