"""Lines over the time as SVG: axes with units, gaps where nothing is known, nothing outside of the plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from html import escape
from itertools import takewhile

from nfstuned.core.samples.history import Axis
from nfstuned.view.words import printable

_LEAST = 1e-6
"""A scale of less shows nothing that anybody could want to know."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY,
)  # fmt: skip
_YEARS_S = 300 * _DAY
"""From here on a day is not clear without its year."""


def number_ticks(most: float, about: int = 4) -> tuple[float, ...]:
    """Return round numbers from 0 to `most` or a little above: 1, 2 or 5 times a power of ten apart."""
    least_step = max(most, _LEAST) / about
    power = 10.0 ** math.floor(math.log10(least_step))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= least_step * (1 - 1e-12))
    # A number is not to be above its axis because of the last bit of a quotient.
    count = max(1, math.ceil(max(most, _LEAST) / step * (1 - 1e-12)))
    return tuple(step * number for number in range(count + 1))


def time_ticks(start: float, end: float, zone: tzinfo | None, most: int = 8) -> tuple[tuple[float, str], ...]:
    """Return moments of a wall clock in Unix seconds, at most one more than `most`, and what they are called.

    They are round in the zone, also behind a change to or from summer time. `zone` None is the host's.
    """
    step_s = next((step for step in _STEPS_S if (end - start) / step <= most), None)
    if step_s is None:
        step_s = _DAY * math.ceil((end - start) / most / _DAY)
    labels: list[tuple[float, str]] = []
    walls = _walls(datetime.fromtimestamp(start, zone).replace(tzinfo=None), step_s)
    moments = ((wall.replace(tzinfo=zone).timestamp(), wall) for wall in walls)
    for moment, wall in takewhile(lambda pair: pair[0] <= end, moments):
        if moment >= start and (not labels or moment > labels[-1][0]):
            labels.append((moment, _label(wall, step_s, end - start)))
    return tuple(labels)


