"""Whether a path is on a file system that always answers: the daemon touches no other."""

from __future__ import annotations

import errno

from nfstuned.host.root import Root
from nfstuned.parse.proc.mountinfo import follow_path, parse_mount_types, remote_type


def demand_local(root: Root, path: str, view: str = "proc/self") -> None:
    """Raise OSError for a path below a network's file system, or through a link, which may lead there.

    Each part is looked at before it is entered: not even its type may be asked of a server.
    `view` is the folder of a process; its mounts count.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    parts = path.split("/")[1:]
    for depth in range(len(parts) + 1):
        part = "/" + "/".join(parts[:depth])
        if kind := remote_type(mounts, part):
            raise OSError(errno.EREMOTE, f"{part} is on {kind}, which may not answer; use a local folder")
        if depth and root.link(part.lstrip("/")) is not None:
            raise OSError(errno.ELOOP, f"{part} is a symbolic link; name its target")


def follow_local(root: Root, path: str, view: str = "proc/self") -> str:
    """Return the target of a path, past links, as systemd-fstab-generator has it; it need not exist.

    A path on a network's file system, or behind too many links, stays as it is written. Raises OSError
    without mountinfo.
    """
    mounts = parse_mount_types(root.read(f"{view}/mountinfo"))
    return follow_path(mounts, path, lambda there: root.link(there[1:]))[0]
