"""`nfstuned top` as lines without control codes: a screen of so many columns and rows, or plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import Enum
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

from nfstuned.core.mounts.volumes import volume_name, volume_paths
from nfstuned.core.samples.sample import amount, figure, ratio, speed, throughput
from nfstuned.core.samples.top import NAME, Frame, TopEntry, TopState, arrange, rdma_of
from nfstuned.model.kernel import Stanza
from nfstuned.model.samples import Sample
from nfstuned.parse.fields import count, some
from nfstuned.parse.proc.mountstats import parse_nfsv4
from nfstuned.view.words import DASH, duration, printable, shorten

MARGIN = 2
LEAST_NAME = 12
_GAP = 2
_LEAST_CUT = 3
"""Shorter than the three dots no name can be cut."""


@dataclass(frozen=True, slots=True)
class TopColumn:
    """A column: its name, and the form of its figures."""

    name: str
    """As in SORTS."""
    heading: str
    width: int
    text: Callable[[float], str]
    least: int = 0
    """The width of a terminal from which on it is shown."""


COLUMNS = (
    TopColumn("read", "READ", 9, speed),
    TopColumn("write", "WRITE", 9, speed),
    TopColumn("over-fetch", "OVER", 5, ratio),
    TopColumn("ops", "OPS/s", 6, figure),
    TopColumn("read-rtt", "R ms", 5, figure),
    TopColumn("write-rtt", "W ms", 5, figure),
    TopColumn("connections", "CONN", 5, lambda value: f"{value:.0f}"),
    TopColumn("queue", "Q ms", 5, figure, 90),
    TopColumn("in-flight", "INFL", 5, figure, 100),
    TopColumn("retrans", "RETR/s", 7, figure, 110),
    TopColumn("server-read", "SRV READ", 9, speed, 135),
    TopColumn("server-write", "SRV WRITE", 10, speed, 135),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns there are, and how wide the names before them may be."""

    columns: tuple[TopColumn, ...]
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

    def entry(self, entry: TopEntry) -> str:
        """Return the line of a superblock."""
        figures = ((column, entry.figures.get(column.name)) for column in self.columns)
        cells = (DASH if value is None else column.text(value) for column, value in figures)
        return self.row(name_of(entry), cells)

    def header(self, state: TopState) -> str:
        """Return the names of the columns, a star before the one that rows are sorted by."""
        headings = (f"{'*' if column.name == state.sort else ''}{column.heading}" for column in self.columns)
        return self.row("*MOUNT" if state.sort == NAME else "MOUNT", headings)


def layout_for(width: int) -> Layout:
    """Return the columns that a terminal of this width has room for; names get the rest.

    A figure without the name of its mount says nothing: on a narrow terminal the last columns go first.
    """
    columns = tuple(column for column in COLUMNS if column.least <= width)
    while columns and width - width_of(columns) < LEAST_NAME:
        columns = columns[:-1]
    return Layout(columns, max(0, width - width_of(columns)))


def width_of(columns: Iterable[TopColumn]) -> int:
    """Return how wide everything but the names is."""
    return MARGIN + sum(column.width + _GAP for column in columns)


def name_of(entry: TopEntry) -> str:
    """Return the text of the first column: the name, and "!" if stalled."""
    return ("! " if entry.stalled_s else "") + printable(entry.label)


_EVENTS = {
    "delays": "delays_per_s",
    "short reads": "short_reads_per_s",
    "short writes": "short_writes_per_s",
    "silly renames": "silly_renames_per_s",
    "pNFS reads": "pnfs_reads_per_s",
    "pNFS writes": "pnfs_writes_per_s",
}
"""Rare events, which are shown where they happened: the attributes of their rates."""
_INDENT = "    "
_OP_WIDTH = 20
_HEADINGS = ("/s", "RTT ms", "Q ms", "EXE ms", "RETR/s", "ERR/s", "TIMEO/s", "SENT B", "RECV B")
_CELL = 8


def details(entry: TopEntry, columns: int) -> Iterator[str]:
    """Yield lines no wider than `columns`, except where that is less than the table of operations needs."""
    room = max(_OP_WIDTH, columns - len(_INDENT))
    for text in _uncut_details(entry, room):
        cut = text if cell_len(text) <= room else shorten(text, room)
        yield _INDENT + cut


