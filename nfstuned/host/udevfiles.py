"""The udev rules files of a host or an image, and which of them hide others."""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.host.writers import rule_files
from nfstuned.model.facts import UdevFile


def observe_udev(root: Root) -> tuple[UdevFile, ...]:
    """Return the files in udev's order."""
    return tuple(UdevFile(path, text) for path, text in rule_files(root))
