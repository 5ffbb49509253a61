"""`/proc/self/mountstats` cut into the stanzas of its NFS mounts, in a single pass over the bytes.

Where a stanza and its sections begin and end is decided here, once for both readers: mountstats.py, which
reads all of it, and the sampler, which reads only what differs from its last look. The kernel ends each
stanza with an empty line (fs/proc_namespace.c, show_vfsstat); a stanza without it was cut off.

Most of what a number costs in Python is the call that reads it, not its digits. Here a few calls read all
numbers of a mount, and whatever is not plain digits and single spaces is left to mountstats.py, which
knows what each line may be and says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from nfstuned.model.kernel import Stanza
from nfstuned.parse.fields import LARGEST, quoted, unescape

_DEVICE = b"\ndevice "
_NFS = re.compile(rb" with fstype nfs4?(?: |$)")
_OPERATIONS = b"\n\tper-op statistics\n"
_IMPLEMENTATION = b"\n\timpl_id:\t"
_NAME, _DOMAIN = b"name='", b"',domain='"
_DATE = rb"',date='[0-9]{1,20},[0-9]{1,10}'(?=\n|\Z)"
_NAME_MOST = 1024
"""Bytes of either of a server's names (NFS4_OPAQUE_LIMIT, include/linux/nfs4.h)."""
_NAMES_MOST = (
    len(_NAME) + _NAME_MOST + len(_DOMAIN) + _NAME_MOST + len(b"',date='") + 20 + 1 + 10 + len(b"'\n")
)
"""The longest line of them. The next mount's is further away: 60 operations alone take as many bytes."""
_AGE, _TOTALS, _TRANSPORT = b"\n\tage:\t", b"\n\tbytes:\t", b"\n\txprt:\t"
_EVENTS, _NFSV4, _OPTIONS = b"\n\tevents:\t", b"\n\tnfsv4:\t", b"\n\topts:\t"
_CACHED = re.compile(rb"(?:^|,)fsc(?:,|=|$)")


def _untabbed(tag: bytes) -> re.Pattern[bytes]:
    """Return how a line begins whose tabs became blanks, or got lost, as in what somebody copied by hand."""
    return re.compile(tag.replace(b":\t", rb":[ \t]*").replace(b"\t", rb"[ \t]*"))


_UNTABBED = {
    tag: _untabbed(tag)
    for tag in (_OPERATIONS, _IMPLEMENTATION, _AGE, _EVENTS, _TOTALS, _TRANSPORT, _NFSV4, _OPTIONS)
}
_LONGEST = len(str(LARGEST))
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
"""A head as kernels print it (fs/nfs/super.c, nfs_show_stats), in a single match."""
_USUAL_NAMES = 5
"""The group of the server's names."""


class Names(NamedTuple):
    """What the server calls itself: any bytes, also lines that look like another mount's."""

    start: int
    end: int
    name: bytes
    domain: bytes


