"""What a line of `nfstuned top` opens to: the mount, its connections, and its operations."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len

from nfstuned.core.render import count, printable, shorten
from nfstuned.core.samples import figure, speed
from nfstuned.core.top import Entry
from nfstuned.model.samples import OpRate, Sample, TransportRate

_INDENT = "    "
_OP_WIDTH = 20
_HEADINGS = ("/s", "RTT ms", "Q ms", "EXE ms", "RETR/s", "ERR/s", "TIMEO/s")
_CELL = 8


def details(entry: Entry, columns: int) -> Iterator[str]:
    """Yield lines no wider than `columns`, except where that is less than the table of operations needs."""
    room = max(_OP_WIDTH, columns - len(_INDENT))
    for text in _texts(entry):
        cut = text if cell_len(text) <= room else shorten(text, room)
        yield _INDENT + cut


def _texts(entry: Entry) -> Iterator[str]:
    counted = entry.counted
    ahead = "unknown" if entry.read_ahead_kb is None else f"{entry.read_ahead_kb} KiB"
    yield f"{printable(counted.source)}  {counted.device}  read-ahead {ahead}"
    others = counted.mount_points[1:]
    if others:
        yield f"also at {printable(', '.join(others))}"
    sample = entry.sample
    if sample is None:
        yield "no rates yet: it was just mounted, or its counters began anew"
        return
    moved = (
        ("server", sample.server_read_bytes_per_s, sample.server_write_bytes_per_s),
        ("direct", sample.direct_read_bytes_per_s, sample.direct_write_bytes_per_s),
    )
    yield "; ".join(f"{way}: read {speed(read)}, write {speed(write)}" for way, read, write in moved)
    yield from _connections(entry, sample)
    yield from _operations(sample)


def _connections(entry: Entry, sample: Sample) -> Iterator[str]:
    """Yield what is known of the group's connections, which all mounts of the server share."""
    transport = sample.transport
    yield f"{printable(transport.group)}: {', '.join(_of_group(transport))}"
    if len(entry.sends) > 1 and sample.interval_s > 0:
        rates = " ".join(figure(sent / sample.interval_s) for sent in entry.sends)
        yield f"requests/s of each connection: {rates}"


def _of_group(transport: TransportRate) -> Iterator[str]:
    yield count(transport.connections, "connection")
    for name, value in (("in flight", transport.in_flight), ("backlog", transport.backlog)):
        if value is not None:
            yield f"{name} {figure(value)}"
    if transport.max_slots is not None:
        yield f"slots {transport.max_slots}"
    if transport.connects_per_s:
        yield f"{figure(transport.connects_per_s)} reconnections/s"


def _operations(sample: Sample) -> Iterator[str]:
    """Yield a table of the operations that ended in the interval, the most frequent first."""
    if not sample.ops:
        yield "no operation ended in the interval"
        return
    yield f"{'OPERATION':{_OP_WIDTH}}" + "".join(f"{heading:>{_CELL}}" for heading in _HEADINGS)
    for name, op in sorted(sample.ops.items(), key=lambda item: (-item[1].per_s, item[0])):
        yield f"{shorten(printable(name), _OP_WIDTH):{_OP_WIDTH}}" + "".join(_cells(op))


def _cells(op: OpRate) -> Iterator[str]:
    for value in (
        op.per_s,
        op.rtt_ms,
        op.queue_ms,
        op.exe_ms,
        op.retrans_per_s,
        op.errors_per_s,
        op.timeouts_per_s,
    ):
        yield f"{'-' if value is None else figure(value):>{_CELL}}"
