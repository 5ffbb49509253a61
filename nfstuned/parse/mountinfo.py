"""`/proc/self/mountinfo`: the NFS mounts of one mount namespace (proc_pid_mountinfo(5))."""

from __future__ import annotations

import re

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount
from nfstuned.parse.options import parse_options

FILE = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")
_DEVICE = re.compile(r"\d+:\d+")


def unescape(text: str) -> str:
    r"""Decode the kernel's octal escapes (`\040` for a space), as fs/seq_file.c's mangle_path writes them."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 8)), text) if "\\" in text else text


def parse_mountinfo(text: str, file: str = FILE) -> tuple[Mount | ParseError, ...]:
    """Return the NFS mounts in the file's order; a line that cannot be understood is returned as its error."""
    found: list[Mount | ParseError] = []
    for number, line in enumerate(text.split("\n"), 1):
        if " - nfs" not in line:
            continue
        try:
            mount = _mount(line)
        except ValueError as error:
            found.append(ParseError(file, number, str(error)))
        else:
            if mount is not None:
                found.append(mount)
    return tuple(found)


def _mount(line: str) -> Mount | None:
    before, _, after = line.partition(" - ")
    fstype, *rest = after.split(" ")
    if fstype not in {"nfs", "nfs4"}:
        return None
    fields = before.split(" ")
    if len(fields) < 6 or len(rest) != 2:
        raise ValueError(f"{len(fields)} fields before and {1 + len(rest)} after the hyphen: {line!r}")
    if not _DEVICE.fullmatch(fields[2]):
        raise ValueError(f"not a device number: {fields[2]!r}")
    return Mount(
        mount_id=_number("mount id", fields[0]),
        parent_id=_number("parent id", fields[1]),
        device=fields[2],
        root=unescape(fields[3]),
        point=unescape(fields[4]),
        fstype=fstype,
        source=unescape(rest[0]),
        options=parse_options(rest[1]),
    )


def _number(what: str, token: str) -> int:
    if not (token.isascii() and token.isdigit()):
        raise ValueError(f"{what} is not a number: {token!r}")
    return int(token)
