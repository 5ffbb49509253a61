"""Many samples as lines over the time: for each mount the means of each figure, in so many points at most.

Nothing of a single sample is kept but what adds to sums, so that a year of them takes no more room than a
day: where there would be too many points, neighbours become one.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from nfstuned.core.readahead.evidence import Tally, Verdict
from nfstuned.core.samples.history import Axis, MeanTimes, MeanTimesCount, overlaps, series_key
from nfstuned.core.samples.sample import ALL_KINDS, kinds, label, stalled_percent, together
from nfstuned.model.samples import OpRate, Sample

MOST_POINTS = 400
WIDTHS_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
"""What a point is the mean of, in seconds; each is a multiple of the one before. Then tenfold."""
_OF_KIND = {"ops": "per_s", "rtt": "rtt_ms", "queue": "queue_ms", "exe": "exe_ms"}
_PLAIN = {
    "read": "read_bytes_per_s",
    "write": "write_bytes_per_s",
    "server-read": "server_read_bytes_per_s",
    "server-write": "server_write_bytes_per_s",
    "over-fetch": "over_fetch_ratio",
}
_TOGETHER = {"retrans": "retrans_per_s", "errors": "errors_per_s", "timeouts": "timeouts_per_s"}
_TRANSPORT = {"connections": "connections", "in-flight": "in_flight", "backlog": "backlog"}
NAMES = (
    *_PLAIN,
    "stalled",
    *_TOGETHER,
    *_TRANSPORT,
    *(f"{kind}-{name}" for kind in ALL_KINDS for name in _OF_KIND),
)
_NEARLY = 0.9
"""An interval of 60.01 s is one of 60 s."""


@dataclass(frozen=True, slots=True)
class MountSeries:
    """A mount: its means over each point while it was in use, and what it delivered in all."""

    label: str
    source: str
    keys: frozenset[str]
    """Its mount points and device numbers, of all samples: what events name it by."""
    group: str
    samples: int
    used_s: float
    read_bytes: float
    """What programs asked for, in all."""
    written_bytes: float
    server_read_bytes: float
    lines: Mapping[str, tuple[float | None, ...]]
    """By NAMES; without those that were never known."""
    most: Mapping[str, float]
    """The greatest of single samples; 0 where nothing was known."""
    means: Mapping[str, float]
    """Over all samples, weighted by time."""
    read_ahead: tuple[Verdict, ...] = ()
    """What its reads tell of each read-ahead that it had."""
    mean_times: tuple[MeanTimes, ...] = ()


def _values(sample: Sample, of_kind: Mapping[str, OpRate]) -> list[tuple[int, float]]:
    """Return what a sample knows, by its place in NAMES; `of_kind` are its operations."""
    # Of the kinds instead of all operations: rates are sums, and there are at most four.
    every = together(list(of_kind.values()))
    values = [
        *(getattr(sample, name) for name in _PLAIN.values()),
        stalled_percent(sample),
        *(getattr(every, name) for name in _TOGETHER.values()),
        *(getattr(sample.transport, name) for name in _TRANSPORT.values()),
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
    """What is kept of a mount's samples."""

    label: str = ""
    group: str = ""
    keys: set[str] = field(default_factory=set)
    samples: int = 0
    used_s: float = 0.0
    bins: dict[int, array[float]] = field(default_factory=dict)
    every: array[float] = field(default_factory=_row)
    most: array[float] = field(default_factory=lambda: array("d", bytes(8 * len(NAMES))))
    tally: Tally = field(default_factory=Tally)
    mean_times: MeanTimesCount = field(default_factory=MeanTimesCount)

    def add(self, sample: Sample, columns: list[tuple[int, float]]) -> None:
        """Take a sample, which has these parts in these columns."""
        self.label, self.group = label(sample), sample.transport.group
        self.keys.update((*sample.mount_points, sample.device))
        self.samples += 1
        self.used_s += sample.interval_s
        self.tally.add(sample)
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
        for index, name in enumerate(NAMES):
            line = tuple(None if row is None else _mean(row, index) for row in rows)
            if any(value is not None for value in line):
                lines[name] = line
        return MountSeries(
            label=self.label,
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
            means=MappingProxyType(
                {
                    name: mean
                    for index, name in enumerate(NAMES)
                    if (mean := _mean(self.every, index)) is not None
                }
            ),
            read_ahead=self.tally.verdicts(),
            mean_times=self.mean_times.counted(),
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

    What is before the first sample and what is behind it are never one point.
    """

    def __init__(self, most_points: int = MOST_POINTS) -> None:
        self._most_points = most_points
        self._mounts: dict[tuple[str, str], _Sums] = {}
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
            self._widen()
        columns = list(overlaps(start - self._origin, end - self._origin, self._width_s))
        self._mounts.setdefault(series_key(sample), _Sums()).add(sample, columns)

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
        # A column that is only touched at its left edge is none.
        last = math.ceil((self._span[1] - self._origin) / self._width_s) - 1
        return max(1, last - self._first + 1)

    def _widen(self) -> None:
        wider = _wider(self._width_s)
        for sums in self._mounts.values():
            sums.merge(wider // self._width_s)
        self._width_s = wider


def _wider(width_s: int) -> int:
    return next((wider for wider in WIDTHS_S if wider > width_s), width_s * 10)
