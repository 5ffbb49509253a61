"""Masks for the udev rules of distributions, made and taken back by the unit while its daemon runs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from nfstuned.host.command import run
from nfstuned.host.files.whole import FOLDER_FOR_ALL, beside, link_name, opened_folder, write_new
from nfstuned.host.look.nfsmount import NFS_CONF, Collected, MountConf
from nfstuned.host.look.udev import FOLDERS
from nfstuned.host.root import Root
from nfstuned.model.kernel import Mount
from nfstuned.model.requests import Setting
from nfstuned.model.udev import FOLDER_MADE, MASK, MASKED_NAMES, MASKS, UdevFile, is_mask
from nfstuned.parse.proc.mountinfo import NFS, SMB, parse_mountinfo

_UDEV = "run/udev"
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
    """Return what the choice depends on. Raises OSError: what could not be read is not taken for absent.

    Nothing below a network mount is read: a dead server must not hold up the service's start.
    """
    files: list[UdevFile] = []
    for name in MASKED_NAMES:
        for path in (f"{folder}/{name}" for folder in FOLDERS):
            if root.exists(path) and not is_mask(text := root.read(path)):
                files.append(UdevFile(f"/{path}", text))
                break
    table = root.read(f"{root.view}/mountinfo")
    mounts = (*parse_mountinfo(table, family=NFS), *parse_mountinfo(table, family=SMB))
    collected = Collected()
    points = [mount.point for mount in mounts if isinstance(mount, Mount)]
    MountConf(root, points, collected, NFS_CONF).read()
    if collected.unread:
        raise OSError(errno.EIO, "; ".join(collected.unread))
    return Observed(tuple(files), tuple(collected.settings), made_masks(root))


def made_masks(root: Root) -> tuple[str, ...]:
    """Return the names that nfstuned masks now. Raises OSError."""
    paths = {name: f"{MASKS}/{name}" for name in MASKED_NAMES}
    return tuple(name for name, path in paths.items() if root.exists(path) and is_mask(root.read(path)))


def make_masks(root: Root, names: Iterable[str]) -> None:
    """Mask the rules files of these names. Raises OSError."""
    folder, text = root.path(MASKS), MASK
    for name in names:
        with suppress(FileExistsError):
            os.mkdir(folder, FOLDER_FOR_ALL)
            os.chmod(folder, FOLDER_FOR_ALL)
            text += FOLDER_MADE
        try:
            with opened_folder(folder) as place, beside(place, name) as new:
                write_new(place, new, text.encode())
                link_name(place, new, name)
        except OSError as error:
            where = error.filename and os.path.join(folder, error.filename)
            raise OSError(error.errno, error.strerror, where) from None


def take_masks(root: Root, names: Iterable[str]) -> None:
    """Take the masks of these names back, and the folder if it was made for them. Raises OSError."""
    made = False
    for name in names:
        made |= root.read(f"{MASKS}/{name}").endswith(FOLDER_MADE)
        os.unlink(root.path(f"{MASKS}/{name}"))
    if made:
        with suppress(OSError):
            os.rmdir(root.path(MASKS))
