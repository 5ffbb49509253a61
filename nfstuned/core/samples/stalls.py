"""Stalled superblocks: a request waits for its answer far longer than a server that works takes.

The counters of operations do not show a stall, because they grow when a request ends. The requests do
(Requests): a request that two looks show has waited. Before Linux 6.5 a request names its server and not its
superblock. These superblocks of the server then count as waiting:

- a superblock with operations before the first look that showed the request, and without any since;
- the only superblock on a connection that answers nothing;
- every superblock, where as many clients wait as there are superblocks.

From Linux 6.5 to 6.13 a request without a slot of its session counts as well, as long as others of its
server wait for an answer. Linux 6.14 no longer lists it (net/sunrpc/clnt.c, call_reserveresult): its
superblock is not reported, those with the slots are.

Where requests cannot be read, only the connections' counters are left (net/sunrpc/xprt.c): a connection that
sends and receives nothing, or that is made again and again.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.core.samples.delta import GROUP_OPS, UNBOUNDED, OpDelta, delta
from nfstuned.core.samples.sample import is_idle
from nfstuned.errors import ParseError
from nfstuned.model.kernel import Stanza, Transport
from nfstuned.model.samples import Counted, Look, Sample, SuperblockKey
from nfstuned.model.stalls import Requests, RpcRequest, Stall
from nfstuned.parse.proc.mountstats import parse_transports

STALLED_S = 15.0
"""Even a slow server answers within this time, which is three times the limit for slow ones."""
FOLLOW_S = 5.0
"""The time between two looks while a request waits."""
LEASE_S = 75.0
"""The limit for NFSv4.1, where a connection also sends replies to the server's calls, which get no answer.

The client renews its lease after two thirds of the lease time, which is 90 s with Linux' own server."""
_GIVEN_UP_S = 300.0
"""After so long without a request or a new connection nobody waits any more; TCP's own limit is 180 s."""
_MOST_OPERATIONS = 5
"""The number of operations that a stall names, the most frequent first."""
_LOOKS = 5
"""The length of Connection.recent. Its least number counts, since at each look a request may be under way."""
_KERNEL_OPS = GROUP_OPS | {
    "LOOKUP_ROOT", "SERVER_CAPS", "FSINFO", "PATHCONF", "FS_LOCATIONS", "SECINFO", "SECINFO_NO_NAME",
    "GETACL", "SETACL",
}  # fmt: skip
"""Operations that need no user of a superblock. They are also sent for an incomplete mount, with a client and
no superblock yet (fs/nfs/nfs4proc.c), and by an NFSv3 superblock's client for ACLs (fs/nfs/nfs3acl.c)."""
_WITH_CALLBACKS = ("v4.1 ", "v4.2 ")
"""The versions in which the server calls the client on the client's own connections (RFC 8881, 2.10.3)."""


class Wait(NamedTuple):
    """A request that every look has shown since a time of CLOCK_MONOTONIC."""

    since_s: float
    superblocks: Mapping[SuperblockKey, Stanza]
    """The superblocks that wait for it, with their counters at the first of these looks."""


class Connection(NamedTuple):
    """The history of a connection over the looks; the times are of CLOCK_MONOTONIC."""

    counters: Transport
    answered_s: float
    """The last look with a new answer, else the first look."""
    asked_s: float = math.inf
    """The first look with a request that was not answered since; infinite without such a request."""
    last_asked_s: float = -math.inf
    """The last look with a new request."""
    recent: tuple[int, ...] = ()
    """The numbers of unanswered requests at the last looks."""
    at_rest: int | None = None
    """The number of unanswered requests while none waits: replies to the server's own calls, and losses of a
    broken connection. None where it is not known."""

    def silent_s(self, now_s: float) -> float:
        """Return the time for which it has not answered a request; 0 where no request is open."""
        return max(0.0, now_s - self.asked_s) if now_s - self.last_asked_s < _GIVEN_UP_S else 0.0

    def is_held(self, now_s: float) -> bool:
        """Return whether it answers nothing and has an open request.

        `silent_s` may be 0 all the same: on a connection that was always in use, a request just before the
        last answer looks like a reply to the server's own calls.
        """
        return _unanswered(self.counters) > (self.at_rest or 0) and now_s - self.answered_s >= STALLED_S


