"""`/proc/self/mountstats`: the counters of a mount namespace's NFS mounts.

Each NFS mount has a stanza (fs/nfs/super.c, nfs_show_stats; net/sunrpc/stats.c, rpc_clnt_show_stats; the
xprt lines: net/sunrpc/xprtsock.c and xprtrdma/transport.c), which ends with an empty line
(fs/proc_namespace.c, show_vfsstat); other file systems have only their header. The number of columns shows
which fields there are, never `statvers`: it stayed 1.1 when a column came.

`parse_stanzas` splits the file into lines and reads no number, for the sampler, which reads only lines that
differ from its last look. `parse_mountstats` reads all of them. Both find the stanzas in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from nfstuned.errors import ParseError
from nfstuned.model.kernel import ByteCounters, MountStats, Nfsv4State, OpCounters, Stanza, Transport, decimal
from nfstuned.parse.fields import (
    LARGEST,
    count,
    counters,
    parse_kernel_options,
    parse_number,
    quoted,
    unescape,
)

FILE = "/proc/self/mountstats"
_BEGIN = re.compile(rb"(?m)^[ \t]*(?:device .+|no device) mounted on ")
_DEVICE = b"\ndevice "
_NFS = re.compile(rb" with fstype nfs4?(?: |$)")
_OPERATIONS = re.compile(rb"\n[ \t]*per-op statistics\n")
_IMPLEMENTATION = re.compile(rb"\n[ \t]*impl_id:[ \t]*(?=name=')")
_NAME, _DOMAIN, _DATE = b"name='", b"',domain='", b"',date='"
_END_OF_NAMES = re.compile(rb"',date='[0-9]{1,20},[0-9]{1,10}'(?=\n|\Z)")
_NAME_MOST = 1024
"""Bytes of either of a server's names (NFS4_OPAQUE_LIMIT, include/linux/nfs4.h)."""
_NAMES_MOST = len(_NAME + _DOMAIN + _DATE) + 2 * _NAME_MOST + 20 + 1 + 10 + len(b"'\n")
"""The longest line of them. The next mount's is further away: 60 operations alone take as many bytes."""
_USUAL = (
    rb"device ([^ \n]+) mounted on ([^ \n]+) with fstype nfs4?(?: statvers=[^ \n]*)?\n"
    rb"\topts:\t([^\n]*)\n"
    rb"\tage:\t([0-9]{1,19})\n"
    rb"(?:\timpl_id:\t(name='[^'\n]*',domain='[^'\n]*',date='[0-9]{1,20},[0-9]{1,10})'\n)?"
    rb"(?:\tcaps:\t[^\n]*\n)?(?:\tnfsv4:\t([^\n]*)\n)?(?:\tsec:\t[^\n]*\n)?"
    rb"(?:\tevents:\t([^\n]*)\n)?"
    rb"\tbytes:\t([^\n]*)\n"
    rb"(?:\tfsc:\t[^\n]*\n)?"
    rb"\tRPC iostats version: [^\n]*\n"
    rb"((?:\txprt:\t[^\n]*\n)*)"
    rb"\tper-op statistics\n"
)
"""The lines before the operations as kernels print them (fs/nfs/super.c, nfs_show_stats), in a single match.
Most modules that load this one parse no mountstats: it is compiled where it is used."""
_USUAL_NAMES = 5
"""The group of the server's names."""
_LINES = re.compile(rb"\n[ \t]*(opts|age|events|bytes|nfsv4|xprt)[ \t]*:[ \t]*([^\n]*)")
_REST = re.compile(rb"(?![A-Za-z_ ]+:|nfsv4[ \t]*:|per-op statistics)[A-Za-z0-9_.,:=/%@-]*[A-Za-z0-9]")
"""The rest of the options, where a terminal broke their line."""
_PER_OP = b"per-op statistics"
_ORDER = {
    name: place
    for place, name in enumerate((
        b"opts", b"age", b"impl_id", b"caps", b"nfsv4", b"sec", b"events", b"bytes", b"fsc",
        b"RPC iostats version", b"xprt", _PER_OP,
    ))
}  # fmt: skip
"""The places of the lines in front of the operations."""
_OPERATION = re.compile(rb"[A-Z0-9_]+:[ \t]+[0-9]+ [0-9]")
_CONTINUED = re.compile(rb"[0-9 ]+|.*=.*")
"""The rest of a line that a terminal broke: numbers, or values with names."""
DAMAGED = b"\t?"
"""A line that no parser knows, in place of a damaged one."""
_CACHED = re.compile(rb"(?:^|,)fsc(?:,|=|$)")
_INDENT = " \t"
_NO_BREAK = "\N{NO-BREAK SPACE}".encode()
"""A blank, as copies of web pages have it."""

