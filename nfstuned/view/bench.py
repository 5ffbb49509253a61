"""The outputs of `nfstuned bench`: plan, table and verdicts, the document, and the page with its charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timezone, tzinfo
from itertools import groupby

from nfstuned import __version__
from nfstuned.core.bench.compare import (
    FIGURES,
    LEAST_DIFFERENCE,
    LEAST_RUNS,
    TWO,
    BenchComparison,
    best_read_aheads,
    differences,
    proposed,
    spread,
)
from nfstuned.core.samples.sample import figure, speed
from nfstuned.model.bench import SCHEMA, Bench, BenchSetting, Difference, Job, Relation, Spread, Suite
from nfstuned.parse.fields import count
from nfstuned.view.pages import number_ticks, render, zone_name
from nfstuned.view.words import DASH, TIME_FORM, Document, duration, shorten

HEADER = ("JOB", "SETTING", "THROUGHPUT", "FROM", "TO", "OPS/S", "LATENCY", "OVER-FETCH")
_FORMS = ("{:.0f}", "{:.2f} ms", "{:.2f}")
SMALL_BYTES = 64 << 10
"""The limit of a server is operations below this and bytes from here on; vendors draw the two apart."""
LEAST_POINTS = 3
"""Fewer read-aheads are not a curve."""
_COLOURS = 4
_NAME_WIDTH = 22
"""Characters of a bar's name."""


def plan_lines(folder: str, suite: Suite, free_bytes: int, seconds: float) -> Iterator[str]:
    """Yield the plan, before the measurement begins."""
    yield f"suite {suite.name}: {suite.about}"
    yield (
        f"It makes files of {suite.bytes_on_disk >> 20} MiB in a folder of its own in {folder} "
        f"({free_bytes >> 20} MiB are free), and removes them at its end."
    )
    yield f"It takes about {duration(seconds)}, and uses all that the server and the network give."


def cost_lines(compared: Sequence[BenchSetting], *, bills: bool) -> Iterator[str]:
    """Yield the second mount and the possible costs, before the measurement begins."""
    if any(setting.connections is not None for setting in compared):
        yield (
            "It mounts the folder a second time where no other program sees it, with connections of its "
            "own, and unmounts it between the settings; the mount itself stays unchanged."
        )
    if bills:
        yield (
            "The provider may charge for requests, for bytes, and for traffic between zones or regions, as "
            "the contract says, which is not known here."
        )


def _results(bench: Bench) -> Iterator[tuple[str, str, Spread, list[Spread | None]]]:
    """Yield each job and setting with its throughput and the other FIGURES, where a run counts."""
    for job in bench.suite.jobs:
        for setting in bench.settings:
            rate, *others = (spread(bench.runs, job.name, setting.name, key) for key in FIGURES)
            if rate is not None:
                yield job.name, setting.name, rate, others


def bench_rows(bench: Bench) -> list[tuple[str, ...]]:
    """Return a row for each job and setting."""
    rows = []
    for job, setting, rate, others in _results(bench):
        pairs = zip(others, _FORMS, strict=True)
        cells = (DASH if middle is None else form.format(middle.median) for middle, form in pairs)
        rows.append((job, setting, speed(rate.median), speed(rate.least), speed(rate.most), *cells))
    return rows


def comparison_lines(bench: Bench) -> Iterator[str]:
    """Yield a sentence for each job, and the best setting for all as a key of a profile."""
    if len(bench.settings) == TWO:
        yield from map(difference_sentence, differences(bench))
    elif len(bench.settings) > TWO:
        for job, kb in best_read_aheads(bench).items():
            yield f"{job}: {kb} KiB is the smallest read-ahead that gives as much as any other"
    if (best := proposed(bench)) is not None:
        key, value, present = "read_ahead_kb", best.read_ahead_kb, bench.mount.read_ahead_kb
        if best.connections is not None:
            key, value, present = "nconnect", best.connections, bench.mount.connections
        has = "an unknown number" if present is None else present
        yield f"Best for all jobs: {key} = {value}; the mount has {has}. To change it: nfstuned-bench(1)."


def shortcomings(bench: Bench) -> Iterator[str]:
    """Yield the runs that do not count, each reason once, and why the measurement ended before its time."""
    seen = Counter(f"{run.job}, {run.setting}: {run.problem}" for run in bench.runs if run.problem)
    for text, times in seen.items():
        yield f"not counted: {count(times, 'run')} of {text}"
    if bench.ended:
        yield f"It ended before its time: {bench.ended}"


