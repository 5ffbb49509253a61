"""What `apply --remount` and `apply --live` are to do to the connections of a transport group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from nfstuned.errors import ParseError
from nfstuned.model.change import ShellCommand
from nfstuned.model.kernel import MountNode, Switch, Transport
from nfstuned.model.mounts import Result
from nfstuned.model.requests import UnitState


@dataclass(frozen=True, slots=True)
class Space:
    """Another mount namespace, seen through a process in it."""

    process: str
    """For people: "containerd-shim (4711)"."""
    nodes: tuple[MountNode, ...]


@dataclass(frozen=True, slots=True)
class BusyUse:
    """Something that keeps a superblock busy: `what` says for people who it is and what it has there."""

    device: str
    what: str


@dataclass(frozen=True, slots=True)
class PathUse:
    """Something that keeps a mount busy, where all that is known is a path of this mount namespace."""

    path: str
    what: str


NO_UNITS: Mapping[str, UnitState] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sight:
    """What is observed of a host for remounts only; `nodes` are the mounts of this mount namespace.

    `spaces` are the other mount namespaces, `uses` what processes have in use, `paths` what the kernel has.
    """

    nodes: tuple[MountNode, ...] = ()
    spaces: tuple[Space, ...] = ()
    uses: tuple[BusyUse, ...] = ()
    paths: tuple[PathUse, ...] = ()
    volumes: frozenset[str] = frozenset()
    """Device numbers of the superblocks of this network namespace: only these can be mounted again here."""
    systemd: bool = False
    units: Mapping[str, UnitState] = field(default_factory=lambda: NO_UNITS)


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
    """A unit or fstab says how the mount is made."""

    @property
    def back(self) -> tuple[ShellCommand, ...]:
        """The commands that bring it back when the remount is given up, in the order of trying.

        What a file asks for is made as the file says; what was made by hand gets the options that it had.
        """
        if self.before is None:
            return (self.make,)
        return (self.make, self.before) if self.from_file else (self.before,)


@dataclass(frozen=True, slots=True)
class Connections:
    """By what to see, after the unmounting, whether a group's nfs_client is gone from the kernel."""

    version: int
    address: str
    port: int
    clients: int
    """Rows of /proc/fs/nfsfs/servers with this version, address and port.

    A group of another minor version of NFSv4 has a row of its own with the same three values.
    """
    superblocks: tuple[tuple[str, int], ...]
    """Device numbers, and the inodes of their bdi's read_ahead_kb, which differ for a new superblock.

    Those that the kernel mounts and unmounts by itself are among them.
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
        """Let systemd read its files, and look at what the units of the plan are then."""

    def unmount(self, part: Part) -> str:
        """Unmount the part: not lazily, not by force, and no other mount that took its place since."""

    def mount(self, command: ShellCommand) -> str:
        """Mount something by a command; not where the server does not answer."""

    def mounted(self, point: str) -> bool:
        """Return whether an NFS mount is at `point`."""

    def held(self, plan: RemountPlan) -> str:
        """Return what still keeps the connections; "" where they are gone."""

    def nconnect(self, point: str) -> int | None:
        """Return the number of connections in effect; None where nothing is mounted."""


@dataclass(frozen=True, slots=True)
class Xprt:
    """A connection, as its folder below the switch's folder in sysfs shows it.

    `source_port` and `queued` are None while the connection is down.
    """

    name: str
    """The folder: "xprt-7-tcp". The kernel gives the number to another connection once it is free."""
    protocol: str
    state: frozenset[str] = frozenset()
    """The words of xprt_state, such as CONNECTED, OFFLINE, REMOVE."""
    source_port: int | None = None
    queued: int | None = None
    """Requests on it that have not ended (tasks_queuelen)."""


@dataclass(frozen=True, slots=True)
class SwitchSeen:
    """The connections of a transport group in /sys/kernel/sunrpc/xprt-switches."""

    name: str
    """The folder: "switch-3"; the kernel gives the number to another group once it is free."""
    info: Switch
    xprts: tuple[Xprt, ...]
    grows: bool
    """It has an add_xprt: connections can be added, as of Linux 6.15."""

    @property
    def names(self) -> frozenset[str]:
        """The folders of the connections, also of those that were switched off."""
        return frozenset(xprt.name for xprt in self.xprts)


SwitchLook = SwitchSeen | ParseError | None
"""What a look at a superblock's connections gives: the connections, why they are not understood, or None.

None is of a superblock whose connections the kernel does not tell.
"""
Switches = Mapping[str, SwitchLook]
"""Looks by the device numbers of the superblocks."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The mount over which requests of our own are sent, and whose stanza of mountstats counts them."""

    point: str
    mount_id: int
    source: str
    device: str
    bdi: int
    """The inode of its bdi's read_ahead_kb: device numbers are reused at once."""


@dataclass(frozen=True, slots=True)
class LivePlan:
    """What is added to a transport group."""

    points: tuple[str, ...]
    old: int
    """The connections that there are."""
    new: int
    shown: int
    """The nconnect of /proc/mounts, which does not change."""
    reason: str
    spot: Spot
    switch: SwitchSeen
    place: tuple[str, int]
    """The server's address and port."""

    @property
    def adding(self) -> int:
        """How many connections are to come."""
        return self.new - self.old

    @property
    def same(self) -> tuple[object, ...]:
        """What must not change between the question to the user and the answer."""
        return self.points, self.old, self.new, self.spot, self.switch.name, self.switch.names


class ConnectionHands(Protocol):
    """The calls that add connections. Each ends within a deadline; a returned str says why not, or is ""."""

    def interrupted(self) -> str:
        """Return which signal wants this to end; "" for none."""

    def answers(self, count: int) -> str:
        """Open `count` connections to the server at once; return why it does not answer on each of them."""

    def ask(self, count: int) -> str:
        """Send `count` requests over the mount, each after the last answer, whatever the answers say."""

    def counters(self) -> Sequence[Transport]:
        """Return what each connection in use carried so far, in the kernel's order; () without the mount."""

    def switch(self) -> SwitchSeen | None:
        """Return the connections; None where the mount or its switch is no longer that of the plan."""

    def add(self) -> str:
        """Add a connection."""

    def offline(self, name: str) -> str:
        """Have the kernel send no new requests over a connection."""

    def settle(self, name: str) -> None:
        """Wait, within a bound, until the requests that are on a connection have ended."""

    def remove(self, name: str) -> str:
        """Take a connection away that is offline, and wait a moment until it is gone."""