def _walls(start: datetime, step_s: int) -> Iterator[datetime]:
    """Yield round times of a wall clock from a little before `start` on, for ever."""
    midnight = datetime.combine(start.date(), datetime.min.time())
    if step_s >= _DAY:
        days = step_s // _DAY
        wall = midnight - timedelta(days=midnight.toordinal() % days)
    else:
        wall = midnight + timedelta(seconds=(start - midnight).total_seconds() // step_s * step_s)
    # An hour that comes twice begins before the wall clock says so.
    wall -= timedelta(seconds=step_s)
    while True:
        yield wall
        wall += timedelta(seconds=step_s)


def _label(wall: datetime, step_s: int, span_s: float) -> str:
    """Return a time as exactly as its steps need it; at midnight the day that begins."""
    if step_s < _DAY and (wall.hour or wall.minute or wall.second):
        return wall.strftime("%H:%M:%S" if step_s < _MINUTE else "%H:%M")
    if step_s >= _DAY and span_s >= _YEARS_S:
        return wall.strftime("%Y-%m-%d")
    return wall.strftime("%d %b").lstrip("0")


HEIGHT = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 10, 10, 26
_SPARK_WIDTH, _SPARK_HEIGHT = 160, 28
_LABEL_WIDTH = 80
"""About how wide the label of a time is, with room around it."""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line: a value for each column of the axis, None where nothing is known."""

    name: str
    style: str
    """The class that colours it: "s1", or "s1 dashed"."""
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """What one chart shows."""

    title: str
    lines: tuple[PlotLine, ...]
    label: Callable[[float], str]
    """How a number of the scale is written, with its unit."""
    width: int = 500
    """Of the picture; about as wide as it is shown, or what is written in it would be too small to read."""
    reference: float | None = None
    """A value that is marked by a line of its own."""
    marks: tuple[tuple[float, str], ...] = ()
    """Moments in Unix seconds, and what happened then."""


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """The time that charts show, in Unix seconds, and the columns that their lines have in it."""

    start: float
    end: float
    axis: Axis
    zone: tzinfo | None


@dataclass(frozen=True, slots=True)
class _Plot:
    """The area in which lines are, in the units of the picture, and what it shows."""

    frame: PlotFrame
    left: int
    right: int
    ceiling: int
    floor: int
    top: float
    """The greatest number of the scale."""

    def x(self, moment: float) -> float:
        """Return where a moment is; what is outside of the frame is at its edge."""
        part = (moment - self.frame.start) / (self.frame.end - self.frame.start)
        return self.left + min(1.0, max(0.0, part)) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a number is."""
        return self.floor - min(1.0, max(0.0, value / self.top)) * (self.floor - self.ceiling)


def esc(text: str) -> str:
    r"""Return any text as HTML and XML can hold it: control characters and stray bytes as `\x0a`."""
    return escape(printable(text), quote=True)


def svg(chart: Chart, frame: PlotFrame) -> str:
    """Return the chart as one `<svg>` element; colours come from the page's style sheet."""
    known = [value for line in chart.lines for value in line.values if value is not None]
    if chart.reference is not None:
        known.append(chart.reference)
    ticks = number_ticks(max(known, default=0.0))
    plot = _Plot(frame, _LEFT, chart.width - _RIGHT, _TOP, HEIGHT - _BOTTOM, ticks[-1])
    label = esc(f"{chart.title}: {', '.join(line.name for line in chart.lines)}")
    parts = [
        f'<svg viewBox="0 0 {chart.width} {HEIGHT}" role="img" aria-label="{label}">',
        *_axes(chart, plot, ticks),
        *_paths(chart.lines, plot),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(chart: Chart, plot: _Plot, ticks: Sequence[float]) -> Iterator[str]:
    """Yield the numbers with their lines, the reference, the times, and the marks."""
    for tick in ticks:
        y = plot.y(tick)
        yield f'<line class="grid" x1="{plot.left}" x2="{plot.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="y" x="{plot.left - 6}" y="{y + 4:.1f}">{esc(chart.label(tick))}</text>'
    if chart.reference is not None:
        y = plot.y(chart.reference)
        yield f'<line class="reference" x1="{plot.left}" x2="{plot.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    frame, floor = plot.frame, plot.floor
    most = max(2, (plot.right - plot.left) // _LABEL_WIDTH)
    for moment, label in time_ticks(frame.start, frame.end, frame.zone, most):
        x = plot.x(moment)
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}"/>'
        yield f'<text class="x" x="{x:.1f}" y="{HEIGHT - 8}">{esc(label)}</text>'
    for moment, text in chart.marks:
        if frame.start <= moment <= frame.end:
            x = plot.x(moment)
            place = f'x1="{x:.1f}" x2="{x:.1f}" y1="{plot.ceiling}" y2="{floor}"'
            yield f'<line class="mark" {place}><title>{esc(text)}</title></line>'


def _paths(lines: Iterable[PlotLine], plot: _Plot) -> Iterator[str]:
    for line in lines:
        path = _path(line, plot)
        if path:
            yield f'<path class="line {line.style}" d="{path}"/>'


def _path(line: PlotLine, plot: _Plot) -> str:
    """Return the line through the middles of its columns, interrupted where a column has no value.

    A value without neighbours is as wide as its column: a point alone would not be seen.
    """
    axis, pieces = plot.frame.axis, []
    for first, values in _runs(line.values):
        start = axis.start + first * axis.width_s
        if len(values) == 1:
            left, right, y = plot.x(start), plot.x(start + axis.width_s), plot.y(values[0])
            pieces.append(f"M{left:.1f} {y:.1f}H{right:.1f}")
            continue
        points = (
            f"{plot.x(start + (number + 0.5) * axis.width_s):.1f} {plot.y(value):.1f}"
            for number, value in enumerate(values)
        )
        pieces.append("M" + "L".join(points))
    return "".join(pieces)


def _runs(values: Sequence[float | None]) -> Iterator[tuple[int, list[float]]]:
    """Yield where each run of known values begins, and the values."""
    run: list[float] = []
    for column, value in enumerate(values):
        if value is not None:
            run.append(value)
        elif run:
            yield column - len(run), run
            run = []
    if run:
        yield len(values) - len(run), run


def spark(lines: Sequence[PlotLine], frame: PlotFrame) -> str:
    """Return lines without axes, for a cell of a table; all of them have one scale."""
    top = max((value for line in lines for value in line.values if value is not None), default=0.0)
    plot = _Plot(frame, 0, _SPARK_WIDTH, 2, _SPARK_HEIGHT - 2, top or 1.0)
    size = f'viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}" width="{_SPARK_WIDTH}" height="{_SPARK_HEIGHT}"'
    return f'<svg class="spark" {size} aria-hidden="true">{"".join(_paths(lines, plot))}</svg>'


def key(style: str, path: str, text: str) -> str:
    """Return a piece of a line with its style, and what such lines are."""
    sample = f'<svg viewBox="0 0 24 8" aria-hidden="true"><path class="{style}" d="{path}"/></svg>'
    return f'<span class="key">{sample}{esc(text)}</span>'
