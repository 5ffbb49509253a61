"""The processor time of a tunnel's threads: stunnel has one for each connection (proc_pid_stat(5))."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from nfstuned.host.root import Root
from nfstuned.model.kernel import decimal
from nfstuned.model.system import TunnelService
from nfstuned.parse.fields import clean_path
from nfstuned.parse.proc.processes import parse_processor_ticks, parse_state, parse_uptime

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NAMES = ("stunnel", "efs-proxy")
"""How the programs' names begin: what an old file names may be any program by now."""
MOST_THREADS = 200


class TunnelThreads(NamedTuple):
    """What a tunnel's process had of the processors by a moment of the kernel's clock, in seconds."""

    uptime_s: float
    all_s: float
    """The time of all its threads, those that ended as well."""
    taken_s: Mapping[str, float]
    """The time of each thread that it has, by the thread's number."""


def observe_tunnel_threads(root: Root, pid_file: str) -> TunnelThreads | None:
    """Return the processor time that a tunnel took so far.

    The tunnel is the process that its file of the process id names (`pid` of its configuration); no command
    line is looked at, for which one may have to wait. None where there is no such process.
    """
    pid = decimal(root.read_or_empty(clean_path(pid_file).lstrip("/")).strip()) if pid_file else None
    uptime_s = parse_uptime(root.read_or_empty("proc/uptime")) if pid is not None else None
    if uptime_s is None:
        return None
    process = root.read_or_empty(f"proc/{pid}/stat")
    all_ticks = parse_processor_ticks(process)
    if all_ticks is None or not parse_state(process)[0].startswith(_NAMES):
        return None
    taken_s: dict[str, float] = {}
    for thread in islice(root.names(f"proc/{pid}/task"), MOST_THREADS):
        ticks = parse_processor_ticks(root.read_or_empty(f"proc/{pid}/task/{thread}/stat"))
        if ticks is not None:
            taken_s[thread] = ticks / _TICKS_PER_S
    return TunnelThreads(uptime_s, all_ticks / _TICKS_PER_S, taken_s)


def observe_tunnels(root: Root, services: Iterable[TunnelService]) -> dict[str, TunnelThreads]:
    """Return the processor time that each tunnel took so far, by the tunnel's configuration."""
    pid_files = {service.file: service.pid_file for service in services}
    threads = {file: observe_tunnel_threads(root, pid_file) for file, pid_file in pid_files.items()}
    return {file: known for file, known in threads.items() if known is not None}


def shares(
    before: Mapping[str, TunnelThreads], after: Mapping[str, TunnelThreads]
) -> dict[str, tuple[float, ...]]:
    """Return how much of a processor each thread of the tunnels had in between, the most first."""
    return {
        file: _shares(before[file], later)
        for file, later in after.items()
        if file in before and later.uptime_s > before[file].uptime_s
    }


def _shares(before: TunnelThreads, after: TunnelThreads) -> tuple[float, ...]:
    seconds = after.uptime_s - before.uptime_s
    taken_s = (
        after.taken_s[thread] - earlier
        for thread, earlier in before.taken_s.items()
        if thread in after.taken_s
    )
    # The clock and a thread's time are not read at the same moment.
    return tuple(sorted((min(1.0, each_s / seconds) for each_s in taken_s), reverse=True))
