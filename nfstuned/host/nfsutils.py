"""The installed mount.nfs, read and not run: mount(8) starts the one in /sbin."""

from __future__ import annotations

from contextlib import suppress

from nfstuned.host.root import Root
from nfstuned.model.system import NfsUtils
from nfstuned.parse.nfsutils import parse_mount_nfs

_PROGRAMS = ("sbin/mount.nfs", "usr/sbin/mount.nfs")
"""mount(8) looks in /sbin (FS_SEARCH_PATH of util-linux), which is /usr/sbin nearly everywhere."""


def observe_nfs_utils(root: Root) -> NfsUtils | None:
    """Return what the program tells; None where there is none that this user may read."""
    for name in _PROGRAMS:
        with suppress(OSError):
            return parse_mount_nfs(root.read_bytes(name))
    return None