def difference_sentence(compared: Difference, *, since: bool = False) -> str:
    """Return a difference in a sentence with its numbers; `since` is for one from an earlier measurement."""
    after, before = short_name(compared.after), short_name(compared.before)
    name = f"{compared.job}, {after}" if since else compared.job
    if compared.outcome is Relation.UNKNOWN or compared.old is None or compared.new is None:
        return f"{name}: too few runs count for a verdict"
    same = "no difference beyond the noise"
    outcome = same if compared.outcome is Relation.SAME else f"{compared.ratio:.2f} times as fast"
    new, old = (
        f"{speed(middle.median)} ({speed(middle.least)} to {speed(middle.most)})"
        for middle in (compared.new, compared.old)
    )
    numbers = f"{new} now, {old} then" if since else f"{new} with {after}, {old} with {before}"
    return f"{name}: {outcome}: {numbers}"


def short_name(setting: BenchSetting) -> str:
    """Return the read-ahead of a setting, or its name without one."""
    return f"{setting.read_ahead_kb} KiB" if setting.read_ahead_kb is not None else setting.name


def since_lines(comparison: BenchComparison) -> Iterator[str]:
    """Yield each job's difference from an earlier measurement, and the other changes."""
    yield f"Against the measurement of {comparison.before.time.astimezone(timezone.utc):{TIME_FORM}} UTC:"
    for each in comparison.compared:
        yield difference_sentence(each, since=True)
    if not comparison.changed:
        yield "Mount, options, kernel and fio are the same."
    for changed in comparison.changed:
        yield f"{changed.name}: {changed.before} then, {changed.after} now"


def bench_document(bench: Bench, comparison: BenchComparison | None = None) -> Document:
    """Return the document: every number of the table and the charts, and every run."""
    best = proposed(bench)
    return {
        "schema": SCHEMA,
        "version": __version__,
        **asdict(bench),
        "time": bench.time.isoformat(),
        "host": bench.mount.host,
        "results": [
            {"job": job, "setting": setting}
            | {key: each and asdict(each) for key, each in zip(FIGURES, (rate, *others), strict=True)}
            for job, setting, rate, others in _results(bench)
        ],
        "differences": [
            {**_outcome(each), "before": each.before.name, "after": each.after.name}
            for each in differences(bench)
        ],
        "best_read_ahead_kb": best_read_aheads(bench),
        "proposed_read_ahead_kb": None if best is None else best.read_ahead_kb,
        "proposed_nconnect": None if best is None else best.connections,
        "against": comparison
        and {
            "time": comparison.before.time.isoformat(),
            "mount": asdict(comparison.before.mount),
            "differences": [
                {
                    **_outcome(each),
                    "setting": each.after.name,
                    "before": each.old and asdict(each.old),
                    "now": each.new and asdict(each.new),
                }
                for each in comparison.compared
            ],
            "changed": [asdict(changed) for changed in comparison.changed],
        },
    }


def _outcome(compared: Difference) -> Document:
    return {"job": compared.job, "outcome": compared.outcome.value, "ratio": compared.ratio}


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
        return number_ticks(self.most)

    @property
    def most(self) -> float:
        """The greatest number in it."""
        return max(point.spread.most for point in self.points)


@dataclass(frozen=True, slots=True)
class BarChart(_Chart):
    """Bars from the left to the right, each with its name."""

    @property
    def ticks(self) -> tuple[float, ...]:
        """The numbers of the scale, so few that they have room next to each other."""
        return number_ticks(self.most, 2)

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
        read_aheads = [point for point in _points(bench, job, THROUGHPUT) if point.setting.read_ahead_kb]
        if len(read_aheads) >= LEAST_POINTS:
            yield from (_curve(bench, job, quantity) for quantity in (THROUGHPUT, LATENCY))
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
            median, least, most = (quantity.unit(each) for each in (middle.median, middle.least, middle.most))
            numbers = f"{median} ({least} to {most}, {count(middle.count, 'run')})"
            description = f"{job.name}, {short_name(setting)}: {numbers}"
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


def bench_page(
    bench: Bench, comparison: BenchComparison | None = None, zone: tzinfo | None = None
) -> Iterator[str]:
    """Yield the page line by line; `zone` None is the host's."""
    began = bench.time.astimezone(zone)
    names = [(colour(number), setting) for number, setting in enumerate(bench.settings)]
    return render(
        "bench.jinja",
        title=f"{bench.mount.mount_point} measured",
        bench=bench,
        began=f"{began:{TIME_FORM}} {zone_name(began.timestamp(), began.timestamp(), zone)}",
        verdicts=list(comparison_lines(bench)),
        shortcomings=list(shortcomings(bench)),
        since=list(since_lines(comparison)) if comparison is not None else [],
        least_runs=LEAST_RUNS,
        least_difference=LEAST_DIFFERENCE,
        charts=list(bench_charts(bench)),
        keys=names if len(names) > 1 else [],
        headings=HEADER,
        rows=bench_rows(bench),
    )
