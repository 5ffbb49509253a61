"""The load of this machine between two looks: its processors (proc(5)) and its interfaces."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from nfstuned.host.network.links import FOLDER as LINKS
from nfstuned.host.network.links import observe_traffic
from nfstuned.host.root import Root

_IDLE = (3, 4)
"""Columns of a line: idle and iowait."""
_GUESTS = 8
"""From here on columns repeat time of the others."""


@dataclass(frozen=True, slots=True)
class Processors:
    """Ticks since the boot of each processor: all, and those in which it worked."""

    ticks: tuple[tuple[int, int], ...]


def observe_processors(root: Root) -> Processors:
    """Return each processor's ticks; none where the file cannot be read."""
    lines = (line.split() for line in root.read_or_empty("proc/stat").splitlines())
    ticks = []
    for name, *columns in (line for line in lines if line and line[0].startswith("cpu")):
        if name != "cpu":
            values = [int(column) for column in columns[:_GUESTS]]
            ticks.append((sum(values), sum(values) - sum(values[index] for index in _IDLE)))
    return Processors(tuple(ticks))


def busy_between(before: Processors, after: Processors) -> tuple[float, ...]:
    """Return how busy each processor was, from 0 to 1; none where one of them came or went."""
    if len(before.ticks) != len(after.ticks):
        return ()
    pairs = zip(before.ticks, after.ticks, strict=True)
    grown = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairs]
    return tuple(worked / whole if whole > 0 else 0.0 for whole, worked in grown)


NETVSC = "hv_netvsc"
"""The driver of an Azure VM's interfaces. A virtual function's bytes are in those of the one above it."""


def uplinks(root: Root) -> tuple[str, ...]:
    """Return the interfaces of an Azure VM that share the VM's limit for sending."""
    drivers = ((name, root.link(f"{LINKS}/{name}/device/driver")) for name in root.names(LINKS))
    return tuple(name for name, driver in drivers if driver and posixpath.basename(driver) == NETVSC)


def observe_sent(root: Root, names: Sequence[str]) -> int | None:
    """Return the bytes that interfaces sent since they came up; None without any of them."""
    traffic = observe_traffic(root, tuple(names))
    return sum(each.sent for each in traffic) if traffic and len(traffic) == len(names) else None
