"""Who else writes read-aheads on this host: udev rules about bdis, in udev's own order (udev(7))."""

from __future__ import annotations

import re

from nfstuned.host.root import Root

FOLDERS = (
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
)
_WRITES = re.compile(r'ATTR\{(?:[^}]*/)?read_ahead_kb\}\s*=\s*"', re.ASCII)
_ABOUT_BDI = re.compile(r'SUBSYSTEM\s*==\s*"[^"]*bdi')


def find_writer(root: Root) -> str | None:
    """Return the rule file whose write comes last, "/usr/lib/udev/rules.d/99-nfs.rules"; None without one.

    Of files with one name the first folder's counts; all are read in the order of their names. nfstuned's own
    rule is not another writer.
    """
    files: dict[str, str] = {}
    for folder in FOLDERS:
        for name in root.names(folder):
            if name.endswith(".rules"):
                files.setdefault(name, f"{folder}/{name}")
    last = None
    for name in sorted(files):
        if name != "99-nfstuned.rules" and _writes_read_ahead(root.read_or_empty(files[name])):
            last = "/" + files[name]
    return last


def _writes_read_ahead(text: str) -> bool:
    rules = text.replace("\\\n", " ").split("\n")
    return any(
        _WRITES.search(rule) and _ABOUT_BDI.search(rule)
        for rule in rules
        if not rule.lstrip().startswith("#")
    )
