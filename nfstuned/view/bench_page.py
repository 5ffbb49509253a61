"""The page of a measurement: verdicts, bars or curves with error bars, and all figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from itertools import groupby

from nfstuned.core.bench.compare import LEAST_DIFFERENCE, LEAST_RUNS, Against, proposed, spread
from nfstuned.core.samples.sample import figure, speed
from nfstuned.model.bench import Bench, BenchSetting, Job, Spread
from nfstuned.parse.fields import count
from nfstuned.view.bench import (
    HEADER,
    against_lines,
    bench_rows,
    comparisons,
    proposal_lines,
    short_name,
    shortcomings,
)
from nfstuned.view.pages import number_ticks, render, zone_name
from nfstuned.view.words import TIME_FORM, shorten

SMALL_BYTES = 64 << 10
"""The limit of a server is operations below this and bytes from here on; vendors draw the two apart."""
LEAST_POINTS = 3
"""Fewer read-aheads are not a curve."""
_COLOURS = 4
_NAME_WIDTH = 22
"""Characters of a bar's name."""


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
class PlotPoint:
    """A job under a setting: a bar, or a point of a curve."""

    job: str
    setting: BenchSetting
    colour: str
    spread: Spread
    description: str


@dataclass(frozen=True, slots=True)
class _Chart:
    """A figure of jobs under settings, with one scale from 0 on; the template has the places."""

    title: str
    quantity: Quantity
    points: tuple[PlotPoint, ...]

    @property
    def description(self) -> str:
        """The content for readers who do not see it."""
        return f"{self.title}. {'; '.join(point.description for point in self.points)}"

    @property
    def ticks(self) -> tuple[float, ...]:
        """The numbers of the scale."""
        return number_ticks(max(point.spread.most for point in self.points))


@dataclass(frozen=True, slots=True)
class BarChart(_Chart):
    """Bars from the left to the right, each with its name."""

    @property
    def groups(self) -> tuple[tuple[str, tuple[tuple[str, PlotPoint], ...]], ...]:
        """The bars with their names, below the heading of their job; each job with one setting has none."""
        if len({bar.colour for bar in self.points}) == 1:
            return (("", tuple((shorten(bar.job, _NAME_WIDTH), bar) for bar in self.points)),)
        return tuple(
            (job, tuple((shorten(short_name(bar.setting), _NAME_WIDTH), bar) for bar in bars))
            for job, bars in groupby(self.points, lambda bar: bar.job)
        )


@dataclass(frozen=True, slots=True)
class Curve(_Chart):
    """A figure of a job over the read-ahead, by its logarithm; the smallest read-ahead is first."""

    present_kb: int | None
    """The value before the measurement; None where it is not known or not on the curve."""
    proposed_kb: int | None

    @property
    def powers(self) -> tuple[int, ...]:
        """The powers of two from the least read-ahead to the largest."""
        first, last = (self._kb(0) - 1).bit_length(), self._kb(-1).bit_length()
        return tuple(1 << power for power in range(first, last))

    @property
    def marks(self) -> tuple[tuple[int, str], ...]:
        """The read-aheads that a line marks, in KiB, with their names; the present value first."""
        present, best = self.present_kb, self.proposed_kb
        if present is not None and present == best:
            return ((present, f"present and proposed: {present} KiB"),)
        named = ((present, "present"), (best, "proposed"))
        return tuple((kb, f"{name}: {kb} KiB") for kb, name in named if kb is not None)

    def part(self, kb: int) -> float:
        """Return the place of a read-ahead between the least, 0, and the largest, 1."""
        return math.log2(kb / self._kb(0)) / math.log2(self._kb(-1) / self._kb(0))

    def _kb(self, index: int) -> int:
        return self.points[index].setting.read_ahead_kb or 1


def bench_charts(bench: Bench) -> Iterator[BarChart | Curve]:
    """Yield charts in pairs: the throughput or the operations, and the latency.

    A job that ran with several read-aheads has curves. The others have bars; jobs that all read or all write,
    with blocks of similar sizes, share a chart.
    """
    groups: dict[tuple[bool, bool], list[Job]] = {}
    for job in bench.suite.jobs:
        values = [point.setting.read_ahead_kb for point in _points(bench, job, THROUGHPUT)]
        if len(list(filter(None, values))) >= LEAST_POINTS:
            yield _curve(bench, job, THROUGHPUT)
            yield _curve(bench, job, LATENCY)
        else:
            groups.setdefault((job.pattern.reads, job.block_bytes < SMALL_BYTES), []).append(job)
    for (reads, small), jobs in groups.items():
        sizes = sorted({job.block_bytes for job in jobs})
        texts = [f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} bytes" for size in sizes]
        blocks = " to ".join(dict.fromkeys((texts[0], texts[-1])))
        for quantity in (OPERATIONS if small else THROUGHPUT, LATENCY):
            title = f"{'Reads' if reads else 'Writes'} of {blocks}: {quantity.title}"
            if bars := tuple(bar for job in jobs for bar in _points(bench, job, quantity)):
                yield BarChart(title, quantity, bars)


def _points(bench: Bench, job: Job, quantity: Quantity) -> Iterator[PlotPoint]:
    for number, setting in enumerate(bench.settings):
        middle = spread(bench.runs, job.name, setting.name, quantity.key)
        if middle is not None:
            description = f"{job.name}, {short_name(setting)}: {quantity.text(middle)}"
            yield PlotPoint(job.name, setting, colour(number), middle, description)


def colour(number: int) -> str:
    """Return the class of the colour of a setting; the fifth setting has the first colour."""
    return f"b{number % _COLOURS + 1}"


def _curve(bench: Bench, job: Job, quantity: Quantity) -> Curve:
    by_kb = {kb: point for point in _points(bench, job, quantity) if (kb := point.setting.read_ahead_kb)}
    present, best = bench.mount.read_ahead_kb, proposed(bench)
    inside = range(min(by_kb), max(by_kb) + 1)
    return Curve(
        f"{job.name}: {quantity.title} over the read-ahead",
        quantity,
        tuple(by_kb[kb] for kb in sorted(by_kb)),
        present if present in inside else None,
        best.read_ahead_kb if best is not None and best.read_ahead_kb in inside else None,
    )


def bench_page(bench: Bench, against: Against | None = None, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield the page line by line; `zone` None is the host's."""
    began = bench.time.astimezone(zone)
    names = [(colour(number), setting) for number, setting in enumerate(bench.settings)]
    return render(
        "bench.jinja",
        title=f"{bench.mount.mount_point} measured",
        bench=bench,
        began=f"{began:{TIME_FORM}} {zone_name(began.timestamp(), began.timestamp(), zone)}",
        verdicts=[*comparisons(bench), *proposal_lines(bench)],
        shortcomings=list(shortcomings(bench)),
        since=list(against_lines(against)) if against is not None else [],
        least_runs=LEAST_RUNS,
        least_difference=LEAST_DIFFERENCE,
        charts=list(bench_charts(bench)),
        keys=names if len(names) > 1 else [],
        headings=HEADER,
        rows=bench_rows(bench),
    )
