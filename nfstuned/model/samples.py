"""Rates between two looks at mountstats, each figure at its own level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpRate:
    """One operation of one superblock over an interval; the times are means an operation."""

    per_s: float
    rtt_ms: float | None
    queue_ms: float | None
    exe_ms: float | None
    retrans_per_s: float
    errors_per_s: float | None


@dataclass(frozen=True, slots=True)
class TransportRate:
    """The connections of one transport group over an interval; each figure counts the group once."""

    group: str
    connections: int
    in_flight: float | None
    backlog: float | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One superblock over an interval, as `nfstuned.sample/1` in docs/architecture.md."""

    time: float
    interval_s: float
    device: str
    mount_points: tuple[str, ...]
    source: str
    read_bytes_per_s: float
    write_bytes_per_s: float
    server_read_bytes_per_s: float
    server_write_bytes_per_s: float
    over_fetch_ratio: float | None
    ops: Mapping[str, OpRate]
    transport: TransportRate
