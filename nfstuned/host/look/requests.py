"""What a host's administrators ask for. Nothing here touches a mount, or sets off an automount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nfstuned.host.look.autofs import AutoMaps
from nfstuned.host.look.folders import STRONG_UNIT_FOLDERS, WEAK_UNIT_FOLDERS
from nfstuned.host.look.nfsmount import Collected, MountConf, observe_nfs_utils
from nfstuned.host.look.units import MountUnits
from nfstuned.host.root import Root


def observe_intent(root: Root, mounted: Sequence[str]) -> Collected:
    """Return what fstab, mount units, autofs maps and nfsmount.conf ask for, the first of them first.

    `mounted` are the points below which nothing may be read: a dead server would hang it.
    """
    collected = Collected()
    MountConf(root, mounted, collected).read()
    utils = observe_nfs_utils(root) if collected.settings else None
    if utils is not None and utils.mixes_sections:
        # This mount.nfs does not keep the sections of different names apart.
        collected.settings = [replace(setting, alone=True) for setting in collected.settings]
    units = MountUnits(root, collected)
    units.read(STRONG_UNIT_FOLDERS)
    units.read_fstab()
    units.read(WEAK_UNIT_FOLDERS)
    AutoMaps(root, mounted, collected).read()
    return collected
