"""Two looks at mountstats, the rates between them, and where these are kept.

The classes of a sample are the table of its fields: each attribute has a name, a type and a `Field`, and the
writers, the reader and the documentation follow from these (`fields_of`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Annotated, NamedTuple, get_args, get_origin, get_type_hints

from nfstuned.model.kernel import Stanza, Transport


class RpcRequest(NamedTuple):
    """A line of `rpc_clnt/*/tasks` (net/sunrpc/debugfs.c): a request that has not ended.

    Client, task and xid are its identity: a request that the server wants again gets another xid.
    """

    client: int
    task: int
    xid: int
    """0 as long as the request is not formed: it waits for a slot, or until it may ask again."""
    operation: str
    peer: str = ""
    """The protocol's major version and the server, "v4 10.10.10.10:2049"; "" where that is not known."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that are under way, of all RPC clients of NFS on this machine."""

    waiting: tuple[RpcRequest, ...]
    """The formed requests."""
    clients: Mapping[str, frozenset[int]] | None
    """By device: the clients of a superblock, with the lease's; None before Linux 6.5."""
    queued: tuple[RpcRequest, ...] = ()
    """The requests that are not formed yet."""


NOTHING_UNDER_WAY = Requests((), None)


class Stall(NamedTuple):
    """A superblock that waits for its server: since when, and for which operations."""

    since_s: float
    """When the oldest of these requests was first seen, of CLOCK_MONOTONIC."""
    requests: int | None = None
    """How many wait; None where only the counters of the connections show it."""
    operations: tuple[str, ...] = ()
    """Their names, the most frequent first."""
    recovering: bool = False
    """The server answers again, and nothing that a program asked for has succeeded since: as in its grace."""


class Stalled(NamedTuple):
    """The superblocks that wait, by device number and bdi, as known at a moment of CLOCK_MONOTONIC."""

    now_s: float
    stalls: Mapping[tuple[str, int | None], Stall]


STALLED = "run/nfstuned/stalled.json"
LATE_S = 30.0
"""A look that is due for longer does not come: the daemon was stopped."""


def stalled_to_json(stalled: Stalled, next_s: float) -> str:
    """Return the text of STALLED; `next_s` is when the next look is due, of CLOCK_MONOTONIC."""
    rows = [[*identity, *stall] for identity, stall in stalled.stalls.items()]
    return json.dumps({"looked_s": stalled.now_s, "next_s": next_s, "stalled": rows})


def stalled_from_json(text: str, now_s: float) -> Stalled | None:
    """Return the superblocks that wait, by the text of STALLED; None where its next look is late."""
    try:
        found = json.loads(text)
        if not found["looked_s"] <= now_s <= found["next_s"] + LATE_S:
            return None
        stalls = {
            (device, bdi): Stall(float(since_s), requests, tuple(map(str, operations)), recovering == [True])
            for device, bdi, since_s, requests, operations, *recovering in found["stalled"]
        }
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return Stalled(now_s, stalls)


SCHEMA = "nfstuned.sample/1"
MOST = 1e100
"""No figure is larger, so that sums of them stay finite."""


SuperblockKey = tuple[str, int | None]
"""A superblock's device number and its bdi, as in Superblock: the number alone is reused at once."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A superblock's counters at a moment, once for all of its mounts."""

    device: str
    bdi: int | None
    mount_points: tuple[str, ...]
    source: str
    group: str
    """The transport group that it shares with other mounts of its server: "v4.1 tcp 10.10.10.10:2049"."""
    stats: Stanza
    read_ahead_kb: int | None = None
    """The value of its bdi; it counts for files that are opened from then on."""
    rsize_bytes: int | None = None
    """The most bytes that a READ asks for."""

    @property
    def key(self) -> SuperblockKey:
        """The same at every look at the superblock."""
        return self.device, self.bdi


@dataclass(frozen=True, slots=True)
class Look:
    """The counters of every visible NFS superblock at the same moment.

    `time` is in Unix seconds and only dates a sample. `monotonic_s` is CLOCK_MONOTONIC and measures it: it
    does not jump when the clock is set, and stands still while the machine is suspended, as the kernel's
    counters do.
    """

    time: float
    monotonic_s: float
    superblocks: tuple[Counted, ...] = ()
    hidden: frozenset[str] = frozenset()
    """The servers, as RpcRequest.peer has them, of superblocks that have no counters here."""
    major_faults: int | None = None
    """The machine's page faults that waited for a disk or a server (/proc/vmstat, pgmajfault)."""


class Csv(Enum):
    """Where the CSV of `nfstuned samples` has a field."""

    TABLE = "with those of its table; of operations once, as a sum over all of them"
    KIND = "once for each kind of operation"
    LAST = (
        "behind all others, where a new field moves no column; of operations once, as a sum over all of them"
    )