class Piece(NamedTuple):
    """Where an NFS stanza is in the file: offsets of bytes."""

    start: int
    end_of_header: int
    names: Names | None
    head_end: int
    """Where the lines before the per-op statistics end."""
    operations_start: int
    end: int
    whole: bool
    """The stanza ends as the kernel ends it."""

    @classmethod
    def cut(cls, data: bytes, bounds: tuple[int, int], end_of_header: int, names: Names | None) -> Piece:
        """Return the stanza within these bounds; what follows an empty line is not its own."""
        start, end = bounds
        after = end_of_header if names is None else names.end
        head_end, operations = _tag(data, _OPERATIONS, after, end)
        if head_end < 0:
            empty_line = data.find(b"\n\n", after, end)
            end = empty_line if empty_line >= 0 else end
            return cls(start, end_of_header, names, end, end, end, empty_line >= 0)
        empty_line = data.find(b"\n\n", operations - 1, end)
        end = empty_line if empty_line >= 0 else end
        return cls(start, end_of_header, names, head_end, operations, max(end, operations), empty_line >= 0)

    def stanza(self, data: bytes, source: str, point: str) -> Stanza:
        """Return the sections of the stanza as text."""
        age = self._last(data, _AGE)
        readable = age is None or (age.isdigit() and len(age) <= _LONGEST and int(age) <= LARGEST)
        return Stanza(
            source,
            point,
            int(age) if age is not None and readable else None,
            self._last(data, _TOTALS),
            self._transports(data),
            data[self.operations_start : self.end],
            self.whole and readable,
            self._last(data, _EVENTS),
            self._last(data, _NFSV4),
            _CACHED.search(self._last(data, _OPTIONS) or b"") is not None,
        )

    def _last(self, data: bytes, tag: bytes) -> bytes | None:
        """Return what follows the tag in the last line that begins with it, outside of the server's names."""
        for start, end in reversed(self._head):
            at = data.rfind(tag, start, end) + len(tag)
            if at < len(tag):
                at = max((match.end() for match in _UNTABBED[tag].finditer(data, start, end)), default=-1)
            if at >= 0:
                end_of_line = data.find(b"\n", at, end)
                return data[at : end_of_line if end_of_line >= 0 else end]
        return None

    def _transports(self, data: bytes) -> bytes:
        """Return the lines of connections, and what stands between them."""
        places = ((_tag(data, _TRANSPORT, start, end)[0], end) for start, end in self._head)
        return b"".join(data[at:end] for at, end in places if at >= 0)

    @property
    def _head(self) -> tuple[tuple[int, int], ...]:
        """Where the lines before the per-op statistics are, outside of the server's names."""
        if self.names is None:
            return ((self.end_of_header, self.head_end),)
        return ((self.end_of_header, self.names.start), (self.names.end, self.head_end))


