"""The udev rules files of a host or an image, and which of them hide others."""

from __future__ import annotations

import os

from nfstuned.host.root import Root
from nfstuned.host.writers import FOLDERS, rule_paths, rule_text
from nfstuned.model.facts import UdevFile

_LIB, _USR_LIB = FOLDERS[-1], FOLDERS[-2]


def observe_udev(root: Root) -> tuple[UdevFile, ...]:
    """Return the files in udev's order; one without a text is there for what it hides."""
    merged = _same(root, _LIB, _USR_LIB)
    files: list[UdevFile] = []
    for paths in rule_paths(root):
        apart = [path for path in paths if not (merged and path.startswith(_LIB))] or paths
        text = rule_text(root, apart[0])
        hides = tuple("/" + path for path in apart[1:])
        if text or hides:
            files.append(UdevFile("/" + apart[0], text, hides))
    return tuple(files)


def _same(root: Root, one: str, other: str) -> bool:
    """Whether two folders are one: /lib is a link to /usr/lib nearly everywhere."""
    try:
        return os.path.samefile(root.path(one), root.path(other))
    except OSError:
        return False
