"""The values of `nfstuned bench`: fio's jobs in suites, settings, runs, and differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from nfstuned.model.policy import Source

SCHEMA = "nfstuned.bench/1"


class Pattern(str, Enum):
    """In which order a job reads or writes its files; the values are fio's `rw`."""

    READ = "read"
    WRITE = "write"
    RANDOM_READ = "randread"
    RANDOM_WRITE = "randwrite"

    @property
    def reads(self) -> bool:
        """Whether the job reads."""
        return self in {Pattern.READ, Pattern.RANDOM_READ}


class Engine(str, Enum):
    """How a job's requests reach the kernel; the values are fio's `ioengine`."""

    READ_WRITE = "psync"
    """pread(2) and pwrite(2): one request at a time for each of the job's threads."""
    ASYNCHRONOUS = "libaio"
    """io_submit(2); several requests at a time only where the page cache is not used."""
    MAPPED = "mmap"
    """The file's pages are mapped and touched."""


class Varies(str, Enum):
    """The property in which the settings of a suite differ."""

    NOTHING = "nothing"
    READ_AHEAD = "read-ahead"
    CONNECTIONS = "nconnect"


@dataclass(frozen=True, slots=True)
class Job:
    """One of fio's jobs."""

    name: str
    pattern: Pattern
    block_bytes: int
    engine: Engine = Engine.READ_WRITE
    direct: bool = False
    """Past the page cache (O_DIRECT), and so past the read-ahead."""
    depth: int = 1
    """Requests that each thread has under way; more than 1 for an asynchronous engine alone."""
    threads: int = 1
    files: int = 1
    """For each thread, one after the other or by turns, as fio does it."""
    file_bytes: int = 1 << 30
    skip_bytes: int = 0
    """After each block so much is left out, as where one part of a file in several is wanted."""
    runtime_s: float = 60.0
    ramp_s: float = 0.0
    """Before the measurement begins."""

    @property
    def bytes_on_disk(self) -> int:
        """The size of its files."""
        return self.threads * self.files * self.file_bytes


@dataclass(frozen=True, slots=True)
class Suite:
    """Jobs that answer one question."""

    name: str
    about: str
    jobs: tuple[Job, ...]
    varies: Varies = Varies.NOTHING
    searches: bool = False
    """Whether the best setting is looked for, and not each one tried."""
    repeats: int = 3
    sources: tuple[Source, ...] = ()
    """Where the jobs come from; the vendors'."""

    @property
    def bytes_on_disk(self) -> int:
        """The size of the suite's files: jobs with the same number and size of files share them."""
        shapes = {(job.threads, job.files, job.file_bytes): job.bytes_on_disk for job in self.jobs}
        return sum(shapes.values())


@dataclass(frozen=True, slots=True)
class BenchSetting:
    """How the mount is while a job runs. None leaves it as it is."""

    name: str
    read_ahead_kb: int | None = None
    connections: int | None = None
    """Measured on a temporary mount that has so many of its own."""

    @classmethod
    def tried(cls, kb: int | None) -> BenchSetting:
        """Return a read-ahead as a search tries it."""
        return cls(f"{kb} KiB", kb)


@dataclass(frozen=True, slots=True)
class OwnMount:
    """A mount of the same folder of the same server with connections of its own: mount(2)'s arguments."""

    source: str
    fstype: str
    options: str
    synchronous: bool
    """The flag MS_SYNCHRONOUS."""
    connections: int


@dataclass(frozen=True, slots=True)
class BenchStep:
    """A job to be run under a setting. The runs of turn 0 are the warm-up, and thrown away."""

    turn: int
    job: Job
    setting: BenchSetting


@dataclass(frozen=True, slots=True)
class Delivered:
    """fio's figures of a job. Rates are for all of its threads together."""

    bytes_per_s: float
    operations_per_s: float
    latency_ms: float
    """From a request to its end, the mean."""
    latency_p99_ms: float | None
    """None where fio took no percentiles."""
    seconds: float
    error: int = 0
    """The errno of the first request that failed; 0 where none did."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The kernel's figures of the mount and of the machine while a job ran, its ramp and layout with it.

    None is a figure that could not be read.
    """

    server_bytes_per_s: float | None = None
    """Sent by the server for a job that reads, to the server by a job that writes."""
    over_fetch: float | None = None
    """Bytes that the server sent for each that programs read; None for writes and for mapped files."""
    rtt_ms: float | None = None
    queue_ms: float | None = None
    """How long a request waited in the client before it was sent, the mean."""
    retransmissions_per_s: float | None = None
    in_flight: float | None = None
    backlog: float | None = None
    connections: int | None = None
    carrying: int | None = None
    """The connections that carried requests, at least a tenth of an equal part each."""
    busiest_connection: float | None = None
    """The part of the requests that the busiest connection carried, from 0 to 1."""
    sent_bytes_per_s: float | None = None
    """Sent by the interfaces of an Azure VM, for which the VM has a limit."""
    sent_limit_bytes_per_s: float | None = None
    """That limit, by the size of the VM."""
    tunnel_processors: float | None = None
    """How many processors the TLS tunnel of the mount took; None without one."""
    busy_processors: float | None = None
    """Of all processors, from 0 to 1."""
    busiest_processor: float | None = None
    """The busiest one alone, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Run:
    """One step, done, or tried."""

    step: BenchStep
    delivered: Delivered | None
    """None where fio printed no figures."""
    beside: Beside = Beside()
    problem: str = ""
    """Why the run does not count; "" where it does."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The repeats of one figure: the median, the least and the most."""

    median: float
    least: float
    most: float
    count: int


class Relation(str, Enum):
    """The relation of two settings."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no difference"
    UNKNOWN = "too few runs"


@dataclass(frozen=True, slots=True)
class Difference:
    """A job under two settings, or under one setting before and now."""

    job: Job
    before: BenchSetting
    after: BenchSetting
    outcome: Relation
    ratio: float | None
    """The medians' throughput, after by before; None where one of them is missing or 0."""
    old: Spread | None
    """Of the throughput before, in bytes a second; None where no run counts."""
    new: Spread | None


@dataclass(frozen=True, slots=True)
class MeasuredMount:
    """The mount that was measured, and the machine."""

    mount_point: str
    source: str
    fstype: str
    profile: str
    options: str
    read_ahead_kb: int | None
    connections: int | None
    kernel: str
    fio: str
    host: str


@dataclass(frozen=True, slots=True)
class Bench:
    """A whole measurement."""

    time: float
    """Its begin, in Unix seconds."""
    subject: MeasuredMount
    suite: Suite
    settings: tuple[BenchSetting, ...]
    runs: tuple[Run, ...]
    """Without the warm-up."""
    ended: str = ""
    """Why it ended before its time; "" where it did not."""
    readings: Mapping[str, str] = field(default_factory=dict)
    """The limit of each job by its name, under the last setting where settings were compared."""
    rate_bytes_per_s: int | None = None
    """The most that the jobs were allowed to move; None for no limit."""
