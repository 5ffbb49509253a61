"""HTML pages from the templates in nfstuned/data/pages, and their charts: scales, ticks and lines in SVG.

A page loads nothing, runs no script, and is well-formed XML. Every text in it is escaped and printable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nfstuned import __version__
from nfstuned.core.samples.history import Axis
from nfstuned.parse.fields import count
from nfstuned.view.words import printable


def render(template: str, **values: object) -> Iterator[str]:
    """Yield a page line by line; it is ASCII, and UTF-8 in names."""
    text = environment().get_template(template).render(values)
    yield from (line for line in text.split("\n") if line)


def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader("nfstuned", "data/pages"),
        autoescape=True,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # A coordinate of a picture.
    made.filters["px"] = lambda length: Markup(f"{length:.1f}")  # noqa: S704 - a number
    made.filters["breakable"] = _breakable
    made.globals.update(version=__version__, count=count)
    return made


def _shown(value: object) -> object:
    r"""Return a value as HTML and XML can hold it: control characters and stray bytes as `\x0a`."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(name: str) -> Markup:
    """Return a text in which lines end behind a separator, and never in a word, a number or an option."""
    return Markup(" ").join(map(_breakable_word, printable(name).split(" ")))


def _breakable_word(word: str) -> Markup:
    text = Markup("<wbr/>").join(_PIECE.findall(word))
    return Markup('<span class="option">{}</span>').format(text) if word.startswith("-") else text


def zone_name(start: float, end: float, zone: tzinfo | None = None) -> str:
    """Return the name of a time zone with its offset, both where the ends differ: "CET (UTC+01:00)"."""
    parts = []
    for moment in (start, end):
        local = datetime.fromtimestamp(moment, zone).astimezone(zone)
        offset = f"{local:%z}"
        parts.append(f"{local.tzname()} (UTC{offset[:3]}:{offset[3:5]})")
    return " to ".join(dict.fromkeys(parts))


_PIECE = re.compile(r".+?(?:[/:,;_=#.](?![\d/:,;_=#.])|[/:,;_=#](?=\d)|$)")
"""A word with the separators behind it; at a hyphen browsers end a line without being asked."""
_LEAST = 1e-6
"""The least end of a scale, in its unit: zeros need a scale, too."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY,
)  # fmt: skip
_YEARS_S = 300 * _DAY
"""The span from which on days have their year."""


def number_ticks(most: float, about: int = 4) -> tuple[float, ...]:
    """Return round numbers from 0 to `most` or a little above: 1, 2 or 5 times a power of ten apart."""
    least_step = max(most, _LEAST) / about
    power = 10.0 ** math.floor(math.log10(least_step))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= least_step * (1 - 1e-12))
    # A number is not to be above its axis because of the last bit of a quotient.
    steps = max(1, math.ceil(max(most, _LEAST) / step * (1 - 1e-12)))
    return tuple(step * number for number in range(steps + 1))


def time_ticks(start: float, end: float, zone: tzinfo | None, most: int = 8) -> tuple[tuple[float, str], ...]:
    """Return moments of a wall clock in Unix seconds, at most one more than `most`, with their names.

    They are round in the zone, also behind a change to or from summer time. `zone` None is the host's.
    """
    step_s = next((step for step in _STEPS_S if (end - start) / step <= most), None)
    if step_s is None:
        step_s = _DAY * math.ceil((end - start) / most / _DAY)
    labels: list[tuple[float, str]] = []
    walls = _walls(datetime.fromtimestamp(start, zone).replace(tzinfo=None), step_s)
    for wall in takewhile(lambda wall: wall.replace(tzinfo=zone).timestamp() <= end, walls):
        # In autumn a wall clock shows an hour twice, in spring it leaves an hour out.
        for moment in (wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)):
            shown = datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)
            if start <= moment <= end and shown == wall:
                labels.append((moment, _label(wall, step_s, end - start)))
                break
    return tuple(sorted(labels))


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


WIDE, NARROW, HEIGHT = 1320, 500, 200
"""About the size in which a chart is shown: the text of a much larger picture would not be legible."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 10, 10, 26
_SPARK_WIDTH, _SPARK_HEIGHT = 160, 28
_NOTE_ROWS, _NOTE_WIDTH, _NOTE_HEIGHT = 3, 9, 16
"""The rows of notes, and the room for a letter of theirs, on a small screen too."""
_LABEL_WIDTH = 80
"""About how wide the label of a time is, with room around it."""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line: a value for each column of the axis, None where nothing is known."""

    name: str
    style: str
    """The class that colours it: "s1", or "s1 dashed"."""
    values: Sequence[float | None]


class Mark(NamedTuple):
    """An event in a chart: an upright line."""

    moment: float
    """In Unix seconds."""
    text: str
    """Shown where a pointer is on the line."""
    note: str = ""
    """Shown at its upper end, where there is room."""


class Note(NamedTuple):
    """The place of a mark's note, in the units of the picture."""

    x: float
    y: float
    on_the_left: bool
    """Of its mark: the text ends at x."""
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of one chart."""

    title: str
    lines: tuple[PlotLine, ...]
    unit: Callable[[float], str]
    """Writes a number of the scale with its unit."""
    width: int = NARROW
    reference: float | None = None
    """A value that is marked by a line of its own."""
    marks: tuple[Mark, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Whether the chart is as wide as the page."""
        return self.width == WIDE

    @property
    def narrow(self) -> Chart:
        """The same for a small screen."""
        return replace(self, width=NARROW)

    @property
    def label(self) -> str:
        """Its description for readers who do not see it."""
        return f"{self.title}: {', '.join(line.name for line in self.lines)}"

    @property
    def most(self) -> float:
        """The greatest number in it."""
        known = [value for line in self.lines for value in line.values if value is not None]
        return max((*known, self.reference or 0.0))


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """The time that charts show, in Unix seconds, and the columns that their lines have in it."""

    start: float
    end: float
    axis: Axis
    zone: tzinfo | None

    def plot(self, chart: Chart) -> Plot:
        """Return the area of a chart; the notes of its marks are above it."""
        bare = Plot(
            frame=self,
            left=_LEFT,
            right=chart.width - _RIGHT,
            ceiling=_TOP,
            floor=HEIGHT - _BOTTOM,
            height=HEIGHT,
            ticks=number_ticks(chart.most),
        )
        notes = tuple(_notes(chart.marks, bare))
        above = round(max((note.y for note in notes), default=0.0))
        return replace(
            bare, ceiling=_TOP + above, floor=bare.floor + above, height=HEIGHT + above, notes=notes
        )

    def spark(self, lines: Sequence[PlotLine]) -> Plot:
        """Return the area of lines without axes; all of them have one scale."""
        most = max((value for line in lines for value in line.values if value is not None), default=0.0)
        width, height = _SPARK_WIDTH, _SPARK_HEIGHT
        return Plot(
            frame=self, left=0, right=width, ceiling=2, floor=height - 2, height=height, ticks=(most or 1.0,)
        )


