"""What the pictures of a measurement show: bars of each job and setting, or curves over the read-ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nfstuned.core.bench.difference import figures, spread
from nfstuned.core.samples.sample import figure, speed
from nfstuned.model.bench import Bench, BenchSetting, Job, Spread
from nfstuned.parse.fields import count
from nfstuned.view.bench import FIGURES, proposed, short_name, summary

SMALL_BYTES = 64 << 10
"""Below this a server's limit is operations and not bytes, and both are drawn apart, as vendors draw them."""
LEAST_POINTS = 3
"""Fewer read-aheads are no curve."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure of which there is a picture."""

    title: str
    label: Callable[[float], str]
    """How a number is written, with its unit."""
    key: str
    """In the document."""

    def tick(self, value: float) -> str:
        """Return a number of a scale, which is round, without a decimal 0."""
        return self.label(value).replace(".0 ", " ").replace(".0/", "/") if value else "0"

    def spread(self, bench: Bench, job: Job, setting: BenchSetting) -> Spread | None:
        """Return the figure's spread over the runs that count."""
        if self.key == "bytes_per_s":
            return spread(figures(bench.runs, job, setting))
        return summary(bench, job, setting, FIGURES[self.key])


THROUGHPUT = Quantity("throughput", speed, "bytes_per_s")
OPERATIONS = Quantity("operations a second", lambda value: f"{figure(value)}/s", "operations_per_s")
LATENCY = Quantity(
    "latency", lambda value: f"{value:.2g} ms" if value < 1 else f"{figure(value)} ms", "latency_ms"
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A job under a setting."""

    name: str
    number: int
    """The setting's place, from 1 on, by which it has its colour."""
    spread: Spread


@dataclass(frozen=True, slots=True)
class BarGroup:
    """A job's bars, under its name."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars with one scale; it begins at 0."""

    title: str
    quantity: Quantity
    groups: tuple[BarGroup, ...]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a read-ahead delivered."""

    kb: int
    spread: Spread


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure of a job over the read-ahead."""

    title: str
    quantity: Quantity
    points: tuple[CurvePoint, ...]
    """The smallest read-ahead first."""
    present_kb: int | None
    """What the mount had before; None where that is not known or was not measured."""
    proposed_kb: int | None


Chart = BarChart | Curve


def charts(bench: Bench) -> Iterator[tuple[Chart, Chart]]:
    """Yield pairs of charts, the throughput or the operations and the latency beside it.

    A job that ran with several read-aheads has curves; the others have bars, those together that read or
    write alike and have blocks of alike sizes.
    """
    drawn = {job.name for job in bench.suite.jobs if len(_points(bench, job, THROUGHPUT)) >= LEAST_POINTS}
    for job in bench.suite.jobs:
        if job.name in drawn:
            yield _curve(bench, job, THROUGHPUT), _curve(bench, job, LATENCY)
    groups: dict[tuple[bool, bool], list[Job]] = {}
    for job in bench.suite.jobs:
        if job.name not in drawn:
            groups.setdefault((job.pattern.reads, job.block_bytes < SMALL_BYTES), []).append(job)
    for (reads, small), jobs in groups.items():
        title = f"{'Reads' if reads else 'Writes'} of {_blocks(jobs)}"
        first = _bars(bench, jobs, title, OPERATIONS if small else THROUGHPUT)
        if first.groups:
            yield first, _bars(bench, jobs, title, LATENCY)


def _blocks(jobs: list[Job]) -> str:
    sizes = sorted({job.block_bytes for job in jobs})
    texts = [f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} bytes" for size in (sizes[0], sizes[-1])]
    return " to ".join(dict.fromkeys(texts))


def _bars(bench: Bench, jobs: list[Job], title: str, quantity: Quantity) -> BarChart:
    groups = (BarGroup(job.name, tuple(_of_job(bench, job, quantity))) for job in jobs)
    return BarChart(f"{title}: {quantity.title}", quantity, tuple(group for group in groups if group.bars))


def _of_job(bench: Bench, job: Job, quantity: Quantity) -> Iterator[Bar]:
    for number, setting in enumerate(bench.settings, 1):
        middle = quantity.spread(bench, job, setting)
        if middle is not None:
            yield Bar(short_name(setting), number, middle)


def _points(bench: Bench, job: Job, quantity: Quantity) -> tuple[CurvePoint, ...]:
    points = [
        CurvePoint(setting.read_ahead_kb, middle)
        for setting in bench.settings
        if setting.read_ahead_kb and (middle := quantity.spread(bench, job, setting)) is not None
    ]
    return tuple(sorted(points, key=lambda point: point.kb))


def _curve(bench: Bench, job: Job, quantity: Quantity) -> Curve:
    points = _points(bench, job, quantity)
    present, best = bench.subject.read_ahead_kb, proposed(bench)
    inside = range(points[0].kb, points[-1].kb + 1)
    return Curve(
        f"{job.name}: {quantity.title} over the read-ahead",
        quantity,
        points,
        present if present in inside else None,
        best.read_ahead_kb if best is not None and best.read_ahead_kb in inside else None,
    )


def marks(curve: Curve) -> tuple[tuple[int, str], ...]:
    """Return the read-aheads that a curve marks, in KiB, and what they are; the present value first."""
    present, best = curve.present_kb, curve.proposed_kb
    if present is not None and present == best:
        return ((present, f"present and proposed: {present} KiB"),)
    named = ((present, "present"), (best, "proposed"))
    return tuple((kb, f"{what}: {kb} KiB") for kb, what in named if kb is not None)


def told(middle: Spread, label: Callable[[float], str]) -> str:
    """Return a spread in words."""
    between = f"{label(middle.least)} to {label(middle.most)}"
    return f"{label(middle.median)} ({between}, {count(middle.count, 'run')})"


def key_texts(bench: Bench) -> Iterator[tuple[int, str]]:
    """Yield each setting's number, and its name with its value."""
    for number, setting in enumerate(bench.settings, 1):
        value = short_name(setting)
        yield number, value if value == setting.name else f"{value}: {setting.name}"
