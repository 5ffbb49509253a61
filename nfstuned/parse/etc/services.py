"""Services: unit files, presets (systemd.preset(5)), control groups, and the output of `systemctl show`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from nfstuned.model.mounts import UnitState
from nfstuned.model.system import Unit
from nfstuned.parse.etc.units import UNIT_FOLDERS
from nfstuned.parse.tree import FileTree

_VERBS = ("enable", "disable", "ignore")


def preset_enables(texts: Iterable[str], unit: str) -> bool:
    """Return whether preset files, in systemd's order, enable a unit: the first line that fits decides.

    A unit that no line names is enabled. Instances of templates are of no interest here.
    """
    for text in texts:
        for line in text.splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in _VERBS and fnmatchcase(unit, words[1]):
                return words[0] == "enable"
    return True


PROPERTIES = (
    *("Id", "LoadState", "FragmentPath", "NeedDaemonReload", "LazyUnmount", "ForceUnmount", "BoundBy"),
    *("ActiveState", "Result", "ConditionResult", "ConditionTimestampMonotonic", "Job", "InvocationID"),
    *("WantedBy", "RequiredBy"),
)


def parse_units(text: str) -> Mapping[str, UnitState]:
    """Return the state of each unit by name; a property that an old systemd lacks is false or empty."""
    units: dict[str, UnitState] = {}
    for block in text.split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.split("\n") if "=" in line)
        if name := values.get("Id"):
            units[name] = UnitState(
                loaded=values.get("LoadState") == "loaded",
                fragment=values.get("FragmentPath", ""),
                stale=values.get("NeedDaemonReload") == "yes",
                lazy=values.get("LazyUnmount") == "yes",
                force=values.get("ForceUnmount") == "yes",
                bound_by=tuple(values.get("BoundBy", "").split()),
                active=values.get("ActiveState", ""),
                result=values.get("Result", ""),
                # Of a unit that was never to be started it says no as well.
                condition=values.get("ConditionResult") != "no"
                or values.get("ConditionTimestampMonotonic", "0") == "0",
                job=values.get("Job", "").strip("0 ") != "",
                wanted_by=tuple(f"{values.get('WantedBy', '')} {values.get('RequiredBy', '')}".split()),
                invocation=values.get("InvocationID", ""),
            )
    return units


_MASK_COMMAND = re.compile(r"^\s*ExecStartPre\s*=.*nfstuned udev mask", re.MULTILINE)
_NULL = "/dev/null"
_CGROUPS = ("sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified")
"""Where systemd has its tree: the only tree, or with version 1 any of several."""
_USERS = "user.slice"
"""The services below it are of other service managers."""


def read_unit(root: FileTree, name: str, *, image: bool) -> Unit:
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


def unit_file(root: FileTree, name: str) -> tuple[str, str]:
    """Return path and text of the strongest unit file that is no mask; "" and "" without such a file."""
    places = (f"{folder}/{name}" for folder in UNIT_FOLDERS)
    return next(((place, text) for place in places if (text := root.read_or_empty(place))), ("", ""))


def _is_mask(root: FileTree, file: str) -> bool:
    """Return whether systemd takes a file for a mask: it is empty, or a link to /dev/null.

    A link to nowhere is no mask (null_or_empty_path() of systemd), nor is a file that cannot be read.
    """
    try:
        return not root.read(file)
    except OSError:
        return False


def _has_unit(root: FileTree, file: str) -> bool:
    """Return whether a file has a unit; a file that cannot be read is taken for a unit, as nearly all are."""
    try:
        return bool(root.read(file))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _is_wanted(root: FileTree, name: str) -> bool:
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


def _active(root: FileTree, name: str) -> bool | None:
    """Return whether a service of the system has processes.

    None on a host without such control groups, or where they cannot be read.
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


def _slices(root: FileTree, group: str) -> Iterator[str]:
    """Yield the slices in a control group, from above: `Slice=` may name any of them."""
    names = [name for name in root.names(group) if name.endswith(".slice") and name != _USERS]
    yield from (f"{group}/{name}" for name in sorted(names, key=lambda name: name != "system.slice"))
    for name in names:
        yield from _slices(root, f"{group}/{name}")


_PRESETS = (
    "etc/systemd/system-preset",
    "usr/local/lib/systemd/system-preset",
    "usr/lib/systemd/system-preset",
)


def enabled_by_preset(root: FileTree, unit: str) -> bool:
    """Return whether systemd will enable a unit at the image's first boot (machine-id(5), "First Boot").

    An image without a machine id boots for the first time; systemd then follows the presets, and
    enables a unit that none of them names. A masked unit stays as it is.
    """
    if root.exists("etc/machine-id") and root.read_or_empty("etc/machine-id").strip() != "uninitialized":
        return False
    if root.exists(f"etc/systemd/system/{unit}") and not root.read_or_empty(f"etc/systemd/system/{unit}"):
        return False
    files: dict[str, str] = {}
    for folder in _PRESETS:
        for name in root.names(folder):
            if name.endswith(".preset"):
                files.setdefault(name, f"{folder}/{name}")
    return preset_enables((root.read_or_empty(files[name]) for name in sorted(files)), unit)
