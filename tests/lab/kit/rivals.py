"""The other writers of read_ahead_kb: nfs-utils' udev rule, and the rules that vendors tell people to add."""

from __future__ import annotations

from pathlib import Path

from tests.lab.kit.shell import run

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


def add_rule(name: str, text: str) -> Path:
    """Add a rule to /etc/udev/rules.d and make it count."""
    RULES.mkdir(parents=True, exist_ok=True)
    path = RULES / name
    path.write_text(text)
    reload_rules()
    return path


def reload_rules() -> None:
    run("udevadm", "control", "--reload")


def settle() -> None:
    """Wait until udev has handled every event so far."""
    # Thousands of events take minutes where another guest has half of the machine.
    run("udevadm", "settle", f"--timeout={_SETTLE_S}", timeout=_SETTLE_S + 10)
