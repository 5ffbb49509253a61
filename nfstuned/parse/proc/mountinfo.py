"""`/proc/self/mountinfo`: the network mounts of a mount namespace (proc_pid_mountinfo(5))."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount, MountNode, decimal
from nfstuned.parse.fields import parse_kernel_options, parse_number, quoted, unescape
from nfstuned.parse.proc.superblocks import is_device_number

FILE = "/proc/self/mountinfo"
_LEAST_BEFORE, _AFTER = 6, 2
_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "autofs", "ceph", "9p", "afs", "lustre", "gpfs", "ocfs2", "gfs2"}
)
"""File systems that may give no answer, besides those of FUSE: a dead server must not hang the daemon."""


@dataclass(frozen=True, slots=True)
class Family:
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
    where, kind = "", ""
    for point, fstype in mounts:  # the last mount at the longest path counts
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(where):
            where, kind = point, fstype
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
    deepest: MountNode | None = None
    for node in nodes:
        holds = path == node.point or path.startswith(node.point.rstrip("/") + "/")
        if holds and (deepest is None or len(node.point) >= len(deepest.point)):
            deepest = node
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
    Such a path, or one behind too many links, stays as it is written. `mounts` and `never` are those of
    remote_type.
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
