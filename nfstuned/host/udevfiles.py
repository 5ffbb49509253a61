"""The udev rules files of a host or an image, and which of them hide others."""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.host.writers import FOLDERS, rule_paths
from nfstuned.model.udev import UdevFile

_LIB, _USR_LIB = FOLDERS[-1], FOLDERS[-2]


def observe_udev(root: Root) -> tuple[UdevFile, ...]:
    """Return the files in udev's order; one without a text is there for what it hides."""
    merged = root.same(_LIB, _USR_LIB)
    files: list[UdevFile] = []
    for paths in rule_paths(root):
        apart = [path for path in paths if not (merged and path.startswith(_LIB))] or paths
        text = root.read_or_empty(apart[0])
        hides = tuple("/" + path for path in apart[1:])
        if text or hides:
            files.append(UdevFile("/" + apart[0], text, hides))
    return tuple(files)
