"""udev as an administrator sees it: the folders of rules byte for byte, and what udevadm says of them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.lab.kit.shell import attempt

FOLDERS = ("/etc/udev", "/run/udev/rules.d", "/usr/local/lib/udev", "/usr/lib/udev/rules.d")
MASK = Path("/run/udev/rules.d/99-nfs.rules")
View = dict[str, str]


def view() -> View:
    """Return every folder, link and file of rules, and the words of udevadm verify and udevadm test."""
    found: View = {}
    for top in FOLDERS:
        for place, _, names in os.walk(top):
            found[place] = "a folder"
            for name in names:
                path = Path(place, name)
                found[str(path)] = str(path.readlink()) if path.is_symlink() else path.read_text()
    found["udevadm verify"] = attempt("udevadm", "verify").stdout
    said = attempt("udevadm", "test", "--action=add", "/devices/virtual/mem/null")
    lines = (said.stdout + said.stderr).splitlines()
    found["udevadm test"] = "\n".join(line for line in lines if "rules file" in line or "overridden" in line)
    return found


def difference(before: View, after: View) -> list[str]:
    """Return what is not the same in two views."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
