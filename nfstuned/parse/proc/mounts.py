"""Mounts and superblocks: `/proc/self/mountinfo` (proc_pid_mountinfo(5)), `/proc/fs/nfsfs`, bdis and uevents.

A superblock has its row in `/proc/fs/nfsfs/volumes` (fs/nfs/client.c) before the kernel announces its bdi,
and before mountinfo shows its mount. A bdi has the folder `/sys/class/bdi/MAJOR:MINOR` (sysfs-class-bdi).
"""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount, MountNode, NfsClient, Uevent, Volume, decimal
from nfstuned.parse.fields import LARGEST, parse_kernel_options, parse_number, quoted, unescape

FILE = "/proc/self/mountinfo"
_LEAST_BEFORE, _AFTER = 6, 2
_REMOTE = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "autofs", "ceph", "9p", "afs", "coda", "beegfs", "lustre"),
        *("gpfs", "ocfs2", "gfs", "gfs2", "ncpfs", "orangefs", "pvfs2", "virtiofs"),
    )
)
"""File systems that may give no answer, as those of FUSE: a dead server must not hang the daemon."""


class Family(NamedTuple):
    """The types of file system that are looked for, and a text that each line of such a mount contains.

    The daemon reads this file at each event: the mark spares it taking apart the lines of other mounts.
    """

    types: frozenset[str]
    mark: str


NFS = Family(frozenset({"nfs", "nfs4"}), " - nfs")
SMB = Family(frozenset({"cifs", "smb3"}), " - ")


def parse_mountinfo(
    text: str | Iterable[bytes], file: str = FILE, family: Family = NFS
) -> tuple[Mount | ParseError, ...]:
    """Return the mounts of a family in their order, and an error for each damaged line.

    The text may come in parts; only the lines of the family are kept.
    """
    parts = [text.encode("utf-8", "surrogateescape")] if isinstance(text, str) else text
    mounts: list[Mount | ParseError] = []
    for position, line in _marked_lines(parts, family.mark.encode()):
        mount: Mount | ParseError | None
        try:
            mount = _mount(line, family.types)
        except ValueError as error:
            mount = ParseError(file, position, str(error))
        if mount is not None:
            mounts.append(mount)
    return tuple(mounts)


def _marked_lines(parts: Iterable[bytes], mark: bytes) -> Iterator[tuple[int, str]]:
    """Yield the lines in which the mark is, with their numbers."""
    rest, first = b"", 1
    for part in chain(parts, [b"\n"]):
        *lines, rest = (rest + part).split(b"\n")
        for position, line in enumerate(lines, first):
            if mark in line:
                yield position, line.decode("utf-8", "surrogateescape")
        first += len(lines)


def parse_mount_types(text: str) -> tuple[tuple[str, str], ...]:
    """Return the mount point and the type of every mount, in the file's order; damaged lines are left out."""
    types: list[tuple[str, str]] = []
    for line in text.split("\n"):
        before, _, after = line.partition(" - ")
        fields = before.split(" ", _LEAST_BEFORE)
        if after and len(fields) >= _LEAST_BEFORE:
            types.append((unescape(fields[4]), after.partition(" ")[0]))
    return tuple(types)


def remote_type(mounts: Sequence[tuple[str, str]], path: str, never: Container[str] = ()) -> str:
    """Return the type of the file system that a path is on, where its answer may not come; else "".

    `mounts` are those of parse_mount_types; a mount at a point of `never` counts as local.
    """
    where, kind, above = "", "", set[str]()
    for point, fstype in mounts:
        if path != point and not path.startswith(point.rstrip("/") + "/"):
            continue
        # The longest path counts. A second mount at a point hides those below the first.
        if len(point) >= len(where) or point in above:
            where, kind = point, fstype
        above.add(point)
    if where in never:
        return ""
    return kind if kind in _REMOTE or kind.partition(".")[0] == "fuse" else ""


def parse_nodes(text: str) -> tuple[MountNode, ...]:
    """Return every mount with its place in the tree and its peer groups; damaged lines are left out.

    The optional fields are described in Documentation/filesystems/sharedsubtree.rst.
    """
    nodes: list[MountNode] = []
    for line in text.split("\n"):
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) < _LEAST_BEFORE or len(rest) < 1 + _AFTER:
            continue
        mount_id, parent_id = decimal(fields[0]), decimal(fields[1])
        if mount_id is None or parent_id is None:
            continue
        groups = dict(field.partition(":")[::2] for field in fields[_LEAST_BEFORE:])
        node = MountNode(
            mount_id=mount_id,
            parent_id=parent_id,
            device=fields[2],
            point=unescape(fields[4]),
            fstype=rest[0],
            source=unescape(rest[1]),
            options=" ".join(rest[2:]),
            shared=decimal(groups.get("shared")),
            master=decimal(groups.get("master")),
        )
        nodes.append(node)
    return tuple(nodes)


