"""What `nfstuned apply --live` is to do: connections that are added to a group that stays mounted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nfstuned.model.kernel import Switch, Transport

KIND = "live"


@dataclass(frozen=True, slots=True)
class Xprt:
    """One connection, as its folder in a switch's shows it; `None` while it is down."""

    name: str
    """The folder: "xprt-7-tcp". The number is given to another one when it is gone."""
    protocol: str
    state: frozenset[str] = frozenset()
    """The words of xprt_state, such as CONNECTED, OFFLINE, REMOVE."""
    source_port: int | None = None
    queued: int | None = None
    """Requests that it was given and that have not ended (tasks_queuelen)."""


@dataclass(frozen=True, slots=True)
class SwitchSeen:
    """The connections of a transport group in /sys/kernel/sunrpc/xprt-switches."""

    name: str
    """The folder: "switch-3"; also given to another one when it is gone."""
    info: Switch
    xprts: tuple[Xprt, ...]
    grows: bool
    """It has an add_xprt, as of Linux 6.15."""

    @property
    def names(self) -> frozenset[str]:
        """The folders of the connections, also of those that were switched off."""
        return frozenset(one.name for one in self.xprts)


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
    """What is added to one transport group."""

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
        """What must not change between a question and its answer."""
        return self.points, self.old, self.new, self.spot, self.switch.name, self.switch.names


class LiveHands(Protocol):
    """Who carries out a plan. Each call ends within a deadline; a str is what went wrong, or ""."""

    def interrupted(self) -> str:
        """Return which signal wants this to end; "" for none."""

    def answers(self, count: int) -> str:
        """Open so many connections to the server at the same time, and ask for an answer on each."""

    def ask(self, count: int) -> str:
        """Send so many requests over the mount, one after the other. What they say is no matter."""

    def counters(self) -> Sequence[Transport]:
        """Return what each connection in use carried so far, in the kernel's order; () without the mount."""

    def switch(self) -> SwitchSeen | None:
        """Return the connections; None where the mount or its switch is not the one of the plan any more."""

    def add(self) -> str:
        """Add a connection."""

    def offline(self, name: str) -> str:
        """Let a connection have no new requests."""

    def settle(self, name: str) -> None:
        """Wait a while for the requests that a connection was given."""

    def remove(self, name: str) -> str:
        """Take a connection away that is offline, and wait a moment until it is gone."""
