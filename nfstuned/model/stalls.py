"""Requests that a server leaves unanswered, and the superblocks whose users wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class RpcRequest(NamedTuple):
    """A line of `rpc_clnt/*/tasks` (net/sunrpc/debugfs.c): a request that has not ended.

    Client, task and xid are its identity: what the server asks to be asked again gets another xid.
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
    """A superblock that waits for its server: since when, and for the answers to what."""

    since_s: float
    """When the oldest of these requests was first seen, of CLOCK_MONOTONIC."""
    requests: int | None = None
    """How many wait; None where only the counters of the connections tell."""
    operations: tuple[str, ...] = ()
    """What they are, the most frequent first."""
    recovering: bool = False
    """The server answers again, and nothing that a program asked for has succeeded since: as in its grace."""


class Stalled(NamedTuple):
    """The superblocks that wait, by device number and bdi, as known at a moment of CLOCK_MONOTONIC."""

    now_s: float
    stalls: Mapping[tuple[str, int | None], Stall]
