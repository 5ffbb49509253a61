"""How busy this machine's processors are between two looks (proc(5), /proc/stat)."""

from __future__ import annotations

from dataclasses import dataclass

from nfstuned.host.root import Root

_IDLE = (3, 4)
"""Columns of a line: idle and iowait."""
_GUESTS = 8
"""From here on columns count what others hold, too."""


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
