r"""The format of tests/hosts/*.host: a head in TOML, then the files of a tree, each below its path.

    why = "at least five words on the host"
    -- etc/fstab --
    sa1.file.core.windows.net:/sa1/a /mnt/a nfs vers=4.1 0 0
    -- usr/sbin/mount.nfs (0755) --
    #!/bin/sh
    -- "etc/a name with blanks" (escaped) --
    a line of Windows\r
    the last line, without its newline\

A file ends with a newline, where the next path or the text ends. A section that is marked `escaped` can hold
any bytes: `\xNN` is a byte, `\r` a carriage return, `\\` a backslash, and a backslash at the end of a line
takes the newline away. Others hold printable characters and tabs only. A path in quotation marks has the same
escapes. Sections with paths below `later/` are the files that change until a second look.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = frozenset(
    {
        "why", "base", "arguments", "findings", "messages", "now", "sample_s", "units",
        "answer", "reach", "route", "interface", "vm_size",
        "gone", "empty", "programs", "links", "fifos", "modes",
    }
)  # fmt: skip
LATER = "later/"
ESCAPED = "escaped"
PROGRAM = b"#!/bin/sh\n"
"""The text of each file that `programs` names: checks only look whether they can be executed."""
_FEWEST_WORDS = 5
_HEADER = re.compile(r'-- ("(?:[^"\\]|\\.)+"|[^\s"]+)(?: \(([^()]*)\))? --')
_SINGLE = {"": b"", "\n": b"", "r": b"\r", "\\": b"\\"}


class HostFileError(Exception):
    """A .host file that is wrong: its name, the line, and the reason."""


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class HostFile:
    """A parsed .host file; its files by their path in the tree."""

    head: Mapping[str, Any]
    files: Mapping[str, File]
    later: Mapping[str, File]


def parse_host(text: str, name: str) -> HostFile:
    """Parse a host; raise HostFileError with the name, the line and the reason."""
    lines = text.split("\n")
    length = next((number for number, line in enumerate(lines) if line.startswith("-- ")), len(lines))
    head = _Head(name, lines[:length])
    files = {path: File(b"") for path in head.paths("empty")}
    files |= {path: File(PROGRAM, 0o755) for path in head.paths("programs")}
    files = parse_files(text, name, files)
    later = {path.removeprefix(LATER): files.pop(path) for path in [*files] if path.startswith(LATER)}
    return HostFile(head.values, files, later)


def parse_files(text: str, name: str, others: Mapping[str, File] | None = None) -> dict[str, File]:
    """Return the files below the first path, and others that the text may not name again."""
    lines = text.removesuffix("\n").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("-- ")]
    files = dict(others or {})
    for start, end in itertools.pairwise([*starts, len(lines)]):
        at = f"{name}:{start + 1}"
        path, mode, escaped = _section(lines[start], at)
        if path in files:
            raise HostFileError(f"{at}: a second {path}")
        body = "".join(f"{line}\n" for line in lines[start + 1 : end])
        files[path] = File(_unescape(body, at) if escaped else _plain(body, at), mode)
    return files


class _Head:
    """The part of a host above its first path."""

    def __init__(self, name: str, lines: Sequence[str]) -> None:
        self.name, self.lines = name, lines
        try:
            self.values = tomllib.loads("\n".join(lines))
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            raise HostFileError(f"{name}:{line[1] if line else len(lines)}: {error}") from error
        for key in self.values:
            if key not in KEYS:
                raise self.error(key, f"unknown key {key}")
        if len(str(self.values.get("why", "")).split()) < _FEWEST_WORDS:
            raise self.error("why", f"no why of at least {_FEWEST_WORDS} words")
        for key in ("gone", "links", "fifos", "modes"):
            self.paths(key)

    def error(self, word: str, reason: str) -> HostFileError:
        """Return an error at the first line that has a string or a key, else at the first line."""
        pattern = re.compile(rf'(?:^|"){re.escape(word)}(?:"|\s*=)')
        numbers = (number for number, line in enumerate(self.lines, 1) if pattern.search(line))
        return HostFileError(f"{self.name}:{next(numbers, 1)}: {reason}")

    def paths(self, key: str) -> Sequence[str]:
        """Return the paths of a list or a table."""
        paths = [str(path) for path in self.values.get(key, ())]
        for number, path in enumerate(paths):
            if not _is_inside(path):
                raise self.error(path, f"{path!r} is not a path in the tree")
            if path in paths[:number]:
                raise self.error(path, f"a second {path}")
        return paths


def _is_inside(path: str) -> bool:
    return bool(path) and not {"", ".", ".."} & {*path.split("/")}


def _section(line: str, at: str) -> tuple[str, int, bool]:
    """Return path, mode and whether the content is escaped."""
    header = _HEADER.fullmatch(line)
    if header is None:
        raise HostFileError(f"{at}: neither `-- path --` nor escaped as \\x2d: {line}")
    path = header[1]
    if path.startswith('"'):
        path = os.fsdecode(_unescape(path[1:-1].replace('\\"', '"'), at))
    if not _is_inside(path):
        raise HostFileError(f"{at}: {path!r} is not a path in the tree")
    marks = header[2].split(", ") if header[2] else []
    modes = [mark for mark in marks if re.fullmatch("0[0-7]{3}", mark)]
    if len(modes) > 1 or {*marks} - {*modes, ESCAPED}:
        raise HostFileError(f"{at}: neither a mode such as 0755 nor `{ESCAPED}`: {header[2]}")
    return path, int(modes[0], 8) if modes else 0o644, ESCAPED in marks


def _plain(body: str, at: str) -> bytes:
    strange = next((sign for sign in body if not (sign.isprintable() or sign in "\n\t")), "")
    if strange:
        raise HostFileError(f"{at}: {strange!r} in a section that is not marked `{ESCAPED}`")
    return body.encode()


def _unescape(body: str, at: str) -> bytes:
    """Return the bytes of an escaped text."""
    parts = []
    for text, escape in re.findall(r"([^\\]*)(\\x[0-9a-f]{2}|\\.?|)", body, re.DOTALL):
        if escape and escape[1:] not in _SINGLE and len(escape) != len("\\xNN"):
            raise HostFileError(f"{at}: unknown escape {escape}")
        byte = bytes.fromhex(escape[2:]) if len(escape) == len("\\xNN") else _SINGLE[escape[1:]]
        parts.append(text.encode() + byte)
    return b"".join(parts)
