"""Rows of `nfstuned status`, requests that a server leaves unanswered, and superblocks that stand still."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class RpcRequest(NamedTuple):
    """A line of `rpc_clnt/*/tasks` (net/sunrpc/debugfs.c): a request that has not ended.

    Client, task and xid are its identity: a request that the server wants again gets another xid.
    """

    client: int
    task: int
    xid: int
    """0 as long as the request is not formed: it waits for a slot, or until it may ask again."""
    operation: str
    peer: str = ""
    """The protocol's major version and the server, "v4 10.10.10.10:2049"; "" where that is not known."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that are under way, of all RPC clients of NFS on this machine."""

    waiting: tuple[RpcRequest, ...]
    """The formed requests."""
    clients: Mapping[str, frozenset[int]] | None
    """By device: the clients of a superblock, with that of the lease; None before Linux 6.5."""
    queued: tuple[RpcRequest, ...] = ()
    """The requests that are not formed yet."""


NOTHING_UNDER_WAY = Requests((), None)


class Stall(NamedTuple):
    """A superblock that waits for its server: since when, and for which operations."""

    since_s: float
    """When the oldest of these requests was first seen, of CLOCK_MONOTONIC."""
    requests: int | None = None
    """How many wait; None where only the counters of the connections tell."""
    operations: tuple[str, ...] = ()
    """Their names, the most frequent first."""
    recovering: bool = False
    """The server answers again, and nothing that a program asked for has succeeded since: as in its grace."""


class Stalled(NamedTuple):
    """The superblocks that wait, by device number and bdi, as known at a moment of CLOCK_MONOTONIC."""

    now_s: float
    stalls: Mapping[tuple[str, int | None], Stall]


@dataclass(frozen=True, slots=True)
class StatusRow:
    """A visible mount: its values, those that it asked for, and those of its profile.

    `None` means not known or, for a target, no opinion. Read-aheads are in KiB.
    """

    mount_point: str
    source: str
    fstype: str
    device: str
    provider: str
    profile: str | None
    """None when the configuration is invalid: then there are no targets either."""
    read_ahead_kb: int | None
    read_ahead_target_kb: int | None
    nconnect_requested: int | None
    nconnect: int
    nconnect_target: int | None
    connections: int | None
    """Transports that the kernel lists; `nconnect` is only how many it meant to make."""
    nconnect_depends: str | None = None
    """The condition of the number where the vendor names several; `nconnect_target` is None then."""
    nconnect_max: int | None = None
    lower: bool = False
    """Whether a read-ahead above the target counts as wrong."""
    nconnect_requested_by: str | None = None
    """The file and line that ask for it, `/etc/fstab:7`; utab's where no other file asks for the same."""
    nconnect_carrying: int | None = None
    """How many carry requests: more than `nconnect` where some were added while it was mounted."""
    nconnect_coming: int | None = None
    """The number that the next mount asks for, by the files; only where `nconnect` is below its target."""
    undone: bool = False
    """The administrator took nfstuned's value back."""
    stalled_s: float | None = None
    """For how long its users have waited for the server, 0 where they do not; None: nobody knows."""
    recovering: bool = False
    """The server answers again, and serves nobody yet."""
    stalled_operations: tuple[str, ...] = ()
    """The operations that they wait for, the most frequent first."""


@dataclass(frozen=True, slots=True)
class StatusRules:
    """A file of udev rules that writes the read-ahead of NFS mounts."""

    file: str
    masked_by: str | None = None
    """The file of the service that keeps it from writing; None where it writes."""