@dataclass(frozen=True, slots=True)
class Plot:
    """The area in which lines are, in the units of the picture."""

    frame: PlotFrame
    left: int
    right: int
    ceiling: int
    floor: int
    height: int
    """Of the whole picture."""
    ticks: tuple[float, ...]
    """The numbers of the scale; the last is its end."""
    notes: tuple[Note, ...] = ()

    @property
    def times(self) -> tuple[tuple[float, str], ...]:
        """The moments of the time axis, with their names."""
        most = max(2, (self.right - self.left) // _LABEL_WIDTH)
        return time_ticks(self.frame.start, self.frame.end, self.frame.zone, most)

    def shows(self, moment: float) -> bool:
        """Whether a moment is in the frame."""
        return self.frame.start <= moment <= self.frame.end

    def x(self, moment: float) -> float:
        """Return where a moment is; a moment outside of the frame is at its edge."""
        part = (moment - self.frame.start) / (self.frame.end - self.frame.start)
        return self.left + min(1.0, max(0.0, part)) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a number is."""
        return self.floor - min(1.0, max(0.0, value / self.ticks[-1])) * (self.floor - self.ceiling)

    def path(self, line: PlotLine) -> str:
        """Return the line through the middles of its columns, interrupted where a column has no value.

        A value without neighbours is as wide as its column: nobody would see a single point.
        """
        axis, pieces = self.frame.axis, []
        for first, values in _runs(line.values):
            start = axis.start + first * axis.width_s
            if len(values) == 1:
                left, right, y = self.x(start), self.x(start + axis.width_s), self.y(values[0])
                pieces.append(f"M{left:.1f} {y:.1f}H{right:.1f}")
                continue
            points = (
                f"{self.x(start + (number + 0.5) * axis.width_s):.1f} {self.y(value):.1f}"
                for number, value in enumerate(values)
            )
            pieces.append("M" + "L".join(points))
        return "".join(pieces)


def _notes(marks: Iterable[Mark], plot: Plot) -> Iterator[Note]:
    """Yield the notes that have room in a few rows, from the left to the right."""
    ends = [0.0] * _NOTE_ROWS
    for moment, _, note in sorted(mark for mark in marks if mark.note and plot.shows(mark.moment)):
        x, width = plot.x(moment), len(note) * _NOTE_WIDTH
        on_the_left = x + width > plot.right + _RIGHT
        start = x - width if on_the_left else x
        row = next((row for row, end in enumerate(ends) if start >= end), None)
        if row is not None:
            ends[row] = start + width + _NOTE_WIDTH
            yield Note(x + (-4 if on_the_left else 4), (row + 1.0) * _NOTE_HEIGHT, on_the_left, note)


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
