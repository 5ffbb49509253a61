"""Whether a path is on a file system that always answers: the daemon touches no other."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from nfstuned.host.root import Root
from nfstuned.parse.proc.mountinfo import parse_mount_types

_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "autofs", "ceph", "9p", "afs", "lustre", "gpfs", "ocfs2", "gfs2"}
)
"""File systems whose answer may not come, besides those of FUSE: a dead server must not hang the daemon."""
_MOST_LINKS = 40
"""Behind more of them the kernel finds nothing (path_resolution(7))."""


def demand_local(root: Root, path: str, view: str = "proc/self") -> None:
    """Raise OSError for a path below a network's file system, or through a link, which may lead there.

    Each part is looked at before it is entered: not even the question what it is may be asked of a server.
    `view` is the folder of the process whose mounts count.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    parts = path.split("/")[1:]
    for depth in range(len(parts) + 1):
        part = "/" + "/".join(parts[:depth])
        if kind := _remote(mounts, part):
            raise OSError(errno.EREMOTE, f"{part} is on {kind}, which may not answer; use a local folder")
        if depth and root.link(part.lstrip("/")) is not None:
            raise OSError(errno.ELOOP, f"{part} is a symbolic link; name what it leads to")


def follow_local(root: Root, path: str, view: str = "proc/self") -> str:
    """Return what a path leads to, as systemd-fstab-generator has it: past links, also to what is not there.

    What is on a network's file system, or behind too many links, stays as it is written. Raises OSError
    without mountinfo.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    here, waiting, links = "", path.split("/")[::-1], 0
    while waiting:
        part = waiting.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        there = f"{here}/{part}"
        if _remote(mounts, there):
            return "/".join([there, *reversed(waiting)])
        target = root.link(there[1:])
        if target is None:
            here = there
            continue
        links += 1
        if links > _MOST_LINKS:
            return path
        here = "" if target.startswith("/") else here
        waiting += target.split("/")[::-1]
    return here or "/"


def _remote(mounts: Sequence[tuple[str, str]], path: str) -> str:
    """Return the type of the file system that a path is on, where its answer may not come; else ""."""
    kind, longest = "", -1
    for point, fstype in mounts:  # the last mount at the longest path counts
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:
            kind, longest = fstype, len(point)
    return kind if kind in _REMOTE or kind.partition(".")[0] == "fuse" else ""
