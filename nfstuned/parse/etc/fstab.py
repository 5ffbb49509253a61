"""`/etc/fstab` (fstab(5)), what `findmnt --verify` says of it, and `/run/mount/utab`.

A private file of libmount, without a manual page: anything unknown in it is passed over.
"""

from __future__ import annotations

import re
from collections import Counter

from nfstuned.errors import ParseError
from nfstuned.model.mounts import FSTAB, Request
from nfstuned.parse.fields import quoted, unescape
from nfstuned.parse.options import parse_options

SMB = ("cifs", "smb3")
TYPES = frozenset({"nfs", "nfs4", "aznfs", *SMB})
"""NFS, NFS through the helper of Azure Files, and SMB."""
_LEAST, _NUMBERS = 3, 4
"""How many fields an entry has at least, and where its numbers begin."""
_NAMES = ("source", "mount point", "type", "options", "dump frequency", "fsck pass")
_BLANK = re.compile(r"[ \t]+")
_INTEGER = re.compile(r"[+-]?[0-9]+")


def parse_fstab(text: str, file: str = FSTAB) -> tuple[Request | ParseError, ...]:
    """Return the NFS and SMB entries in the file's order, with an error in the place of what is no entry.

    As mount(8) reads it (libmount/src/tab_parse.c, mnt_parse_table_line): the options can be missing, lines
    can end with CR and LF, and what stands behind the sixth field does not count. A line without a type is an
    error, because it could be anything; one of another type is none of ours, whatever else is wrong with it.
    """
    requests: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        fields = [field for field in _BLANK.split(line.removesuffix("\r")) if field]
        if not fields or fields[0].startswith("#") or _is_other(fields):
            continue
        problem = _problem(fields)
        if problem:
            requests.append(ParseError(file, position, problem))
            continue
        source, point, named, options = (unescape(token) for token in (*fields[:_NUMBERS], "")[:_NUMBERS])
        fstype = mounted_type(named, source)
        requests.append(
            Request(source, point, options, file, position, fstype=fstype, guessed=named != fstype)
        )
    return tuple(requests)


def _is_other(fields: list[str]) -> bool:
    if len(fields) < _LEAST or "\0" in "".join(fields):
        return False
    return mounted_type(unescape(fields[2]), unescape(fields[0])) not in TYPES


def mounted_type(named: str, source: str) -> str:
    """Return the type that mount(8) mounts: where none is named, or `auto`, it looks at the source.

    So does mnt_context_guess_srcpath_fstype of libmount, where no such file exists: any colon means NFS, also
    that of a device which is not there now. Left out is what may be one, and "" stands for it.
    """
    if named not in {"", "auto"}:
        return named
    if source.startswith("//"):
        return "" if ":" in source else "cifs"
    return "nfs" if ":/" in source and "://" not in source and not source.startswith("/") else ""


def _problem(fields: list[str]) -> str:
    if "\0" in "".join(fields):
        return "a byte that is 0, which mount(8) takes for the line's end"
    if len(fields) < _LEAST:
        return f"no {_NAMES[len(fields)]} after {quoted(fields[-1])}"
    for name, token in zip(_NAMES[_NUMBERS:], fields[_NUMBERS:], strict=False):
        if not _INTEGER.fullmatch(token):
            return f"{name} is not a number: {quoted(token)}"
    return ""


FILE = "/run/mount/utab"
_NFS = ("addr", "vers")
"""mount.nfs always records the address that it resolved, and mostly the version that it negotiated."""


def parse_utab(text: str, file: str = FILE) -> tuple[Request | ParseError, ...]:
    """Return the NFS mounts' requests in the file's order, with the options that mount.nfs settled on."""
    requests: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        values = dict(field.partition("=")[::2] for field in line.split(" "))
        options = unescape(values.get("ATTRS", ""))
        if not any(name in parse_options(options) for name in _NFS):
            continue
        source, point = values.get("SRC"), values.get("TARGET")
        if source and point:
            requests.append(Request(unescape(source), unescape(point), options, file, position))
        else:
            requests.append(
                ParseError(file, position, f"neither SRC nor TARGET may be missing: {quoted(line)}")
            )
    return tuple(requests)


_PARSE_ERROR = re.compile(r"^findmnt: .*: (parse error at line \d+)", re.MULTILINE)
_ERROR = "[E]"
_SUMMARY = re.compile(r"^(?:\d+ parse errors?, \d+ errors?, |Success,)", re.MULTILINE)


def parse_verify(output: str, errors: str) -> Counter[str] | None:
    """Return each error as "mount point: what is wrong", counted; None where it came to no verdict.

    `output` and `errors` are its two streams. Warnings do not count: it gives one for every file system that
    is not loaded and every folder that a mount would need.
    """
    if not _SUMMARY.search(output) and not _SUMMARY.search(errors):
        return None
    reasons = Counter(_PARSE_ERROR.findall(errors))
    point = ""
    for line in output.splitlines():
        if not line.startswith((" ", "\t")):
            point = line
        elif line.lstrip().startswith(_ERROR):
            reasons[f"{point}: {line.lstrip().removeprefix(_ERROR).lstrip()}"] += 1
    return reasons
