"""The page of a measurement: verdicts, bars or curves with error bars, and all figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from itertools import groupby

from nfstuned.core.bench.compare import LEAST_DIFFERENCE, LEAST_RUNS, Against
from nfstuned.core.samples.sample import figure, speed
from nfstuned.model.bench import Bench, BenchSetting, Job, Spread
from nfstuned.parse.fields import count
from nfstuned.view.bench import (
    HEADER,
    against_lines,
    bench_rows,
    comparisons,
    policy_lines,
    proposed,
    rate_lines,
    short_name,
    shortcomings,
    spread_of,
    throughput_text,
)
from nfstuned.view.report import pages
from nfstuned.view.report.chart import number_ticks
from nfstuned.view.words import NONE, TIME_FORM, shorten, text

SMALL_BYTES = 64 << 10
"""The limit of a server is operations below this and bytes from here on; vendors draw the two apart."""
LEAST_POINTS = 3
"""Fewer read-aheads are not a curve."""
HOW_TO_READ = (
    "A bar, or a point of a curve, is the median of the runs that count. The thin line with two ends reaches "
    "from the slowest of them to the fastest. Two settings differ in throughput where these lines do not "
    f"overlap, the medians are {LEAST_DIFFERENCE:.0%} apart or more, and there are {LEAST_RUNS} runs of each "
    "or more; else the difference may be chance. Every scale of throughput and latency begins at 0. More "
    "throughput is better, more latency is worse."
)
WIDTH = 500
_COLOURS = 4
_HEADING, _ROW = 22, 20
"""How high a job's name and a bar with its room are."""
_VALUES = 74
"""How wide the numbers behind the bars are."""
_NAME_WIDTH = 22
"""Characters of a bar's name."""
_INDENT = "    "
"""Before the lines of a configuration."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure that charts show."""

    title: str
    unit: Callable[[float], str]
    """Writes a number with its unit."""
    key: str
    """In the document."""

    def tick(self, value: float) -> str:
        """Return a number of a scale, which is round, without a decimal 0."""
        return self.unit(value).replace(".0 ", " ").replace(".0/", "/") if value else "0"

    def text(self, middle: Spread) -> str:
        """Return a spread in words."""
        between = f"{self.unit(middle.least)} to {self.unit(middle.most)}"
        return f"{self.unit(middle.median)} ({between}, {count(middle.count, 'run')})"


