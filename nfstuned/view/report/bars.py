"""Bars and curves with error bars as SVG: the median, and a line from the least to the most of the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nfstuned.core.bench.difference import LEAST_DIFFERENCE, LEAST_RUNS
from nfstuned.model.bench import Spread
from nfstuned.view.bench_charts import Bar, BarChart, Chart, Curve, marks, told
from nfstuned.view.report.chart import esc, number_ticks
from nfstuned.view.words import shorten

STYLE = """
.bar { stroke: none; fill-opacity: .8; }
.b1 { fill: var(--s1); } .b2 { fill: var(--s2); } .b3 { fill: var(--s3); } .b4 { fill: var(--s4); }
.key .bar { fill-opacity: .8; }
.error-bar { fill: none; stroke: var(--text); stroke-width: 1.5; }
.point { fill: var(--s1); }
svg text.job { fill: var(--text); font-weight: 600; }
svg text.value { fill: var(--text); }
svg text.right { text-anchor: end; }
.reference { stroke-width: 1.5; }
pre { overflow-x: auto; padding: .75rem 1rem; border: 1px solid var(--rule); background: var(--card); }
.verdicts { padding-left: 1.25rem; max-width: 75ch; }
.subject { width: auto; }
.subject th { white-space: nowrap; border-bottom: 1px solid var(--grid); }
"""
"""What pages with these charts have beside the style of all pages."""
WIDTH = 500
_COLOURS = 4
_HEAD, _ROW, _BAR, _SCALE = 22, 20, 12, 24
"""How high a job's name, a bar with its room, a bar, and the numbers of the scale are."""
_NAMES, _VALUES = 150, 74
"""How wide the names of settings and the numbers behind the bars are."""
_CAP = 4
"""Half of what is across the end of an error bar."""
_CURVE_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 270, 78, 18, 42, 44
_MARK_LINE = 16
_TICKS = 4
_NAME_WIDTH = 22
"""Characters of a name beside its bar."""


def svg(chart: Chart) -> str:
    """Return a chart as one `<svg>` element, whose label says all that it shows."""
    return "\n".join(_bars(chart) if isinstance(chart, BarChart) else _curve(chart))


def colour(number: int) -> str:
    """Return the class of the colour of a setting; from the fifth on they come again."""
    return f"b{(number - 1) % _COLOURS + 1}"


def _opening(label: str, height: float) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{esc(label)}">'


def _scale(most: float) -> tuple[float, ...]:
    return number_ticks(most, _TICKS)


def _bars(chart: BarChart) -> Iterator[str]:
    """Yield bars from the left to the right, each with its name and its number: no colour need be told.

    Where there is a single setting, a bar has the name of its job.
    """
    bars = [(group.name, bar) for group in chart.groups for bar in group.bars]
    several = len({bar.number for _, bar in bars}) > 1
    label = chart.quantity.label
    ticks = _scale(max((bar.spread.most for _, bar in bars), default=0.0))
    height = (_HEAD * len(chart.groups) if several else 0) + _ROW * len(bars) + 4
    words = {(job, bar.name): f"{job}, {bar.name}: {told(bar.spread, label)}" for job, bar in bars}
    yield _opening(f"{chart.title}. {'; '.join(words.values())}", height + _SCALE)
    for tick in ticks:
        x = _along(tick, ticks[-1])
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height}"/>'
        yield f'<text class="x" x="{x:.1f}" y="{height + 15}">{esc(chart.quantity.tick(tick))}</text>'
    y = 2.0
    for group in chart.groups:
        if several:
            yield f'<text class="job" x="0" y="{y + 15:.1f}">{esc(group.name)}</text>'
            y += _HEAD
        for bar in group.bars:
            yield f"<g><title>{esc(words[group.name, bar.name])}</title>"
            name = shorten(bar.name if several else group.name, _NAME_WIDTH)
            yield from _bar(bar, name, chart, (y + _ROW / 2, ticks[-1]))
            yield "</g>"
            y += _ROW
    yield "</svg>"


def _bar(bar: Bar, name: str, chart: BarChart, place: tuple[float, float]) -> Iterator[str]:
    """Yield a bar with its error bar, name and number; `place` is its height and the end of the scale."""
    y, top = place
    least, middle, most = (
        _along(value, top) for value in (bar.spread.least, bar.spread.median, bar.spread.most)
    )
    yield f'<text class="right" x="{_NAMES - 8}" y="{y + 4:.1f}">{esc(name)}</text>'
    size = f'width="{max(middle - _NAMES, 0.5):.1f}" height="{_BAR}"'
    yield f'<rect class="bar {colour(bar.number)}" x="{_NAMES}" y="{y - _BAR / 2:.1f}" {size}/>'
    caps = "".join(f"M{x:.1f} {y - _CAP:.1f}V{y + _CAP:.1f}" for x in (least, most))
    yield f'<path class="error-bar" d="M{least:.1f} {y:.1f}H{most:.1f}{caps}"/>'
    text = esc(chart.quantity.label(bar.spread.median))
    yield f'<text class="value" x="{most + 8:.1f}" y="{y + 4:.1f}">{text}</text>'


