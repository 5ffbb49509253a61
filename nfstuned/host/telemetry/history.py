"""Samples and changes that were kept: entries of the service in the journal, and files of JSON lines."""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import os
import re
import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from io import BufferedReader
from itertools import chain
from typing import BinaryIO, cast

from nfstuned.errors import ParseError
from nfstuned.host.root import STDIN, Root, UnusableError, demand_regular, standard_input
from nfstuned.host.telemetry.journal import UNKNOWN, Message
from nfstuned.model.kernel import decimal
from nfstuned.model.samples import Event, ReadAheadStep, Sample
from nfstuned.parse.proc.mountstats import is_mountstats
from nfstuned.parse.samples import parse_entry, parse_line, text_of

LONGEST = 4_000_000
"""In bytes: a sample of a thousand mount points has a tenth of it. Longer is no line of ours."""
_ASIDE = re.compile(r"(?:\.(?P<number>\d{1,4})|-(?P<date>\d{8,10}))(?P<compressed>\.(?:gz|bz2|xz|zst))?")
_OPENERS: Mapping[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
"""The reader of a file that begins with these bytes."""
_START = 8192
_ZSTD = b"\x28\xb5\x2f\xfd"

Samples = Iterator[Sample | ParseError]


def from_journal(root: Root, since_s: float | None) -> Samples:
    """Return the samples of the journal in its order, those since a Unix time, and the faults of others.

    Raises OSError, before the first, where the journal cannot be read.
    """
    return (_sample_of_entry(entry) for entry in entries(root, (Message.SAMPLE,), since_s))


def from_files(path: str, since_s: float | None) -> Samples:
    """Return the samples of a file and, before them, of those that were put aside from it, oldest first.

    Files overlap where they were copied while they grew: a sample that is in two of them comes once.
    `path.2` and `path.1` are older files, and `path-20260729` of logrotate, also compressed (gzip, bzip2,
    xz); "-" is stdin. An older file that is a link or a pipe is only reported. Raises OSError, before
    the first, where a file cannot be read.
    """
    with ExitStack() as opened:
        odd: list[ParseError] = []
        if path == STDIN:
            files = [("standard input", standard_input())]
        else:
            # All are opened before the first is read: their names change when the daemon puts a file aside.
            files, odd = _opened(path, opened)
        for name, file in files:
            _demand_samples(name, file)
        return chain(odd, _samples_of_files(files, opened.pop_all(), since_s))


def _opened(path: str, opened: ExitStack) -> tuple[list[tuple[str, BinaryIO]], list[ParseError]]:
    """Return the files with their names, oldest first, and the faults of those that are no regular files.

    `opened` closes them. The path is the user's own word, and may be a pipe. The others are there by their
    names alone, which anybody may have given to anything in a folder that others may write to.
    """
    files: list[tuple[str, BinaryIO]] = []
    odd: list[ParseError] = []
    for name in _with_older(path):
        file = open(name, "rb") if name == path else _open_older(name)  # noqa: SIM115 - `opened` closes it
        if isinstance(file, ParseError):
            odd.append(file)
        else:
            files.append((name, opened.enter_context(file)))
    return files, odd


def _open_older(name: str) -> BinaryIO | ParseError:
    """Return a file that was put aside; without a regular file, the reason. Raises OSError."""
    try:
        return open(name, "rb", opener=_regular)
    except UnusableError as error:
        return ParseError(name, 0, str(error.strerror))


def _regular(name: str, flags: int) -> int:
    """Return the descriptor of a regular file (open()'s opener). Raises OSError, UnusableError for others."""
    demand_regular(os.lstat(name), name)
    fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        demand_regular(os.fstat(fd), name)  # it may be another one by now
    except UnusableError:
        os.close(fd)
        raise
    return fd


def _demand_samples(name: str, file: BinaryIO) -> None:
    """Raise UnusableError for a saved mountstats; people have both."""
    if not isinstance(file, BufferedReader):
        return
    start = file.peek(_START)[:_START].removeprefix(codecs.BOM_UTF8)
    if is_mountstats(start):
        remedy = f"nfstuned top --file {STDIN if file is getattr(sys.stdin, 'buffer', None) else name}"
        raise UnusableError(errno.EINVAL, f"is a saved mountstats, not samples: {remedy}", name)


def _sample_of_entry(entry: Entry) -> Sample | ParseError:
    sample = parse_entry(fields(entry), "")
    if isinstance(sample, Sample):
        return sample
    when = datetime.fromtimestamp(moment(entry), timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    return ParseError(f"journal entry of {when} UTC", 0, sample.message)


def _with_older(path: str) -> list[str]:
    """Return the path behind those that were put aside from it, oldest first."""
    folder, name = os.path.split(path)
    older: list[tuple[str, int, str]] = []
    there = set(os.listdir(folder or "."))
    for other in there:
        match = _ASIDE.fullmatch(other, len(name)) if other.startswith(name) else None
        # While gzip makes `path.2.gz`, `path.2` is there as well, and whole.
        if match and not (match["compressed"] and other.removesuffix(match["compressed"]) in there):
            age = match["date"] or "9"  # names with a date are older than names with a number
            older.append((age, -int(match["number"] or 0), os.path.join(folder, other)))
    files = [other for *_, other in sorted(older)]
    # Between logrotate and the next sample there are only older files.
    return files if files and not os.path.lexists(path) else [*files, path]


def _samples_of_files(files: list[tuple[str, BinaryIO]], opened: ExitStack, since_s: float | None) -> Samples:
    """Yield each sample since a Unix time once, and the faults of others; `opened` is closed at the end."""
    times: defaultdict[tuple[str, str], _Times] = defaultdict(_Times)
    with opened:
        for name, file in files:
            for sample in _samples_of_file(name, file):
                if isinstance(sample, ParseError):
                    yield sample
                elif since_s is not None and sample.time < since_s:
                    continue
                elif times[sample.device, sample.source].add(sample.time):
                    yield sample


class _Times:
    """The times of the samples of a mount; of those that come in order each takes eight bytes."""

    def __init__(self) -> None:
        self._in_order = array("d")
        self._all: set[float] | None = None

    def add(self, time: float) -> bool:
        """Return whether there was no sample of this time."""
        if self._all is None:
            if not self._in_order or time > self._in_order[-1]:
                self._in_order.append(time)
                return True
            self._all = set(self._in_order)
        new = time not in self._all
        self._all.add(time)
        return new


def _samples_of_file(name: str, file: BinaryIO) -> Samples:
    try:
        for number, line in enumerate(_lines(file), 1):
            if len(line) > LONGEST:
                yield ParseError(name, number, f"longer than {LONGEST} bytes")
            elif line.strip():
                yield parse_line(line, name, number)
    except ValueError as error:
        yield ParseError(name, 0, str(error))
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        yield ParseError(name, 0, f"damaged: {error}")
    except OSError as error:
        if error.errno is not None:
            raise
        yield ParseError(name, 0, f"damaged: {error}")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines; of a line that is too long only the beginning, which is longer than LONGEST."""
    reader = file
    if file.seekable():
        beginning = file.read(6)
        file.seek(0)
        if beginning.startswith(_ZSTD):
            raise ValueError("zstd is not supported here: zstd -dc FILE | nfstuned samples --file -")
        if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError(
                "UTF-16 is not supported here: iconv -f UTF-16 -t UTF-8 FILE | nfstuned samples --file -"
            )
        opener = next((opener for magic, opener in _OPENERS.items() if beginning.startswith(magic)), None)
        if opener is not None:
            reader = cast("BinaryIO", opener(file))
    while line := reader.readline(LONGEST + 1):
        yield line
        while len(line) > LONGEST and not line.endswith(b"\n"):
            line = reader.readline(LONGEST + 1) or b"\n"


JOURNALS = ("var/log/journal", "run/log/journal")
CHANGES = (
    Message.STARTED,
    Message.STOPPED,
    Message.READ_AHEAD_SET,
    Message.READ_AHEAD_ADAPTED,
    Message.READ_AHEAD_CONTESTED,
    Message.READ_AHEAD_LEFT,
    Message.READ_AHEAD_RESTORED,
    Message.READ_AHEAD_FAILED,
    Message.POLICY_CONFLICT,
    Message.CONFIG_LOADED,
    Message.CONFIG_INVALID,
)
"""The changes that the service made to mounts, and their reasons."""
_STEPS = frozenset(
    message.name
    for message in (
        Message.READ_AHEAD_SET,
        Message.READ_AHEAD_ADAPTED,
        Message.READ_AHEAD_CONTESTED,
        Message.READ_AHEAD_RESTORED,
    )
)
"""The messages after which the read-ahead is another one."""
_INSTEAD = "--file FILE reads a file of samples"
_NONE = f"there is no journal in /{JOURNALS[0]} or /{JOURNALS[1]}; {_INSTEAD}"
_DENIED = (
    "this user may not read the journal of this host: use sudo, or add the user to the group systemd-journal"
)
_NAMES = {message.id: message.name for message in Message}

Entry = Mapping[str, object]


def entries(root: Root, messages: Iterable[Message], since_s: float | None) -> Iterator[Entry]:
    """Return the entries of any of these messages in the journal's order, those since a Unix time.

    Only entries of root's processes count: any user may send an entry that looks like ours. Raises OSError,
    before the first, where the journal cannot be read.
    """
    _demand_access(root)
    wanted = [*(f"MESSAGE_ID={message.id}" for message in messages), "_UID=0"]
    try:
        from systemd.journal import DEFAULT_CONVERTERS, Reader  # noqa: PLC0415 - few commands need it, and it may be absent
    except ImportError:
        from nfstuned.host.telemetry.journalctl import read_entries  # noqa: PLC0415 - as above

        return read_entries(wanted, since_s, None if root.prefix == "/" else root.path(JOURNALS[0]))
    # The library's converters of times and ids that nobody reads cost half of an entry's time.
    raw = dict.fromkeys(DEFAULT_CONVERTERS, lambda value: value)
    reader = Reader(converters=raw) if root.prefix == "/" else Reader(0, root.path(JOURNALS[0]), None, raw)
    reader.data_threshold = 0  # no field is cut
    for match in wanted:
        reader.add_match(match)
    if since_s is None:
        reader.seek_head()
    else:
        reader.seek_realtime(max(0.0, since_s))
    return cast("Iterator[Entry]", iter(reader))


def moment(entry: Entry) -> float:
    """Return when the journal got an entry, in Unix seconds."""
    return cast("int", entry["__REALTIME_TIMESTAMP"]) / 1e6


def fields(entry: Entry) -> dict[str, bytes | str]:
    """Return an entry's fields; of a field that is there more than once the first."""
    return {
        name: cast("bytes | str", value[0] if isinstance(value, list) else value)
        for name, value in entry.items()
        if not name.startswith("__")
    }


def changes(root: Root, since_s: float | None) -> Iterator[Event]:
    """Return the service's changes since a Unix time. Raises OSError, before the first, like `entries`."""
    return (_event(moment(entry), fields(entry)) for entry in entries(root, CHANGES, since_s))


def _event(time: float, values: Mapping[str, bytes | str]) -> Event:
    text = {name: text_of(value) for name, value in values.items() if isinstance(value, (bytes, str))}
    name = _NAMES.get(text.get("MESSAGE_ID", ""), "")
    device, point = (text.get(f"NFSTUNED_{name}", UNKNOWN) for name in ("DEVICE", "MOUNT_POINT"))
    old_kb, new_kb = (decimal(text.get(f"NFSTUNED_{name}_KB", "")) for name in ("OLD", "NEW"))
    step = None
    if name in _STEPS and old_kb is not None and new_kb is not None:
        step = ReadAheadStep(time, time, old_kb, new_kb)
    return Event(
        time,
        name,
        text.get("MESSAGE", ""),
        "" if device == UNKNOWN else device,
        "" if point == UNKNOWN else point,
        step,
    )


def _demand_access(root: Root) -> None:
    """Raise OSError without a journal that this user may read: the library does not report either."""
    readable, denied = 0, 0
    for folder in JOURNALS:
        for machine in root.names(folder):
            try:
                names = root.listing(f"{folder}/{machine}")
            except PermissionError:
                denied += 1
                continue
            except NotADirectoryError:
                names = []
            for name in names:
                if name.startswith("system") and name.endswith(".journal"):
                    allowed = os.access(root.path(f"{folder}/{machine}/{name}"), os.R_OK, effective_ids=True)
                    readable, denied = readable + allowed, denied + (not allowed)
    if not readable:
        raise OSError(errno.EACCES if denied else errno.ENOENT, _DENIED if denied else _NONE)
