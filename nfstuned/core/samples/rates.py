"""Two looks at the counters to rates: each superblock once, each transport group once, no false spikes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.core.samples.delta import (
    NO_BYTES,
    NO_EVENTS,
    NOTHING_ELSEWHERE,
    UNBOUNDED,
    Elsewhere,
    OpDelta,
    ResetError,
    Span,
    continues,
    delta,
    grown,
    known_growth,
    sum_grown,
)
from nfstuned.errors import ParseError
from nfstuned.model.kernel import NFS_PORT, Mount, Options, Stanza, Transport, bracketed
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.samples import Counted, Look, OpRate, Sample, TransportRate
from nfstuned.parse.proc.mountstats import parse_transports


def transport_group(options: Options, source: str, port: int = 0) -> str:
    """Name the transport group as the kernel matches it (fs/nfs/client.c, nfs_match_client).

    `port` is the client's as nfsfs shows it, 0 where that is not known. `/proc/mounts` has the client's own
    address and version, but the port that its mount asked for, and leaves it out when it is 2049: a tunnel's
    mount over another's connections still shows its own.
    """
    shown = dict(options.pairs)  # of a repeated option the last counts, as everywhere
    address = bracketed(shown.get("addr") or source)
    version, protocol = shown.get("vers") or "?", shown.get("proto") or "?"
    name = f"v{version} {protocol} {address}:{port or shown.get('port') or NFS_PORT}"
    security = shown.get("xprtsec")
    return name if security in {None, "none"} else f"{name} {security}"


def join(snapshot: Snapshot, stats: Iterable[Stanza]) -> dict[int, Stanza]:
    """Map mount ids to their stanzas, by source and mount point: mountstats names no device.

    It shows the host's own mount namespace. A mount in another has none, also where a mount of the host has
    the same source and mount point: that may be another superblock.
    """
    shown = tuple(stats)
    known = {(stanza.source, stanza.point): stanza for stanza in shown}
    mounts = [
        mount for superblock in snapshot.superblocks for mount in superblock.mounts if not mount.foreign
    ]
    if len(known) == len(shown) and len({(mount.source, mount.point) for mount in mounts}) == len(mounts):
        places = ((mount.mount_id, known.get((mount.source, mount.point))) for mount in mounts)
        return {mount_id: stanza for mount_id, stanza in places if stanza is not None}
    # Several mounts or stanzas have the same source and mount point.
    alike: defaultdict[tuple[str, str], list[Mount]] = defaultdict(list)
    stanzas: defaultdict[tuple[str, str], list[Stanza]] = defaultdict(list)
    for mount in mounts:
        alike[mount.source, mount.point].append(mount)
    for stanza in shown:
        stanzas[stanza.source, stanza.point].append(stanza)
    joined: dict[int, Stanza] = {}
    for key, same in alike.items():
        joined.update(_pair(same, stanzas.get(key, ())))
    return joined


def _pair(alike: list[Mount], stanzas: Sequence[Stanza]) -> dict[int, Stanza]:
    """Pair mounts of one source and point with the stanzas of the same; nothing when it is unclear.

    Where all are one superblock their numbers may differ, as when one appeared between the two files: it has
    one age, and its mounts show the same counters.
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


def op_rates(ops: Mapping[str, OpDelta], seconds: float) -> dict[str, OpRate]:
    """Return the rates of the operations that ended in the interval; a time is their mean."""
    rates: dict[str, OpRate] = {}
    for name, op in ops.items():
        # Attributes would take half of the time again: a thousand mounts in use have eight thousand of these.
        count, sent, timeouts, bytes_sent, bytes_received, queue_ms, rtt_ms, execute_ms, errors = op
        if count or sent:
            rates[name] = OpRate(
                count / seconds,
                rtt_ms / count if count and rtt_ms >= 0 else None,
                queue_ms / count if count and queue_ms >= 0 else None,
                execute_ms / count if count and execute_ms >= 0 else None,
                (sent - count) / seconds if sent > count else 0.0,
                None if errors is None else errors / seconds,
                timeouts / seconds,
                bytes_sent / seconds if bytes_sent >= 0 else None,
                bytes_received / seconds if bytes_received >= 0 else None,
            )
    return rates


def _per_event(growth: int, count: int) -> float | None:
    """Return the growth of a sum for each event; None when nothing happened, or when the sum fell."""
    return growth / count if count and growth >= 0 else None


_STILL: Sequence[float] = (0.0,) * len(NO_BYTES)
_UNKNOWN: Sequence[None] = (None,) * len(NO_BYTES)
_NO_EVENTS: Sequence[float | None] = (0.0,) * len(NO_EVENTS)
_NO_OPS: Mapping[str, OpRate] = MappingProxyType({})


class _Group(NamedTuple):
    """The rates of a transport group, and which of its operations its first sample counted."""

    rate: TransportRate
    elsewhere: Elsewhere