def _along(value: float, top: float) -> float:
    """Return where a number is on the scale of bars."""
    return _NAMES + value / top * (WIDTH - _NAMES - _VALUES)


@dataclass(frozen=True, slots=True)
class _Plot:
    """The area of a curve: the read-ahead by its logarithm, and a figure from 0 on."""

    least_kb: int
    most_kb: int
    top: float

    def x(self, kb: float) -> float:
        """Return where a read-ahead is."""
        octaves = math.log2(self.most_kb / self.least_kb)
        return _LEFT + math.log2(kb / self.least_kb) / octaves * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Return where a number is."""
        return _CURVE_HEIGHT - _BOTTOM - value / self.top * (_CURVE_HEIGHT - _BOTTOM - _TOP)


def _curve(chart: Curve) -> Iterator[str]:
    points, label = chart.points, chart.quantity.label
    ticks = _scale(max(point.spread.most for point in points))
    plot = _Plot(points[0].kb, points[-1].kb, ticks[-1])
    words = [f"{point.kb} KiB: {told(point.spread, label)}" for point in points]
    described = "; ".join([*words, *(text for _, text in marks(chart))])
    yield _opening(f"{chart.title}. {described}", _CURVE_HEIGHT)
    right, floor = WIDTH - _RIGHT, _CURVE_HEIGHT - _BOTTOM
    for tick in ticks:
        y = plot.y(tick)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="y" x="{_LEFT - 6}" y="{y + 4:.1f}">{esc(chart.quantity.tick(tick))}</text>'
    for kb in _powers(plot.least_kb, plot.most_kb):
        x = plot.x(kb)
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}"/>'
        yield f'<text class="x" x="{x:.1f}" y="{floor + 18}">{kb}</text>'
    middle = (_LEFT + right) / 2
    yield f'<text class="x" x="{middle:g}" y="{_CURVE_HEIGHT - 8}">read-ahead in KiB, by powers of two</text>'
    yield from _marks(chart, plot)
    path = "L".join(f"{plot.x(point.kb):.1f} {plot.y(point.spread.median):.1f}" for point in points)
    yield f'<path class="line s1" d="M{path}"/>'
    for point, said in zip(points, words, strict=True):
        x = plot.x(point.kb)
        yield f"<g><title>{esc(said)}</title>{_upright(x, point.spread, plot)}"
        yield f'<circle class="point" cx="{x:.1f}" cy="{plot.y(point.spread.median):.1f}" r="3.5"/></g>'
    yield "</svg>"


def _powers(least: int, most: int) -> Iterator[int]:
    """Yield the powers of two from `least` to `most`."""
    power = 1 << max(0, (least - 1).bit_length())
    while power <= most:
        yield power
        power *= 2


def _marks(chart: Curve, plot: _Plot) -> Iterator[str]:
    """Yield a line at the present value and another at the proposed value, each with its name above it."""
    for row, (kb, text) in enumerate(marks(chart)):
        x, y = plot.x(kb), _MARK_LINE * (row + 1) - 2
        style = "mark" if kb == chart.proposed_kb else "reference"
        anchor, beside = ("right", -5) if x > WIDTH / 2 else ("left", 5)
        place = f'x1="{x:.1f}" x2="{x:.1f}" y1="{y - 11}" y2="{_CURVE_HEIGHT - _BOTTOM}"'
        yield f'<line class="{style}" {place}/>'
        yield f'<text class="value {anchor}" x="{x + beside:.1f}" y="{y}">{esc(text)}</text>'


def _upright(x: float, middle: Spread, plot: _Plot) -> str:
    """Return an error bar at a point of a curve."""
    low, high = plot.y(middle.least), plot.y(middle.most)
    caps = "".join(f"M{x - _CAP:.1f} {y:.1f}H{x + _CAP:.1f}" for y in (low, high))
    return f'<path class="error-bar" d="M{x:.1f} {low:.1f}V{high:.1f}{caps}"/>'


HOW_TO_READ = (
    "A bar, or a point of a curve, is the median of the runs that count. The thin line with two ends reaches "
    "from the slowest of them to the fastest. Two settings differ in throughput where these lines do not "
    f"overlap, the medians are {LEAST_DIFFERENCE:.0%} apart or more, and there are {LEAST_RUNS} runs of each "
    "or more; else the difference may be chance. Every scale of throughput and latency begins at 0. More "
    "throughput is better, more latency is worse."
)
