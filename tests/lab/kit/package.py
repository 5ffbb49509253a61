"""What the installed package has in the guest."""

from __future__ import annotations

from pathlib import Path

HOME = Path("/usr/lib/nfstuned")


def compiled() -> list[Path]:
    """Return all that Python has compiled of the program and its libraries."""
    return sorted(HOME.rglob("*.pyc"))
