"""What remedies have in common: where an option stands, and what makes its change count."""

from __future__ import annotations

from shlex import quote

from nfstuned.model.facts import Target


def where(target: Target) -> str:
    """Return what has to be changed, for people."""
    return target.origin or "the mount command"


def later(file: str, known: str) -> str:
    """Return the name of a new file that counts after a known one: these folders are sorted by name."""
    return file if file > known else f"{known.removesuffix('.conf')}_nfs.conf"


def again(target: Target) -> str:
    """Return what makes a change count for a live mount: remounting changes none of these options."""
    return f", then umount {quote(target.point)} and mount it again" if target.live is not None else ""