def make_look(
    snapshot: Snapshot,
    stats: Iterable[Stanza],
    time: float,
    monotonic_s: float,
    major_faults: int | None = None,
) -> Look:
    """Return the counters of every superblock that has a mount with statistics, each superblock once.

    mountstats names no device, so mounts and stanzas are joined by source and mount point. Where several
    have the same, they are taken only when there is no doubt about which belongs to which superblock.
    """
    joined = join(snapshot, stats)
    known: dict[tuple[int, int], tuple[str, int | None]] = {}
    seen: list[Counted] = []
    hidden: set[str] = set()
    for superblock in snapshot.superblocks:
        for shown in superblock.mounts:
            counters = joined.get(shown.mount_id)
            if counters is not None:
                seen.append(_counted(superblock, shown, counters, known))
                break
        else:
            if superblock.volume is not None:
                hidden.add(superblock.volume.peer)
    return Look(time, monotonic_s, tuple(seen), frozenset(hidden), major_faults)


def _counted(
    superblock: Superblock,
    shown: Mount,
    counters: Stanza,
    known: dict[tuple[int, int], tuple[str, int | None]],
) -> Counted:
    """Return the counters of a superblock; `known` are the group and rsize of options and ports met."""
    mounts, options, volume = superblock.mounts, shown.options, superblock.volume
    # parse_kernel_options() gives the same ones to all mounts alike.
    key = id(options), volume.port if volume else 0
    of_options = known.get(key)
    if of_options is None:
        of_options = transport_group(options, shown.source, key[1]), options.number("rsize")
        if options.get("addr"):
            known[key] = of_options
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


def rates(
    earlier: Look,
    later: Look,
    damaged: Callable[[ParseError], None] = lambda _: None,
    between: Callable[[], None] = lambda: None,
) -> tuple[Sample, ...]:
    """Return a sample of each superblock that both looks show, in the later look's order.

    A superblock has none where it was replaced, its counters began again, or its stanza is cut off or
    damaged in either look; `damaged` gets the damage. Without time between the looks there are no samples.
    The monotonic clock measures the interval: after a suspension or a step of the wall clock the rates are
    still right. No figure is negative, infinite or NaN. `between` is called for each superblock, for work
    that cannot wait until the end.
    """
    seconds = later.monotonic_s - earlier.monotonic_s
    if not (0 < seconds < math.inf and math.isfinite(later.time)):
        return ()
    span = Span.of(seconds)
    groups: dict[str, _Group] = {}
    samples: list[Sample] = []
    faults = known_growth(earlier.major_faults, later.major_faults, span)
    faults_per_s = None if faults is None else faults / span.seconds
    for before, now in _pairs(earlier, later):
        between()
        if not continues(before.stats, now.stats, seconds):
            continue
        try:
            sample = _sample((before, now), span, groups, later.time, faults_per_s)
        except ParseError as error:
            damaged(ParseError(error.file, 0, f"no sample of {now.source}: {error.message}"))
            continue
        if sample is not None:
            samples.append(sample)
    return tuple(samples)


def _sample(
    pair: tuple[Counted, Counted],
    span: Span,
    groups: dict[str, _Group],
    time: float,
    faults_per_s: float | None,
) -> Sample | None:
    """Return the sample of a superblock; None where its counters began again. Raises ParseError.

    Without a line of bytes these figures are None.
    """
    before, now = pair
    group = groups.get(now.group)
    grew = delta(before.stats, now.stats, span, group.elsewhere if group else NOTHING_ELSEWHERE)
    if grew.ops is None or grew.restarted:
        return None
    if grew.bytes is None and not before.stats.totals is now.stats.totals is None:
        return None
    if group is None:
        group = _Group(_transport(before, now, span), Elsewhere.of(before.stats, now.stats))
        groups[now.group] = group
    read = written = None
    if grew.bytes is None:
        _, _, direct_read, direct_written, server_read, server_written = _UNKNOWN
    else:
        moved = _STILL if grew.bytes is NO_BYTES else [growth / span.seconds for growth in grew.bytes]
        normal_read, normal_written, direct_read, direct_written, server_read, server_written = moved
        read, written = normal_read + direct_read, normal_written + direct_written
    events = _NO_EVENTS
    if grew.events is not NO_EVENTS:
        events = [None if growth is None else growth / span.seconds for growth in grew.events]
    return Sample(
        time=time,
        interval_s=span.seconds,
        device=now.device,
        mount_points=now.mount_points,
        source=now.source,
        read_bytes_per_s=read,
        write_bytes_per_s=written,
        server_read_bytes_per_s=server_read,
        server_write_bytes_per_s=server_written,
        over_fetch_ratio=server_read / read if read and server_read is not None else None,
        ops=MappingProxyType(op_rates(grew.ops, span.seconds)) if grew.ops else _NO_OPS,
        transport=group.rate,
        direct_read_bytes_per_s=direct_read,
        direct_write_bytes_per_s=direct_written,
        read_ahead_kb=now.read_ahead_kb if now.read_ahead_kb == before.read_ahead_kb else None,
        rsize_bytes=now.rsize_bytes,
        silly_renames_per_s=events[0],
        short_reads_per_s=events[1],
        short_writes_per_s=events[2],
        delays_per_s=events[3],
        pnfs_reads_per_s=events[4],
        pnfs_writes_per_s=events[5],
        read_ahead_calls_per_s=events[6],
        major_faults_per_s=faults_per_s,
    )


