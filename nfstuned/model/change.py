"""Changes of files that the administrator keeps, and of an image, and what came of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from nfstuned.model.files import Content
from nfstuned.model.mounts import Result
from nfstuned.model.system import Unit


@dataclass(frozen=True, slots=True)
class Change:
    """A line of a file that asks for another nconnect than it should."""

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
    """A [ Server ] section of nfstuned's own drop-in of nfsmount.conf."""

    server: str
    """Its name, as mounts name it."""
    old: int | None
    """The nconnect that the file has; None without a section."""
    new: int | None
    """The nconnect that it should have; None where the section goes."""
    result: Result
    reason: str


class ImageKind(str, Enum):
    """What a change is about."""

    SERVICE = "service"
    RULE = "udev-rule"
    SECTION = "nconnect"
    PARAMETER = "parameter"
    FILE = "file"
    """A file of an earlier bake that nothing asks for any more, or that is taken back."""


@dataclass(frozen=True, slots=True)
class ImageChange:
    """A change of an image, and what came of it."""

    kind: ImageKind
    target: str
    """What it is about: a unit, a server, a parameter, or the file itself."""
    path: str
    """The file in the image, with a leading slash; "" where none can be named."""
    old: str | int | None
    new: str | int | None
    result: Result
    reason: str


@dataclass(frozen=True, slots=True)
class ImageService:
    """nfstuned's service as the image has it."""

    unit: Unit
    """Without a start that comes only from what bake itself wrote."""
    path: str = ""
    """The file that counts where it is not masked, without a leading slash; "" for none."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an image should have, and why."""

    changes: tuple[ImageChange, ...] = ()
    """A planned change names a file of `contents`; the others say why there is none."""
    contents: Mapping[str, Content] = field(default_factory=dict)
    """The bytes of each file by its path, without a leading slash."""