_Value = TypeVar("_Value")
Row = tuple[int, ...]
"""The numbers of a line, in its order."""
_IDLE_OP = (": 0 0 0 0 0 0 0 0", ": 0 0 0 0 0 0 0 0 0")
_IDLE_OP_BYTES = tuple(text.encode() for text in _IDLE_OP)
_OP_COLUMNS, _BYTES_COLUMNS = 8, 8
_QUEUE, _EXECUTE = 5, 7
"""The first and the last column of an operation's times."""
_BYTES, _EVENTS, _OP = (
    range(_BYTES_COLUMNS),
    range(27),
    {*range(_OP_COLUMNS + 1)} - {*range(_QUEUE, _EXECUTE + 1)},
)
"""Columns without a sign."""
_SIGN, _WRAP = 1 << 63, 1 << 64
_MOST_DAMAGED = 8
"""Damaged lines of a mount that are reported."""
_NO_LAYOUT = "not configured"

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


def is_mountstats(start: bytes) -> bool:
    """Return whether a line begins as those of mounts do, of whatever file system."""
    return _BEGIN.search(start) is not None


class KernelText(NamedTuple):
    """A saved copy as the kernel writes it."""

    data: bytes
    numbers: list[int]
    """The number that each of the lines had before."""
    astray: list[tuple[int, str]]
    """Number and name of the first line that belongs to no header, of each run of them."""


def kernel_text(saved: bytes) -> KernelText:
    """Return a saved copy as the kernel writes it.

    People cut, convert and append such files. Carriage returns and blanks at ends of lines go, options in
    several lines become one line, and an empty line ends each stanza; a new one has the number of the next
    line. A server's names go where their line is complete: only in the kernel's own text they may go on
    behind it. A line that cannot follow the lines before it belongs to a mount without a header: it goes,
    with all lines up to the next header.
    """
    lines: list[tuple[bytes, int]] = []
    astray: list[tuple[int, str]] = []
    mount = _LinesOfMount(b"")
    for number, raw in enumerate(saved.split(b"\n"), 1):
        line = (raw if raw.startswith(_DEVICE[1:]) else raw.replace(_NO_BREAK, b" ")).rstrip()
        bare = line.lstrip()
        if bare.startswith(_DEVICE[1:]):
            mount = _LinesOfMount(bare)
            ended = bool(lines) and lines[-1][0] == b""
            if ended or (lines and lines[-1][0] == b"--"):  # as grep separates groups of lines
                lines.pop()
            lines += [(b"", number - ended), (bare, number)]
        elif mount.ended:
            continue
        elif bare.startswith(b"impl_id:") and _END_OF_NAMES.match(bare, max(0, bare.rfind(_DATE))):
            lines.append((b"\timpl_id:", number))
        elif lines and lines[-1][0].lstrip().startswith(b"opts:") and _REST.match(bare):
            lines[-1] = (lines[-1][0] + bare, lines[-1][1])
        elif (name := mount.follow(bare)) is not None:
            astray.append((number, name))
        else:
            lines += [(b"\t" + _PER_OP, number)] if mount.lacks_title else []
            lines.append((DAMAGED if mount.gap and bare not in {b"", b"--"} else line, number))
    return KernelText(
        b"\n".join([line for line, _ in lines]) + b"\n\n", [number for _, number in lines], astray
    )


