"""Two looks at the counters to rates: each superblock once, each transport group once, no false spikes."""

from __future__ import annotations

import math
from collections import defaultdict
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.model.kernel import ByteCounters, Mount, MountStats, OpCounters, Options
from nfstuned.model.samples import Counted, Look, OpRate, Sample, TransportRate
from nfstuned.model.work import Snapshot

MOST_BYTES_PER_S, MOST_OPS_PER_S = 1e14, 1e8
"""No machine does more. What seems to is a counter that began anew, and a wrap that cannot be one."""

GROUP_OPS = frozenset({
    "NULL", "RENEW", "SETCLIENTID", "SETCLIENTID_CONFIRM", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION",
    "DESTROY_CLIENTID", "SEQUENCE", "GET_LEASE_TIME", "RECLAIM_COMPLETE", "BIND_CONN_TO_SESSION",
})  # fmt: skip
"""Sent by the nfs_client itself. Every mount of the server shows them, since net/sunrpc/stats.c adds the
parent client's counters to each (rpc_clnt_show_stats)."""

_UNUSED = OpCounters(0, 0, 0, 0, 0, 0, 0, 0, 0)


class _ResetError(Exception):
    """A counter fell, or grew beyond reason: it is not the one that was seen before."""


class _Span(NamedTuple):
    """An interval, and what a counter can grow by in it."""

    seconds: float
    most_bytes: float
    most_ops: float


def look(snapshot: Snapshot, stats: tuple[MountStats, ...], time: float, monotonic_s: float) -> Look:
    """Return the counters of every superblock that has a mount with statistics, each superblock once.

    mountstats names no device, so mounts and stanzas are joined by source and mount point. Where several
    have the same, they are taken only when there is no doubt about which belongs to which superblock.
    """
    joined = _join(snapshot, stats)
    seen: list[Counted] = []
    for superblock in snapshot.superblocks:
        shown = next((mount for mount in superblock.mounts if mount.mount_id in joined), None)
        if shown is None:
            continue
        points = tuple(dict.fromkeys(mount.point for mount in superblock.mounts))
        group = _group(shown.options, shown.source)
        counters = joined[shown.mount_id]
        seen.append(Counted(superblock.device, superblock.bdi, points, shown.source, group, counters))
    return Look(time, monotonic_s, tuple(seen))


def rates(earlier: Look, later: Look) -> tuple[Sample, ...]:
    """Return a sample of each superblock that both looks show, in the later look's order.

    A superblock that is not the same one any more, or whose counters began anew, has none. Nor has any when
    no time passed. The interval is that of the monotonic clock: after a suspension or a step of the wall
    clock the rates are still right. No figure is negative, infinite or not a number.
    """
    seconds = later.monotonic_s - earlier.monotonic_s
    if not (0 < seconds < math.inf and math.isfinite(later.time)):
        return ()
    span = _Span(seconds, min(MOST_BYTES_PER_S * seconds, 2.0**63), min(MOST_OPS_PER_S * seconds, 2.0**63))
    known = {(counted.device, counted.bdi): counted for counted in earlier.superblocks}
    groups: dict[str, TransportRate] = {}
    samples: list[Sample] = []
    for now in later.superblocks:
        before = known.get((now.device, now.bdi))
        if before is None or not _continues(before.stats, now.stats, seconds):
            continue
        try:
            samples.append(_sample((before, now), span, groups, later.time))
        except _ResetError:
            continue
    return tuple(samples)


def _group(options: Options, source: str) -> str:
    """Name the transport group as the kernel matches it (fs/nfs/client.c, nfs_match_client).

    `/proc/mounts` leaves the port out when it is 2049, and shows the client's own address and version.
    """
    address = options.get("addr") or source
    if ":" in address:
        address = f"[{address}]"
    version, protocol = options.get("vers") or "?", options.get("proto") or "?"
    name = f"v{version} {protocol} {address}:{options.get('port') or '2049'}"
    security = options.get("xprtsec")
    return name if security in {None, "none"} else f"{name} {security}"


def _join(snapshot: Snapshot, stats: tuple[MountStats, ...]) -> dict[int, MountStats]:
    """Map mount ids to their stanzas."""
    mounts: defaultdict[tuple[str, str], list[Mount]] = defaultdict(list)
    stanzas: defaultdict[tuple[str, str], list[MountStats]] = defaultdict(list)
    for superblock in snapshot.superblocks:
        for mount in superblock.mounts:
            mounts[mount.source, mount.point].append(mount)
    for stanza in stats:
        stanzas[stanza.source, stanza.point].append(stanza)
    joined: dict[int, MountStats] = {}
    for key, alike in mounts.items():
        joined.update(_pair(alike, stanzas[key]))
    return joined


def _pair(alike: list[Mount], stanzas: list[MountStats]) -> dict[int, MountStats]:
    """Pair mounts of one source and point with the stanzas of the same; nothing when it is unclear.

    mountinfo was perhaps read in more mount namespaces than mountstats, so that the counts differ. It does
    not matter where all are one superblock: it has one age, and its mounts show the same counters.
    """
    if len({mount.device for mount in alike}) == 1:
        same = len({stanza.age_s for stanza in stanzas}) == 1
        return dict.fromkeys((mount.mount_id for mount in alike), stanzas[0]) if same else {}
    ordered = _bottom_up(alike)
    if len(ordered) != len(stanzas):
        return {}
    return {mount.mount_id: stanza for mount, stanza in zip(ordered, stanzas, strict=True)}