def node_at(path: str, nodes: Sequence[MountNode]) -> MountNode | None:
    """Return the mount that a path is on, by its name; of several at the same point the last is on top."""
    deepest, above = None, set[str]()
    for node in nodes:
        if path != node.point and not path.startswith(node.point.rstrip("/") + "/"):
            continue
        if deepest is None or len(node.point) >= len(deepest.point) or node.point in above:
            deepest = node
        above.add(node.point)
    return deepest


def _mount(line: str, types: frozenset[str]) -> Mount | None:
    before, _, after = line.partition(" - ")
    fstype, *rest = after.split(" ")
    if fstype not in types:
        return None
    fields = before.split(" ")
    if fstype in SMB.types:
        # Kernels before 4.3 do not escape a blank in `username`, and later ones not in every option.
        rest = after.split(" ", _AFTER)[1:]
    if len(fields) < _LEAST_BEFORE or len(rest) != _AFTER:
        raise ValueError(f"{len(fields)} fields before and {1 + len(rest)} after the hyphen: {quoted(line)}")
    if not is_device_number(fields[2]):
        raise ValueError(f"not a device number: {quoted(fields[2])}")
    return Mount(
        mount_id=parse_number("mount id", fields[0]),
        parent_id=parse_number("parent id", fields[1]),
        device=fields[2],
        root=unescape(fields[3]),
        point=unescape(fields[4]),
        fstype=fstype,
        source=unescape(rest[0]),
        options=parse_kernel_options(rest[1]),
        flags=sys.intern(fields[5]),  # a thousand mounts have the same few
    )


_MOST_LINKS = 40
"""Behind more of them the kernel finds nothing (path_resolution(7))."""


def follow_path(
    mounts: Sequence[tuple[str, str]],
    path: str,
    link: Callable[[str], str | None],
    never: Container[str] = (),
) -> tuple[str, bool]:
    """Return where a path leads, past links, also to an absent file; and whether a network has it.

    `link` returns where a link leads, None for any other file; it is not asked about a path on a network.
    On a network the rest of the path stays as it is written; behind too many links the whole path does.
    `mounts` and `never` are those of remote_type.
    """
    here, waiting, links = "", path.split("/")[::-1], 0
    while waiting:
        part = waiting.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        there = f"{here}/{part}"
        if remote_type(mounts, there, never):
            return "/".join([there, *reversed(waiting)]), True
        target = link(there)
        if target is None:
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            return path, False
        here = "" if target.startswith("/") else here
        waiting += target.split("/")[::-1]
    return here or "/", False


SERVERS = "/proc/fs/nfsfs/servers"
VOLUMES = "/proc/fs/nfsfs/volumes"
UNPRINTABLE = "unprintable"
"""The kernel's own word for an address or a port that it has not formatted (net/sunrpc/clnt.c)."""

_Row = TypeVar("_Row")
_V4_DIGITS, _V6_DIGITS = 8, 32
_PORT_DIGITS = 4
_HEX = re.compile(rf"[0-9a-fA-F]{{1,{_V6_DIGITS}}}")
_SERVER_FIELDS = 5
"""NV SERVER PORT USE HOSTNAME, which takes the rest of the row."""
_VOLUME_FIELDS = 5
"""NV SERVER PORT DEV FSID; FSC follows, and is not read."""


def parse_clients(text: str, file: str = SERVERS) -> tuple[NfsClient | ParseError, ...]:
    """Return the nfs_clients in the file's order; a row that cannot be understood gives way to its error."""
    return _rows(text, file, _server)


def parse_volumes(text: str, file: str = VOLUMES) -> tuple[Volume | ParseError, ...]:
    """Return the superblocks in the file's order; a row that cannot be understood is replaced by its error.

    A superblock that is still being set up has the device "0:0". Kernels that print only seven characters
    of a device (the column was widened before Linux 5.10) cut a longer number off.
    """
    return _rows(text, file, _volume)


