"""The udev rules files of a host or an image, in udev's order, and which of them hide others."""

from __future__ import annotations

import errno
import os

from nfstuned.host.root import Root
from nfstuned.model.udev import UdevFile

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
"""What is said of a link to nowhere, and of what is no regular file."""


def rule_files(root: Root) -> tuple[tuple[str, str], ...]:
    """Return the path and the text of each file, sorted by name whatever its folder.

    A file that masks others (an empty file, or a link to /dev/null) is left out, as is what udev cannot read.
    """
    texts = (("/" + paths[0], root.read_or_empty(paths[0])) for paths in rule_paths(root))
    return tuple((path, text) for path, text in texts if text)


def rule_paths(root: Root) -> list[list[str]]:
    """Return the paths of each name, sorted by name; the first path of a name counts."""
    files: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for name in root.names(folder):
            if is_read(name):
                files.setdefault(name, []).append(f"{folder}/{name}")
    return [files[name] for name in sorted(files, key=os.fsencode)]


def observe_unread(root: Root) -> tuple[UdevFile, ...]:
    """Return the files in udev's folders that udev does not read, because of their names."""
    folders = FOLDERS[:-1] if root.same(_LIB, _USR_LIB) else FOLDERS
    paths = (f"{folder}/{name}" for folder in folders for name in root.names(folder) if not is_read(name))
    return tuple(UdevFile("/" + path, text) for path in paths if (text := root.read_or_empty(path)))


def is_read(name: str) -> bool:
    """Whether udev reads a file of this name."""
    return name.endswith(".rules") and not name.startswith(".")


def observe_udev(root: Root) -> tuple[UdevFile, ...]:
    """Return the files in udev's order; a file without a text is there for what it hides, or was not read."""
    merged = root.same(_LIB, _USR_LIB)
    files: list[UdevFile] = []
    for paths in rule_paths(root):
        apart = [path for path in paths if not (merged and path.startswith(_LIB))] or paths
        text, unread = _text(root, apart[0])
        hides = tuple("/" + path for path in apart[1:])
        if text or hides or unread:
            files.append(UdevFile("/" + apart[0], text, hides, unread))
    return tuple(files)


def _text(root: Root, path: str) -> tuple[str, bool]:
    """Return a file's text, "" for what udev takes for an empty file, and whether it could not be read."""
    try:
        return root.read(path), False
    except OSError as error:
        return "", error.errno not in _EMPTY
