"""Services: what systemd's files say of them, and whether they run."""

from __future__ import annotations

from nfstuned.host.look.folders import UNIT_FOLDERS
from nfstuned.host.root import Root
from nfstuned.model.system import Unit

_MASK_COMMAND = "nfstuned udev mask"
_CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified")
"""Where systemd has its tree: the only tree, or with version 1 any of several."""


def observe_unit(root: Root, name: str, *, image: bool) -> Unit:
    """Return a service as its files tell it, and whether it runs by the processes of its control group."""
    files = [f"{folder}/{name}" for folder in UNIT_FOLDERS if name in root.names(folder)]
    if not files:
        return Unit(active=None if image else _active(root, name))
    groups = (
        f"{place}/{group}"
        for place in UNIT_FOLDERS
        for group in root.names(place)
        if group.endswith((".wants", ".requires"))
    )
    masked = _has_no_unit(root, files[0])
    return Unit(
        installed=not all(_has_no_unit(root, file) for file in files),
        enabled=not masked and any(name in root.names(group) for group in groups),
        active=None if image else _active(root, name),
        masked=masked,
        masks_rules=_MASK_COMMAND in unit_file(root, name)[1],
    )


def unit_file(root: Root, name: str) -> tuple[str, str]:
    """Return the path and the text of the unit file that counts where it is not masked; "" for none."""
    places = (f"{folder}/{name}" for folder in UNIT_FOLDERS)
    return next(((place, text) for place in places if (text := root.read_or_empty(place))), ("", ""))


def _has_no_unit(root: Root, file: str) -> bool:
    """Return whether a unit file has no unit: systemd takes an empty file and a link to /dev/null for a mask.

    A file that this user may not read is taken for a unit, as nearly all are.
    """
    try:
        return not root.read(file)
    except PermissionError:
        return False
    except OSError:
        return True


def _active(root: Root, name: str) -> bool | None:
    """Return whether a system service has processes; None where the host has no such control groups."""
    for folder in _CGROUPS:
        if root.names(f"{folder}/system.slice"):
            return bool(root.read_or_empty(f"{folder}/system.slice/{name}/cgroup.procs").strip())
    return None
