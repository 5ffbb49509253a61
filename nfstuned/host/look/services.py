"""Services: what systemd's files say of them, and whether they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.host.look.folders import UNIT_FOLDERS
from nfstuned.host.root import Root
from nfstuned.model.system import Unit

_MASK_COMMAND = re.compile(r"^\s*ExecStartPre\s*=.*nfstuned udev mask", re.MULTILINE)
_NULL = "/dev/null"
_CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified")
"""Where systemd has its tree: the only tree, or with version 1 any of several."""
_USERS = "user.slice"
"""The services below it are of other service managers."""


def observe_unit(root: Root, name: str, *, image: bool) -> Unit:
    """Return the state of a service: by its unit files, and on a host by its control group's processes."""
    active = None if image else _active(root, name)
    files = [f"{folder}/{name}" for folder in UNIT_FOLDERS if name in root.names(folder)]
    if not files:
        return Unit(active=active)
    masked = _is_mask(root, files[0])
    return Unit(
        installed=any(_has_unit(root, file) for file in files),
        enabled=not masked and _is_wanted(root, name),
        active=active,
        masked=masked,
        masks_rules=_MASK_COMMAND.search(unit_file(root, name)[1]) is not None,
    )


def unit_file(root: Root, name: str) -> tuple[str, str]:
    """Return path and text of the strongest unit file that is no mask; "" and "" where there is none."""
    places = (f"{folder}/{name}" for folder in UNIT_FOLDERS)
    return next(((place, text) for place in places if (text := root.read_or_empty(place))), ("", ""))


def _is_mask(root: Root, file: str) -> bool:
    """Return whether systemd takes a file for a mask: it is empty, or a link to /dev/null.

    A link to nowhere is no mask (null_or_empty_path() of systemd), nor is a file that cannot be read.
    """
    try:
        return not root.read(file)
    except OSError:
        return False


def _has_unit(root: Root, file: str) -> bool:
    """Return whether a file has a unit; a file that cannot be read is taken for a unit, as nearly all are."""
    try:
        return bool(root.read(file))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_wanted(root: Root, name: str) -> bool:
    """Return whether a target has a link to the service in its .wants or .requires folders.

    Of such a folder's names the strongest file counts, and a link to /dev/null hides the weaker links
    (load-dropin.c of systemd).
    """
    strongest: dict[str, str] = {}
    for place in UNIT_FOLDERS:
        for group in root.names(place):
            if group.endswith((".wants", ".requires")) and name in root.names(f"{place}/{group}"):
                strongest.setdefault(group, f"{place}/{group}/{name}")
    return any(root.link(file) not in {None, _NULL} for file in strongest.values())


def _active(root: Root, name: str) -> bool | None:
    """Return whether a service of the system has processes; None where that cannot be told.

    It cannot be on a host without such control groups, or where they cannot be read.
    """
    for tree in _CGROUPS:
        if root.names(f"{tree}/system.slice"):
            group = next((each for each in _slices(root, tree) if name in root.names(each)), None)
            try:
                return group is not None and bool(root.read(f"{group}/{name}/cgroup.procs").strip())
            except FileNotFoundError:
                return False
            except OSError:
                return None
    return None


def _slices(root: Root, group: str) -> Iterator[str]:
    """Yield the slices in a control group, from above: `Slice=` may name any of them."""
    names = [name for name in root.names(group) if name.endswith(".slice") and name != _USERS]
    yield from (f"{group}/{name}" for name in sorted(names, key=lambda name: name != "system.slice"))
    for name in names:
        yield from _slices(root, f"{group}/{name}")
