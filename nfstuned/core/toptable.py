"""The table of `nfstuned top`: its columns, and a line of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from nfstuned.core.render import NONE, printable, shorten
from nfstuned.core.samples import figure, place, ratio, speed
from nfstuned.core.top import NAME, Entry, State

MARGIN = 2
LEAST_NAME = 12
_GAP = 2
_LEAST_CUT = 3
"""Shorter than the three dots no name can be cut."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it is called, and how a figure of it is written."""

    name: str
    """As in SORTS."""
    heading: str
    width: int
    text: Callable[[float], str]
    least: int = 0
    """The width of a terminal from which on it is shown."""


def _whole(value: float) -> str:
    return f"{value:.0f}"


COLUMNS = (
    Column("read", "READ", 9, speed),
    Column("write", "WRITE", 9, speed),
    Column("over-fetch", "OVER", 5, ratio),
    Column("ops", "OPS/s", 6, figure),
    Column("read-rtt", "R ms", 5, figure),
    Column("write-rtt", "W ms", 5, figure),
    Column("connections", "CONN", 5, _whole),
    Column("queue", "Q ms", 5, figure, 90),
    Column("in-flight", "INFL", 5, figure, 100),
    Column("retrans", "RETR/s", 7, figure, 110),
    Column("server-read", "SRV READ", 9, speed, 135),
    Column("server-write", "SRV WRITE", 10, speed, 135),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns there are, and how wide the names before them may be."""

    columns: tuple[Column, ...]
    name_width: int

    @property
    def width(self) -> int:
        """Of a line, margin included."""
        return width_of(self.columns) + self.name_width

    def row(self, name: str, cells: Iterable[str]) -> str:
        """Return a line of the table, the name cut in its middle where it must be."""
        wide = cell_len(name) - len(name)
        room = max(_LEAST_CUT, self.name_width - wide)
        cut = name if cell_len(name) <= self.name_width else shorten(name, room)
        texts = (f"{cell:>{column.width + _GAP}}" for cell, column in zip(cells, self.columns, strict=True))
        return f"{'':{MARGIN}}{set_cell_size(cut, self.name_width)}{''.join(texts)}"

    def entry(self, entry: Entry) -> str:
        """Return the line of a superblock."""
        return self.row(name_of(entry), (_text(entry, column) for column in self.columns))

    def header(self, state: State) -> str:
        """Return the names of the columns, a star before the one that rows are sorted by."""
        headings = (f"{'*' if column.name == state.sort else ''}{column.heading}" for column in self.columns)
        return self.row("*MOUNT" if state.sort == NAME else "MOUNT", headings)


def layout_for(width: int) -> Layout:
    """Return the columns that a terminal of this width has room for; names get what is left.

    A figure without the name of its mount says nothing: on a narrow terminal the last columns go first.
    """
    columns = tuple(column for column in COLUMNS if column.least <= width)
    while columns and width - width_of(columns) < LEAST_NAME:
        columns = columns[:-1]
    return Layout(columns, max(0, width - width_of(columns)))


def width_of(columns: Iterable[Column]) -> int:
    """Return how wide everything but the names is."""
    return MARGIN + sum(column.width + _GAP for column in columns)


def name_of(entry: Entry) -> str:
    """Return what stands in the first column: the first mount point, and how many more there are."""
    return printable(place(entry.counted))


def _text(entry: Entry, column: Column) -> str:
    value = entry.figures.get(column.name)
    return NONE if value is None else column.text(value)