class _LinesOfMount:
    """The lines behind a header so far: the kernel prints each once, in the order of _ORDER.

    An empty line ends them. Behind any other line that no kernel prints somebody left out lines.
    """

    def __init__(self, header: bytes) -> None:
        self.gap = not _NFS.search(header)
        """Lines of another mount may follow."""
        self.ended = False
        """A line of another mount came."""
        self.lacks_title = False
        """The last line is the first operation, and no title came before it."""
        self._place = -1
        self._seen: set[bytes] = set()

    def follow(self, bare: bytes) -> str | None:
        """Take the next line; return its name where it belongs to another mount."""
        name = bare.partition(b":")[0].rstrip()
        place = _ORDER.get(name, len(_ORDER) if _OPERATION.match(bare) else None)
        self.lacks_title = False
        if place is None:
            self.gap = self.gap or not name or (b":" not in bare and not _CONTINUED.fullmatch(bare))
            return None
        if self.gap or place < self._place or (name in self._seen and name != b"xprt"):
            self.ended = True
            return name.decode("ascii")
        self._place = place
        self.lacks_title = place == len(_ORDER) and _PER_OP not in self._seen
        self._seen |= {name, _PER_OP} if self.lacks_title else {name}
        return None


class _Piece(NamedTuple):
    """The place of an NFS stanza in the file: offsets of bytes."""

    start: int
    end_of_header: int
    names: tuple[int, int]
    """The server's names: any bytes, also lines that look like another mount's. Empty without names."""
    head_end: int
    """The end of the lines before the per-op statistics."""
    operations: int | None
    """The first line of the per-op statistics; None without them."""
    end: int
    whole: bool
    """The stanza ends as the kernel ends it."""


def _next(data: bytes, at: int) -> int:
    """Return the start of the next stanza, of whatever file system; -1 without."""
    return data.find(_DEVICE, at) + 1 or -1


def _first(data: bytes) -> int:
    return 0 if data.startswith(_DEVICE[1:]) else _next(data, 0)


def _piece(data: bytes, start: int) -> tuple[_Piece | None, int]:
    """Return the stanza that starts there, None unless it is NFS, and the start of the next; -1 without."""
    end_of_header = data.find(b"\n", start)
    if end_of_header < 0:
        end_of_header = len(data)
    if not _NFS.search(data, start, end_of_header):
        return None, _next(data, end_of_header)
    following = _next(data, end_of_header)
    head_end, operations = _section(data, end_of_header, following)
    names = _names(data, end_of_header, head_end)
    after = names[1] if names is not None else end_of_header
    if names is not None and (operations is None or operations < after or following < after):
        following = _next(data, after)
        head_end, operations = _section(data, after, following)
    end = following if following >= 0 else len(data)
    empty_line = data.find(b"\n\n", after if operations is None else operations - 1, end)
    whole = empty_line >= 0
    end = max(empty_line if whole else end, operations or 0)
    names = names or (end_of_header + 1, end_of_header + 1)
    if operations is None:
        head_end = end
    return _Piece(start, end_of_header, names, head_end, operations, end, whole), following


def _section(data: bytes, start: int, following: int) -> tuple[int, int | None]:
    """Return the end of the lines before the operations, and the start of these; None without them."""
    end = following if following >= 0 else len(data)
    mark = _OPERATIONS.search(data, start, end)
    return (end, None) if mark is None else mark.span()


