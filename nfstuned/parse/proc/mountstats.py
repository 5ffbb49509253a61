"""`/proc/self/mountstats`: the counters of a mount namespace's NFS mounts.

Each NFS mount has a stanza (fs/nfs/super.c, nfs_show_stats; net/sunrpc/stats.c, rpc_clnt_show_stats; the
xprt lines: net/sunrpc/xprtsock.c and xprtrdma/transport.c). Fields are told apart by their count, never by
`statvers`: it stayed 1.1 when a column came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.model.kernel import (
    ByteCounters,
    MountStats,
    Nfsv4State,
    OpCounters,
    Options,
    Transport,
    decimal,
)
from nfstuned.parse.fields import count, counters, number, parse_kernel_options, quoted
from nfstuned.parse.proc.stanzas import Piece, header, pieces

FILE = "/proc/self/mountstats"
_BEGIN = rb"(?:device .+|no device) mounted on "
_IDLE_OP = (": 0 0 0 0 0 0 0 0", ": 0 0 0 0 0 0 0 0 0")
_IDLE_OP_BYTES = tuple(text.encode() for text in _IDLE_OP)
_OP_COLUMNS, _BYTES_COLUMNS = 8, 8
_TIMES = (5, 6, 7)
"""Columns of an operation: queue, RTT, execute."""
_BYTES, _EVENTS, _OP = range(_BYTES_COLUMNS), range(27), {*range(_OP_COLUMNS + 1)} - {*_TIMES}
"""Columns without a sign."""
_INDENT = " \t"
_NO_LAYOUT = "not configured"
_MOST_TOLD = 8
"""Damaged lines of a mount that are told."""
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
    """Return the NFS mounts in the file's order, each with the errors of its damaged lines behind it.

    What a damaged line would say is not known, and where it is a connection's, none of them is; only a
    damaged header costs the whole mount. Of many damaged lines the first are told. Tabs may have become
    blanks, or got lost. `ops` leaves out operations whose counters are all 0. Times that the kernel's clock
    made negative, which print as enormous numbers, are negative. Unknown lines, and transports of unknown
    protocols, do not count.
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
            mounts += _mount(data, piece, errors, (file, line))
        except ParseError as error:
            mounts.append(error)
    return tuple(mounts)


def is_mountstats(start: bytes) -> bool:
    """Return whether a file begins as mountstats does: with a mount, of whatever file system."""
    return re.match(_BEGIN, start) is not None


def total_row(text: bytes) -> Row:
    """Return the numbers of a `bytes:` line, in the order of ByteCounters; ParseError for any damage."""
    try:
        return tuple(_counters("bytes", text.decode("utf-8", "surrogateescape"), _BYTES_COLUMNS, _BYTES))
    except ValueError as error:
        raise ParseError(FILE, 0, str(error)) from None


def event_row(text: bytes) -> Row:
    """Return the numbers of an `events:` line, in their order; ParseError for any damage."""
    try:
        return tuple(_counters("events", text.decode("utf-8", "surrogateescape"), 1, _EVENTS))
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


@lru_cache(maxsize=64)
def parse_transports(text: bytes) -> tuple[Transport, ...]:
    """Return the connections of a stanza, in their order; ParseError for any damage.

    The result is kept: stalls, rates and totals ask for the same lines, of a look and of the look before.
    """
    stanza = _Stanza()
    try:
        for line in text.decode("utf-8", "surrogateescape").split("\n"):
            stanza.line(line)
    except ValueError as error:
        raise ParseError(FILE, 0, str(error)) from None
    return tuple(stanza.transports)


def parse_nfsv4(text: bytes) -> Nfsv4State:
    """Return what an `nfsv4:` line says of the lease and of pNFS; nothing is raised."""
    fields = (field.partition("=") for field in text.decode("utf-8", "replace").split(","))
    values = {name: value for name, _, value in fields}
    layout = values.get("pnfs")
    return Nfsv4State(
        decimal(values.get("lease_time")),
        decimal(values.get("lease_expired")),
        None if layout in {_NO_LAYOUT, ""} else layout,
    )


