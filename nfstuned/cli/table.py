"""Tables for people, drawn by rich: colour and fitting only on a terminal, plain aligned text elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nfstuned.cli.terminal import terminal_width
from nfstuned.view.words import shorten

STYLES = {
    "ok": "green",
    "done": "green",
    "low": "yellow",
    "high": "yellow",
    "ignored": "yellow",
    "undone": "cyan",
    "existing": "cyan",
    "failed": "bold red",
    "error": "bold red",
    "warning": "bold yellow",
    "advice": "bold cyan",
    "info": "bold blue",
}
GAP = 2
"""Columns between two cells."""
LEAST = 12
"""The least width of a cut column."""
WIDE = 100_000
"""Wide enough for any row."""

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Column:
    """How one column is drawn; only a terminal shrinks any."""

    right: bool = False
    coloured: bool = False
    """Its words have the colours of STYLES."""
    mark: bool = False
    """Coloured words behind the value of the column before, under its heading."""
    shrinks: int = 0
    """Cut in the middle where the width asks for it, 1 before 2; 0 never."""


def print_table(columns: Sequence[Column], rows: Rows, header: Sequence[str] | None = None) -> None:
    """Print rows under each other on stdout."""
    terminal = sys.stdout.isatty()
    grid, width = rows, WIDE
    if terminal:
        width = terminal_width()
        grid = fit(columns, rows, header, width)
        # The terminal wraps a row that still does not fit: nothing may be lost.
        width = max(width, _width(columns, grid, header))
    output = StringIO()
    console = Console(
        file=output,
        width=width,
        height=len(grid) + 1,  # on a dumb terminal rich takes both or neither
        force_terminal=terminal,
        color_system="auto" if terminal and not os.environ.get("NO_COLOR") else None,
        highlight=False,
        emoji=False,
    )
    console.print(_table(columns, grid, header))
    sys.stdout.write("".join(line.rstrip() + "\n" for line in output.getvalue().splitlines()))


def fit(columns: Sequence[Column], rows: Rows, header: Sequence[str] | None, width: int) -> Rows:
    """Return the rows with their shrinking columns cut in the middle as far as `width` asks for."""
    grid = [list(row) for row in rows]
    order = sorted((column.shrinks, index) for index, column in enumerate(columns) if column.shrinks)
    for _, index in order:
        excess = _width(columns, grid, header) - width
        if excess > 0:
            # Cells narrower than their heading make no room.
            heading = cell_len(header[index]) if header is not None else 0
            most = max(LEAST, heading, _widest(grid, index) - excess)
            for row in grid:
                row[index] = shorten(row[index], most)
    return grid


def _width(columns: Sequence[Column], grid: Rows, header: Sequence[str] | None) -> int:
    """Return the width of the whole table."""
    total = -GAP
    for start, end in _groups(columns):
        cells = sum(_widest(grid, index) for index in range(start, end)) + end - start - 1
        total += max(cells, cell_len(header[start]) if header is not None else 0) + GAP
    return total


def _groups(columns: Sequence[Column]) -> list[tuple[int, int]]:
    """Return the spans of columns that stand under one heading."""
    starts = [index for index, column in enumerate(columns) if not column.mark]
    return list(zip(starts, [*starts[1:], len(columns)], strict=True))


def _widest(grid: Rows, index: int) -> int:
    return max((cell_len(row[index]) for row in grid), default=0)


def _table(columns: Sequence[Column], rows: Rows, header: Sequence[str] | None) -> Table:
    table = Table(box=None, show_header=header is not None, padding=(0, GAP, 0, 0), pad_edge=False)
    groups = _groups(columns)
    for start, end in groups:
        column = columns[start]
        table.add_column(
            Text(header[start]) if header is not None else "",
            justify="right" if column.right and end - start == 1 else "left",
            no_wrap=True,
            header_style="bold",
        )
    widths = [_widest(rows, index) for index in range(len(columns))]
    for row in rows:
        table.add_row(*(_cell(columns[start:end], row[start:end], widths[start]) for start, end in groups))
    return table


def _cell(columns: Sequence[Column], parts: Sequence[str], width: int) -> Text:
    """Return one cell: a value, and behind it its mark where it has one."""
    first, *marks = parts
    style = STYLES.get(first, "") if columns[0].coloured else ""
    if not marks:
        return Text(first, style)
    pad = " " * (width - cell_len(first))
    cell = Text(pad + first if columns[0].right else first + pad)
    for mark in marks:
        cell.append(" ").append(mark, STYLES.get(mark, ""))
    return cell
