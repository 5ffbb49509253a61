"""Requests and settings of administrators: a value for each line of their files, with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

NFSRAHEAD, AZNFS, EFS_UTILS, TUNED = "nfsrahead", "aznfs", "efs-utils", "tuned"
"""The programs that write read-aheads, as the sections of their settings in Facts.writers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An assignment of nfsmount.conf or nfs.conf (nfs-utils, support/nfs/conffile.c)."""

    section: str
    """In lower case: its case does not matter."""
    argument: str | None
    """The text in quotes behind the section's name; None without quotes."""
    name: str
    value: str
    file: str
    line: int
    alone: bool = False
    """It replaces the settings of sections of other names before it, as an older mount.nfs has it."""


@dataclass(frozen=True, slots=True)
class ConfInclude:
    """`include = path`: the settings of another file stand here, and begin in this section."""

    path: str
    optional: bool
    section: str
    argument: str | None
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class UnitSetting:
    """An assignment of a systemd unit file or drop-in; an empty value takes earlier ones back."""

    section: str
    name: str
    value: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class AutoMap:
    """An entry of auto.master(5): a map that serves a mount point ("/-": the keys are whole paths)."""

    point: str
    kind: str
    """"file", "program", "hosts", "yp" and so on; "" where automount looks for it itself."""
    format: str
    name: str
    options: str
    file: str
    line: int
    variables: Mapping[str, str] = field(default_factory=lambda: NO_VARIABLES)
    parts: tuple[AutoMap, ...] = ()
    """Of a map of the kind "multi" those that it consists of: the first that has a key counts."""


@dataclass(frozen=True, slots=True)
class MapInclude:
    """A map that a line names: `+name`, `+dir:folder`, or a master map of autofs.conf."""

    kind: str
    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class MapSource:
    """A source of `automount:` in nsswitch.conf(5)."""

    name: str
    """"files", "sss", "ldap", "nis", "yp", "nisplus" or "hesiod"."""
    ends: frozenset[str] = frozenset({"SUCCESS"})
    """After these of its answers no later source is asked; they are SUCCESS, NOTFOUND, UNAVAIL, TRYAGAIN."""


class Unread(Enum):
    """Why a map of the automounter's was not read."""

    ASKED = "a program or a server has its entries"
    SOURCE = "nsswitch.conf has others asked for it than files"
    KEY = "which map it is depends on the key"
    FORMAT = "it is written for amd"
    PLACE = "it lies below a mount point"


@dataclass(frozen=True, slots=True)
class UnreadMap:
    """A map of the automounter's that was not read, and the line that names it."""

    why: Unread
    point: str
    """The mount point that it serves; "" for a master map, which names other maps."""
    kind: str
    """Who has it: "program", "yp", "sss, ldap"."""
    name: str
    file: str
    line: int
    local: str = ""
    """A file of that name, whose entries count only as far as those before it have none."""


@dataclass(frozen=True, slots=True)
class MapEntry:
    """An entry of a file map (autofs(5)): `text` is all that follows the key, as it stands."""

    key: str
    text: str
    file: str
    line: int


class Asked(NamedTuple):
    """An option of a mount, and the line that decided it."""

    name: str
    value: str | None
    file: str
    line: int

    @property
    def origin(self) -> str:
        """Return the file and the line as people write them."""
        return f"{self.file}:{self.line}"

    @property
    def text(self) -> str:
        """Return the option as it is written among others."""
        return self.name if self.value is None else f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class UnitState:
    """systemd's state of a mount unit: properties of `systemctl show`, and `said` from the journal."""

    loaded: bool = False
    fragment: str = ""
    """The unit file, also where systemd made it of fstab; "" for a mount that systemd only saw."""
    stale: bool = False
    """NeedDaemonReload: a file has changed since systemd read it."""
    lazy: bool = False
    """LazyUnmount=yes."""
    force: bool = False
    """ForceUnmount=yes."""
    bound_by: tuple[str, ...] = ()
    """Units with BindsTo=: systemd stops them when the mount goes."""
    active: str = ""
    """ActiveState: "active", "inactive", "failed", "activating" and others; "" where it is not known."""
    result: str = ""
    """Why it failed: "exit-code", "timeout" and others."""
    condition: bool = True
    """Whether its conditions were met when it was last to be started."""
    job: bool = False
    """systemd has a job for the unit that has not ended (Job)."""
    wanted_by: tuple[str, ...] = ()
    """WantedBy and RequiredBy: the units that start it. Of a line of fstab it is remote-fs.target."""
    invocation: str = ""
    """InvocationID, of its last start; "" where it had none, or an older systemd does not tell."""
    said: str = ""
    """The last message of its program; "" without a message, or where nobody knows."""

    @property
    def against(self) -> str:
        """Why systemd would not start it again, or do more than unmount and mount; "" where neither is so."""
        if not self.loaded:
            return "is masked or broken: systemd would unmount it, and not mount it again (systemctl status)"
        if self.lazy or self.force:
            name = "LazyUnmount" if self.lazy else "ForceUnmount"
            return f"has {name}=yes, which would hide that it is still in use"
        bound = ", ".join(self.bound_by)
        return f"would take {bound} along when it stops (BindsTo=)" if bound else ""
