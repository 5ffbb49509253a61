"""The udev rules files of a host or an image in udev's order, and the grounds for masks of them."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from nfstuned.model.kernel import Mount
from nfstuned.model.requests import Setting
from nfstuned.model.udev import MASKED_NAMES, UdevFile, is_mask
from nfstuned.parse.etc.intent import Intent
from nfstuned.parse.etc.nfsmount import NFS_CONF, MountConf
from nfstuned.parse.proc.mountinfo import NFS, SMB, parse_mountinfo
from nfstuned.parse.tree import FileTree

FOLDERS = (
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
)
"""The first folder's file of a name hides the others; /lib counts where it is not /usr/lib itself."""
_LIB, _USR_LIB = FOLDERS[-1], FOLDERS[-2]
_EMPTY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""The errors of a link to nowhere, and of a file that is not regular."""


def rule_texts(root: FileTree) -> tuple[tuple[str, str], ...]:
    """Return the path and the text of each file, sorted by name whatever its folder.

    A file that masks others (an empty file, or a link to /dev/null) is left out, as is a file that udev
    cannot read.
    """
    texts = (("/" + paths[0], root.read_or_empty(paths[0])) for paths in rule_paths(root))
    return tuple((path, text) for path, text in texts if text)


def rule_paths(root: FileTree) -> list[list[str]]:
    """Return the paths of each name, sorted by name; the first path of a name counts."""
    files: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for name in root.names(folder):
            if is_rules_file(name):
                files.setdefault(name, []).append(f"{folder}/{name}")
    return [files[name] for name in sorted(files, key=lambda name: name.encode("utf-8", "surrogateescape"))]


def read_ignored_files(root: FileTree) -> tuple[UdevFile, ...]:
    """Return the files in udev's folders that udev does not read, because of their names."""
    folders = FOLDERS[:-1] if root.same(_LIB, _USR_LIB) else FOLDERS
    paths = (
        f"{folder}/{name}" for folder in folders for name in root.names(folder) if not is_rules_file(name)
    )
    return tuple(UdevFile("/" + path, text) for path in paths if (text := root.read_or_empty(path)))


def is_rules_file(name: str) -> bool:
    """Whether udev reads a file of this name."""
    return name.endswith(".rules") and not name.startswith(".")


def read_rule_files(root: FileTree) -> tuple[UdevFile, ...]:
    """Return the files in udev's order; a file without a text hides others, or was not read."""
    merged = root.same(_LIB, _USR_LIB)
    files: list[UdevFile] = []
    for paths in rule_paths(root):
        apart = [path for path in paths if not (merged and path.startswith(_LIB))] or paths
        text, unread = _text(root, apart[0])
        hides = tuple("/" + path for path in apart[1:])
        if text or hides or unread:
            files.append(UdevFile("/" + apart[0], text, hides, unread))
    return tuple(files)


def _text(root: FileTree, path: str) -> tuple[str, bool]:
    """Return a file's text, "" for a file that udev takes for empty, and whether it could not be read."""
    try:
        return root.read(path), False
    except OSError as error:
        return "", error.errno not in _EMPTY


@dataclass(frozen=True, slots=True)
class MaskGrounds:
    """The rules files, and administrators' settings in nfs.conf."""

    files: tuple[UdevFile, ...]
    """Of each name the file that would count without nfstuned's mask."""
    settings: tuple[Setting, ...]
    """nfs.conf's and its drop-ins'."""


def read_mask_grounds(root: FileTree) -> MaskGrounds:
    """Return them. Raises OSError: a file that could not be read is not taken for absent.

    Nothing below a network mount is read: a dead server must not hold up the service's start.
    """
    with root.faults.block() as faults:
        files = tuple(file for name in MASKED_NAMES if (file := _counting(root, name)))
        table = root.read(f"{root.view}/mountinfo")
        mounts = (*parse_mountinfo(table, family=NFS), *parse_mountinfo(table, family=SMB))
        collected = Intent()
        points = [mount.point for mount in mounts if isinstance(mount, Mount)]
        MountConf(root, points, collected, NFS_CONF).read()
        unread = [*collected.faults, *(f"{fault.file}: {fault.message}" for fault in faults.values())]
    if unread:
        raise OSError(errno.EIO, "; ".join(dict.fromkeys(unread)))
    return MaskGrounds(files, tuple(collected.settings))


def _counting(root: FileTree, name: str) -> UdevFile | None:
    """Return the file of this name that would count without nfstuned's mask. Raises OSError."""
    for path in (f"{folder}/{name}" for folder in FOLDERS):
        if root.demand_existence(path) and not is_mask(text := root.read(path)):
            return UdevFile(f"/{path}", text)
    return None