def _transport(before: Counted, now: Counted, span: Span) -> TransportRate:
    """Return the figures of a group's connections (net/sunrpc/xprt.c, xprt_request_transmit).

    Their number and sums are None where a copy was cut off before their end, or a line was not understood.
    """
    old, new = parse_transports(before.stats.transports), parse_transports(now.stats.transports)
    complete = now.stats.operations is not None and len(new) == now.stats.transports.count(b"\n") + 1
    high = [line.max_slots for line in new if line.max_slots is not None] if complete else []
    number = len(new) if complete else None
    unknown = TransportRate(now.group, number, None, None, max_slots=max(high, default=None))
    if not complete:
        old, new = _same_lines(before.stats.transports, now.stats.transports)
    if before.group != now.group or len(old) != len(new):
        return unknown
    try:
        sends = sum(grown(a.sends, b.sends, span.most_ops) for a, b in zip(old, new, strict=True))
        # A connection that was made fewer times than before is another.
        connects = [
            grown(a.connects, b.connects, span.most_ops)
            for a, b in zip(old, new, strict=True)
            if a.connects is not None and b.connects is not None
        ]
    except ResetError:
        return unknown
    return replace(
        unknown,
        in_flight=_per_event(_sum_grown(old, new, "in_flight_sum"), sends),
        backlog=_per_event(_sum_grown(old, new, "backlog_sum"), sends),
        sending=_per_event(_sum_grown(old, new, "sending_sum"), sends) if high else None,
        pending=_per_event(_sum_grown(old, new, "pending_sum"), sends) if high else None,
        connects_per_s=sum(connects) / span.seconds if connects and complete else None,
    )


def _same_lines(before: bytes, now: bytes) -> tuple[tuple[Transport, ...], tuple[Transport, ...]]:
    """Return the connections that both looks show in the same line."""
    lines = zip(before.split(b"\n"), now.split(b"\n"), strict=False)
    pairs = [(a, b) for old, new in lines for a in parse_transports(old) for b in parse_transports(new)]
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def _sum_grown(old: Iterable[Transport], new: Iterable[Transport], name: str) -> int:
    """Return the growth of a sum over all connections; numbers that the kernel does not print count as 0."""
    before, now = (sum(getattr(line, name) or 0 for line in lines) for lines in (old, new))
    return sum_grown(before, now)


_NEW_SESSION = frozenset({"CREATE_SESSION", "SETCLIENTID_CONFIRM"})


def _pairs(earlier: Look, later: Look) -> Iterator[tuple[Counted, Counted]]:
    """Yield the superblocks that both looks show."""
    known = {counted.key: counted for counted in earlier.superblocks}
    for now in later.superblocks:
        before = known.get(now.key)
        if before is not None:
            yield before, now


def sessions_between(earlier: Look, later: Look) -> Mapping[str, int]:
    """Return per device how often its client began a new session, or got a new id of NFSv4.0.

    Without those that the server refused, and without superblocks with damaged stanzas.
    """
    begun: dict[str, int] = {}
    for before, now in _pairs(earlier, later):
        with suppress(ParseError):
            ops = delta(before.stats, now.stats, UNBOUNDED).ops or {}
            for name in _NEW_SESSION & ops.keys():
                begun[now.device] = ops[name].ops - (ops[name].errors or 0)
    return MappingProxyType(begun)


def connection_sends(before: Stanza, now: Stanza) -> tuple[int, ...]:
    """Return the requests that each connection sent, in the kernel's order.

    Empty where connections came, went or were made again, or cannot be read.
    """
    try:
        old, new = parse_transports(before.transports), parse_transports(now.transports)
    except ParseError:
        return ()
    sent = tuple(line.sends - was.sends for was, line in zip(old, new, strict=False))
    return sent if len(old) == len(new) and min(sent, default=-1) >= 0 else ()


def sends_between(earlier: Look, later: Look) -> Mapping[str, tuple[int, ...]]:
    """Return the `connection_sends` of each superblock that both looks show, by device, where known."""
    sends = {now.device: connection_sends(before.stats, now.stats) for before, now in _pairs(earlier, later)}
    return MappingProxyType({device: sent for device, sent in sends.items() if sent})