def _uncut_details(entry: TopEntry, room: int) -> Iterator[str]:
    counted = entry.counted
    ahead = "unknown" if entry.read_ahead_kb is None else f"{entry.read_ahead_kb} KiB"
    yield f"{printable(counted.source)}  {counted.device}  read-ahead {ahead}"
    others = counted.mount_points[1:]
    places = _volume_places(entry)
    for text in (printable(entry.label), *(f"at {place}" for place in places)) if places else ():
        yield from wrap(text, room, break_on_hyphens=False)
    if others and not places:
        yield f"also at {printable(', '.join(others))}"
    if state := ", ".join(_state(counted.stats)):
        yield state
    if entry.stalled_s:
        requests = f": {', '.join(entry.stalled_operations)}" if entry.stalled_operations else ""
        yield f"its server has left requests unanswered for {duration(entry.stalled_s)}{printable(requests)}"
    sample = entry.sample
    if sample is None:
        yield "no rates yet: it was just mounted, or its counters began again"
        return
    moved = (
        ("server", sample.server_read_bytes_per_s, sample.server_write_bytes_per_s),
        ("direct", sample.direct_read_bytes_per_s, sample.direct_write_bytes_per_s),
    )
    yield "; ".join(f"{way}: read {_speed(read)}, write {_speed(write)}" for way, read, write in moved)
    if sample.bdp_bytes is not None:
        yield f"in flight to fill the link: {amount(sample.bdp_bytes)}"
    rates = ((name, getattr(sample, key)) for name, key in _EVENTS.items())
    events = [f"{name} {figure(rate)}" for name, rate in rates if rate]
    if events:
        yield f"events/s: {', '.join(events)}"
    yield from _connections(entry, sample)
    yield from _operations(sample, room)


def _volume_places(entry: TopEntry) -> list[str]:
    """Return the mount points of a volume, which differ in their middles and are not cut; else none."""
    points = entry.counted.mount_points
    paths = volume_paths(points, entry.names) if volume_name(points) else ()
    return [printable(path) for path in paths]


def _speed(bytes_per_s: float | None) -> str:
    return DASH if bytes_per_s is None else speed(bytes_per_s)


def _state(stanza: Stanza) -> Iterator[str]:
    """Yield the state that no counter shows: the lease of NFSv4, pNFS, FS-Cache."""
    if stanza.nfsv4 is not None:
        lease_s, expired_s, layout = parse_nfsv4(stanza.nfsv4)
        if lease_s is not None:
            yield f"lease {lease_s} s"
        if expired_s:
            yield f"which ran out {expired_s} s ago"
        if layout is not None:
            yield f"pNFS {printable(layout)}"
    if stanza.cached:
        yield "FS-Cache (fsc)"


def _connections(entry: TopEntry, sample: Sample) -> Iterator[str]:
    """Yield the figures of the group's connections, which all mounts of the server share."""
    transport = sample.transport
    number = transport.connections
    parts = ["number of connections unknown" if number is None else count(number, "connection")]
    for name, value in (("in flight", transport.in_flight), ("backlog", transport.backlog)):
        if value is not None:
            parts.append(f"{name} {figure(value)}")
    if transport.max_slots is not None:
        parts.append(f"slots {transport.max_slots}")
    if transport.connects_per_s:
        parts.append(f"{figure(transport.connects_per_s)} reconnections/s")
    yield f"{printable(transport.group)}: {', '.join(parts)}"
    if len(entry.sends) > 1 and sample.interval_s > 0:
        rates = " ".join(figure(sent / sample.interval_s) for sent in entry.sends)
        yield f"requests/s of each connection: {rates}"
    counted = [f"{name} {number}" for name, number in rdma_of(entry.counted).items() if number]
    if counted:
        yield f"RDMA so far: {', '.join(counted)}"


