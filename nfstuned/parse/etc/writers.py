"""The configurations of programs that write a read-ahead: TuneD, efs-utils, AZNFS."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from nfstuned.model.mounts import AZNFS, EFS_UTILS, NFSRAHEAD, TUNED, Setting
from nfstuned.parse.etc.nfsmount import NFS_CONF, MountConf
from nfstuned.parse.etc.requests import Intent
from nfstuned.parse.tree import FileTree

_BLANK = r"[^\S\n]"
_AZNFS = (
    rf"(?m)^{_BLANK}*(?:export{_BLANK}+)?AZNFS_READ_AHEAD_KB="
    r"""["']?(?:\$\{AZNFS_READ_AHEAD_KB:-)?([0-9]{1,9})\b"""
)


def parse_ini(text: str, file: str) -> Iterator[Setting]:
    """Yield the assignments of a file as Python's configparser reads it, with `=` alone and `#` anywhere.

    So TuneD's Loader does (tuned/profiles/loader.py). Names keep their case, and so do sections.
    """
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        content = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if not content or content.startswith(";"):
            continue
        if heading := re.match(r"\[([^]]+)\]", content):
            section = heading[1]
            continue
        name, sign, value = content.partition("=")
        if sign and section:
            yield Setting(section, None, name.strip(), value.strip(), file, number)


def parse_aznfs(text: str, file: str, section: str) -> Setting | None:
    """Return the setting of AZNFS_READ_AHEAD_KB in common.sh or in /etc/environment; the last line counts."""
    matches = list(re.finditer(_AZNFS, text))
    if not matches:
        return None
    line = text.count("\n", 0, matches[-1].start(1)) + 1
    return Setting(section, None, "AZNFS_READ_AHEAD_KB", matches[-1][1], file, line)


_EFS_CONF = "etc/amazon/efs/efs-utils.conf"
_AZNFS_HELPERS = ("sbin/mount.aznfs", "usr/sbin/mount.aznfs")
_AZNFS_SCRIPTS = ("opt/microsoft/aznfs/common.sh", "opt/microsoft/azfiles-nfs/common.sh")
_ENVIRONMENT = "etc/environment"
_TUNED_FOLDERS = ("etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned")
"""The first that has a profile counts (tuned/profiles/locator.py)."""
_TUNED_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_BDI = re.compile(r"/sys/(?:class|devices/virtual)/bdi/[^/]+/read_ahead_kb")


def read_writers(root: FileTree, mounted: Sequence[str] = ()) -> tuple[Setting, ...]:
    """Return those settings with file and line; nothing below the points in `mounted` is read."""
    collected = Intent()
    MountConf(root, mounted, collected, NFS_CONF).read()
    nfsrahead = (
        setting for setting in collected.settings if setting.section == NFSRAHEAD and setting.argument is None
    )
    efs_utils = (
        replace(setting, section=EFS_UTILS)
        for setting in parse_ini(root.read_or_empty(_EFS_CONF), "/" + _EFS_CONF)
        if (setting.section, setting.name.lower()) == ("mount", "optimize_readahead")
    )
    return (*nfsrahead, *_read_aznfs(root), *efs_utils, *_tuned(root))


def _read_aznfs(root: FileTree) -> Iterator[Setting]:
    """Yield AZNFS's value; a release without one in its scripts writes none (Azure/AZNFS-mount)."""
    if not any(root.executable(helper) for helper in _AZNFS_HELPERS):
        return
    scripts = (parse_aznfs(root.read_or_empty(script), "/" + script, AZNFS) for script in _AZNFS_SCRIPTS)
    built_in = next(filter(None, scripts), None)
    if built_in is not None:
        yield parse_aznfs(root.read_or_empty(_ENVIRONMENT), "/" + _ENVIRONMENT, AZNFS) or built_in


def _tuned(root: FileTree) -> Iterator[Setting]:
    """Yield the settings of bdis in the active TuneD profile and those that it includes (plugin sysfs)."""
    merged: dict[tuple[str, str], Setting] = {}
    seen: set[str] = set()
    for name in root.read_or_empty("etc/tuned/active_profile").split():
        for setting in _tuned_profile(root, name, seen):
            merged[setting.section, posixpath.normpath(setting.name)] = setting
    types = {section: setting.value for (section, name), setting in merged.items() if name == "type"}
    for (section, path), setting in merged.items():
        if types.get(section, section) == "sysfs" and _BDI.fullmatch(path):
            yield replace(setting, section=TUNED, name=path)


def _tuned_profile(root: FileTree, name: str, seen: set[str]) -> Iterator[Setting]:
    """Yield a profile's settings, those of its includes first: the last setting counts."""
    folders = _TUNED_FOLDERS if _TUNED_NAME.fullmatch(name) else ()
    places = (f"{folder}/{name}/tuned.conf" for folder in folders)
    file = next((place for place in places if place not in seen and root.read_or_empty(place)), None)
    if file is None:
        return
    seen.add(file)
    settings = tuple(parse_ini(root.read_or_empty(file), "/" + file))
    for setting in settings:
        if (setting.section, setting.name) == ("main", "include"):
            for included in re.split(r"\s*[,;]\s*", setting.value):
                yield from _tuned_profile(root, included, seen)
    yield from settings
