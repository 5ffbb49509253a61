"""`/etc/fstab`: what the administrator wants mounted (fstab(5)); only network entries matter here."""

from __future__ import annotations

import re

from nfstuned.errors import ParseError
from nfstuned.model.work import Request
from nfstuned.parse.fields import quoted, unescape

FILE = "/etc/fstab"
SMB = ("cifs", "smb3")
TYPES = frozenset({"nfs", "nfs4", "aznfs", *SMB})
"""NFS, NFS through the helper of Azure Files, and SMB."""
_LEAST, _MOST = 4, 6
_NAMES = ("source", "mount point", "type", "options", "dump frequency", "fsck pass")
_BLANK = re.compile(r"[ \t]+")
_INTEGER = re.compile(r"-?[0-9]+")


def parse_fstab(text: str, file: str = FILE) -> tuple[Request | ParseError, ...]:
    """Return the NFS and SMB entries in the file's order; one that mount(8) would not take is an error."""
    found: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        fields = [field for field in _BLANK.split(line) if field]
        if not fields or fields[0].startswith("#") or TYPES.isdisjoint(fields[2:3]):
            continue
        problem = _problem(fields)
        if problem:
            found.append(ParseError(file, position, problem))
            continue
        source, point, fstype, options = (unescape(token) for token in fields[:_LEAST])
        found.append(Request(source, point, options, file, position, fstype=fstype))
    return tuple(found)


def _problem(fields: list[str]) -> str:
    if len(fields) < _LEAST:
        return f"no {_NAMES[len(fields)]} after {quoted(fields[-1])}"
    for name, token in zip(_NAMES[_LEAST:], fields[_LEAST:], strict=False):
        if not _INTEGER.fullmatch(token):
            return f"{name} is not a number: {quoted(token)}"
    if len(fields) > _MOST and not fields[_MOST].startswith("#"):
        return f"{len(fields)} fields, at most {_MOST} expected: {quoted(fields[_MOST])}"
    return ""