def _operations(sample: Sample, room: int) -> Iterator[str]:
    """Yield a table of the operations that ended in the interval, the most frequent first.

    The last columns, bytes for each operation, are left out where there is no room for them.
    """
    if not sample.ops:
        yield "no operation ended in the interval"
        return
    shown = max(len(_HEADINGS) - 2, min(len(_HEADINGS), (room - _OP_WIDTH) // _CELL))
    yield f"{'OPERATION':{_OP_WIDTH}}" + "".join(f"{heading:>{_CELL}}" for heading in _HEADINGS[:shown])
    for name, op in sorted(sample.ops.items(), key=lambda item: (-item[1].per_s, item[0])):
        times = (op.rtt_ms, op.queue_ms, op.exe_ms)
        moved = (op.sent_bytes_per_s, op.received_bytes_per_s)
        each = (None if value is None or not op.per_s else value / op.per_s for value in moved)
        figures = (op.per_s, *times, op.retrans_per_s, op.errors_per_s, op.timeouts_per_s, *each)
        cells = (f"{DASH if value is None else figure(value):>{_CELL}}" for value in figures[:shown])
        yield f"{shorten(printable(name), _OP_WIDTH):{_OP_WIDTH}}" + "".join(cells)


_HEAD = 3
"""Lines above the list: the title, the sums, the names of the columns."""
KEYS = "q quit  arrows move  Enter open  s < sort  r reverse  i idle  p pause  h help"
HELP = (
    "nfstuned top: the throughput of each NFS mount, a line a superblock",
    "",
    "READ, WRITE      bytes that programs asked for, and got",
    "OVER             bytes read from the server for each byte that programs read",
    "OPS/s            operations of all kinds",
    "R ms, W ms       mean time from sending a read or a write to its reply",
    "CONN             connections to the server, which all its mounts share",
    "Q ms             mean time that an operation waited to be sent",
    "INFL             requests under way when a new one is sent",
    "RETR/s           retransmitted requests",
    "SRV READ, WRITE  bytes over the wire",
    "",
    "up k, down j     move; page up, page down, home g, end G as well",
    "Enter, space     open a line to its operations and connections, or close it",
    "s >, <           sort by the next or the last column",
    "r                reverse the order",
    "i                hide or show unused mounts",
    "p                pause, and go on",
    "q                quit",
    "",
    "Any key closes this help.",
)


class Style(Enum):
    """How a line stands out, where the terminal can do that."""

    PLAIN = "plain"
    TITLE = "title"
    HEADER = "header"
    SELECTED = "selected"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class ScreenLine:
    """A line, not wider than the screen."""

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
    """The lines of a screen, and how far its list is scrolled."""

    lines: tuple[ScreenLine, ...]
    offset: int


def plain_lines(
    frame: Frame, state: TopState, columns: int | None, zone: tzinfo | None = None
) -> Iterator[str]:
    """Yield a block of lines about the superblocks in use.

    Of saved copies it has each one's operations, and the names of the others.
    `columns` None is for output that is no terminal: all columns, and names that are never cut.
    """
    every = arrange(frame.entries, state)
    shown = [entry for entry in every if entry.used or entry.note or entry.unsure]
    if columns is None:
        widest = max((cell_len(name_of(entry)) for entry in shown), default=0)
        layout = Layout(COLUMNS, max(LEAST_NAME, widest))
    else:
        layout = layout_for(columns)
    date = "" if frame.copies else f"{_moment(frame, zone):%Y-%m-%d} "
    for text in (f"{date}{', '.join(_title(frame, state, zone))}", _sums(frame)):
        yield from wrap(text, columns, break_long_words=False) if columns and frame.copies else [text]
    if shown:
        yield layout.header(state)[MARGIN:].rstrip()
    for entry in shown:
        yield layout.entry(entry)[MARGIN:].rstrip()
        if entry.note:
            means = "" if entry.sample is None else f": means of its {duration(entry.sample.interval_s)}"
            yield from _indented(printable(entry.note) + means, columns or _WIDTH)
    if frame.copies:
        idle = [entry for entry in every if entry not in shown and entry.sample is not None]
        if idle:
            points = some([printable(entry.counted.mount_points[0]) for entry in idle])
            yield from wrap(f"not in use: {points}", columns or _WIDTH, break_long_words=False)
        for entry in shown:
            yield from _saved_operations(entry, columns or _WIDTH)


_WIDTH = 80


def _indented(text: str, columns: int) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in wrap(text, max(_OP_WIDTH, columns - len(_INDENT))))


def _saved_operations(entry: TopEntry, columns: int) -> Iterator[str]:
    """Yield the table of a superblock's operations, and their errors; nothing without a sample."""
    sample = entry.sample
    if sample is None or not (sample.ops or entry.all_operations):
        return
    yield ""
    heading = f"{name_of(entry)}  {printable(entry.counted.source)}"
    for text in (heading, *_volume_places(entry)):
        yield from wrap(text, columns, break_long_words=False, break_on_hyphens=False)
    yield from (f"{'':{MARGIN}}{line}" for line in _operations(sample, columns - MARGIN))
    failed = [
        (round(op.errors_per_s * sample.interval_s), round(op.per_s * sample.interval_s), name)
        for name, op in sample.ops.items()
        if op.errors_per_s
    ]
    texts = [f"{errors:,} of {number:,} {printable(name)}" for errors, number, name in sorted(failed)[::-1]]
    if texts:
        yield from _indented(f"replies with an error: {', '.join(texts)}", columns)
    if not entry.all_operations:
        yield from _indented("their sums are not known: a copy lacks lines; save the complete file", columns)


def screen(frame: Frame, state: TopState, size: Size, zone: tzinfo | None = None) -> Screen:
    """Return exactly `size.rows` lines, none wider than `size.columns`; `zone` None is the host's."""
    if state.help:
        return Screen(_fitted([ScreenLine(text) for text in HELP], size), state.offset)
    layout = layout_for(size.columns)
    blocks, chosen = _blocks(frame, state, layout)
    offset = _scrolled(list(map(len, blocks)), chosen, state.offset, size.page)
    lines = [line for block in blocks for line in block] or [ScreenLine("  No NFS mounts.")]
    window = lines[offset : offset + size.page]
    hidden = len(lines) - offset - len(window)
    if hidden > 0 and size.page > 1:
        window[-1] = ScreenLine(f"  and {count(hidden + 1, 'line')} more", Style.IDLE)
    head = [
        ScreenLine(_first_that_fit(_title(frame, state, zone), size.columns), Style.TITLE),
        ScreenLine(_sums(frame)),
        ScreenLine(layout.header(state), Style.HEADER),
    ]
    return Screen(_fitted([*head, *window], size), offset)


def _fitted(lines: list[ScreenLine], size: Size) -> tuple[ScreenLine, ...]:
    """Return as many lines as the screen has, the keys in the last of them, each as wide as the screen."""
    rows = lines[: max(0, size.rows - 1)]
    rows += [ScreenLine("")] * (size.rows - 1 - len(rows))
    rows.append(ScreenLine(KEYS, Style.IDLE))
    return tuple(ScreenLine(set_cell_size(line.text, size.columns), line.style) for line in rows[: size.rows])


def _first_that_fit(parts: Sequence[str], columns: int) -> str:
    """Return the first parts, as many as a line has room for, and the first of all."""
    lines = (", ".join(parts[:number]) for number in range(len(parts), 0, -1))
    return next((line for line in lines if cell_len(line) <= columns), parts[0])


def _title(frame: Frame, state: TopState, zone: tzinfo | None) -> list[str]:
    """Return the parts of the title, the most important first."""
    moment = _moment(frame, zone)
    used = sum(entry.used for entry in frame.entries)
    unsure = sum(entry.unsure for entry in frame.entries)
    stalled = sum(1 for entry in frame.entries if entry.stalled_s)
    means = "" if frame.seconds is None else f"mean of {duration(frame.seconds)}"
    if len(frame.copies) == 1:
        means = "means since each was mounted"
    parts = (
        "PAUSED" if state.paused else "",
        printable(" to ".join(frame.copies)) or f"{moment:%H:%M:%S} {moment.tzname() or ''}".rstrip(),
        count(len(frame.entries), "NFS superblock"),
        f"{stalled} stalled (!)" if stalled else "",
        f"{used} in use" if means and (used or not unsure) else "",
        f"{unsure} of unknown use" if unsure else "",
        means,
        f"by {state.sort}{' reversed' if state.reverse else ''}",
    )
    return list(filter(None, parts))


def _moment(frame: Frame, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(frame.time, zone).astimezone(zone)


def _sums(frame: Frame) -> str:
    """Return the throughput of all superblocks, or why it is not known."""
    silent = f"; {frame.silent} more without statistics" if frame.silent else ""
    if frame.ambiguous:
        silent = f"; {frame.ambiguous} with the same mount point look alike{silent}"
    partial = sum(1 for entry in frame.entries if not entry.all_operations)
    if partial:
        silent = f"; {partial} without all lines of operations{silent}"
    if frame.seconds is None and not frame.copies:
        return f"rates follow after the first interval{silent}"
    sums = dict.fromkeys(("read", "server-read", "write", "server-write"), 0.0)
    for entry in frame.entries:
        for name in sums:
            sums[name] += entry.figures.get(name, 0.0)
    read, server_read, written, server_written = sums.values()
    known = [entry for entry in frame.entries if "read" in entry.figures]
    unknown = sum(1 for entry in frame.entries if entry.note or entry.sample) - len(known)
    if unknown:
        silent = f"; {unknown} of unknown throughput{silent}"
    if not known and (frame.entries or silent):
        return f"read {DASH}, write {DASH}{silent}"
    return f"read {throughput(read, server_read)}, write {throughput(written, server_written)}{silent}"


def _blocks(frame: Frame, state: TopState, layout: Layout) -> tuple[list[list[ScreenLine]], int]:
    """Return the lines of each superblock, and the index of the one that is selected."""
    shown = arrange(frame.entries, state)
    identities = [entry.counted.key for entry in shown]
    chosen = identities.index(state.selected) if state.selected in identities else 0
    blocks = []
    for index, entry in enumerate(shown):
        text = layout.entry(entry)
        if index == chosen:
            lines = [ScreenLine(f">{text[1:]}", Style.SELECTED)]
        else:
            lines = [ScreenLine(text, Style.PLAIN if entry.used else Style.IDLE)]
        if entry.counted.key in state.opened:
            lines += [ScreenLine(text) for text in details(entry, layout.width)]
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
