"""Two looks at mountstats, the rates between them, and where these are kept.

The classes of a sample are the table of its fields: each attribute has a name, a type and a `Field`, and the
writers, the reader and the documentation follow from these (`fields_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from enum import Enum
from functools import cache
from typing import Annotated, NamedTuple, get_args, get_origin, get_type_hints

from nfstuned.model.kernel import Stanza

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
    END = "behind these: a new field of a sample has its column here"


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
    bdp_bytes: Annotated[float | None, Field("bytes: server read; READ: rtt", "B", csv=Csv.LAST)] = None
    """The bytes in flight that fill the link: the most that the server sent in a second over an interval,
    times the least mean round trip of READ; None before the first READ that was watched."""
    namespace: Annotated[str | None, Field("name of the pod's logs", csv=Csv.END)] = None
    """The pod's and its claim's; of several pods these names are the first one's."""
    persistentvolumeclaim: Annotated[str | None, Field("mountinfo: source", csv=Csv.END)] = None
    persistentvolume: Annotated[str | None, Field("mountinfo: mount point", csv=Csv.END)] = None
    """The name in the kubelet's path; None where no kubelet mounted it for a pod."""
    pod: Annotated[str | None, Field("name of the pod's logs", csv=Csv.END)] = None
    pods: Annotated[int | None, Field("mountinfo: mount point", "1", csv=Csv.END)] = None
    """How many pods have it mounted."""
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


class ReadAheadStep(NamedTuple):
    """A change of a read-ahead, between two moments in Unix seconds."""

    after: float
    until: float
    old_kb: int
    new_kb: int


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
    step: ReadAheadStep | None = None
    """The change of a read-ahead that it reports."""
