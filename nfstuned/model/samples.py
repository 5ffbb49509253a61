"""Two looks at mountstats, the rates between them, and where these are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nfstuned.model.kernel import Stanza


@dataclass(frozen=True, slots=True)
class Counted:
    """One superblock's counters at one moment, once for all of its mounts.

    `device` and `bdi` (as in Superblock) are its identity: the number alone is reused at once.
    """

    device: str
    bdi: int | None
    mount_points: tuple[str, ...]
    source: str
    group: str
    """The transport group that it shares with other mounts of its server: "v4.1 tcp 10.10.10.10:2049"."""
    stats: Stanza
    read_ahead_kb: int | None = None
    """What its bdi says; it counts for files that are opened from then on."""
    rsize_bytes: int | None = None
    """The most that one READ asks for."""


@dataclass(frozen=True, slots=True)
class Look:
    """The counters of every visible NFS superblock at one moment.

    `time` is in Unix seconds and only dates a sample. `monotonic_s` is CLOCK_MONOTONIC and measures it: it
    does not jump when the clock is set, and stands still while the machine is suspended, as the kernel's
    counters do.
    """

    time: float
    monotonic_s: float
    superblocks: tuple[Counted, ...] = ()


class OpRate(NamedTuple):
    """One operation of one superblock over an interval; the times are means an operation.

    A mean is None when no operation ended in the interval, or when the kernel's sum of times ran backwards.
    """

    per_s: float
    rtt_ms: float | None
    queue_ms: float | None
    exe_ms: float | None
    retrans_per_s: float
    errors_per_s: float | None
    """Replies with an error, a file that does not exist among them; None before Linux 5.3."""
    timeouts_per_s: float = 0.0
    """How often all retries of an operation had passed in vain, and it began again."""


@dataclass(frozen=True, slots=True)
class TransportRate:
    """The connections of one transport group over an interval; each figure counts the group once.

    `in_flight` and `backlog` are the mean numbers of requests that a new one found sent, and waiting for a
    slot; `sending` and `pending` those that it found waiting to be sent, and for their replies. They are None
    when nothing was sent, or when a connection came, went or was replaced. What was sent and never answered,
    because its connection broke, stays in the kernel's count of requests in flight.
    """

    group: str
    connections: int
    in_flight: float | None
    backlog: float | None
    sending: float | None = None
    pending: float | None = None
    max_slots: int | None = None
    """The most requests that one of the connections ever had at once; not of the interval."""
    connects_per_s: float | None = None
    """Connections made, again after an idle one was closed or a broken one was lost; None for UDP."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One superblock over an interval, as `nfstuned.sample/1` in docs/json.md."""

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
    """Bytes read from the server for each byte that programs read; None when they read nothing.

    Reads of memory-mapped files are not among the programs' bytes.
    """
    ops: Mapping[str, OpRate]
    """The operations that ended in the interval. Those of the transport group as a whole (SEQUENCE, RENEW and
    the like), which the kernel shows in every mount of a server, are in its first sample only."""
    transport: TransportRate
    direct_read_bytes_per_s: float = 0.0
    """The part of `read_bytes_per_s` that went past the page cache (O_DIRECT)."""
    direct_write_bytes_per_s: float = 0.0
    read_ahead_kb: int | None = None
    """The superblock's read-ahead; None where it was not the same at both ends of the interval."""
    rsize_bytes: int | None = None
    """The most that one READ asks for, as mounted."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where lines go: an absolute path, the size at which the file is put aside, and how many are kept so."""

    path: str
    most_bytes: int
    """0 leaves it to another program to put the file aside."""
    keep: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What came of an attempt to append lines: how many are there whole, and why the others are not."""

    lines: int
    reason: str = ""
    """Empty when all are there."""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry; `name` is that of its message in host/telemetry/journal.py: "READ_AHEAD_SET"."""

    time: float
    """In Unix seconds, by the journal's clock."""
    name: str
    text: str
    device: str = ""
    """Of the superblock that it is about; "" where it is about none."""
    mount_point: str = ""
