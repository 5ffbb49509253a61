"""`/etc/fstab` (fstab(5)), the output of `findmnt --verify`, and `/run/mount/utab`.

A private file of libmount, without a manual page: anything unknown in it is passed over.
"""

from __future__ import annotations

import re
from collections import Counter

from nfstuned.errors import ParseError
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import FSTAB, UTAB, Request
from nfstuned.parse.fields import quoted, unmangle

SMB = ("cifs", "smb3")
TYPES = frozenset({"nfs", "nfs4", "aznfs", *SMB})
"""NFS, NFS through the helper of Azure Files, and SMB."""
_LEAST, _NUMBERS = 3, 4
"""How many fields an entry has at least, and where its numbers begin."""
_OPTIONS = re.compile(r"(?:.*,)?(?:defaults|r[ow]|_netdev|nofail|noauto|hard|soft|[a-z0-9_.-]+=.*)(?:,.*)?")
"""Words that are options and no type: they stand behind it."""
_NAMES = ("source", "mount point", "type", "options", "dump frequency", "fsck pass")


def parse_fstab(text: str, file: str = FSTAB) -> tuple[Request | ParseError, ...]:
    """Return the NFS and SMB entries in the file's order, and an error for each bad line.

    As mount(8) reads it (libmount/src/tab_parse.c, mnt_parse_table_line): the options can be missing, lines
    can end with CR and LF, and fields behind the sixth do not count. A line without a type is an
    error, because it could be anything; a line of another type is passed over, whatever is wrong with it.
    """
    entries: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        fields = [field for field in re.split(r"[ \t]+", line.removesuffix("\r")) if field]
        problem = None if not fields or fields[0].startswith("#") else _problem(fields)
        if problem:
            entries.append(ParseError(file, position, problem))
        if problem != "":
            continue
        source, point, named, options = (unmangle(token) for token in (*fields[:_NUMBERS], "")[:_NUMBERS])
        fstype = mounted_type(named, source)
        other = named if named != fstype else None
        entries.append(Request(source, point, options, file, position, fstype=fstype, named=other))
    return tuple(entries)


def mounted_type(named: str, source: str) -> str:
    """Return the type that mount(8) mounts: without a type, or with `auto`, it looks at the source.

    So does mnt_context_guess_srcpath_fstype of libmount, where no such file exists: any colon means NFS, also
    in the name of an absent device. A source that may be a device has the type "" here. It tries the types of
    a list in turn (mnt_context_do_mount): the first that is NFS or SMB counts.
    """
    if named not in {"", "auto"}:
        return next((name for name in named.split(",") if name in TYPES), named)
    if source.startswith("//"):
        return "" if ":" in source else "cifs"
    return "nfs" if ":/" in source and "://" not in source and not source.startswith("/") else ""


def _problem(fields: list[str]) -> str | None:
    """Return the reason why mount(8) takes no such entry, "" where it does; None for another type's entry."""
    if "\0" in "".join(fields):
        return "a byte that is 0, which mount(8) takes for the line's end"
    if len(fields) < _LEAST:
        return f"no {_NAMES[len(fields)]} after {quoted(fields[-1])}"
    source, named = unmangle(fields[0]), unmangle(fields[2])
    options = _OPTIONS.fullmatch(named)
    if mounted_type(named, source) not in TYPES and not (options and mounted_type("", source)):
        return None
    if options:
        return f"options in the place of the type: {quoted(fields[2])}"
    for name, token in zip(_NAMES[_NUMBERS:], fields[_NUMBERS:], strict=False):
        if not re.fullmatch(r"[+-]?[0-9]+", token):
            return f"{name} is not a number: {quoted(token, ' '.join(fields[:_NUMBERS]))}"
    return ""


_NFS = ("addr", "vers")
"""mount.nfs always records the address that it resolved, and mostly the version that it negotiated."""


def parse_utab(text: str, file: str = UTAB) -> tuple[Request | ParseError, ...]:
    """Return the NFS mounts' requests in the file's order, with the options that mount.nfs settled on."""
    requests: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        values = dict(field.partition("=")[::2] for field in line.split(" "))
        options = unmangle(values.get("ATTRS", ""))
        if not any(name in parse_options(options) for name in _NFS):
            continue
        source, point = values.get("SRC"), values.get("TARGET")
        if source and point:
            requests.append(Request(unmangle(source), unmangle(point), options, file, position))
        else:
            message = f"neither SRC nor TARGET may be missing: {quoted(line)}"
            requests.append(ParseError(file, position, message))
    return tuple(requests)


_PARSE_ERROR = r"(?m)^findmnt: .*: (parse error at line \d+)"
_ERROR = "[E]"
_SUMMARY = r"(?m)^(?:\d+ parse errors?, \d+ errors?, |Success,)"


def parse_verify(output: str, errors: str) -> Counter[str] | None:
    """Return each error of `findmnt --verify` as "mount point: reason", counted; None if it failed.

    `output` and `errors` are its two streams. Its warnings do not count: every file system that is not loaded
    and every folder that a mount would need causes a warning.
    """
    if not re.search(_SUMMARY, output) and not re.search(_SUMMARY, errors):
        return None
    problems = Counter(re.findall(_PARSE_ERROR, errors))
    point = ""
    for line in output.splitlines():
        if not line.startswith((" ", "\t")):
            point = line
        elif line.lstrip().startswith(_ERROR):
            problems[f"{point}: {line.lstrip().removeprefix(_ERROR).lstrip()}"] += 1
    return problems
