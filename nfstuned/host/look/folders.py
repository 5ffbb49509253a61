"""Folders of configuration, the strongest first: of a name the first folder has the file that counts.

An empty file counts as well, and so does a link to /dev/null: it hides the weaker files of its name. Sources:
systemd.unit(5), systemd-system.conf(5), sysctl.d(5) and modprobe.d(5).
"""

from __future__ import annotations

from nfstuned.host.root import Root

_PLACES = ("etc", "run", "usr/local/lib", "usr/lib", "lib")
STRONG_UNIT_FOLDERS = (
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "etc/systemd/system",
    "run/systemd/system",
)
"""Their units stand before the units which systemd makes of fstab."""
WEAK_UNIT_FOLDERS = ("usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
"""The last is a folder of its own only where /usr is not merged."""
UNIT_FOLDERS = (*STRONG_UNIT_FOLDERS, *WEAK_UNIT_FOLDERS)


def conf_files(root: Root, folder: str) -> list[str]:
    """Return the .conf files that count of a folder such as "sysctl.d", sorted by name whatever their place.

    A setting is the last file's that has it.
    """
    files: dict[str, str] = {}
    for place in _PLACES:
        for name in root.names(f"{place}/{folder}"):
            if name.endswith(".conf"):
                files.setdefault(name, f"{place}/{folder}/{name}")
    return [files[name] for name in sorted(files)]
