"""The steps by which `apply --remount` mounts a transport group again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from nfstuned.model.change import ShellCommand
from nfstuned.model.facts import Target
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import Result, UnitState


@dataclass(frozen=True, slots=True)
class Space:
    """Another mount namespace, seen through a process in it."""

    process: str
    """For people: "containerd-shim (4711)"."""
    nodes: tuple[MountNode, ...]


@dataclass(frozen=True, slots=True)
class BusyUse:
    """A process that keeps a superblock busy: `text` names it and its file there, for people."""

    device: str
    text: str


@dataclass(frozen=True, slots=True)
class PathUse:
    """A use that keeps a mount busy, known by a path of this mount namespace only."""

    path: str
    text: str


NO_UNITS: Mapping[str, UnitState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sight:
    """The observations of a host for remounts only; `nodes` are the mounts of this mount namespace.

    `spaces` are the other mount namespaces, `uses` those of processes, `paths` those of the kernel.
    """

    nodes: tuple[MountNode, ...] = ()
    spaces: tuple[Space, ...] = ()
    uses: tuple[BusyUse, ...] = ()
    paths: tuple[PathUse, ...] = ()
    volumes: frozenset[str] = frozenset()
    """Device numbers of the superblocks of this network namespace: only these can be mounted again here."""
    systemd: bool = False
    units: Mapping[str, UnitState] = field(default_factory=lambda: NO_UNITS)

    def node(self, target: Target) -> MountNode | None:
        """Return a live mount's line in the tree; None for a mount of another mount namespace."""
        if target.live is None:
            return None
        identity = (target.live.mount_id, target.point)
        return next((node for node in self.nodes if (node.mount_id, node.point) == identity), None)


@dataclass(frozen=True, slots=True)
class Part:
    """A mount of the group, and the commands that unmount it and make it again."""

    point: str
    mount_id: int
    leave: ShellCommand
    make: ShellCommand
    before: ShellCommand | None
    """Makes the mount with its old options, where `make` fails or is not used; None: they are not known."""
    unit: str = ""
    """The mount unit that does it; "" for mount(8)."""
    from_file: bool = False
    """A unit or fstab has the options of the mount."""

    @property
    def back(self) -> tuple[ShellCommand, ...]:
        """The commands that bring it back when the remount is given up, in the order of trying.

        A mount of a file is made as the file asks; a mount made by hand gets the options that it had.
        """
        if self.before is None:
            return (self.make,)
        return (self.make, self.before) if self.from_file else (self.before,)


@dataclass(frozen=True, slots=True)
class Connections:
    """The signs, after the unmounting, that a group's nfs_client is gone from the kernel."""

    version: int
    address: str
    port: int
    clients: int
    """Rows of /proc/fs/nfsfs/servers with this version, address and port.

    A group of another minor version of NFSv4 has a row of its own with the same three values.
    """
    superblocks: tuple[tuple[str, int], ...]
    """Device numbers, and the inodes of their bdi's read_ahead_kb, which differ for a new superblock.

    The superblocks that the kernel mounts and unmounts by itself are among them.
    """


@dataclass(frozen=True, slots=True)
class RemountPlan:
    """How a transport group is mounted again; `old` and `new` are numbers of connections."""

    old: int
    new: int
    reason: str
    going: tuple[Part, ...]
    """In the order of unmounting."""
    coming: tuple[Part, ...]
    """The same mounts in the order of mounting: the first decides about the connections."""
    connections: Connections
    reload: bool = False
    """systemd has not read its files since they were changed."""

    @property
    def commands(self) -> tuple[ShellCommand, ...]:
        """All commands in their order."""
        reload = (RELOAD,) if self.reload else ()
        return (*reload, *(part.leave for part in self.going), *(part.make for part in self.coming))


RELOAD = ShellCommand(("systemctl", "daemon-reload"))


@dataclass(frozen=True, slots=True)
class Left:
    """A group that is left as it is, and why; `old` and `new` are numbers of connections."""

    points: tuple[str, ...]
    old: int
    new: int
    reason: str
    result: Result = Result.FAILED


class Hands(Protocol):
    """The calls that carry out a remount.

    Each call ends within a deadline. `reload`, `unmount` and `mount` return "" or why they failed. A ""
    proves nothing: the caller asks `mounted` afterwards.
    """

    def reload(self, plan: RemountPlan) -> str:
        """Let systemd read its files, and look at the units of the plan afterwards."""

    def unmount(self, part: Part) -> str:
        """Unmount the part: not lazily, not by force, and no other mount that took its place since."""

    def mount(self, command: ShellCommand) -> str:
        """Mount something by a command; not where the server does not answer."""

    def mounted(self, point: str) -> bool:
        """Return whether an NFS mount is at `point`."""

    def held(self, plan: RemountPlan) -> str:
        """Return the use that still keeps the connections; "" where they are gone."""

    def nconnect(self, point: str) -> int | None:
        """Return the number of connections in effect; None where nothing is mounted."""
