"""`/proc/self/mountstats`: the counters of a mount namespace's NFS mounts.

Each NFS mount has a stanza (fs/nfs/super.c, nfs_show_stats; net/sunrpc/stats.c, rpc_clnt_show_stats; the
xprt lines: net/sunrpc/xprtsock.c and xprtrdma/transport.c). Fields are told apart by their count, never by
`statvers`: it stayed 1.1 when a column came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.model.kernel import ByteCounters, MountStats, OpCounters, Options, Transport
from nfstuned.parse.fields import counters, number, quoted
from nfstuned.parse.options import parse_kernel_options
from nfstuned.parse.proc.stanzas import Piece, header, pieces

FILE = "/proc/self/mountstats"
_IDLE_OP = (": 0 0 0 0 0 0 0 0", ": 0 0 0 0 0 0 0 0 0")
_IDLE_OP_BYTES = tuple(text.encode() for text in _IDLE_OP)
_OP_COLUMNS, _BYTES_COLUMNS = 8, 8
_TIMES = (5, 6, 7)
"""Columns of an operation: queue, RTT, execute."""
_BYTES, _EVENTS, _OP = range(_BYTES_COLUMNS), range(27), {*range(_OP_COLUMNS + 1)} - {*_TIMES}
"""Columns without a sign."""
Row = tuple[int, ...]
"""The numbers of a line, in its order."""
_SIGN, _WRAP = 1 << 63, 1 << 64

_CALLS = ("sends", "receives", "bad_xids", "in_flight_sum", "backlog_sum")
_SLOTS = ("max_slots", "sending_sum", "pending_sum")
_STREAM = ("binds", "connects", "connect_s", "idle_s", *_CALLS)
_SIGNED = "idle_s"
"""The only number of a transport that the kernel prints with a sign."""
_COLUMNS = {
    "tcp": ("source_port", *_STREAM, *_SLOTS),
    "udp": ("source_port", "binds", *_CALLS, *_SLOTS),
    "local": (*_STREAM, *_SLOTS),
    "rdma": ("source_port", *_STREAM),
}


def parse_mountstats(text: str | bytes, file: str = FILE) -> tuple[MountStats | ParseError, ...]:
    """Return the NFS mounts in the file's order; a damaged stanza is replaced by its error.

    `ops` leaves out operations whose counters are all 0. Times that the kernel's clock made negative, which
    print as enormous numbers, are negative. Unknown lines, and transports of unknown protocols, do not count.
    """
    mounts: list[MountStats | ParseError] = []
    # A str may hold surrogates of any kind: they come out as they went in. Bytes of no UTF-8 become escapes.
    errors = "surrogateescape" if isinstance(text, bytes) else "surrogatepass"
    data = text if isinstance(text, bytes) else text.encode("utf-8", errors)
    line, counted = 1, 0
    for piece in pieces(data):
        line += data.count(b"\n", counted, piece.start)
        counted = piece.start
        try:
            mounts.append(_mount(data, piece, errors, (file, line)))
        except ParseError as error:
            mounts.append(error)
    return tuple(mounts)


def total_row(text: bytes) -> Row:
    """Return the numbers of a `bytes:` line, in the order of ByteCounters; ParseError for any damage."""
    try:
        return tuple(_counters("bytes", text.decode("utf-8", "surrogateescape"), _BYTES_COLUMNS, _BYTES))
    except ValueError as error:
        raise ParseError(FILE, 0, str(error)) from None


def operation_row(line: bytes) -> tuple[str, Row] | None:
    """Return the name and the numbers of a line of the per-op statistics, in the order of OpCounters.

    There are nine numbers, or eight where the kernel does not count errors. None for a line that is no
    operation's, or that of an operation never used; ParseError for any damage.
    """
    if line.endswith(_IDLE_OP_BYTES):
        return None
    try:
        operation = _operation(line.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise ParseError(FILE, 0, str(error)) from None
    return (operation[0], tuple(operation[1])) if operation is not None else None


def parse_transports(text: bytes) -> tuple[Transport, ...]:
    """Return the connections of a stanza, in their order; ParseError for any damage."""
    stanza = _Stanza()
    try:
        for line in text.decode("utf-8", "surrogateescape").split("\n"):
            stanza.line(line)
    except ValueError as error:
        raise ParseError(FILE, 0, str(error)) from None
    return tuple(stanza.transports)


def _operation(line: str) -> tuple[str, list[int]] | None:
    """Return the name and the known columns of an operation's line; ValueError for any damage."""
    name, separator, columns = line.partition(": ")
    if not separator:
        return None
    name = name.strip()
    return name, _counters(name, columns, _OP_COLUMNS, _OP)[: _OP_COLUMNS + 1]