class Field(NamedTuple):
    """A field of a sample; its key, type and default are its attribute's, from which `fields_of` takes them.

    The attribute's name is the key in JSON and in CSV, and in upper case the field of the journal. Its type
    says whether null is allowed, and no number is negative.
    """

    source: str
    """Its source, in the words of the kernel's file."""
    unit: str = ""
    """Empty for a text, "1" for a plain number."""
    metric: str = ""
    """The metric of the same source, without `nfstuned_` and `_total`; its growth is the rate or mean."""
    csv: Csv = Csv.TABLE
    most: float = MOST
    key: str = ""
    type: object = None
    absent: object = None
    """Its value in samples that were written before there was this field."""


class OpRate(NamedTuple):
    """An operation of a superblock over an interval; the times are means an operation.

    A mean is None when no operation ended in the interval, or when the kernel's sum of times ran backwards.
    """

    per_s: Annotated[float, Field("ops", "1/s", "mount_operations", Csv.KIND)]
    rtt_ms: Annotated[float | None, Field("rtt / ops", "ms", "mount_operation_rtt_seconds", Csv.KIND)]
    queue_ms: Annotated[float | None, Field("queue / ops", "ms", "mount_operation_queue_seconds", Csv.KIND)]
    exe_ms: Annotated[float | None, Field("execute / ops", "ms", "mount_operation_execute_seconds", Csv.KIND)]
    retrans_per_s: Annotated[float, Field("transmissions - ops", "1/s", "mount_retransmissions")]
    errors_per_s: Annotated[float | None, Field("errors", "1/s", "mount_operation_errors")]
    """Replies with an error, a file that does not exist among them; None before Linux 5.3."""
    timeouts_per_s: Annotated[float, Field("timeouts", "1/s", "mount_timeouts")] = 0.0
    """How often all retries of an operation had passed in vain, and it began again."""
    sent_bytes_per_s: Annotated[float | None, Field("bytes sent", "B/s", csv=Csv.LAST)] = None
    """The bytes of its requests, with their headers; for each operation it is this over `per_s`."""
    received_bytes_per_s: Annotated[float | None, Field("bytes received", "B/s", csv=Csv.LAST)] = None


