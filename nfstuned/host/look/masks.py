"""What the choice of masks for udev's rules depends on."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from nfstuned.host.look.nfsmount import NFS_CONF, Collected, MountConf
from nfstuned.host.look.udev import FOLDERS
from nfstuned.host.root import Root
from nfstuned.model.kernel import Mount
from nfstuned.model.masks import MASKED_NAMES, is_mask
from nfstuned.model.requests import Setting
from nfstuned.model.udev import UdevFile
from nfstuned.parse.proc.mountinfo import NFS, SMB, parse_mountinfo


@dataclass(frozen=True, slots=True)
class MaskGrounds:
    """The rules files, and what administrators say in nfs.conf."""

    files: tuple[UdevFile, ...]
    """Of each name the file that would count without nfstuned's mask."""
    settings: tuple[Setting, ...]
    """nfs.conf's and its drop-ins'."""


def observe_mask_grounds(root: Root) -> MaskGrounds:
    """Return them. Raises OSError: what could not be read is not taken for absent.

    Nothing below a network mount is read: a dead server must not hold up the service's start.
    """
    with root.watched() as faults:
        files = tuple(file for name in MASKED_NAMES if (file := _counting(root, name)))
        table = root.read(f"{root.view}/mountinfo")
        mounts = (*parse_mountinfo(table, family=NFS), *parse_mountinfo(table, family=SMB))
        collected = Collected()
        points = [mount.point for mount in mounts if isinstance(mount, Mount)]
        MountConf(root, points, collected, NFS_CONF).read()
        unread = [*collected.unread, *(f"{fault.file}: {fault.message}" for fault in faults())]
    if unread:
        raise OSError(errno.EIO, "; ".join(dict.fromkeys(unread)))
    return MaskGrounds(files, tuple(collected.settings))


def _counting(root: Root, name: str) -> UdevFile | None:
    """Return the file of this name that would count without nfstuned's mask. Raises OSError."""
    for path in (f"{folder}/{name}" for folder in FOLDERS):
        if root.demand_existence(path) and not is_mask(text := root.read(path)):
            return UdevFile(f"/{path}", text)
    return None
