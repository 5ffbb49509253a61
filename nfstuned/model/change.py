"""The changes that commands make on a host or in an image, planned or done, each with its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from nfstuned.model.files import Content
from nfstuned.model.mounts import Result
from nfstuned.model.shell import quote
from nfstuned.model.system import Unit


class ChangeKind(str, Enum):
    """The subject of a change, by its name in JSON."""

    READ_AHEAD = "read-ahead"
    FSTAB = "fstab"
    """An entry of /etc/fstab."""
    PERSIST = "persist"
    """A [ Server ] section of nfstuned's own drop-in of nfsmount.conf."""
    REMOUNT = "remount"
    SERVICE = "service"
    RULE = "udev-rule"
    """A udev rule of an image, written or masked."""
    SECTION = "nconnect"
    """A [ Server ] section of that drop-in, in an image."""
    PARAMETER = "parameter"
    """A module parameter of an image."""
    IDENTITY = "identity"
    """The unit that gives the NFSv4 client of each clone of an image an identity of its own."""
    FILE = "file"
    """A file of an earlier bake that nothing asks for any more, or that is taken back."""


IMAGE_KINDS = frozenset({
    ChangeKind.SERVICE,
    ChangeKind.RULE,
    ChangeKind.SECTION,
    ChangeKind.PARAMETER,
    ChangeKind.IDENTITY,
    ChangeKind.FILE,
})  # fmt: skip
"""The kinds of changes of an image."""


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command as root runs it."""

    argv: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(map(quote, self.argv))


@dataclass(frozen=True, slots=True)
class Change:
    """A value that a command changes, or leaves as it is, and why."""

    kind: ChangeKind
    target: str
    """For people: a mount point, a server, a unit, a module's parameter, or a file or its line."""
    old: str | int | None
    """A read-ahead in KiB, a number of connections, or a state in words.

    None where there is no value: nobody set a number, or a section is not there.
    """
    new: str | int | None
    """The same; None where the value is removed."""
    result: Result
    reason: str
    place: str = ""
    """Of an entry of fstab its mount point; of an image the file, with a leading slash, if there is one."""
    mounted: bool = True
    """Of a mount, whether it is mounted now."""
    command: ShellCommand | None = None
    """The command that is left to run for a mount that is not mounted now."""


def settled(changes: Iterable[Change], result: Result, reason: str = "") -> tuple[Change, ...]:
    """Return the changes with this result of those that were planned, and the reason unless it is ""."""
    return tuple(
        replace(change, result=result, reason=reason or change.reason)
        if change.result is Result.PLANNED
        else change
        for change in changes
    )


@dataclass(frozen=True, slots=True)
class ImageUnit:
    """A unit of nfstuned's as the image has it: the service, or the unit that gives clones identities."""

    unit: Unit
    """As the image was before bake: a link that bake wrote does not enable it."""
    path: str = ""
    """Its strongest file that is no mask, without a leading slash; "" for none."""
    text: str = ""
    """The text of that file."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that an image should have, and why."""

    changes: tuple[Change, ...] = ()
    """Those that are planned name a file of `contents`; the others say why there is none."""
    contents: Mapping[str, Content] = field(default_factory=dict)
    """The bytes of each file by its path, without a leading slash."""