def _operation(line: str) -> tuple[str, list[int]] | None:
    """Return the name and the known columns of an operation's line; ValueError for any damage."""
    name, separator, columns = line.partition(":")
    if not separator:
        return None
    name = name.strip(_INDENT)
    return name, _counters(name, columns.lstrip(_INDENT), _OP_COLUMNS, _OP)[: _OP_COLUMNS + 1]


def _counters(what: str, text: str, least: int, unsigned: Iterable[int]) -> list[int]:
    """Return the numbers of a line, of which those in the columns `unsigned` are not negative."""
    values = counters(what, text, least)
    if min(values) < 0 and any(values[column] < 0 for column in unsigned if column < len(values)):
        raise ValueError(f"{what} holds a negative number: {quoted(text)}")
    return values


def _mount(
    data: bytes, piece: Piece, errors: str, place: tuple[str, int]
) -> tuple[MountStats | ParseError, ...]:
    """Return the mount of a stanza and what in it is damaged; `place` is the header's file and line.

    Raises ParseError for a damaged header.
    """
    file, line = place
    stanza = _Stanza()
    if piece.names is None:
        head = data[piece.start : piece.head_end].decode("utf-8", errors)
    else:
        names = piece.names
        stanza.implementation = (names.name or names.domain).decode("utf-8", errors) or None
        before, after = data[piece.start : names.start], data[names.end : piece.head_end]
        between = b"\n" * data.count(b"\n", names.start, names.end)
        head = (before + between + after).decode("utf-8", errors)
    operations = data[piece.operations_start : piece.end].decode("utf-8", errors)
    first, *lines = head.split("\n")
    first_op = line + head.count("\n") + 2
    busy = [
        (position, content)
        for position, content in enumerate(operations.split("\n"), first_op)
        if not content.endswith(_IDLE_OP)
    ]
    try:
        stanza.header(first)
    except ValueError as error:
        raise ParseError(file, line, str(error)) from None
    damaged = _take_lines(enumerate(lines, line + 1), stanza.line, file)
    damaged += _take_lines(busy, stanza.operation, file)
    if len(damaged) > _MOST_TOLD:
        more = f"{count(len(damaged) - _MOST_TOLD, 'line')} more of this mount cannot be read"
        damaged[_MOST_TOLD:] = [ParseError(file, damaged[_MOST_TOLD].line, more)]
    return stanza.mount(whole=piece.whole), *damaged


def _take_lines(lines: Iterable[tuple[int, str]], take: Callable[[str], None], file: str) -> list[ParseError]:
    """Give each line to `take`; return each ValueError of it as a ParseError at the number of that line."""
    damaged: list[ParseError] = []
    coming, reached = iter(lines), 0
    while True:
        try:
            for position, content in coming:
                reached = position
                take(content)
        except ValueError as error:
            damaged.append(ParseError(file, reached, str(error)))
            continue
        return damaged


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
        self.connections_damaged = False
        self.operations: dict[str, OpCounters] = {}

    def header(self, line: str) -> None:
        self.names = header(line)

    def line(self, line: str) -> None:
        name, _, rest = line.partition(":")
        name = name.strip(_INDENT)
        rest = rest.lstrip(_INDENT)
        if name == "opts":
            self.options = parse_kernel_options(rest)
        elif name == "age":
            self.age_s = number("age", rest)
        elif name == "events":
            self.events = tuple(_counters("events", rest, 0, _EVENTS))
        elif name == "bytes":
            self.bytes = ByteCounters(*_counters("bytes", rest, _BYTES_COLUMNS, _BYTES)[:_BYTES_COLUMNS])
        elif name == "xprt":
            try:
                self._transport(rest)
            except ValueError:
                self.connections_damaged = True
                raise

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
            transports=() if self.connections_damaged else tuple(self.transports),
            ops=MappingProxyType(self.operations),
            whole=whole,
        )
