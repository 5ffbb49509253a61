"""Paths on local file systems, which always answer: the daemon touches no other path."""

from __future__ import annotations

import errno

from nfstuned.host.root import Root
from nfstuned.parse.proc.mountinfo import follow_path, parse_mount_types, remote_type


def demand_local(root: Root, path: str, view: str = "proc/self") -> None:
    """Raise OSError for a path on a network file system, or through a symbolic link, which may lead there.

    Each component is checked before the next is looked up, because even an lstat(2) hangs at a dead server.
    `view` is the folder in /proc of the process with the mounts that count.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    parts = path.split("/")[1:]
    for depth in range(len(parts) + 1):
        part = "/" + "/".join(parts[:depth])
        if kind := remote_type(mounts, part):
            raise OSError(errno.EREMOTE, f"{part} is on {kind}, which may not answer; use a local folder")
        if depth and root.link(part.lstrip("/")) is not None:
            raise OSError(errno.ELOOP, f"{part} is a symbolic link; name its target")


def resolve_links(root: Root, path: str, view: str = "proc/self") -> str:
    """Return a path with its links resolved, as systemd-fstab-generator does; the target need not exist.

    A path on a network file system, or behind too many links, is returned as it is written. Raises OSError
    where mountinfo cannot be read.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    return follow_path(mounts, path, lambda link: root.link(link[1:]))[0]