def _tag(data: bytes, tag: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where a line is that begins with the tag, and where what follows it begins; -1, -1 without."""
    at = data.find(tag, start, end)
    if at >= 0:
        return at, at + len(tag)
    match = _UNTABBED[tag].search(data, start, end)
    return match.span() if match is not None else (-1, -1)


def pieces(data: bytes) -> Iterator[Piece]:
    """Yield where each NFS mount's stanza is; other file systems have only their header."""
    start = _first(data)
    while start >= 0:
        piece, start = _unusual(data, start)
        if piece is not None:
            yield piece


def cut_mountstats(data: bytes, before: Sequence[Stanza] = ()) -> tuple[Stanza, ...]:
    """Return the NFS mounts in the file's order, each with its sections as text that is not parsed yet.

    A mount whose header is damaged is left out: it has no name. Nothing is raised. `before` is what an
    earlier look returned: a stanza that still has its place and its operations is not searched through, and
    takes no memory again.
    """
    return cut_parts([data], before)


def cut_parts(parts: Iterable[bytes], before: Sequence[Stanza] = ()) -> tuple[Stanza, ...]:
    """Return the NFS mounts as `cut_mountstats` does, of a file in parts: few are in memory at once."""
    stanzas: list[Stanza] = []
    data, coming = b"", iter(parts)
    for part in coming:
        data += part
        start = _cut_usual(data, stanzas, before)
        data = data[start:]
        if 0 <= _next(data, 1) <= len(data) - _NAMES_MOST:
            # A mount that is not as usual: whether a line is another mount's or in a server's name depends
            # on all that follows.
            data = b"".join([data, *coming])
    _cut_all(data, stanzas, before)
    return tuple(stanzas)


def _cut_usual(data: bytes, stanzas: list[Stanza], before: Sequence[Stanza]) -> int:
    """Cut as far as nothing that may follow could change the stanzas; return where that ends."""
    usual = re.compile(_USUAL)
    start, in_reach = _first(data), len(data) - _NAMES_MOST
    while start >= 0:
        head = usual.match(data, start)
        cut = None if head is None else _usual(data, head, before, len(stanzas))
        if cut is not None:
            stanza, following = cut
            if not 0 <= following <= in_reach:
                break
            stanzas.append(stanza)
        elif _may_be_nfs(data, start) or (following := _next(data, start)) < 0:
            break
        start = following
    return max(start, 0)


def _cut_all(data: bytes, stanzas: list[Stanza], before: Sequence[Stanza]) -> None:
    """Cut the rest of the file; no more follows."""
    usual = re.compile(_USUAL)
    start = _first(data)
    while start >= 0:
        head = usual.match(data, start)
        cut = None if head is None else _usual(data, head, before, len(stanzas))
        if cut is not None:
            stanza, start = cut
            stanzas.append(stanza)
            continue
        piece, start = _unusual(data, start)
        if piece is not None:
            with suppress(ValueError):
                line = data[piece.start : piece.end_of_header].decode("utf-8", "surrogateescape")
                source, point, _, _ = header(line)
                stanzas.append(piece.stanza(data, source, point))


def _usual(
    data: bytes, head: re.Match[bytes], before: Sequence[Stanza], place: int
) -> tuple[Stanza, int] | None:
    """Return the stanza of a head that kernels print, and where the next stanza starts; -1 without.

    `before` has at `place` the stanza that was there at an earlier look. None where the server's names may
    end further on than it seems.
    """
    source, point, options, age, names, nfsv4, events, totals, transports = head.groups()
    if names:
        at, end = head.span(_USUAL_NAMES)
        if data.find(b"'", end + 1, at + _NAMES_MOST) >= 0:
            return None
    known = before[place].operations if place < len(before) else b""
    start = head.end()
    end = start + len(known)
    if known and data.startswith(known, start) and data.startswith(b"\n\n", end):
        operations, whole = known, True
    else:
        end, whole = _end_of_operations(data, start)
        operations = data[start : max(start, end)]
    at = end + 2
    following = at if whole and data.startswith(_DEVICE[1:], at) else _next(data, max(start, end) - 1)
    stanza = Stanza(
        _name(source),
        _name(point),
        int(age),
        totals,
        transports,
        operations,
        whole,
        events,
        nfsv4,
        b"fsc" in options and _CACHED.search(options) is not None,
    )
    return stanza, following


def _end_of_operations(data: bytes, start: int) -> tuple[int, bool]:
    """Return where the per-op statistics end that start there, and whether an empty line ends them."""
    end = data.find(b"\n\n", start - 1)
    # Operations have capitals only: as a rule the first "d" is that of the next mount, and near.
    if end >= 0 and data.find(b"d", start) == end + 2 and data.startswith(_DEVICE[1:], end + 2):
        return end, True
    following = data.find(_DEVICE, start - 1, end if end >= 0 else len(data))
    whole = end >= 0 and following < 0
    return end if whole else following + 1 or len(data), whole


def header(line: str) -> tuple[str, str, str, str]:
    """Return source, mount point, type and statvers of a stanza's first line; ValueError for damage."""
    source, mounted, rest = line.removeprefix("device ").partition(" mounted on ")
    point, _, rest = rest.partition(" with fstype ")
    fstype, _, version = rest.partition(" ")
    if not (mounted and fstype):
        raise ValueError(f"not the header of a mount: {quoted(line)}")
    return unescape(source), unescape(point), fstype, version.removeprefix("statvers=")


def _unusual(data: bytes, start: int) -> tuple[Piece | None, int]:
    """Return the stanza that starts there, None unless it is NFS, and where the next starts; -1 without."""
    end_of_header = data.find(b"\n", start)
    if end_of_header < 0:
        end_of_header = len(data)
    following = _next(data, end_of_header)
    if not _NFS.search(data, start, end_of_header):
        return None, following
    names = _names(data, end_of_header, following if following >= 0 else len(data))
    if names is not None:
        following = _next(data, names.end)
    end = following if following >= 0 else len(data)
    return Piece.cut(data, (start, end), end_of_header, names), following


def _first(data: bytes) -> int:
    """Return where the first stanza starts, of whatever file system; -1 where there is none."""
    return 0 if data.startswith(_DEVICE[1:]) else _next(data, 0)


def _may_be_nfs(data: bytes, start: int) -> bool:
    """Return whether the header that starts there is that of an NFS mount, or ends behind the data."""
    end = data.find(b"\n", start)
    return end < 0 or _NFS.search(data, start, end) is not None


def _next(data: bytes, at: int) -> int:
    """Return where the next stanza starts, of whatever file system; -1 where there is none."""
    return data.find(_DEVICE, at) + 1 or -1


def _name(data: bytes) -> str:
    text = data.decode("utf-8", "surrogateescape")
    return unescape(text) if "\\" in text else text


def _names(data: bytes, start: int, end: int) -> Names | None:
    """Return the server's names; they stand before the per-op statistics, which a lost header may precede.

    Whatever looks like their end may be part of them (fs/nfs/super.c, show_implementation_id, escapes
    nothing): the last within their reach is the kernel's own.
    """
    operations, _ = _tag(data, _OPERATIONS, start, end)
    _, at = _tag(data, _IMPLEMENTATION, start, operations if operations >= 0 else end)
    if at < 0:
        return None
    reach = at + _NAMES_MOST
    domain = data.find(_DOMAIN, at, reach)
    if domain < 0 or not data.startswith(_NAME, at):
        return None
    ends = [*re.compile(_DATE).finditer(data, domain + len(_DOMAIN), reach)]
    if not ends:
        return None
    last = ends[-1]
    return Names(at, last.end(), data[at + len(_NAME) : domain], data[domain + len(_DOMAIN) : last.start()])


_BETWEEN = b"|"
_PLAIN = b"0123456789 " + _BETWEEN
_MOST_NAMES = 256
"""No version of NFS has half as many operations."""


class Operations(NamedTuple):
    """The same operations at two moments: their names, and at each moment the numbers of all in a row."""

    names: list[str]
    earlier: list[int]
    later: list[int]


def plain_numbers(lines: Sequence[bytes]) -> list[int] | None:
    """Return the numbers of these lines in a row; None where they are not plain digits and single spaces.

    Each line has as many as the others.
    """
    text = b" | ".join(lines)
    if text.translate(None, _PLAIN):
        return None
    tokens = text.split(b" ")
    width = tokens.index(_BETWEEN) if len(lines) > 1 else len(tokens)
    if tokens[width :: width + 1] != [_BETWEEN] * (len(lines) - 1):
        return None
    del tokens[width :: width + 1]
    try:
        values = list(map(int, tokens))
    except ValueError:
        return None
    return values if len(values) == width * len(lines) and max(values) <= LARGEST else None


def plain_operations(earlier: list[bytes], later: list[bytes], without: frozenset[str]) -> Operations | None:
    """Return the numbers of lines of the per-op statistics; None where only mountstats.py can read them.

    Line for line `earlier` and `later` must name the same operation, and no operation twice. The operations
    `without` are left out.
    """
    count = len(earlier)
    text = b"\n".join(earlier + later)
    # Each line begins with a tab: so a line without a name cannot make up for a line with two.
    if not text.startswith(b"\t") or text.count(b"\n\t") != 2 * count - 1:
        return None
    parts = text.replace(b": ", b"\n").split(b"\n")
    if len(parts) != 4 * count or parts[: 2 * count : 2] != parts[2 * count :: 2]:
        return None
    names, numbers = list(map(_operation, parts[: 2 * count : 2])), parts[1::2]
    if "" in names or len(set(names)) != count:
        return None
    for name in without.intersection(names):
        at = names.index(name)
        del numbers[len(names) + at], numbers[at], names[at]
    values = plain_numbers(numbers) if names else []
    if values is None:
        return None
    half = len(values) // 2
    return Operations(names, values[:half], values[half:])


@lru_cache(_MOST_NAMES)
def _operation(text: bytes) -> str:
    """Return the name of an operation, "" where no kernel would give it."""
    name = text.strip(b"\t ").decode("latin-1")
    return name if re.fullmatch("[A-Z0-9_]+", name) else ""
