"""What remedies have in common: where an option stands, and what makes its change count."""

from __future__ import annotations

from shlex import quote

from nfstuned.core.mounts.requests import find
from nfstuned.model.facts import Target
from nfstuned.model.system import Unit
from nfstuned.parse.etc.fstab import FILE as UTAB


def where(target: Target) -> str:
    """Return what has to be changed, for people."""
    return target.origin or "the mount command"


def out_of_conf(target: Target, *names: str) -> str:
    """Return how options that nfsmount.conf adds are taken out of it, "" where the mount's own line has them.

    What contradicts such an option under another name does not keep it away, as `hard` does not with `soft`.
    """
    own = {UTAB, target.request.file if target.request else ""}
    asked = (find(target.asked, name) for name in names)
    added = [
        f"{option.name} out of {option.origin}"
        for option in asked
        if option is not None and option.file not in own
    ]
    return f"take {', '.join(added)}" if added else ""


def unmask(unit: Unit, name: str, systemctl: str = "sudo systemctl") -> str:
    """Return the command before one that enables or starts a service; "" where it is not masked."""
    return f"{systemctl} unmask {name} && " if unit.masked else ""


def later(file: str, known: str) -> str:
    """Return the name of a new file that counts after a known one: these folders are sorted by name."""
    return file if file > known else f"{known.removesuffix('.conf')}_nfs.conf"


def again(target: Target) -> str:
    """Return what makes a change count for a live mount: remounting changes none of these options."""
    return f", then umount {quote(target.point)} and mount it again" if target.live is not None else ""
