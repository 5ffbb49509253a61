"""Superblocks and their counters, also as a kernel writes them to mountstats (fs/nfs/super.c)."""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

from nfstuned.model import kernel
from nfstuned.model.mounts import Superblock
from nfstuned.model.samples import Counted, Look
from nfstuned.parse.proc.mountstats import parse_stanzas

MIB = 1 << 20
GROUP = "v4.1 tcp 10.10.10.10:2049"
OPTIONS = kernel.Options(
    (("rw", None), ("vers", "4.1"), ("proto", "tcp"), ("nconnect", "2"), ("addr", "10.10.10.10"))
)
LEADS = {
    "tcp": "{0.source_port} 0 {0.connects} 0 {0.idle_s}",
    "udp": "{0.source_port} 0",
    "local": "0 {0.connects} 0 {0.idle_s}",
    "rdma": "{0.source_port} 0 {0.connects} 0 {0.idle_s}",
}
"""What stands before the counters of calls."""


def cut(*stats: kernel.MountStats) -> tuple[kernel.Stanza, ...]:
    """The stanzas of a file with these mounts, as the sampler has them."""
    return parse_stanzas(["".join(map(written, stats)).encode("utf-8", "surrogateescape")])


def written(stats: kernel.MountStats) -> str:
    """The text of one mount; one that is not whole ends before its empty line."""
    names = f"device {_escaped(stats.source)} mounted on {_escaped(stats.point)}"
    lines = [f"{names} with fstype nfs4 statvers=1.1", "\topts:\trw"]
    if stats.age_s is not None:
        lines.append(f"\tage:\t{stats.age_s}")
    if stats.events:
        lines.append(f"\tevents:\t{''.join(f'{count} ' for count in stats.events)}")
    if stats.bytes is not None:
        lines.append(f"\tbytes:\t{''.join(f'{count} ' for count in stats.bytes)}")
    lines.append("\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)")
    lines += map(_transport, stats.transports)
    lines += ["\tper-op statistics", *(_operation(*one) for one in stats.ops.items())]
    return "\n".join(lines) + ("\n\n" if stats.whole else "\n")


def _escaped(path: str) -> str:
    return re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found[0]):03o}", path)


def _transport(one: kernel.Transport) -> str:
    lead = LEADS[one.protocol].format(one).replace("None", "0")
    calls = (one.sends, one.receives, one.bad_xids, one.in_flight_sum, one.backlog_sum)
    slots = () if one.max_slots is None else (one.max_slots, one.sending_sum, one.pending_sum)
    return " ".join([f"\txprt:\t{one.protocol}", lead, *map(str, (*calls, *slots, *one.extra))])


def _operation(name: str, counters: kernel.OpCounters) -> str:
    columns = (count for count in counters if count is not None)
    return f"\t{name:>12}: {' '.join(map(str, columns))}"


def op(
    ops: int = 0, rtt_ms: int = 0, transmissions: int | None = None, errors: int | None = 0, queue_ms: int = 0
) -> kernel.OpCounters:
    sent = ops if transmissions is None else transmissions
    moved = ops * 200 % (1 << 64), ops * 150 % (1 << 64)
    return kernel.OpCounters(ops, sent, 0, *moved, queue_ms, rtt_ms, queue_ms + rtt_ms, errors)


def moved(
    read: int = 0, written: int = 0, server_read: int = 0, server_written: int = 0, direct_read: int = 0
) -> kernel.ByteCounters:
    pages = server_read // 4096, server_written // 4096
    return kernel.ByteCounters(read, written, direct_read, 0, server_read, server_written, *pages)


def line(sends: int = 0, in_flight: int = 0, backlog: int = 0) -> kernel.Transport:
    return kernel.Transport("tcp", 0, 1, 0, sends, sends, 0, in_flight, backlog, 64, 0, 0)


def stats(
    age: int | None = 1000,
    total: kernel.ByteCounters | None = None,
    lines: tuple[kernel.Transport, ...] = (),
    **ops: kernel.OpCounters,
) -> kernel.MountStats:
    return kernel.MountStats(
        source="server:/data",
        point="/mnt/data",
        fstype="nfs4",
        statvers="1.1",
        age_s=age,
        options=OPTIONS,
        bytes=total or moved(),
        transports=lines or (line(), line()),
        ops=MappingProxyType(ops),
    )


def counted(
    stats: kernel.MountStats,
    device: str = "0:43",
    group: str = GROUP,
    points: tuple[str, ...] = ("/mnt/data",),
) -> Counted:
    (stanza,) = cut(stats)
    return Counted(device, int(device[2:]), points, "server:/data", group, stanza, 128)


def looks(before: kernel.MountStats, now: kernel.MountStats, seconds: float = 10.0) -> tuple[Look, Look]:
    """Two looks at one superblock, with the age that the later one must have."""
    aged = replace(now, age_s=1000 + int(seconds))
    return Look(5e8, 100.0, (counted(before),)), Look(5e8 + seconds, 100.0 + seconds, (counted(aged),))


def mount(number: int, device: str = "0:43", point: str = "/mnt/data", parent: int = 1) -> kernel.Mount:
    return kernel.Mount(number, parent, device, "/", point, "nfs4", "server:/data", OPTIONS)


def superblock(*mounts: kernel.Mount) -> Superblock:
    return Superblock(mounts[0].device, int(mounts[0].device[2:]), 128, mounts)


def stanza(reads: int, point: str = "/mnt/data") -> kernel.MountStats:
    return replace(stats(READ=op(reads)), point=point)


def through(port: int) -> kernel.Options:
    return kernel.Options((("vers", "4.1"), ("proto", "tcp"), ("port", str(port)), ("addr", "127.0.0.1")))


def tunnelled(port: int) -> tuple[Superblock, ...]:
    """Two mounts through a TLS tunnel each, and the port of the client that has both; 0: nfsfs shows none."""
    shown = [
        superblock(replace(mount(number, f"0:{number}", f"/{number}"), options=through(asked)))
        for number, asked in ((43, 20049), (44, 20050))
    ]
    volume = kernel.Volume(4, "127.0.0.1", port, "", "0:0")
    return tuple(each._replace(volume=volume._replace(device=each.device)) for each in shown)
