"""The requests that are under way, and the superblocks that wait for their server."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


class Requests(NamedTuple):
    """The requests that are under way, of all RPC clients of NFS on this machine."""

    waiting: tuple[RpcRequest, ...]
    """The formed requests."""
    clients: Mapping[str, frozenset[int]] | None
    """By device: the clients of a superblock, with the lease's; None before Linux 6.5."""
    queued: tuple[RpcRequest, ...] = ()
    """The requests that are not formed yet."""


NOTHING_UNDER_WAY = Requests((), None)


class Stall(NamedTuple):
    """A superblock that waits for its server: since when, and for which operations."""

    since_s: float
    """When the oldest of these requests was first seen, of CLOCK_MONOTONIC."""
    requests: int | None = None
    """How many wait; None where only the counters of the connections show it."""
    operations: tuple[str, ...] = ()
    """Their names, the most frequent first."""
    recovering: bool = False
    """The server answers again, and nothing that a program asked for has succeeded since: as in its grace."""


class Stalled(NamedTuple):
    """The superblocks that wait, by device number and bdi, as known at a moment of CLOCK_MONOTONIC."""

    now_s: float
    stalls: Mapping[tuple[str, int | None], Stall]


STALLED = "run/nfstuned/stalled.json"
LATE_S = 30.0
"""Seconds after which an overdue look no longer comes: the daemon was stopped."""


def stalled_to_json(stalled: Stalled, next_s: float) -> str:
    """Return the text of STALLED; `next_s` is when the next look is due, of CLOCK_MONOTONIC."""
    rows = [[*identity, *stall] for identity, stall in stalled.stalls.items()]
    return json.dumps({"looked_s": stalled.now_s, "next_s": next_s, "stalled": rows})


def stalled_from_json(text: str, now_s: float) -> Stalled | None:
    """Return the superblocks that wait, by the text of STALLED; None where its next look is late."""
    try:
        found = json.loads(text)
        if not found["looked_s"] <= now_s <= found["next_s"] + LATE_S:
            return None
        stalls = {
            (device, bdi): Stall(float(since_s), requests, tuple(map(str, operations)), recovering == [True])
            for device, bdi, since_s, requests, operations, *recovering in found["stalled"]
        }
    except (KeyError, OverflowError, RecursionError, TypeError, ValueError):
        return None
    return Stalled(now_s, stalls)
