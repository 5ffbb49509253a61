"""The values of `nfstuned bench`: fio's jobs in suites, settings, runs, and differences.

Their fields are the keys of `nfstuned.bench/1` (docs/json.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import AwareDatetime, Field

from nfstuned.model.samples import MOST

SCHEMA = "nfstuned.bench/1"
Whole = Annotated[int, Field(strict=True, ge=0, le=int(MOST))]
Number = Annotated[float, Field(strict=True, ge=0, le=MOST, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]


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
    """A job of fio."""

    name: str
    pattern: Pattern
    block_bytes: Whole
    engine: Engine = Engine.READ_WRITE
    direct: Flag = False
    """Past the page cache (O_DIRECT), and so past the read-ahead."""
    depth: Whole = 1
    """Requests that each thread has under way; more than 1 for an asynchronous engine alone."""
    threads: Whole = 1
    files: Whole = 1
    """For each thread, one after the other or by turns, as fio does it."""
    file_bytes: Whole = 1 << 30
    skip_bytes: Whole = 0
    """The gap after each block, as for a program that needs a part of a file."""
    runtime_s: Number = 60.0
    ramp_s: Number = 0.0
    """Before the measurement begins."""

    @property
    def bytes_on_disk(self) -> int:
        """The size of its files."""
        return self.threads * self.files * self.file_bytes


@dataclass(frozen=True, slots=True)
class JobSource:
    """A vendor's page that publishes the jobs."""

    title: str
    url: str
    read: str
    """The date of the visit."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Jobs that answer one question."""

    name: str
    about: str
    jobs: tuple[Job, ...]
    varies: Varies = Varies.NOTHING
    searches: Flag = False
    """Whether bench searches for the best setting and does not try each."""
    repeats: Whole = 3
    sources: tuple[JobSource, ...] = ()

    @property
    def layouts(self) -> tuple[Job, ...]:
        """A job of each layout: jobs with the same number and size of files share the files."""
        return tuple({(job.threads, job.files, job.file_bytes): job for job in self.jobs}.values())

    @property
    def bytes_on_disk(self) -> int:
        """The size of the suite's files."""
        return sum(job.bytes_on_disk for job in self.layouts)


@dataclass(frozen=True, slots=True)
class BenchSetting:
    """The state of the mount while a job runs. None leaves it as it is."""

    name: str
    read_ahead_kb: Whole | None = None
    connections: Whole | None = None
    """Measured on a temporary mount with this many of its own."""

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


@dataclass(frozen=True, slots=True)
class Delivered:
    """fio's figures of a job. Rates are for all of its threads together."""

    bytes_per_s: Number
    operations_per_s: Number
    latency_ms: Number
    """From a request to its end, the mean."""
    latency_p99_ms: Number | None
    """None where fio took no percentiles."""
    seconds: Number
    error: Whole = 0
    """The errno of the first request that failed; 0 where none did."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job under a setting, by their names; the runs of turn 0 are the warm-up."""

    job: str
    setting: str
    turn: Whole
    delivered: Delivered | None
    """None where fio printed no figures."""
    over_fetch: Number | None = None
    """Bytes that the server sent for each byte that programs read; None for writes, and where unknown."""
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

    job: str
    before: BenchSetting
    after: BenchSetting
    outcome: Relation
    ratio: float | None
    """Median throughput, after over before; None where either is missing or 0."""
    old: Spread | None
    """With `before`: throughput in bytes a second; None where no run counts."""
    new: Spread | None


@dataclass(frozen=True, slots=True)
class MeasuredMount:
    """The mount that was measured, and the machine."""

    mount_point: str
    source: str
    fstype: str
    profile: str
    options: str
    read_ahead_kb: Whole | None
    connections: Whole | None
    kernel: str
    fio: str
    host: str


@dataclass(frozen=True, slots=True)
class Bench:
    """A complete measurement."""

    time: AwareDatetime
    """Its start, with the offset from UTC."""
    mount: MeasuredMount
    suite: Suite
    settings: tuple[BenchSetting, ...]
    runs: tuple[Run, ...]
    """Without the warm-up."""
    ended: str = ""
    """Why it ended before its time; "" where it did not."""
