"""What remedies have in common: where an option stands, and what makes its change count."""

from __future__ import annotations

from shlex import quote

from nfstuned.model.facts import Target


def where(target: Target) -> str:
    """Return what has to be changed, for people."""
    return target.origin or "the mount command"


def again(target: Target) -> str:
    """Return what makes a change count for a live mount: remounting changes none of these options."""
    return f", then umount {quote(target.point)} and mount it again" if target.live is not None else ""
