"""`/proc/self/mountstats`: the counters of one mount namespace's NFS mounts.

Each NFS mount has a stanza (fs/nfs/super.c, nfs_show_stats; net/sunrpc/stats.c, rpc_clnt_show_stats; the
xprt lines: net/sunrpc/xprtsock.c and xprtrdma/transport.c). Fields are told apart by their count, never by
`statvers`: it stayed 1.1 when a column came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.model.kernel import ByteCounters, MountStats, OpCounters, Options, Transport
from nfstuned.parse.fields import counters, number, quoted, unescape
from nfstuned.parse.options import parse_kernel_options

FILE = "/proc/self/mountstats"
_DEVICE = "\ndevice "
_NFS = re.compile(r" with fstype nfs4?(?: |$)")
_OPS = "\n\tper-op statistics\n"
_IMPLEMENTATION = "\n\timpl_id:\t"
_NAMES = re.compile(r"name='(.*?)',domain='(.*?)',date='[0-9]+,[0-9]+'(?=\n|\Z)", re.DOTALL)
_NAMES_MOST = 2112
"""The two names have at most 1024 bytes each (NFS4_OPAQUE_LIMIT); the next mount's are further away."""

_IDLE_OP = (": 0 0 0 0 0 0 0 0", ": 0 0 0 0 0 0 0 0 0")
_OP_COLUMNS, _BYTES_COLUMNS = 8, 8
_SIGN, _WRAP = 1 << 63, 1 << 64

_CALLS = ("sends", "receives", "bad_xids", "in_flight_sum", "backlog_sum")
_SLOTS = ("max_slots", "sending_sum", "pending_sum")
_STREAM = ("binds", "connects", "connect_s", "idle_s", *_CALLS)
_COLUMNS = {
    "tcp": ("source_port", *_STREAM, *_SLOTS),
    "udp": ("source_port", "binds", *_CALLS, *_SLOTS),
    "local": (*_STREAM, *_SLOTS),
    "rdma": ("source_port", *_STREAM),
}


def parse_mountstats(text: str, file: str = FILE) -> tuple[MountStats | ParseError, ...]:
    """Return the NFS mounts in the file's order; one that cannot be understood is returned as its error.

    `ops` leaves out operations whose counters are all 0. Times that the kernel's clock made negative, which
    print as enormous numbers, are negative. Unknown lines, and transports of unknown protocols, do not count.
    """
    found: list[MountStats | ParseError] = []
    text = "\n" + text
    line, counted = 1, 1
    for start, end in _stanzas(text):
        line += text.count("\n", counted, start)
        counted = start
        try:
            found.append(_mount(text[start:end], file, line))
        except ParseError as error:
            found.append(error)
    return tuple(found)


def _stanzas(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the stanza of each NFS mount starts and ends; other file systems have only their header."""
    at = text.find(_DEVICE)
    while at >= 0:
        start = at + 1
        end_of_line = text.find("\n", start)
        if end_of_line < 0:
            end_of_line = len(text)
        at = text.find(_DEVICE, end_of_line)
        if _NFS.search(text, start, end_of_line):
            names = _names(text, end_of_line, at if at >= 0 else len(text))
            if names is not None:
                at = text.find(_DEVICE, names.end())
            yield start, at if at >= 0 else len(text)


def _names(text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
    """Match what the server calls itself: any bytes, also lines that look like another mount's."""
    at = text.find(_IMPLEMENTATION, start, end)
    if at < 0:
        return None
    at += len(_IMPLEMENTATION)
    return _NAMES.match(text, at, at + _NAMES_MOST)


def _mount(text: str, file: str, line: int) -> MountStats:
    """Return the mount of one stanza whose header is that line of the file; ParseError for any damage."""
    stanza = _Stanza()
    names = _names(text)
    if names is not None:
        stanza.implementation = names[1] or names[2] or None
        text = text[: names.start()] + "\n" * names[0].count("\n") + text[names.end() :]
    head, _, operations = text.partition(_OPS)
    operations, _, _ = operations.partition("\n\n")  # what follows is not this mount's
    header, *lines = head.split("\n")
    first_op = line + head.count("\n") + 2
    busy = [
        (position, content)
        for position, content in enumerate(operations.split("\n"), first_op)
        if not content.endswith(_IDLE_OP)
    ]
    _each([(line, header)], stanza.header, file)
    _each(enumerate(lines, line + 1), stanza.line, file)
    _each(busy, stanza.operation, file)
    return stanza.mount()


def _each(lines: Iterable[tuple[int, str]], take: Callable[[str], None], file: str) -> None:
    reached = 0
    try:
        for position, content in lines:
            reached = position
            take(content)
    except ValueError as error:
        raise ParseError(file, reached, str(error)) from None


class _Stanza:
    """One mount while its lines are read; each method raises ValueError for a damaged line."""

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
        source, mounted, rest = line.removeprefix(_DEVICE[1:]).partition(" mounted on ")
        point, _, rest = rest.partition(" with fstype ")
        fstype, _, version = rest.partition(" ")
        if not (mounted and fstype):
            raise ValueError(f"not the header of a mount: {quoted(line)}")
        self.names = (unescape(source), unescape(point), fstype, version.removeprefix("statvers="))

    def line(self, line: str) -> None:
        name, _, rest = line.partition(":\t")
        if name == "\topts":
            self.options = parse_kernel_options(rest)
        elif name == "\tage":
            self.age_s = number("age", rest)
        elif name == "\tevents":
            self.events = tuple(counters("events", rest, 0))
        elif name == "\tbytes":
            self.bytes = ByteCounters(*counters("bytes", rest, _BYTES_COLUMNS)[:_BYTES_COLUMNS])
        elif name == "\txprt":
            self._transport(rest)

    def _transport(self, text: str) -> None:
        protocol, _, columns = text.partition(" ")
        names = _COLUMNS.get(protocol)
        if names is None:
            return
        complete = len(names)
        before_slots = complete - len(_SLOTS) if names[-1] == _SLOTS[-1] else complete
        values = counters(f"xprt {protocol}", columns, before_slots)
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
        name, separator, columns = line.partition(": ")
        if not separator:
            return
        values = counters(name.strip(), columns, _OP_COLUMNS)
        for column in (5, 6, 7):
            if values[column] >= _SIGN:
                values[column] -= _WRAP
        if any(values):
            self.operations[name.strip()] = OpCounters(*values[: _OP_COLUMNS + 1])

    def mount(self) -> MountStats:
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
        )
