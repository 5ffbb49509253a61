"""Counters as a kernel writes them to mountstats: what tests need no real file for (fs/nfs/super.c)."""

from __future__ import annotations

import re
from dataclasses import astuple

from nfstuned.model.kernel import MountStats, OpCounters, Stanza, Transport
from nfstuned.parse.proc.mountstats import parse_stanzas

LEADS = {
    "tcp": "{0.source_port} 0 {0.connects} 0 {0.idle_s}",
    "udp": "{0.source_port} 0",
    "local": "0 {0.connects} 0 {0.idle_s}",
    "rdma": "{0.source_port} 0 {0.connects} 0 {0.idle_s}",
}
"""What stands before the counters of calls."""


def cut(*stats: MountStats) -> tuple[Stanza, ...]:
    """The stanzas of a file with these mounts, as the sampler has them."""
    return parse_stanzas(["".join(map(written, stats)).encode("utf-8", "surrogateescape")])


def written(stats: MountStats) -> str:
    """The text of one mount; one that is not whole ends before its empty line."""
    names = f"device {_escaped(stats.source)} mounted on {_escaped(stats.point)}"
    lines = [f"{names} with fstype nfs4 statvers=1.1", "\topts:\trw"]
    if stats.age_s is not None:
        lines.append(f"\tage:\t{stats.age_s}")
    if stats.events:
        lines.append(f"\tevents:\t{''.join(f'{count} ' for count in stats.events)}")
    if stats.bytes is not None:
        lines.append(f"\tbytes:\t{''.join(f'{count} ' for count in astuple(stats.bytes))}")
    lines.append("\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)")
    lines += map(_transport, stats.transports)
    lines += ["\tper-op statistics", *(_operation(*one) for one in stats.ops.items())]
    return "\n".join(lines) + ("\n\n" if stats.whole else "\n")


def _escaped(path: str) -> str:
    return re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found[0]):03o}", path)


def _transport(one: Transport) -> str:
    lead = LEADS[one.protocol].format(one).replace("None", "0")
    calls = (one.sends, one.receives, one.bad_xids, one.in_flight_sum, one.backlog_sum)
    slots = () if one.max_slots is None else (one.max_slots, one.sending_sum, one.pending_sum)
    return " ".join([f"\txprt:\t{one.protocol}", lead, *map(str, (*calls, *slots, *one.extra))])


def _operation(name: str, counters: OpCounters) -> str:
    columns = (count for count in astuple(counters) if count is not None)
    return f"\t{name:>12}: {' '.join(map(str, columns))}"
