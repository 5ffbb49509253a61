"""Masks for the udev rules of distributions, made and taken back by the unit while its daemon runs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from nfstuned.host.command import run
from nfstuned.host.look.nfsmount import NFS_CONF, Collected, MountConf
from nfstuned.host.look.udev import FOLDERS
from nfstuned.host.root import Root
from nfstuned.model.kernel import Mount
from nfstuned.model.requests import Setting
from nfstuned.model.udev import FOLDER_MADE, MASK, MASKED_NAMES, MASKS, UdevFile, is_mask
from nfstuned.parse.proc.mountinfo import NFS, SMB, parse_mountinfo

_UDEV = "run/udev"
_NEW = ".nfstuned-new"
_RELOAD = ("udevadm", "control", "--reload", "--timeout=10")
_RELOAD_S = 15.0


@dataclass(frozen=True, slots=True)
class Observed:
    """What the choice of masks depends on, and the masks that there are."""

    files: tuple[UdevFile, ...]
    """Of each name the file that would count without nfstuned's mask."""
    settings: tuple[Setting, ...]
    """nfs.conf's and its drop-ins'."""
    masked: tuple[str, ...]


def reload_rules() -> str:
    """Have udev read its rules again; return why it could not, "" where it did."""
    return run(_RELOAD, _RELOAD_S).problem


def udev_runs(root: Root) -> bool:
    """Return whether there is a udev that reads rules."""
    return root.exists(_UDEV)


def observe_masks(root: Root) -> Observed:
    """Return it. Raises OSError: what could not be read is not taken for absent."""
    return Observed(tuple(_counting(root)), _settings(root), made_masks(root))


def made_masks(root: Root) -> tuple[str, ...]:
    """Return the names that nfstuned masks now. Raises OSError."""
    paths = {name: f"{MASKS}/{name}" for name in MASKED_NAMES}
    return tuple(name for name, path in paths.items() if root.exists(path) and is_mask(root.read(path)))


def make_masks(root: Root, names: Iterable[str]) -> None:
    """Mask the rules files of these names. Raises OSError."""
    folder, text = root.path(MASKS), MASK
    for name in names:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o755)
            os.chmod(folder, 0o755)  # noqa: S103 - whatever the umask is: udev's other folders are so
            text += FOLDER_MADE
        # Its name must not end with .rules before it is whole.
        new = f"{folder}/.{name}{_NEW}"
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, text.encode())
            os.fchmod(fd, 0o644)
            # A link, unlike a rename, takes no name that somebody else has got meanwhile.
            os.link(new, f"{folder}/{name}")
        finally:
            os.close(fd)
            os.unlink(new)


def take_masks(root: Root, names: Iterable[str]) -> None:
    """Take the masks of these names back, and the folder if it was made for them. Raises OSError."""
    made = False
    for name in names:
        made |= root.read(f"{MASKS}/{name}").endswith(FOLDER_MADE)
        os.unlink(root.path(f"{MASKS}/{name}"))
    if made:
        with suppress(OSError):
            os.rmdir(root.path(MASKS))


def _counting(root: Root) -> Iterator[UdevFile]:
    """Yield the file of each name that would count without nfstuned's mask. Raises OSError."""
    for name in MASKED_NAMES:
        for folder in FOLDERS:
            path = f"{folder}/{name}"
            if root.exists(path) and not is_mask(text := root.read(path)):
                yield UdevFile(f"/{path}", text)
                break


def _settings(root: Root) -> tuple[Setting, ...]:
    """Return what nfs.conf and its drop-ins say. Raises OSError.

    Nothing below a network mount is read: a dead server must not hold up the service's start.
    """
    table = root.read(f"{root.view}/mountinfo")
    mounts = (*parse_mountinfo(table, family=NFS), *parse_mountinfo(table, family=SMB))
    found = Collected()
    MountConf(root, [mount.point for mount in mounts if isinstance(mount, Mount)], found, NFS_CONF).read()
    if found.unread:
        raise OSError(errno.EIO, "; ".join(found.unread))
    return tuple(found.settings)
