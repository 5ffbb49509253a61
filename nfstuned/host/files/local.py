"""Whether a path is on a file system that always answers: the daemon touches no other."""

from __future__ import annotations

import errno

from nfstuned.host.root import Root
from nfstuned.parse.proc.mountinfo import parse_mount_types

_REMOTE = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "autofs", "ceph", "9p", "afs", "lustre", "gpfs", "ocfs2", "gfs2"}
)
"""File systems whose answer may not come, besides those of FUSE: a dead server must not hang the daemon."""


def demand_local(root: Root, path: str, view: str = "proc/self") -> None:
    """Raise OSError for a path below a network's file system, or through a link, which may lead there.

    Each part is looked at before it is entered: not even the question what it is may be asked of a server.
    `view` is the folder of the process whose mounts count.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    parts = path.split("/")[1:]
    for depth in range(len(parts) + 1):
        part = "/" + "/".join(parts[:depth])
        kind, longest = "", -1
        for point, fstype in mounts:  # the last mount at the longest path counts
            inside = part == point or part.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= longest:
                kind, longest = fstype, len(point)
        if kind in _REMOTE or kind.partition(".")[0] == "fuse":
            raise OSError(errno.EREMOTE, f"{part} is on {kind}, which may not answer; use a local folder")
        if depth and root.link(part.lstrip("/")) is not None:
            raise OSError(errno.ELOOP, f"{part} is a symbolic link; name what it leads to")