THROUGHPUT = Quantity("throughput", speed, "bytes_per_s")
OPERATIONS = Quantity("operations a second", lambda value: f"{figure(value)}/s", "operations_per_s")
LATENCY = Quantity(
    "latency", lambda value: f"{value:.2g} ms" if value < 1 else f"{figure(value)} ms", "latency_ms"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A job under a setting."""

    job: str
    setting: str
    colour: str
    spread: Spread
    description: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars from the left to the right with one scale from 0 on, each with its name."""

    title: str
    quantity: Quantity
    bars: tuple[Bar, ...]
    rows: tuple[tuple[int, str, Bar | None], ...]
    """The names of jobs with their upper edges, and of bars with their middles."""
    height: int
    """Without the numbers of the scale."""
    width: int = WIDTH
    left: int = 150

    @classmethod
    def of(cls, title: str, quantity: Quantity, bars: tuple[Bar, ...]) -> BarChart:
        """Return the chart; a bar has the name of its job where each job has a single setting."""
        has_headings = len({bar.colour for bar in bars}) > 1
        rows: list[tuple[int, str, Bar | None]] = []
        y, job = 2, ""
        for bar in bars:
            if has_headings and bar.job != job:
                rows.append((y, bar.job, None))
                y += _HEADING
            job = bar.job
            rows.append((y + _ROW // 2, shorten(bar.setting if has_headings else job, _NAME_WIDTH), bar))
            y += _ROW
        return cls(title, quantity, bars, tuple(rows), y + 2)

    @property
    def description(self) -> str:
        """The content for readers who do not see it."""
        return f"{self.title}. {'; '.join(bar.description for bar in self.bars)}"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The numbers of the scale."""
        return number_ticks(max(bar.spread.most for bar in self.bars))

    def x(self, value: float) -> float:
        """Return where a number is."""
        return self.left + value / self.ticks[-1] * (self.width - self.left - _VALUES)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A read-ahead with the figures under it."""

    kb: int
    spread: Spread
    description: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure of a job over the read-ahead, by its logarithm."""

    title: str
    quantity: Quantity
    points: tuple[CurvePoint, ...]
    """The smallest read-ahead first."""
    present_kb: int | None
    """The value before the measurement; None where it is not known or not on the curve."""
    proposed_kb: int | None
    width: int = WIDTH
    height: int = 270
    left: int = 78
    right: int = WIDTH - 18
    ceiling: int = 42
    floor: int = 270 - 44

    @property
    def description(self) -> str:
        """The content for readers who do not see it."""
        parts = (*(point.description for point in self.points), *(name for _, name in self.marks))
        return f"{self.title}. {'; '.join(parts)}"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The numbers of the scale."""
        return number_ticks(max(point.spread.most for point in self.points))

    @property
    def powers(self) -> tuple[int, ...]:
        """The powers of two from the least read-ahead to the largest."""
        first, last = (self.points[0].kb - 1).bit_length(), self.points[-1].kb.bit_length()
        return tuple(1 << power for power in range(first, last))

    @property
    def marks(self) -> tuple[tuple[int, str], ...]:
        """The read-aheads that a line marks, in KiB, with their names; the present value first."""
        present, best = self.present_kb, self.proposed_kb
        if present is not None and present == best:
            return ((present, f"present and proposed: {present} KiB"),)
        named = ((present, "present"), (best, "proposed"))
        return tuple((kb, f"{name}: {kb} KiB") for kb, name in named if kb is not None)

    def x(self, kb: float) -> float:
        """Return where a read-ahead is."""
        octaves = math.log2(self.points[-1].kb / self.points[0].kb)
        return self.left + math.log2(kb / self.points[0].kb) / octaves * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a number is."""
        return self.floor - value / self.ticks[-1] * (self.floor - self.ceiling)


def bench_charts(bench: Bench) -> Iterator[BarChart | Curve]:
    """Yield charts in pairs: the throughput or the operations, and the latency.

    A job that ran with several read-aheads has curves. The others have bars; jobs that all read or all write,
    with blocks of similar sizes, share a chart.
    """
    groups: dict[tuple[bool, bool], list[Job]] = {}
    for job in bench.suite.jobs:
        points = _points(bench, job, THROUGHPUT)
        if len(points) >= LEAST_POINTS:
            yield _curve(bench, job, THROUGHPUT, points)
            yield _curve(bench, job, LATENCY, _points(bench, job, LATENCY))
        else:
            groups.setdefault((job.pattern.reads, job.block_bytes < SMALL_BYTES), []).append(job)
    for (reads, small), jobs in groups.items():
        sizes = sorted({job.block_bytes for job in jobs})
        texts = [f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} bytes" for size in sizes]
        blocks = " to ".join(dict.fromkeys((texts[0], texts[-1])))
        for quantity in (OPERATIONS if small else THROUGHPUT, LATENCY):
            title = f"{'Reads' if reads else 'Writes'} of {blocks}: {quantity.title}"
            if bars := tuple(bar for job in jobs for bar in _bars(bench, job, quantity)):
                yield BarChart.of(title, quantity, bars)


def _bars(bench: Bench, job: Job, quantity: Quantity) -> Iterator[Bar]:
    for number, setting in enumerate(bench.settings):
        middle = spread_of(bench, job.name, setting, quantity.key)
        if middle is not None:
            name = short_name(setting)
            yield Bar(job.name, name, colour(number), middle, f"{job.name}, {name}: {quantity.text(middle)}")


def colour(number: int) -> str:
    """Return the class of the colour of a setting; from the fifth setting on they come again."""
    return f"b{number % _COLOURS + 1}"


def _points(bench: Bench, job: Job, quantity: Quantity) -> tuple[CurvePoint, ...]:
    points = [
        CurvePoint(setting.read_ahead_kb, middle, f"{setting.read_ahead_kb} KiB: {quantity.text(middle)}")
        for setting in bench.settings
        if setting.read_ahead_kb and (middle := spread_of(bench, job.name, setting, quantity.key)) is not None
    ]
    return tuple(sorted(points, key=lambda point: point.kb))


def _curve(bench: Bench, job: Job, quantity: Quantity, points: tuple[CurvePoint, ...]) -> Curve:
    present, best = bench.mount.read_ahead_kb, proposed(bench)
    inside = range(points[0].kb, points[-1].kb + 1)
    return Curve(
        f"{job.name}: {quantity.title} over the read-ahead",
        quantity,
        points,
        present if present in inside else None,
        best.read_ahead_kb if best is not None and best.read_ahead_kb in inside else None,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Sentences, or the lines of a configuration."""

    is_configuration: bool
    lines: Sequence[str]


def bench_page(bench: Bench, against: Against | None = None, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield the page line by line; `zone` None is the host's."""
    began = bench.time.astimezone(zone)
    verdicts = tuple(comparisons(bench)) or tuple(_results(bench))
    sentences = (*rate_lines(bench), *verdicts, *policy_lines(bench))
    parts = groupby(sentences, lambda line: line.startswith(_INDENT))
    names = [(colour(number), _key(setting)) for number, setting in enumerate(bench.settings)]
    return pages.render(
        "bench.jinja",
        title=f"{bench.mount.mount_point} measured",
        bench=bench,
        began=f"{began:{TIME_FORM}} {pages.zone_name(began.timestamp(), began.timestamp(), zone)}",
        verdicts=[_Part(is_toml, [line.removeprefix(_INDENT) for line in lines]) for is_toml, lines in parts],
        shortcomings=list(shortcomings(bench)),
        since=list(against_lines(against)) if against is not None else [],
        how_to_read=HOW_TO_READ,
        charts=list(bench_charts(bench)),
        keys=names if len(names) > 1 else [],
        headings=HEADER,
        rows=bench_rows(bench),
        mount=_mount(bench),
    )


def _key(setting: BenchSetting) -> str:
    """Return a setting's value, with its name where that is another text."""
    value = short_name(setting)
    return value if value == setting.name else f"{value}: {setting.name}"


def _results(bench: Bench) -> Iterator[str]:
    """Yield the throughput and latency of each job, where nothing was compared."""
    for job in bench.suite.jobs:
        for setting in bench.settings:
            middle, latency = (
                spread_of(bench, job.name, setting, each.key) for each in (THROUGHPUT, LATENCY)
            )
            if middle is not None and latency is not None:
                after = f"each request {LATENCY.unit(latency.median)}"
                yield f"{job.name}: {throughput_text(middle)}, {after}"


def _mount(bench: Bench) -> tuple[tuple[str, str], ...]:
    mount, rate = bench.mount, bench.rate_bytes_per_s
    return (
        ("Mount", mount.mount_point),
        ("Server", mount.source),
        ("Type", mount.fstype),
        ("Options", mount.options),
        ("Profile", mount.profile),
        ("Read-ahead before", f"{mount.read_ahead_kb} KiB" if mount.read_ahead_kb is not None else NONE),
        ("Connections", text(mount.connections)),
        ("Kernel", mount.kernel or NONE),
        ("fio", mount.fio or NONE),
        ("Host", mount.host or NONE),
        ("Runs of each job", text(bench.suite.repeats)),
        ("Rate limit", speed(rate) if rate is not None else "none"),
    )
