"""`nfstuned top` as lines without control codes: a screen of so many columns and rows, or plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import Enum

from rich.cells import cell_len, set_cell_size

from nfstuned.core.render import count
from nfstuned.core.samples import both
from nfstuned.core.top import Frame, State, arranged
from nfstuned.core.topdetails import details
from nfstuned.core.toptable import COLUMNS, LEAST_NAME, MARGIN, Layout, layout_for, name_of

_HEAD = 3
"""Lines above the list: the title, the sums, the names of the columns."""
KEYS = "q quit  arrows move  Enter open  s < sort  r reverse  i idle  p pause  h help"
HELP = (
    "nfstuned top: what each NFS mount delivers, a line a superblock",
    "",
    "READ, WRITE      what programs asked for, and got",
    "OVER             bytes read from the server for each byte that programs read",
    "OPS/s            operations of all kinds",
    "R ms, W ms       mean time from sending a read or a write to its reply",
    "CONN             connections to the server, which all its mounts share",
    "Q ms             mean time that an operation waited to be sent",
    "INFL             requests that a new one found under way",
    "RETR/s           requests that were sent again",
    "SRV READ, WRITE  what went over the wire",
    "",
    "up k, down j     move; page up, page down, home g, end G as well",
    "Enter, space     open a line to its operations and connections, or close it",
    "s >, <           sort by the next or the last column",
    "r                reverse the order",
    "i                leave out what nobody uses",
    "p                pause, and go on",
    "q                quit",
    "",
    "Any key takes this away.",
)


class Style(Enum):
    """How a line stands out, where the terminal can do that."""

    PLAIN = "plain"
    TITLE = "title"
    HEADER = "header"
    SELECTED = "selected"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Line:
    """One line, not wider than the screen."""

    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Size:
    """Of a terminal, in characters."""

    columns: int
    rows: int

    @property
    def page(self) -> int:
        """How many lines of the list there is room for."""
        return max(1, self.rows - _HEAD - 1)


@dataclass(frozen=True, slots=True)
class Screen:
    """What is to be shown, and how far the list is scrolled then."""

    lines: tuple[Line, ...]
    offset: int


def plain_lines(frame: Frame, state: State, columns: int | None, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield a block of lines about what was in use.

    `columns` None is for output that is no terminal: all columns, and names that are never cut.
    """
    shown = [entry for entry in arranged(frame.entries, state) if entry.used]
    if columns is None:
        widest = max((cell_len(name_of(entry)) for entry in shown), default=0)
        layout = Layout(COLUMNS, max(LEAST_NAME, widest))
    else:
        layout = layout_for(columns)
    yield f"{_moment(frame, zone):%Y-%m-%d} {_title(frame, state, zone)}"
    yield _sums(frame)
    lines = [layout.header(state), *map(layout.entry, shown)] if shown else []
    yield from (line[MARGIN:].rstrip() for line in lines)


def screen(frame: Frame, state: State, size: Size, zone: tzinfo | None = None) -> Screen:
    """Return exactly `size.rows` lines, none wider than `size.columns`; `zone` None is the host's."""
    if state.help:
        return Screen(_fitted([Line(text) for text in HELP], size), state.offset)
    layout = layout_for(size.columns)
    blocks, chosen = _blocks(frame, state, layout)
    offset = _scrolled(list(map(len, blocks)), chosen, state.offset, size.page)
    lines = [line for block in blocks for line in block] or [Line("  No NFS mounts.")]
    window = lines[offset : offset + size.page]
    hidden = len(lines) - offset - len(window)
    if hidden > 0 and size.page > 1:
        window[-1] = Line(f"  and {count(hidden + 1, 'line')} more", Style.IDLE)
    head = [
        Line(_title(frame, state, zone), Style.TITLE),
        Line(_sums(frame)),
        Line(layout.header(state), Style.HEADER),
    ]
    return Screen(_fitted([*head, *window], size), offset)


def _fitted(lines: list[Line], size: Size) -> tuple[Line, ...]:
    """Return as many lines as the screen has, the keys in the last of them, each as wide as the screen."""
    kept = lines[: max(0, size.rows - 1)]
    kept += [Line("")] * (size.rows - 1 - len(kept))
    kept.append(Line(KEYS, Style.IDLE))
    return tuple(Line(set_cell_size(line.text, size.columns), line.style) for line in kept[: size.rows])


def _title(frame: Frame, state: State, zone: tzinfo | None) -> str:
    moment = _moment(frame, zone)
    used = sum(1 for entry in frame.entries if entry.used)
    parts = [
        f"{moment:%H:%M:%S} {moment.tzname() or ''}".rstrip(),
        count(len(frame.entries), "NFS superblock"),
        *([f"{used} in use, mean of {frame.seconds:.3g} s"] if frame.seconds is not None else []),
        f"by {state.sort}{' reversed' if state.reverse else ''}",
        *(["PAUSED"] if state.paused else []),
    ]
    return ", ".join(parts)


def _moment(frame: Frame, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(frame.time, zone).astimezone(zone)


def _sums(frame: Frame) -> str:
    """Return what all superblocks delivered together, or why nothing is known of that."""
    silent = f"; {frame.silent} more without statistics" if frame.silent else ""
    if frame.seconds is None:
        return f"rates follow after the first interval{silent}"
    samples = [entry.sample for entry in frame.entries if entry.sample is not None]
    read = sum(sample.read_bytes_per_s for sample in samples)
    written = sum(sample.write_bytes_per_s for sample in samples)
    server_read = sum(sample.server_read_bytes_per_s for sample in samples)
    server_written = sum(sample.server_write_bytes_per_s for sample in samples)
    return f"read {both(read, server_read)}, write {both(written, server_written)}{silent}"


def _blocks(frame: Frame, state: State, layout: Layout) -> tuple[list[list[Line]], int]:
    """Return the lines of each superblock, and the index of the one that is selected."""
    shown = arranged(frame.entries, state)
    identities = [entry.identity for entry in shown]
    chosen = identities.index(state.selected) if state.selected in identities else 0
    blocks = []
    for index, entry in enumerate(shown):
        text = layout.entry(entry)
        if index == chosen:
            lines = [Line(f">{text[1:]}", Style.SELECTED)]
        else:
            lines = [Line(text, Style.PLAIN if entry.used else Style.IDLE)]
        if entry.identity in state.opened:
            lines += [Line(text) for text in details(entry, layout.width)]
        blocks.append(lines)
    return blocks, chosen


def _scrolled(heights: Sequence[int], chosen: int, offset: int, page: int) -> int:
    """Return the offset nearest to the old one at which the chosen block is on the screen, or its start."""
    total = sum(heights)
    start = sum(heights[:chosen])
    end = start + sum(heights[chosen : chosen + 1])
    # Where lines are hidden below, the last line of the screen says so.
    room = page if end == total else max(1, page - 1)
    return max(0, min(max(offset, end - room), start, max(0, total - page)))
