"""A change of a file that the administrator keeps, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from nfstuned.model.work import Result


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a file that asks for another nconnect than it should."""

    kind: str
    """"fstab": the kind of file."""
    target: str
    """The line as people name it: "/etc/fstab:7"."""
    point: str
    old: int | None
    """What the mount asks for, nfsmount.conf included; None where nothing says a number."""
    new: int
    result: Result
    reason: str
    line: int


@dataclass(frozen=True, slots=True)
class SectionChange:
    """One [ Server ] section of nfstuned's own drop-in of nfsmount.conf."""

    server: str
    """Its name, as mounts name it."""
    old: int | None
    """The nconnect that the file has; None without a section."""
    new: int | None
    """The one that it should have; None where the section goes."""
    result: Result
    reason: str
