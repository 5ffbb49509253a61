"""Two looks at the counters to rates: each superblock once, each transport group once, no false spikes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import sub
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.core.differences import NOTHING_ELSEWHERE, Elsewhere, elsewhere, totals
from nfstuned.core.growth import ResetError, Span, continues, grown
from nfstuned.core.join import join, transport_group
from nfstuned.core.oprates import mean, op_rates
from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount, Stanza, Transport
from nfstuned.model.samples import Counted, Look, OpRate, Sample, TransportRate
from nfstuned.model.work import Snapshot, Superblock
from nfstuned.parse.mountstats import parse_transports

GROUP_OPS = frozenset({
    "NULL", "RENEW", "SETCLIENTID", "SETCLIENTID_CONFIRM", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION",
    "DESTROY_CLIENTID", "SEQUENCE", "GET_LEASE_TIME", "RECLAIM_COMPLETE", "BIND_CONN_TO_SESSION",
})  # fmt: skip
"""Sent by the nfs_client itself. Every mount of the server shows them, since net/sunrpc/stats.c adds the
parent client's counters to each (rpc_clnt_show_stats)."""

_BYTES = 6
"""How many of the byte counters are of bytes, not of pages."""
_STILL = (0.0,) * _BYTES
_NO_OPS: Mapping[str, OpRate] = MappingProxyType({})


class _Group(NamedTuple):
    """What the first sample of a transport group found out about it."""

    rate: TransportRate
    elsewhere: Elsewhere


def look(snapshot: Snapshot, stats: Iterable[Stanza], time: float, monotonic_s: float) -> Look:
    """Return the counters of every superblock that has a mount with statistics, each superblock once.

    mountstats names no device, so mounts and stanzas are joined by source and mount point. Where several
    have the same, they are taken only when there is no doubt about which belongs to which superblock.
    """
    joined = join(snapshot, stats)
    known: dict[int, tuple[str, int | None]] = {}
    seen: list[Counted] = []
    for superblock in snapshot.superblocks:
        for shown in superblock.mounts:
            counters = joined.get(shown.mount_id)
            if counters is not None:
                seen.append(_counted(superblock, shown, counters, known))
                break
    return Look(time, monotonic_s, tuple(seen))


def _counted(
    superblock: Superblock, shown: Mount, counters: Stanza, known: dict[int, tuple[str, int | None]]
) -> Counted:
    """Return the counters of a superblock; `known` are the group and rsize of options that were met."""
    mounts, options = superblock.mounts, shown.options
    of_options = known.get(id(options))  # parse_kernel_options() gives the same ones to all mounts alike
    if of_options is None:
        of_options = transport_group(options, shown.source), options.number("rsize")
        if options.get("addr"):
            known[id(options)] = of_options
    return Counted(
        superblock.device,
        superblock.bdi,
        (shown.point,) if len(mounts) == 1 else tuple(dict.fromkeys([mount.point for mount in mounts])),
        shown.source,
        of_options[0],
        counters,
        superblock.read_ahead_kb,
        of_options[1],
    )


def rates(earlier: Look, later: Look) -> tuple[Sample, ...]:
    """Return a sample of each superblock that both looks show, in the later look's order.

    A superblock that is not the same one any more, or whose counters began anew, has none; nor has one whose
    stanza was cut off or is damaged in either look, or any when no time passed. The interval is that of the
    monotonic clock: after a suspension or a step of the wall clock the rates are still right. No figure is
    negative, infinite or not a number.
    """
    seconds = later.monotonic_s - earlier.monotonic_s
    if not (0 < seconds < math.inf and math.isfinite(later.time)):
        return ()
    span = Span.of(seconds)
    known = {(counted.device, counted.bdi): counted for counted in earlier.superblocks}
    groups: dict[str, _Group] = {}
    samples: list[Sample] = []
    for now in later.superblocks:
        before = known.get((now.device, now.bdi))
        if before is None or not continues(before.stats, now.stats, seconds):
            continue
        try:
            samples.append(_sample((before, now), span, groups, later.time))
        except (ResetError, ParseError):
            continue
    return tuple(samples)


