"""The processor time of a tunnel's threads: stunnel has one for each connection (proc_pid_stat(5))."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from nfstuned.host.root import Root
from nfstuned.model.kernel import decimal
from nfstuned.parse.fields import clean_path
from nfstuned.parse.proc.processes import parse_processor_ticks, parse_state, parse_uptime

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NAMES = ("stunnel", "efs-proxy")
"""How the programs' names begin: what an old file names may be any program by now."""
MOST_THREADS = 200


class TunnelThreads(NamedTuple):
    """What a tunnel's threads had by a moment, by the kernel's clock."""

    uptime_s: float
    taken_s: Mapping[str, float]
    """The processor time of each, by its number."""


def observe_tunnel_threads(root: Root, pid_file: str) -> TunnelThreads | None:
    """Return the processor time that each thread of a tunnel took so far.

    The tunnel is the process that its file of the process id names (`pid` of its configuration); no command
    line is looked at, for which one may have to wait. None where there is no such process.
    """
    pid = decimal(root.read_or_empty(clean_path(pid_file).lstrip("/")).strip()) if pid_file else None
    uptime_s = parse_uptime(root.read_or_empty("proc/uptime")) if pid is not None else None
    if uptime_s is None:
        return None
    taken_s: dict[str, float] = {}
    for thread in islice(root.names(f"proc/{pid}/task"), MOST_THREADS):
        text = root.read_or_empty(f"proc/{pid}/task/{thread}/stat")
        ticks = parse_processor_ticks(text)
        if ticks is not None and parse_state(text)[0].startswith(_NAMES):
            taken_s[thread] = ticks / _TICKS_PER_S
    return TunnelThreads(uptime_s, taken_s) if taken_s else None


def busiest(before: TunnelThreads | None, after: TunnelThreads | None) -> float | None:
    """Return how much of a processor the busiest of the threads had in between; None for no thread."""
    if before is None or after is None or after.uptime_s <= before.uptime_s:
        return None
    taken_s = [
        after.taken_s[thread] - earlier
        for thread, earlier in before.taken_s.items()
        if thread in after.taken_s
    ]
    return max(taken_s, default=0.0) / (after.uptime_s - before.uptime_s)