def _counters(what: str, text: str, least: int, unsigned: Iterable[int]) -> list[int]:
    """Return the numbers of a line, of which those in the columns `unsigned` are not negative."""
    values = counters(what, text, least)
    if min(values) < 0 and any(values[column] < 0 for column in unsigned if column < len(values)):
        raise ValueError(f"{what} holds a negative number: {quoted(text)}")
    return values


def _mount(data: bytes, piece: Piece, errors: str, place: tuple[str, int]) -> MountStats:
    """Return the mount of a stanza; `place` is the header's file and line. ParseError for any damage."""
    file, line = place
    stanza = _Stanza()
    if piece.names is None:
        head = data[piece.start : piece.head_end].decode("utf-8", errors)
    else:
        name, domain = (part.decode("utf-8", errors) for part in piece.names.groups())
        stanza.implementation = name or domain or None
        before, after = data[piece.start : piece.names.start()], data[piece.names.end() : piece.head_end]
        between = b"\n" * piece.names[0].count(b"\n")
        head = (before + between + after).decode("utf-8", errors)
    operations = data[piece.operations_start : piece.end].decode("utf-8", errors)
    first, *lines = head.split("\n")
    first_op = line + head.count("\n") + 2
    busy = [
        (position, content)
        for position, content in enumerate(operations.split("\n"), first_op)
        if not content.endswith(_IDLE_OP)
    ]
    _take_lines([(line, first)], stanza.header, file)
    _take_lines(enumerate(lines, line + 1), stanza.line, file)
    _take_lines(busy, stanza.operation, file)
    return stanza.mount(whole=piece.whole)


def _take_lines(lines: Iterable[tuple[int, str]], take: Callable[[str], None], file: str) -> None:
    """Give each line to `take`, whose ValueError becomes a ParseError at the number of that line."""
    reached = 0
    try:
        for position, content in lines:
            reached = position
            take(content)
    except ValueError as error:
        raise ParseError(file, reached, str(error)) from None


class _Stanza:
    """A mount while its lines are read; each method raises ValueError for a damaged line."""

    def __init__(self) -> None:
        self.names = ("", "", "", "")
        self.age_s: int | None = None
        self.options = Options()
        self.implementation: str | None = None
        self.bytes: ByteCounters | None = None
        self.events: tuple[int, ...] = ()
        self.transports: list[Transport] = []
        self.operations: dict[str, OpCounters] = {}

    def header(self, line: str) -> None:
        self.names = header(line)

    def line(self, line: str) -> None:
        name, _, rest = line.partition(":\t")
        if name == "\topts":
            self.options = parse_kernel_options(rest)
        elif name == "\tage":
            self.age_s = number("age", rest)
        elif name == "\tevents":
            self.events = tuple(_counters("events", rest, 0, _EVENTS))
        elif name == "\tbytes":
            self.bytes = ByteCounters(*_counters("bytes", rest, _BYTES_COLUMNS, _BYTES)[:_BYTES_COLUMNS])
        elif name == "\txprt":
            self._transport(rest)

    def _transport(self, text: str) -> None:
        protocol, _, columns = text.partition(" ")
        names = _COLUMNS.get(protocol)
        if names is None:
            return
        complete = len(names)
        before_slots = complete - len(_SLOTS) if names[-1] == _SLOTS[-1] else complete
        unsigned = (column for column, name in enumerate(names) if name != _SIGNED)
        values = _counters(f"xprt {protocol}", columns, before_slots, unsigned)
        if before_slots < len(values) < complete:
            raise ValueError(
                f"xprt {protocol} has {len(values)} numbers, {complete} expected: {quoted(text)}"
            )
        known = dict(zip(names, values, strict=False))
        self.transports.append(
            Transport(
                protocol=protocol,
                source_port=known.get("source_port") or None,
                connects=known.get("connects"),
                idle_s=known.get("idle_s"),
                **{name: known[name] for name in _CALLS},
                **{name: known[name] for name in _SLOTS if name in known},
                extra=tuple(values[complete:]),
            )
        )

    def operation(self, line: str) -> None:
        operation = _operation(line)
        if operation is None:
            return
        name, values = operation
        for column in _TIMES:
            if values[column] >= _SIGN:
                values[column] -= _WRAP
        if any(values):
            self.operations[name] = OpCounters(*values)

    def mount(self, *, whole: bool) -> MountStats:
        source, point, fstype, version = self.names
        return MountStats(
            source=source,
            point=point,
            fstype=fstype,
            statvers=version,
            age_s=self.age_s,
            options=self.options,
            implementation=self.implementation,
            bytes=self.bytes,
            events=self.events,
            transports=tuple(self.transports),
            ops=MappingProxyType(self.operations),
            whole=whole,
        )