def _names(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return the place of the server's names; they stand before the per-op statistics.

    A text that looks like their end may be part of them (fs/nfs/super.c, show_implementation_id, escapes
    nothing): the last within their reach is the kernel's own.
    """
    found = _IMPLEMENTATION.search(data, start, end)
    if found is None:
        return None
    first = found.end()
    reach = at = first + _NAMES_MOST
    domain = data.find(_DOMAIN, first, reach)
    while domain >= 0 and (at := data.rfind(_DATE, domain + len(_DOMAIN), at)) >= 0:
        ends = _END_OF_NAMES.match(data, at, reach)
        if ends is not None:
            return first, ends.end()
    return None


def _header(line: str) -> tuple[str, str, str, str]:
    """Return source, mount point, type and statvers of a stanza's first line; ValueError for damage."""
    source, mounted, rest = line.removeprefix("device ").partition(" mounted on ")
    point, _, rest = rest.partition(" with fstype ")
    fstype, _, version = rest.partition(" ")
    if not (mounted and fstype):
        raise ValueError(f"not the header of a mount: {quoted(line)}")
    return unescape(source), unescape(point), fstype, version.removeprefix("statvers=")


def parse_stanzas(parts: Iterable[bytes], before: Sequence[Stanza] = ()) -> tuple[Stanza, ...]:
    """Return the NFS mounts of a file in parts, each with its lines as text; few parts are in memory at once.

    A mount with a damaged header has no name and is left out. Nothing is raised. `before` are the stanzas of
    an earlier look: operations of the same text at the same place are not searched through, and take no
    memory again.
    """
    stanzas: list[Stanza] = []
    data = b""
    for part in parts:
        data = _take(data + part, stanzas, before)
    _take(data, stanzas, before, last=True)
    return tuple(stanzas)


def _take(data: bytes, stanzas: list[Stanza], before: Sequence[Stanza], *, last: bool = False) -> bytes:
    """Append the stanzas that no bytes behind these could change; return the text from there on.

    The `last` bytes have none behind them.
    """
    usual = re.compile(_USUAL)
    start, in_reach = _first(data), len(data) - _NAMES_MOST
    while start >= 0:
        head = usual.match(data, start)
        known = before[len(stanzas)].operations if len(stanzas) < len(before) else None
        stanza, following = (None, -1) if head is None else _usual_stanza(data, head, known or b"")
        if stanza is None:
            piece, following = _piece(data, start)
            if piece is not None and (last or 0 <= following <= in_reach):
                stanza = _stanza(data, piece, known)
        if not last and not 0 <= following <= in_reach:
            break
        if stanza is not None:
            stanzas.append(stanza)
        start = following
    return data[max(start, 0) :]


def _usual_stanza(data: bytes, head: re.Match[bytes], known: bytes) -> tuple[Stanza | None, int]:
    """Return the stanza of a head that kernels print, and the start of the next.

    None unless the next follows an empty line, and where the server's names may go on further than it seems.
    `known` are the operations at its place at an earlier look.
    """
    source, point, options, age, names, nfsv4, events, totals, transports = head.groups()
    if names:
        at, end = head.span(_USUAL_NAMES)
        if data.find(b"'", end + 1, at + _NAMES_MOST) >= 0:
            return None, -1
    start = head.end()
    end = start + len(known)
    if known and data.startswith(known, start) and data.startswith(b"\n" + _DEVICE, end):
        operations = known
    else:
        # Operations have capitals only: the first "d" behind them begins the next "device", and is near.
        end = data.find(b"d", start) - 2
        if not data.startswith(b"\n" + _DEVICE, end) or data.find(b"\n\n", start - 1, end + 1) >= 0:
            return None, -1
        operations = data[start : max(start, end)]
    stanza = Stanza(
        _name(source),
        _name(point),
        int(age),
        totals,
        transports.replace(b"\txprt:\t", b"").removesuffix(b"\n"),
        operations,
        True,
        events,
        nfsv4,
        b"fsc" in options and _CACHED.search(options) is not None,
    )
    return stanza, end + 2


def _name(data: bytes) -> str:
    text = data.decode("utf-8", "surrogateescape")
    return unescape(text) if "\\" in text else text


def _stanza(data: bytes, piece: _Piece, known: bytes | None) -> Stanza | None:
    """Return the lines of any stanza as text; None for a damaged header."""
    header = data[piece.start : piece.end_of_header].decode("utf-8", "surrogateescape")
    try:
        source, point, _, _ = _header(header)
    except ValueError:
        return None
    start, end = piece.names
    lines = _LINES.findall(data[piece.end_of_header : start] + data[end : piece.head_end])
    values: dict[bytes, bytes] = dict(lines)
    age = values.get(b"age")
    age_s = None if age is None else decimal(age.decode("latin-1"))
    readable = age is None or (age_s is not None and age_s <= LARGEST)
    operations = None if piece.operations is None else data[piece.operations : piece.end]
    return Stanza(
        source,
        point,
        age_s if readable else None,
        values.get(b"bytes"),
        b"\n".join([value for name, value in lines if name == b"xprt"]),
        known if known == operations else operations,
        piece.whole and readable,
        values.get(b"events"),
        values.get(b"nfsv4"),
        _CACHED.search(values.get(b"opts", b"")) is not None,
    )


def parse_mountstats(text: str | bytes, file: str = FILE) -> tuple[MountStats | ParseError, ...]:
    """Return the NFS mounts in the file's order, each with the errors of its damaged lines behind it.

    The value of a damaged line is not known, and where it is a connection's, no connection is; only a damaged
    header costs the whole mount. Of many damaged lines the first are reported. Tabs may have become blanks,
    or got lost. `ops` leaves out operations without use. Times that the kernel's clock made
    negative, which print as enormous numbers, are negative. Unknown lines, and transports of unknown
    protocols, do not count.
    """
    mounts: list[MountStats | ParseError] = []
    # A str may hold surrogates of any kind: they come out as they went in. Bytes of no UTF-8 become escapes.
    errors = "surrogateescape" if isinstance(text, bytes) else "surrogatepass"
    data = text if isinstance(text, bytes) else text.encode("utf-8", errors)
    start, line, counted = _first(data), 1, 0
    while start >= 0:
        piece, start = _piece(data, start)
        if piece is not None:
            line += data.count(b"\n", counted, piece.start)
            counted = piece.start
            mounts += _mount(data, piece, errors, (file, line))
    return tuple(mounts)


def _mount(
    data: bytes, piece: _Piece, errors: str, place: tuple[str, int]
) -> Iterator[MountStats | ParseError]:
    """Yield the mount of a stanza and its damaged lines; `place` is the header's file and line."""
    file, line = place
    start, end = piece.names
    try:
        header = _header(data[piece.start : piece.end_of_header].decode("utf-8", errors))
    except ValueError as error:
        yield ParseError(file, line, str(error))
        return
    breaks = b"\n" * data.count(b"\n", start, end)
    head = data[piece.end_of_header + 1 : start] + breaks + data[end : piece.head_end]
    values, damaged = _read_head(head.decode("utf-8", errors), (file, line + 1))
    if start < end:
        name, _, rest = data[start + len(_NAME) : end].partition(_DOMAIN)
        values["implementation"] = (name or rest[: rest.rfind(_DATE)]).decode("utf-8", errors) or None
    if piece.operations is not None:
        first = line + data.count(b"\n", piece.start, piece.operations)
        operations = data[piece.operations : piece.end].decode("utf-8", errors)
        values["ops"], bad = _read_operations(operations, (file, first))
        damaged += bad
    yield MountStats(*header, **values, whole=piece.whole)
    if len(damaged) > _MOST_DAMAGED:
        more = f"{count(len(damaged) - _MOST_DAMAGED, 'line')} more of this mount cannot be read"
        damaged[_MOST_DAMAGED:] = [ParseError(file, damaged[_MOST_DAMAGED].line, more)]
    yield from damaged


def _read_head(text: str, place: tuple[str, int]) -> tuple[dict[str, Any], list[ParseError]]:
    """Return attributes of MountStats, and the damaged lines; `place` is the file and the first line."""
    file, first = place
    values: dict[str, Any] = {}
    transports: list[Transport] = []
    damaged: list[ParseError] = []
    connections_damaged = False
    for position, line in enumerate(text.split("\n"), first):
        name, _, rest = line.partition(":")
        name, rest = name.strip(_INDENT), rest.lstrip(_INDENT)
        try:
            if name == "xprt":
                transports += _transport(rest)
            elif name in _READERS:
                key, read = _READERS[name]
                values[key] = read(rest)
        except ValueError as error:
            damaged.append(ParseError(file, position, str(error)))
            connections_damaged |= name == "xprt"
    values["transports"] = () if connections_damaged else tuple(transports)
    return values, damaged


def _read_operations(text: str, place: tuple[str, int]) -> tuple[Mapping[str, OpCounters], list[ParseError]]:
    """Return the operations that were ever used, and the damaged lines; `place` as of `_read_head`.

    A kernel prints each with as many columns as the others: a line with fewer was cut.
    """
    file, first = place
    ops: dict[str, OpCounters] = {}
    damaged: list[ParseError] = []
    lines = text.split("\n")
    most = min(max(len(line.partition(":")[2].split()) for line in lines), _OP_COLUMNS + 1)
    for position, line in enumerate(lines, first):
        if line.endswith(_IDLE_OP):
            continue
        try:
            name, values = _operation(line, most) or ("", [])
        except ValueError as error:
            damaged.append(ParseError(file, position, str(error)))
            continue
        if any(values):
            times = (value - _WRAP if value >= _SIGN else value for value in values[_QUEUE : _EXECUTE + 1])
            ops[name] = OpCounters(*values[:_QUEUE], *times, *values[_EXECUTE + 1 :])
    return MappingProxyType(ops), damaged


def _numbers(line: str, least: int, unsigned: Iterable[int], text: str) -> list[int]:
    """Return the numbers of a line; those in the columns `unsigned` are not negative. Raises ValueError."""
    values = counters(line, text, least)
    if min(values) < 0 and any(values[column] < 0 for column in unsigned if column < len(values)):
        raise ValueError(f"{line} holds a negative number: {quoted(text)}")
    return values


_total_numbers = partial(_numbers, "bytes", _BYTES_COLUMNS, _BYTES)
_READERS: Mapping[str, tuple[str, Callable[[str], object]]] = MappingProxyType({
    "opts": ("options", parse_kernel_options),
    "age": ("age_s", partial(parse_number, "age")),
    "bytes": ("bytes", lambda text: ByteCounters(*_total_numbers(text)[:_BYTES_COLUMNS])),
    "events": ("events", lambda text: tuple(_numbers("events", 0, _EVENTS, text))),
})  # fmt: skip
"""By the name of a line: the attribute of MountStats, and its reader, which raises ValueError."""


def _transport(text: str) -> list[Transport]:
    """Return the connection of an xprt line; none for an unknown protocol. Raises ValueError for damage."""
    protocol, _, columns = text.partition(" ")
    names = _COLUMNS.get(protocol)
    if names is None:
        return []
    complete = len(names)
    before_slots = complete - len(_SLOTS) if names[-1] == _SLOTS[-1] else complete
    unsigned = (column for column, name in enumerate(names) if name != _SIGNED)
    values = _numbers(f"xprt {protocol}", before_slots, unsigned, columns)
    if before_slots < len(values) < complete:
        raise ValueError(f"xprt {protocol} has {len(values)} numbers, {complete} expected: {quoted(text)}")
    known = dict(zip(names, values, strict=False))
    return [
        Transport(
            protocol=protocol,
            source_port=known.get("source_port") or None,
            connects=known.get("connects"),
            idle_s=known.get("idle_s"),
            **{name: known[name] for name in _CALLS},
            **{name: known[name] for name in _SLOTS if name in known},
            extra=tuple(values[complete:]),
        )
    ]


def _operation(line: str, least: int = _OP_COLUMNS) -> tuple[str, list[int]] | None:
    """Return the name and the known columns of an operation's line; ValueError for any damage."""
    name, separator, columns = line.partition(":")
    if not separator:
        return None
    name = name.strip(_INDENT)
    return name, _numbers(name, max(least, _OP_COLUMNS), _OP, columns.lstrip(_INDENT))[: _OP_COLUMNS + 1]


def _read(text: bytes, read: Callable[[str], _Value]) -> _Value:
    """Return the reader's value of a line; ParseError for damage."""
    try:
        return read(text.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise ParseError(FILE, 0, str(error)) from None


def total_row(text: bytes) -> Row:
    """Return the numbers of a `bytes:` line, in the order of ByteCounters; ParseError for damage."""
    return tuple(_read(text, _total_numbers))


def event_row(text: bytes) -> Row:
    """Return the numbers of an `events:` line, in their order; ParseError for damage."""
    return tuple(_read(text, partial(_numbers, "events", 1, _EVENTS)))


def operation_row(line: bytes) -> tuple[str, Row] | None:
    """Return the name and the numbers of a line of the per-op statistics, in the order of OpCounters.

    There are nine numbers, or eight where the kernel does not count errors. None for a line without an
    operation, or with an operation never used; ParseError for damage.
    """
    operation = None if line.endswith(_IDLE_OP_BYTES) else _read(line, _operation)
    return None if operation is None else (operation[0], tuple(operation[1]))


@lru_cache(maxsize=64)
def parse_transports(text: bytes) -> tuple[Transport, ...]:
    """Return the connections of Stanza.transports, in their order; ParseError for damage.

    The result is cached: stalls, rates and totals ask for the same lines, of a look and of the look before.
    """
    return tuple(transport for line in text.split(b"\n") for transport in _read(line, _transport))


def parse_nfsv4(text: bytes) -> Nfsv4State:
    """Return the state of the lease and of pNFS in an `nfsv4:` line; nothing is raised."""
    fields = (field.partition("=") for field in text.decode("utf-8", "replace").split(","))
    values = {name: value for name, _, value in fields}
    layout = values.get("pnfs")
    return Nfsv4State(
        decimal(values.get("lease_time")),
        decimal(values.get("lease_expired")),
        None if layout in {_NO_LAYOUT, ""} else layout,
    )
