"""The numbers that the service adds up over all looks, and the families in which the exporter shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from nfstuned.model.effect import Effect
from nfstuned.model.kernel import Transport
from nfstuned.model.mounts import PodVolume
from nfstuned.model.samples import Counted


class CountedPlace(NamedTuple):
    """The key of a superblock's numbers: its device number and its first mount point.

    The next superblock with the same key goes on where its predecessor ended.
    """

    device: str
    mount_point: str


class OpTotals(NamedTuple):
    """The operations of a kind; the three times are sums over all of them, in milliseconds."""

    ops: int = 0
    retransmissions: int = 0
    timeouts: int = 0
    errors: int | None = None
    """None where the kernel does not count them (before Linux 5.3)."""
    queue_ms: int = 0
    rtt_ms: int = 0
    execute_ms: int = 0


@dataclass(frozen=True, slots=True)
class SuperblockTotals:
    """A superblock's numbers, and the look that they contain."""

    counted: Counted
    looked_s: float
    """When `counted` was seen, of CLOCK_MONOTONIC."""
    since: float
    """When this superblock was first seen, in Unix seconds; its numbers may be older (see CountedPlace)."""
    bytes: tuple[int, ...]
    """The first six of ByteCounters, in their order."""
    kinds: Mapping[str, OpTotals]
    contests: int = 0
    """How often another writer's read-ahead was seen."""
    contests_seen: int = 0


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """A transport group's numbers, once for all superblocks on it; they contain the counters in `lines`."""

    looked_s: float
    lines: tuple[Transport, ...] = ()
    most_lines: int = 0
    """How many connections were ever listed at once."""
    sends: int = 0
    connects: int = 0
    in_flight_sum: int = 0
    """The sum, over all sends, of the requests under way at the send, itself included."""
    backlog_sum: int = 0
    """The sum, over all sends, of the requests that waited for a slot."""
    upkeep: int = 0
    """Operations of the nfs_client itself: the lease, sessions."""


@dataclass(frozen=True, slots=True)
class Totals:
    """All numbers. Those that are gone stay for a while: they may only have been out of sight."""

    looked_s: float | None = None
    """When the last look was, of CLOCK_MONOTONIC; None before the first."""
    superblocks: Mapping[CountedPlace, SuperblockTotals] = field(default_factory=lambda: MappingProxyType({}))
    present: tuple[CountedPlace, ...] = ()
    """The superblocks that the last look showed, in the order in which they were first seen."""
    groups: Mapping[str, GroupTotals] = field(default_factory=lambda: MappingProxyType({}))
    groups_present: tuple[str, ...] = ()
    left_out: frozenset[CountedPlace] = frozenset()
    """The superblocks that the last look showed and for which there was no room."""
    left_out_total: int = 0
    """How often a superblock began to be left out."""


class Point(NamedTuple):
    """A series: the values of the family's labels, in their order, and its number now."""

    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """All series of the same name. A counter's name ends with `_total`; units are seconds and bytes."""

    name: str
    help: str
    labels: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def kind(self) -> str:
        """The type of the family, as the text format calls it."""
        return "counter" if self.name.endswith("_total") else "gauge"


@dataclass(frozen=True, slots=True)
class Service:
    """The daemon's figures of itself; `started` and `sampled` are Unix seconds, all other times durations."""

    version: str
    started: float
    sampled: float
    interval_s: float
    sampling_cpu_s: float
    """CPU time that sampling has taken since the start, for all mounts together."""
    policy_valid: bool
    """The newest configuration is in use."""
    messages: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """How many entries of each message went to the journal."""
    textfile_failures: int = 0
    left: frozenset[str] = frozenset()
    """The devices with a read-ahead that is left to another writer."""
    stalled: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """By device: for how many seconds the users of a superblock have waited for its server."""
    effects: Mapping[str, Effect] = field(default_factory=lambda: MappingProxyType({}))
    """By device: the effect of the last change of its read-ahead, where it can be compared."""
    volumes: Mapping[str, tuple[PodVolume, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """By device: the volumes that a kubelet mounted for pods."""