def _sample(pair: tuple[Counted, Counted], span: Span, groups: dict[str, _Group], time: float) -> Sample:
    before, now = pair
    moved = _bytes(before.stats, now.stats, span)
    group = groups.get(now.group)
    ops = op_rates(before.stats, now.stats, span, group.elsewhere if group else NOTHING_ELSEWHERE)
    if group is None:
        shared = elsewhere(before.stats, now.stats, GROUP_OPS)
        group = groups[now.group] = _Group(_transport(before, now, span), shared)
    normal_read, normal_written, direct_read, direct_written, server_read, server_written = moved
    read = normal_read + direct_read
    return Sample(
        time=time,
        interval_s=span.seconds,
        device=now.device,
        mount_points=now.mount_points,
        source=now.source,
        read_bytes_per_s=read,
        write_bytes_per_s=normal_written + direct_written,
        server_read_bytes_per_s=server_read,
        server_write_bytes_per_s=server_written,
        over_fetch_ratio=server_read / read if read else None,
        ops=MappingProxyType(ops) if ops else _NO_OPS,
        transport=group.rate,
        direct_read_bytes_per_s=direct_read,
        direct_write_bytes_per_s=direct_written,
        read_ahead_kb=now.read_ahead_kb if now.read_ahead_kb == before.read_ahead_kb else None,
        rsize_bytes=now.rsize_bytes,
    )


def _bytes(before: Stanza, now: Stanza, span: Span) -> tuple[float, ...]:
    """Return the rates of the first six byte counters: programs' buffered and direct, then the server's."""
    old, new = totals(before, now)
    if old is new:
        return _STILL
    more = list(map(sub, new[:_BYTES], old[:_BYTES]))
    if min(more) >= 0 and max(more) <= span.most_bytes:
        return tuple([growth / span.seconds for growth in more])
    return tuple(grown(old[n], new[n], span.most_bytes, (64,)) / span.seconds for n in range(_BYTES))


def _transport(before: Counted, now: Counted, span: Span) -> TransportRate:
    """Return the figures of a group's connections (net/sunrpc/xprt.c, xprt_request_transmit)."""
    old, new = parse_transports(before.stats.transports), parse_transports(now.stats.transports)
    high = [line.max_slots for line in new if line.max_slots is not None]
    unknown = TransportRate(now.group, len(new), None, None, max_slots=max(high, default=None))
    if before.group != now.group or len(old) != len(new):
        return unknown
    try:
        sends = sum(grown(a.sends, b.sends, span.most_ops) for a, b in zip(old, new, strict=True))
        connects = [_connects(a, b, span) for a, b in zip(old, new, strict=True)]
    except ResetError:
        return unknown
    known = [count for count in connects if count is not None]
    return replace(
        unknown,
        in_flight=mean(_sum(old, "in_flight_sum"), _sum(new, "in_flight_sum"), sends),
        backlog=mean(_sum(old, "backlog_sum"), _sum(new, "backlog_sum"), sends),
        sending=mean(_sum(old, "sending_sum"), _sum(new, "sending_sum"), sends) if high else None,
        pending=mean(_sum(old, "pending_sum"), _sum(new, "pending_sum"), sends) if high else None,
        connects_per_s=sum(known) / span.seconds if known else None,
    )


def _connects(old: Transport, new: Transport, span: Span) -> int | None:
    """Return how often a connection was made anew; a connection with fewer than before is another one."""
    if old.connects is None or new.connects is None:
        return None
    return grown(old.connects, new.connects, span.most_ops)


def _sum(lines: Iterable[Transport], name: str) -> int:
    return sum(getattr(line, name) or 0 for line in lines)