def find_volume(text: str, device: str, file: str = VOLUMES) -> Volume | None:
    """Return the newest superblock with that device, None without such a row; no other row is converted.

    Newer rows stand further down, so the search goes upwards: it ends at once for a mount just made.
    Raises ParseError when the row of that device cannot be understood.
    """
    column = f" {device} "  # the FSID may be the same text: the column DEV decides
    at = len(text)
    while (at := text.rfind(column, 0, at)) >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        fields = text[start : end if end >= 0 else None].split()
        if len(fields) >= _VOLUME_FIELDS and fields[3] == device:
            try:
                return _volume_of(fields)
            except ValueError as error:
                raise ParseError(file, text.count("\n", 0, start) + 1, str(error)) from None
    return None


def _rows(text: str, file: str, parse: Callable[[str], _Row]) -> tuple[_Row | ParseError, ...]:
    rows: list[_Row | ParseError] = []
    for line, row in enumerate(text.split("\n"), 1):
        if not row or row.startswith("NV "):
            continue
        try:
            rows.append(parse(row))
        except ValueError as error:
            rows.append(ParseError(file, line, str(error)))
    return tuple(rows)


def _server(row: str) -> NfsClient:
    fields = row.split(None, _SERVER_FIELDS - 1)
    if len(fields) < _SERVER_FIELDS:
        raise ValueError(f"{len(fields)} fields, {_SERVER_FIELDS} expected: {quoted(row)}")
    return NfsClient(
        version=_version(fields[0]),
        address=_address(fields[1]),
        port=_port(fields[2]),
        users=parse_number("use count", fields[3]),
        hostname=fields[4],
    )


def _volume(row: str) -> Volume:
    fields = row.split()
    if len(fields) < _VOLUME_FIELDS:
        raise ValueError(f"{len(fields)} fields, {_VOLUME_FIELDS} expected: {quoted(row)}")
    if not is_device_number(fields[3]):
        raise ValueError(f"not a device number: {quoted(fields[3])}")
    return _volume_of(fields)


def _volume_of(fields: list[str]) -> Volume:
    return Volume(
        version=_version(fields[0]),
        address=_address(fields[1]),
        port=_port(fields[2]),
        device=fields[3],
        fsid=fields[4],
    )


def _version(token: str) -> int:
    if not token.startswith("v"):
        raise ValueError(f"not an NFS version: {quoted(token)}")
    return parse_number("NFS version", token[1:])


def _address(token: str) -> str:
    if token == UNPRINTABLE:
        return token
    value = _hex("address", token)
    if len(token) == _V4_DIGITS:
        return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
    if len(token) == _V6_DIGITS:
        return str(ipaddress.IPv6Address(value))
    raise ValueError(f"address of {len(token)} digits: {quoted(token)}")


def _port(token: str) -> int:
    if token == UNPRINTABLE:
        return 0
    if len(token) > _PORT_DIGITS:
        raise ValueError(f"port of {len(token)} digits: {quoted(token)}")
    return _hex("port", token)


def _hex(name: str, token: str) -> int:
    if not _HEX.fullmatch(token):
        raise ValueError(f"{name} is not hexadecimal: {quoted(token)}")
    return int(token, 16)


_DEVICE = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


def is_device_number(name: str) -> bool:
    """Return whether the name of a bdi, or of a folder of /sys/fs/nfs, is a device number such as "0:43"."""
    return _DEVICE.fullmatch(name) is not None


def is_anonymous_device(name: str) -> bool:
    """Return whether the name of a bdi is the device number of a superblock without a disk (NFS, FUSE, …)."""
    return name.startswith("0:") and is_device_number(name)


def parse_read_ahead(text: str, file: str) -> int:
    """Return `read_ahead_kb`, the first line, in KiB; ParseError when it is not a number.

    The kernel takes any unsigned number and prints it signed (mm/backing-dev.c): a value that reads as
    negative is an enormous number, and is returned as such. Writing it back restores it.
    """
    token = text.partition("\n")[0]
    negative = token.startswith("-")
    try:
        value = parse_number("read-ahead", token[negative:])
    except ValueError:
        raise ParseError(file, 1, f"read-ahead is not a number: {quoted(token)}") from None
    return LARGEST + 1 - value if negative and value else value


def parse_uevent(data: bytes, subsystem: str) -> Uevent | None:
    """Return the kernel's event of a subsystem; None for any other message.

    That is another subsystem's, udev's own ("libudev"), or a damaged message.
    """
    if b"\0SUBSYSTEM=" + subsystem.encode("utf-8", "surrogateescape") + b"\0" not in data:
        return None
    head = data[: data.find(b"\0")]
    action, separator, path = head.partition(b"@/")
    if not (separator and action):
        return None
    return Uevent(_text(action), subsystem, _text(path[path.rfind(b"/") + 1 :]))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
