"""The other writers of read_ahead_kb: nfs-utils' udev rule and vendors' rules; udev's view of all rules."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.shell import attempt, run

RULES = Path("/etc/udev/rules.d")
NFSRAHEAD = RULES / "99-nfs.rules"
SHIPPED_NFSRAHEAD = Path("/usr/lib/udev/rules.d/99-nfs.rules")
_SETTLE_S = 240


def mask_nfsrahead() -> None:
    """Take nfs-utils' rule out of effect, as an administrator would; harmless when it is."""
    if not NFSRAHEAD.is_symlink():
        RULES.mkdir(parents=True, exist_ok=True)
        NFSRAHEAD.symlink_to("/dev/null")
        reload_rules()


def unmask_nfsrahead() -> None:
    """Return to the distribution's state, in which the rule is in effect; harmless when it is."""
    if NFSRAHEAD.is_symlink():
        NFSRAHEAD.unlink()
        reload_rules()


@contextlib.contextmanager
def rule(name: str, text: str) -> Iterator[Path]:
    """Have a rule in /etc/udev/rules.d while the block runs."""
    RULES.mkdir(parents=True, exist_ok=True)
    path = RULES / name
    path.write_text(text)
    reload_rules()
    try:
        yield path
    finally:
        path.unlink()
        reload_rules()


def reload_rules() -> None:
    run("udevadm", "control", "--reload")


def settle() -> None:
    """Wait until udev has handled every event so far."""
    # Thousands of events take minutes where another guest has half of the machine.
    run("udevadm", "settle", f"--timeout={_SETTLE_S}", timeout=_SETTLE_S + 10)


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
    output = attempt("udevadm", "test", "--action=add", "/devices/virtual/mem/null")
    lines = (output.stdout + output.stderr).splitlines()
    found["udevadm test"] = "\n".join(line for line in lines if "rules file" in line or "overridden" in line)
    return found


def difference(before: View, after: View) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