@dataclass(frozen=True, slots=True)
class TransportRate:
    """The connections of a transport group over an interval; each figure counts the group once.

    Four figures are means over the requests sent, of how many others there were at that moment: `in_flight`
    sent before, `backlog` waiting for a slot, `sending` waiting to be sent, and `pending` waiting for their
    replies. They are None when nothing was sent, or when a connection came, went or was replaced. A request
    that was never answered, because its connection broke, stays in the kernel's count of those in flight.
    """

    group: Annotated[str, Field("mountinfo: vers, proto, addr, xprtsec; nfsfs: port")]
    connections: Annotated[int | None, Field("xprt: lines", "1", "transport_connections")]
    in_flight: Annotated[float | None, Field("xprt: in-flight sum / sends", "1", "transport_in_flight")]
    backlog: Annotated[float | None, Field("xprt: backlog sum / sends", "1", "transport_backlog")]
    sending: Annotated[float | None, Field("xprt: sending sum / sends", "1")] = None
    pending: Annotated[float | None, Field("xprt: pending sum / sends", "1")] = None
    max_slots: Annotated[int | None, Field("xprt: most slots", "1", "transport_max_slots")] = None
    """The most requests that any of the connections ever had at once; not of the interval."""
    connects_per_s: Annotated[float | None, Field("xprt: connects", "1/s", "transport_connects")] = None
    """Connections made, also again after they were idle and closed, or broke; None for UDP."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A superblock over an interval, as `nfstuned.sample/1` in docs/json.md.

    Of a saved copy without the lines of bytes or of connections these figures are None.
    """

    time: Annotated[float, Field("clock", "s", most=1e11)]
    """At most the year 5138, and the interval three hundred years: beyond, no calendar could show them."""
    interval_s: Annotated[float, Field("CLOCK_MONOTONIC", "s", most=1e10)]
    device: Annotated[str, Field("mountinfo: major:minor")]
    mount_points: Annotated[tuple[str, ...], Field("mountinfo: mount point")]
    source: Annotated[str, Field("mountinfo: source")]
    read_bytes_per_s: Annotated[float | None, Field("bytes: normal + direct read", "B/s", "mount_read_bytes")]
    write_bytes_per_s: Annotated[
        float | None, Field("bytes: normal + direct write", "B/s", "mount_written_bytes")
    ]
    server_read_bytes_per_s: Annotated[
        float | None, Field("bytes: server read", "B/s", "mount_server_read_bytes")
    ]
    server_write_bytes_per_s: Annotated[
        float | None, Field("bytes: server write", "B/s", "mount_server_written_bytes")
    ]
    _: KW_ONLY
    direct_read_bytes_per_s: Annotated[
        float | None, Field("bytes: direct read", "B/s", "mount_read_bytes")
    ] = None
    """The part of `read_bytes_per_s` that went past the page cache (O_DIRECT)."""
    direct_write_bytes_per_s: Annotated[
        float | None, Field("bytes: direct write", "B/s", "mount_written_bytes")
    ] = None
    over_fetch_ratio: Annotated[float | None, Field("server read / read", "1")]
    """Bytes read from the server for each byte that programs read; None when they read nothing.

    Reads of memory-mapped files are not among the programs' bytes.
    """
    read_ahead_kb: Annotated[
        int | None, Field("bdi: read_ahead_kb", "KiB", "mount_read_ahead_bytes", Csv.LAST)
    ] = None
    """The superblock's read-ahead; None where it was not the same at both ends of the interval."""
    rsize_bytes: Annotated[int | None, Field("mountinfo: rsize", "B", csv=Csv.LAST)] = None
    """The most bytes that a READ asks for, as mounted."""
    silly_renames_per_s: Annotated[float | None, Field("events: silly renames", "1/s", csv=Csv.LAST)] = None
    """Files that were removed while a program had them open: the client renames them first."""
    short_reads_per_s: Annotated[float | None, Field("events: short reads", "1/s", csv=Csv.LAST)] = None
    """The server gave fewer bytes than were asked for, and more were to come."""
    short_writes_per_s: Annotated[float | None, Field("events: short writes", "1/s", csv=Csv.LAST)] = None
    """The server took fewer bytes than it was sent."""
    delays_per_s: Annotated[float | None, Field("events: delays", "1/s", csv=Csv.LAST)] = None
    """The server asked to be asked again later: NFS3ERR_JUKEBOX, NFS4ERR_DELAY."""
    pnfs_reads_per_s: Annotated[float | None, Field("events: pNFS reads", "1/s", csv=Csv.LAST)] = None
    """Reads that went to a data server, past the metadata server."""
    pnfs_writes_per_s: Annotated[float | None, Field("events: pNFS writes", "1/s", csv=Csv.LAST)] = None
    read_ahead_calls_per_s: Annotated[float | None, Field("events: VFS read-ahead", "1/s", csv=Csv.LAST)] = (
        None
    )
    """How often the kernel's read-ahead asked for a window, or for its part outside the page cache."""
    major_faults_per_s: Annotated[float | None, Field("vmstat: pgmajfault", "1/s", csv=Csv.LAST)] = None
    """The page faults of the whole machine that waited for a disk or a server."""
    stalled_s: Annotated[
        float | None, Field("rpc_clnt: tasks, else xprt:", "s", "mount_stalled_seconds", Csv.LAST)
    ] = None
    """For how long its users have waited for the server at the end of the interval; 0 where they do not."""
    ops: Mapping[str, OpRate]
    """The operations that ended in the interval. Those of the transport group as a whole (SEQUENCE, RENEW and
    the like), which the kernel shows in every mount of a server, are in its first sample only."""
    transport: TransportRate


@cache
def fields_of(table: type) -> tuple[Field, ...]:
    """Return the fields of a sample, of its transport or of an operation, in their order."""
    hints = get_type_hints(table, include_extras=True)
    rows = {key: get_args(hint) for key, hint in hints.items() if get_origin(hint) is Annotated}
    absent = table._field_defaults if issubclass(table, tuple) else _defaults(table)  # type: ignore[attr-defined]  # of a NamedTuple
    return tuple(
        row._replace(key=key, type=kind, absent=absent.get(key)) for key, (kind, row) in rows.items()
    )


def _defaults(table: type) -> dict[str, object]:
    return {field.name: field.default for field in fields(table) if field.default is not MISSING}


@dataclass(frozen=True, slots=True)
class SampleFile:
    """Where lines go: an absolute path, the size at which the file is put aside, how many such are kept."""

    path: str
    most_bytes: int
    """0 leaves it to another program to put the file aside."""
    keep: int


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an attempt to append lines: how many were written, and why not the others."""

    lines: int
    reason: str = ""
    """Empty when all are there."""


@dataclass(frozen=True, slots=True)
class Event:
    """A journal entry; `name` is its message's in host/telemetry/journal.py: "READ_AHEAD_SET"."""

    time: float
    """In Unix seconds, by the journal's clock."""
    name: str
    text: str
    device: str = ""
    """The number of the superblock that it is about; "" where it is about none."""
    mount_point: str = ""


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
    """When this superblock was first seen, in Unix seconds; its numbers may be older (see Place)."""
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
    """The sum over all requests sent, of how many others were under way."""
    backlog_sum: int = 0
    """The sum over all requests sent, of how many others waited for a slot."""
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
    """The daemon's figures of itself; times are Unix seconds."""

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