@dataclass(frozen=True, slots=True)
class RequestWatch:
    """The requests and connections that are followed from look to look."""

    look: Look | None = None
    waits: Mapping[RpcRequest, Wait] = field(default_factory=lambda: MappingProxyType({}))
    connections: Mapping[str, tuple[Connection, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By transport group."""
    blind: bool = False
    """The requests cannot be read."""
    seen_s: float = -math.inf
    """The last look at which they could be read, of CLOCK_MONOTONIC."""


def connections_by_group(look: Look) -> dict[str, tuple[Transport, ...]]:
    """Return the connections of each transport group, without groups with damaged lines."""
    groups: dict[str, tuple[Transport, ...]] = {}
    for counted in look.superblocks:
        if counted.group not in groups and (lines := _parsed(counted.stats.transports)):
            groups[counted.group] = lines
    return groups


def may_wait(watch: RequestWatch, look: Look) -> bool:
    """Return whether a request may be under way: otherwise the requests need not be read.

    Groups in different network namespaces can have one name and other connections: each superblock counts.
    """
    lines = {(counted.group, counted.stats.transports) for counted in look.superblocks}
    return bool(watch.waits) or any(
        watch.blind or not _rests(watch.connections.get(group, ()), _parsed(text)) for group, text in lines
    )


def _parsed(text: bytes) -> tuple[Transport, ...]:
    try:
        return parse_transports(text)
    except ParseError:
        return ()


def _rests(known: Sequence[Connection], lines: Sequence[Transport]) -> bool:
    """Return whether the counters show that none of a group's requests waits."""
    return 0 < len(known) == len(lines) and all(
        before.counters.connects == now.connects and before.at_rest == _unanswered(now)
        for before, now in zip(known, lines, strict=True)
    )


def _answers(line: Transport) -> int:
    # An answer that is too late for its request is an answer as well.
    return line.receives + line.bad_xids


def _unanswered(line: Transport) -> int:
    return line.sends - _answers(line)


def follow(watch: RequestWatch, look: Look, requests: Requests | None) -> RequestWatch:
    """Return the watch after a look; `requests` are those under way then, None where they cannot be read.

    Where `may_wait` is False, NOTHING_UNDER_WAY stands for them. The waits of the look before stay for a
    single look at which the requests cannot be read: a failed read is not an answer.
    """
    waiting = {request.peer for request in requests.waiting} if requests is not None else {""}
    connections = {}
    for group, lines in connections_by_group(look).items():
        known = watch.connections.get(group, ())
        rests = not {"", group_peer(group)} & waiting
        # Without the requests, a reply to the server's call must not count as an open request for long.
        looks = 1 if requests is None and group.startswith(_WITH_CALLBACKS) else _LOOKS
        connections[group] = _connections(known, lines, look.monotonic_s, looks, rests=rests)
    if requests is None:
        if not watch.waits or watch.look is None or watch.look.monotonic_s != watch.seen_s:
            return RequestWatch(look, connections=connections, blind=True)
        mounted = {counted.key for counted in look.superblocks}
        waits = {
            request: Wait(since_s, {key: stats for key, stats in superblocks.items() if key in mounted})
            for request, (since_s, superblocks) in watch.waits.items()
        }
        return RequestWatch(look, waits, connections, seen_s=watch.seen_s)
    full = _full_servers(look, (*requests.waiting, *requests.queued))
    late = (request for request in requests.waiting if _is_late(watch.waits.get(request), look.monotonic_s))
    seen = _Evidence(watch.look, look, requests, connections, full, _full_servers(look, late) - look.hidden)
    # A request without a slot names nobody but its client: that must be known.
    queued = () if requests.clients is None else requests.queued
    followed = (*requests.waiting, *queued)
    waits = {request: _wait(watch.waits.get(request), request, seen) for request in followed}
    return RequestWatch(look, waits, connections, seen_s=look.monotonic_s)


class _Evidence(NamedTuple):
    """The facts by which the superblocks of a request are chosen."""

    earlier: Look | None
    look: Look
    requests: Requests
    connections: Mapping[str, tuple[Connection, ...]]
    full: frozenset[str]
    """The servers with as many waiting clients as superblocks."""
    full_and_late: frozenset[str]
    """The same, counting only clients that wait for longer than `STALLED_S`."""


def _is_late(wait: Wait | None, now_s: float) -> bool:
    return wait is not None and now_s - wait.since_s >= STALLED_S


def _full_servers(look: Look, requests: Iterable[RpcRequest]) -> frozenset[str]:
    """Return the servers with as many waiting clients as superblocks: each superblock has its own client."""
    clients: defaultdict[str, set[int]] = defaultdict(set)
    for request in requests:
        if request.operation not in _KERNEL_OPS:
            clients[request.peer].add(request.client)
    if not clients:
        return frozenset()
    superblocks = Counter(group_peer(counted.group) for counted in look.superblocks)
    return frozenset(name for name, number in superblocks.items() if len(clients[name]) >= number)


def _wait(known: Wait | None, request: RpcRequest, seen: _Evidence) -> Wait:
    since_s = known.since_s if known else seen.look.monotonic_s
    clients = seen.requests.clients
    if clients is not None:
        of_client = (
            counted for counted in seen.look.superblocks if request.client in clients.get(counted.device, ())
        )
        return Wait(since_s, {counted.key: counted.stats for counted in of_client})
    of_server = {
        counted.key: counted for counted in seen.look.superblocks if group_peer(counted.group) == request.peer
    }
    if request.operation in GROUP_OPS:
        open_ = (
            counted
            for counted in of_server.values()
            if _has_open_request(seen.connections.get(counted.group, ()))
        )
        return Wait(since_s, {counted.key: counted.stats for counted in open_})
    # It may also be of a mount that is not complete, or of a superblock that nobody sees (`umount -l`).
    if len(of_server) == 1 and request.operation not in _KERNEL_OPS and request.peer not in seen.look.hidden:
        ((key, only),) = of_server.items()
        if known is None:
            return Wait(since_s, {key: only.stats})
        before = known.superblocks.get(key)
        # As a rule a superblock waits for no other request of a kind than the one that ended.
        if before is not None and request.operation not in (_ops(before, only.stats) or {}):
            return Wait(since_s, {key: before})
    of_group = Counter(counted.group for counted in seen.look.superblocks)
    by_number = {
        key: counted.stats
        for key, counted in of_server.items()
        if _waits_by_number(counted, request.peer, seen, alone=of_group[counted.group] == 1)
    }
    if known is None:
        return Wait(since_s, _active(seen.earlier, of_server) | by_number)
    still = {
        key: stats
        for key, stats in known.superblocks.items()
        if key in of_server and not has_completed(stats, of_server[key].stats)
    }
    return Wait(since_s, still | by_number)


def _waits_by_number(counted: Counted, server: str, seen: _Evidence, *, alone: bool) -> bool:
    """Return whether a superblock waits, by its connections and its server's number of waiting clients."""
    connections, now_s = seen.connections.get(counted.group, ()), seen.look.monotonic_s
    is_silent = any(connection.silent_s(now_s) >= STALLED_S for connection in connections)
    if is_silent and (alone or server in seen.full):
        return True
    return server in seen.full_and_late and any(connection.is_held(now_s) for connection in connections)


def _ops(before: Stanza, now: Stanza) -> Mapping[str, OpDelta] | None:
    """Return the growth of the operations with changed counters; None for damage, or where a counter fell."""
    try:
        return delta(before, now, UNBOUNDED).ops
    except ParseError:
        return None


def _active(earlier: Look | None, now: Mapping[SuperblockKey, Counted]) -> dict[SuperblockKey, Stanza]:
    """Return the superblocks in use since the look before: an operation ended, or a call began."""
    before = {counted.key: counted.stats for counted in earlier.superblocks} if earlier is not None else {}
    return {
        key: counted.stats
        for key, counted in now.items()
        if key in before
        and (
            (before[key].totals, before[key].events) != (counted.stats.totals, counted.stats.events)
            or has_completed(before[key], counted.stats)
        )
    }


def has_completed(before: Stanza, now: Stanza) -> bool:
    """Return whether an operation of the superblock itself ended, or damaged counters may hide it."""
    ops = _ops(before, now)
    return ops is None or not ops.keys() <= GROUP_OPS


def _has_open_request(connections: Sequence[Connection]) -> bool:
    return any(connection.asked_s < math.inf for connection in connections)


def stalls(watch: RequestWatch) -> dict[SuperblockKey, Stall]:
    """Return the superblocks with requests that wait for longer than `STALLED_S`."""
    if watch.look is None:
        return {}
    if watch.blind:
        now_s = watch.look.monotonic_s
        since = {group: _silent_since(group, known, now_s) for group, known in watch.connections.items()}
        return {
            counted.key: Stall(since_s)
            for counted in watch.look.superblocks
            if (since_s := since.get(counted.group)) is not None
        }
    overdue = {request: wait for request, wait in watch.waits.items() if _is_late(wait, watch.seen_s)}
    silent = {request.peer for request in overdue if request.xid} - {""}
    late: defaultdict[SuperblockKey, list[tuple[float, str]]] = defaultdict(list)
    for request, wait in overdue.items():
        # The others may have their answer again and again: "ask later" (NFS4ERR_DELAY, NFS3ERR_JUKEBOX).
        if request.xid or request.peer in silent:
            for superblock in wait.superblocks:
                late[superblock].append((wait.since_s, request.operation))
    stalled = {}
    for superblock, waits in late.items():
        often = Counter(operation for _, operation in waits).most_common(_MOST_OPERATIONS)
        stalled[superblock] = Stall(min(waits)[0], len(waits), tuple(operation for operation, _ in often))
    return stalled


def _silent_since(group: str, connections: Sequence[Connection], now_s: float) -> float | None:
    """Return the time since which a group's requests are not answered; None without a stall."""
    if group.startswith(_WITH_CALLBACKS):
        answered_s = max((connection.answered_s for connection in connections), default=now_s)
        waited = _has_open_request(connections) and now_s - answered_s >= LEASE_S
        return answered_s if waited else None
    asked = [waiting.asked_s for waiting in connections if waiting.silent_s(now_s) >= STALLED_S]
    return min(asked, default=None)


def _connections(
    before: Sequence[Connection], lines: Sequence[Transport], now_s: float, looks: int, *, rests: bool
) -> tuple[Connection, ...]:
    """Return a group's connections as of now; where their number changed, all of them are new.

    `looks` is the length of Connection.recent. `rests`: none of the server's requests waits.
    """
    if len(before) == len(lines):
        now = [_connection(known, line, now_s, looks) for known, line in zip(before, lines, strict=True)]
    else:
        now = [_new(line, now_s) for line in lines]
        before = now
    return tuple(map(_rested, before, now)) if rests else tuple(now)


def _new(line: Transport, now_s: float) -> Connection:
    return Connection(line, now_s, recent=(_unanswered(line),))


def _rested(before: Connection, now: Connection) -> Connection:
    """Return a connection to a server without waiting requests, with its unanswered requests at rest.

    The requests are read just after the counters. A request may have ended in between: the count is taken
    only where the connection was not in use then.
    """
    line, was = now.counters, before.counters
    still = before is not now and (line.sends, _answers(line)) == (was.sends, _answers(was))
    if not still and not line.idle_s:
        return now
    unanswered = _unanswered(line)
    return Connection(line, now.answered_s, recent=(unanswered,), at_rest=unanswered)


def _connection(known: Connection, now: Transport, now_s: float, looks: int) -> Connection:
    was = known.counters
    made = (now.connects or 0) - (was.connects or 0)
    if now.sends < was.sends or now.receives < was.receives or made < 0:
        return _new(now, now_s)
    unanswered = _unanswered(now)
    if made and _answers(now) != _answers(was):
        # Requests that a connection lost are sent once more, and counted twice: none is left to wait for.
        return _new(now, now_s)
    recent = (_unanswered(was),) if made else known.recent
    at_rest = None if made or known.at_rest is None or unanswered < known.at_rest else known.at_rest
    if _answers(now) != _answers(was):
        asked = unanswered > min(recent)
        asked_s, last_asked_s = (now_s, now_s) if asked else (math.inf, -math.inf)
        return Connection(now, now_s, asked_s, last_asked_s, (*recent, unanswered)[-looks:], at_rest)
    if now.sends == was.sends and not made:
        return known._replace(counters=now)
    return Connection(now, known.answered_s, min(known.asked_s, now_s), now_s, recent, at_rest)


def is_pending(watch: RequestWatch) -> bool:
    """Return whether a request waits or may wait, so that the next look is due in `FOLLOW_S`."""
    if watch.look is None or not watch.blind:
        return bool(watch.waits)
    now_s = watch.look.monotonic_s
    return any(
        connection.asked_s <= now_s < connection.asked_s + STALLED_S + FOLLOW_S
        for group, connections in watch.connections.items()
        if not group.startswith(_WITH_CALLBACKS)
        for connection in connections
    )


def active_samples(samples: Iterable[Sample], stalled_s: Mapping[str, float]) -> list[Sample]:
    """Return the samples of superblocks that are in use or stalled; `stalled_s` is by device."""
    return [
        replace(sample, stalled_s=stalled_s.get(sample.device, 0.0))
        for sample in samples
        if sample.device in stalled_s or not is_idle(sample)
    ]


def has_answered(group: str, before: RequestWatch, look: Look) -> bool:
    """Return whether a group's server has sent an answer between the watch's look and `look`."""
    was, now = before.connections.get(group, ()), connections_by_group(look).get(group, ())
    return sum(line.receives for line in now) > sum(connection.counters.receives for connection in was)


def has_succeeded(before: Stanza, now: Stanza) -> bool:
    """Return whether an operation of the superblock itself succeeded, or damaged counters may hide it."""
    ops = _ops(before, now)
    return ops is None or any(name not in GROUP_OPS and op.ops > (op.errors or 0) for name, op in ops.items())


def group_peer(group: str) -> str:
    """Return a transport group's version and server as a request has them: "v4 10.10.10.10:2049"."""
    version, _, rest = group.partition(" ")
    return f"{version.partition('.')[0]} {rest.partition(' ')[2].partition(' ')[0]}"


def group_server(group: str) -> str:
    """Return a transport group's server and port."""
    return group_peer(group).partition(" ")[2]
