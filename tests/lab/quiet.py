"""Whether this machine did something else while a guest was measured against time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# Of /proc/stat's first line (proc(5)): idle and iowait, and what guests had, which user and nice have, too.
_IDLE = (3, 4)
_COUNTED_TWICE = (8, 9)


@dataclass(frozen=True)
class Spent:
    """Seconds of processors since the machine's start."""

    all_s: float
    busy_s: float
    """With what a hypervisor took away."""
    own_s: float
    """That of this process and of its children that have ended."""


def now() -> Spent:
    """Return what has been spent until now."""
    times = os.times()
    own_s = times.user + times.system + times.children_user + times.children_system
    return spent(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK"), own_s)


def spent(stat: str, ticks_per_s: int, own_s: float) -> Spent:
    """Return what a text of /proc/stat says has been spent, all processors together."""
    name, *columns = stat.partition("\n")[0].split()
    if name != "cpu":
        raise ValueError(f"/proc/stat: no line of all processors: {stat[:80]!r}")
    ticks = [int(column) for column in columns]
    whole = sum(ticks[index] for index in range(len(ticks)) if index not in _COUNTED_TWICE)
    busy = whole - sum(ticks[index] for index in _IDLE)
    return Spent(whole / ticks_per_s, busy / ticks_per_s, own_s)


def elsewhere(before: Spent, after: Spent) -> float:
    """Return which share of the processors' time in between went to other programs, from 0 to 1."""
    whole = after.all_s - before.all_s
    other = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return max(0.0, other / whole) if whole else 0.0