def _bottom_up(stacked: list[Mount]) -> list[Mount]:
    """Put mounts on one point into the order of the kernel's files; none unless each lies on the last."""
    below = {mount.mount_id for mount in stacked}
    above = {mount.parent_id: mount for mount in stacked}
    top = next((mount for mount in stacked if mount.parent_id not in below), None)
    ordered: list[Mount] = []
    while top is not None and len(ordered) < len(stacked):
        ordered.append(top)
        top = above.get(top.mount_id)
    return ordered if len(ordered) == len(stacked) else []


def _continues(before: MountStats, now: MountStats, seconds: float) -> bool:
    """Tell whether both are of one superblock: its age grew by the time between the looks.

    Ages are whole seconds, and each look takes a while: two seconds and a tenth are allowed for that.
    """
    if before.age_s is None or now.age_s is None:
        return True
    grown = now.age_s - before.age_s
    return grown >= 0 and 0.9 * seconds - 2 <= grown <= 1.1 * seconds + 2


def _sample(
    pair: tuple[Counted, Counted], span: _Span, groups: dict[str, TransportRate], time: float
) -> Sample:
    before, now = pair
    read, written, server_read, server_written = _bytes(before.stats.bytes, now.stats.bytes, span.most_bytes)
    ops = _ops(before.stats, now.stats, span, counted=now.group in groups)
    if now.group not in groups:
        groups[now.group] = _transport(before, now, span.most_ops)
    return Sample(
        time=time,
        interval_s=span.seconds,
        device=now.device,
        mount_points=now.mount_points,
        source=now.source,
        read_bytes_per_s=read / span.seconds,
        write_bytes_per_s=written / span.seconds,
        server_read_bytes_per_s=server_read / span.seconds,
        server_write_bytes_per_s=server_written / span.seconds,
        over_fetch_ratio=server_read / read if read else None,
        ops=MappingProxyType(ops),
        transport=groups[now.group],
    )


def _bytes(before: ByteCounters | None, now: ByteCounters | None, most: float) -> tuple[int, int, int, int]:
    """Return what programs read and wrote, and what the server did, in bytes."""
    if before is None or now is None:
        raise _ResetError
    normal_read = _grown(before.normal_read, now.normal_read, most, (64,))
    direct_read = _grown(before.direct_read, now.direct_read, most, (64,))
    normal_written = _grown(before.normal_written, now.normal_written, most, (64,))
    direct_written = _grown(before.direct_written, now.direct_written, most, (64,))
    server_read = _grown(before.server_read, now.server_read, most, (64,))
    server_written = _grown(before.server_written, now.server_written, most, (64,))
    return normal_read + direct_read, normal_written + direct_written, server_read, server_written


def _ops(before: MountStats, now: MountStats, span: _Span, *, counted: bool) -> dict[str, OpRate]:
    """Return the rates of the operations that were used; `counted`: the group's own ones are elsewhere.

    An operation that only the later look shows was never used before. But each mount shows some from its
    first second on, so that a look without any was cut short, and says nothing about them.
    """
    if not before.ops:
        return {}
    if not before.ops.keys() <= now.ops.keys():
        raise _ResetError
    found: dict[str, OpRate] = {}
    for name, new in now.ops.items():
        old = before.ops.get(name, _UNUSED)
        if new.ops == old.ops and new.transmissions == old.transmissions:
            continue
        rate = _op(old, new, span)
        if not (counted and name in GROUP_OPS):
            found[name] = rate
    return found


def _op(old: OpCounters, new: OpCounters, span: _Span) -> OpRate:
    ops = _grown(old.ops, new.ops, span.most_ops)
    transmissions = _grown(old.transmissions, new.transmissions, span.most_ops)
    errors = None
    if old.errors is not None and new.errors is not None:
        errors = _grown(old.errors, new.errors, span.most_ops) / span.seconds
    return OpRate(
        per_s=ops / span.seconds,
        rtt_ms=_mean(old.rtt_ms, new.rtt_ms, ops),
        queue_ms=_mean(old.queue_ms, new.queue_ms, ops),
        exe_ms=_mean(old.execute_ms, new.execute_ms, ops),
        # An operation that was given up before it was sent counts without a transmission.
        retrans_per_s=max(0, transmissions - ops) / span.seconds,
        errors_per_s=errors,
    )


def _transport(before: Counted, now: Counted, most: float) -> TransportRate:
    old, new = before.stats.transports, now.stats.transports
    unknown = TransportRate(now.group, len(new), None, None)
    if before.group != now.group or len(old) != len(new):
        return unknown
    try:
        sends = sum(_grown(a.sends, b.sends, most) for a, b in zip(old, new, strict=True))
    except _ResetError:
        return unknown
    in_flight = _mean(sum(t.in_flight_sum for t in old), sum(t.in_flight_sum for t in new), sends)
    backlog = _mean(sum(t.backlog_sum for t in old), sum(t.backlog_sum for t in new), sends)
    return TransportRate(now.group, len(new), in_flight, backlog)


def _grown(before: int, now: int, most: float, widths: tuple[int, ...] = (32, 64)) -> int:
    """Return how much a counter grew; a fall may be a wrap at one of the `widths`, in bits.

    The kernel's `unsigned long` has 32 bits on 32-bit machines. A wrap must be likely: less than a quarter of
    the range away, and no more than `most`. Raises _ResetError when no growth explains the numbers.
    """
    if 0 <= now - before <= most:
        return now - before
    for bits in widths:
        grown = now - before + (1 << bits)
        if now < before < (1 << bits) and grown <= min(most, 1 << (bits - 2)):
            return grown
    raise _ResetError


def _mean(before: int, now: int, count: int) -> float | None:
    """Return the growth of a sum per event; None when nothing happened, or when the sum fell.

    The kernel adds negative times now and then, and prints the 64-bit sum without its sign.
    """
    grown = (now - before) % (1 << 64)
    return grown / count if count and grown < (1 << 63) else None
