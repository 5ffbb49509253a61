"""The evidence of counters on a read-ahead: it helps, it is wasted, it is too small, or it is not clear.

The kernel counts the bytes that programs read, the bytes that the server sent, and READ requests. It counts
neither the order nor the blocks in which a file is read, nor the bytes that programs read of memory-mapped
files. For these it counts the calls of read-ahead and, on the whole machine, the page faults that wait (major
faults): one at the begin of a mapped file that is read in order, and one for each call where it is read here
and there (docs/kernel-facts.md). So there is a verdict only where one reading of the numbers is by far the
likeliest, and nothing is changed because of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from nfstuned.core.samples.sample import KINDS, amount
from nfstuned.model.policy import KERNEL_KB
from nfstuned.model.samples import Sample

WASTE_RATIO = 2.0
"""Bytes sent for each byte read. Nobody publishes a threshold; streams show a ratio near 1."""
ENOUGH_BYTES = 256 << 20
"""Sixteen windows of vendors' largest value. Each reader has at most one window that is fetched and not yet
read, so that a short look at a few streams stays below WASTE_RATIO and within NEAR_ONE."""
NEAR_ONE = (0.9, 1.1)
"""The ratio where programs' bytes came from the server, and nearly all of the server's bytes were read. Below
it the page cache had many of them, and the counters show little of their first reading."""
FULL = (0.8, 1.1)
"""A mean READ of the largest possible size, as a part of that size. The ends of files make it smaller.
Sequential reads of 4 KiB made READs of 0.98 to 1.03 times a read-ahead of 128 KiB, and of an rsize of 256 KiB
with a read-ahead of 4 MiB (docs/kernel-facts.md). Larger READs than a window come from programs that read in
larger blocks; where they seem larger than rsize, some are not counted (pNFS)."""
ENOUGH_WINDOWS = 256
"""For a window below rsize: readers have a few windows in flight at both ends of an interval."""
ROOM = 2
"""A window is too small where a READ could be so many times as large."""
DIRECT_PART = 0.01
"""The largest part of direct reads: they fetch nothing ahead, and programs choose the size of their READs.
They never make a ratio look wasteful."""
FAULTED = (0.5, 1.5)
"""Major faults for each call of read-ahead where programs read mapped files here and there. The faults are
those of the whole machine: where there are more, they may be of anything."""
ENOUGH_CALLS = 64
"""So many calls do not have as many faults of other programs by chance."""
MOST_VALUES = 16
"""The most pairs of read-ahead and rsize of one mount; nobody sets more, but a file may hold any number."""


class Use(str, Enum):
    """The effect of a read-ahead on the reads of an interval."""

    HELPS = "helps"
    WASTED = "is wasted"
    TOO_SMALL = "is too small"


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of one superblock over a time in which its read-ahead stayed the same."""

    read_bytes: float
    """Programs' reads, direct reads included, memory-mapped files excluded."""
    direct_bytes: float
    fetched_bytes: float
    """The bytes that the server sent."""
    requests: float
    """READ and READ_PLUS that ended."""
    read_ahead_kb: int
    rsize_bytes: int | None = None
    calls: float | None = None
    """Calls of the kernel's read-ahead."""
    faults: float | None = None
    """Major faults of the whole machine."""
    seconds: float = 0.0

    def __add__(self, other: Reads) -> Reads:
        """Return the reads of two times with the same read-ahead and rsize."""
        calls, faults = (
            None if None in pair else sum(filter(None, pair))
            for pair in ((self.calls, other.calls), (self.faults, other.faults))
        )
        return Reads(
            self.read_bytes + other.read_bytes,
            self.direct_bytes + other.direct_bytes,
            self.fetched_bytes + other.fetched_bytes,
            self.requests + other.requests,
            self.read_ahead_kb,
            self.rsize_bytes,
            calls,
            faults,
            self.seconds + other.seconds,
        )

    @property
    def of_faults(self) -> bool:
        """Whether page faults made most of the calls of read-ahead: each fetched a window for a page."""
        if self.calls is None or self.faults is None or self.calls < ENOUGH_CALLS:
            return False
        return FAULTED[0] * self.calls <= self.faults <= FAULTED[1] * self.calls

    @property
    def ratio(self) -> float | None:
        """Bytes sent for each byte that programs read; None when they read nothing."""
        return self.fetched_bytes / self.read_bytes if self.read_bytes else None

    @property
    def fetched_bytes_per_s(self) -> float:
        """The server's bytes a second; 0 where the time is not known."""
        return self.fetched_bytes / self.seconds if self.seconds else 0.0

    @property
    def request_bytes(self) -> float:
        """The size of the mean READ; 0 without any."""
        return self.fetched_bytes / self.requests if self.requests else 0.0


def reads_of(sample: Sample) -> Reads | None:
    """Return the reads of a sample; None where its bytes or its read-ahead are not known, or that changed."""
    read, fetched, seconds = sample.read_bytes_per_s, sample.server_read_bytes_per_s, sample.interval_s
    if sample.read_ahead_kb is None or read is None or fetched is None:
        return None
    return Reads(
        read_bytes=read * seconds,
        direct_bytes=(sample.direct_read_bytes_per_s or 0.0) * seconds,
        fetched_bytes=fetched * seconds,
        requests=sum(op.per_s for name in KINDS["read"] if (op := sample.ops.get(name))) * seconds,
        read_ahead_kb=sample.read_ahead_kb,
        rsize_bytes=sample.rsize_bytes,
        calls=_total(sample.read_ahead_calls_per_s, seconds),
        faults=_total(sample.major_faults_per_s, seconds),
        seconds=seconds,
    )


def _total(per_s: float | None, seconds: float) -> float | None:
    return None if per_s is None else per_s * seconds


def read_ahead_use(reads: Reads) -> Use | None:
    """Return the effect of the read-ahead on these reads; None where the counters do not show it."""
    ratio = reads.ratio
    if ratio is None and not reads.of_faults:
        return None
    if ratio is None or ratio >= WASTE_RATIO:
        wasted = reads.fetched_bytes >= ENOUGH_BYTES and reads.read_ahead_kb > KERNEL_KB
        return Use.WASTED if wasted else None
    if not NEAR_ONE[0] <= ratio <= NEAR_ONE[1] or reads.direct_bytes > DIRECT_PART * reads.fetched_bytes:
        return None
    window, rsize = reads.read_ahead_kb * 1024, reads.rsize_bytes or 0
    largest = min(window, rsize)
    if not rsize or not FULL[0] * largest <= reads.request_bytes <= FULL[1] * largest:
        return None
    if ROOM * window <= rsize:
        return Use.TOO_SMALL if reads.fetched_bytes >= ENOUGH_WINDOWS * window > 0 else None
    return Use.HELPS if window >= rsize and reads.fetched_bytes >= ENOUGH_BYTES else None


def waste(reads: Reads) -> str:
    """Return the bytes that the server sent, and for which reads."""
    sent = f"the server sent {amount(reads.fetched_bytes)}"
    if reads.of_faults:
        return f"{sent} for about {reads.faults:.0f} pages of mapped files that are read here and there"
    return f"{sent}, {reads.ratio or 0.0:.2f} times as much as programs read"


@dataclass(frozen=True, slots=True)
class ReadAheadVerdict:
    """The effect of one read-ahead by most of the bytes that the server sent, and their numbers."""

    use: Use
    reads: Reads

    def __str__(self) -> str:
        reads = self.reads
        begin = f"a read-ahead of {reads.read_ahead_kb} KiB {self.use.value}: {waste(reads)}"
        if self.use is Use.WASTED:
            return begin if reads.of_faults else f"{begin}, unless they map files, which is not counted"
        size = f"{begin}, in READs of {reads.request_bytes / 1024:.0f} KiB"
        room = f", where rsize allows {(reads.rsize_bytes or 0) // 1024} KiB"
        return size + room if self.use is Use.TOO_SMALL else size


@dataclass(slots=True, eq=False)
class _ReadSums:
    """The bytes sent under one read-ahead, and the sums of the reads by their use."""

    fetched_bytes: float = 0.0
    uses: dict[Use, Reads] = field(default_factory=dict)

    def add(self, reads: Reads) -> None:
        self.fetched_bytes += reads.fetched_bytes
        use = read_ahead_use(reads)
        if use is not None:
            before = self.uses.get(use)
            self.uses[use] = reads if before is None else before + reads


class Tally:
    """The samples of one mount, each judged by itself: a day's reads in sum may look like anything."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int | None], _ReadSums] = {}

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        # Most samples of a day read nothing, and there are millions.
        reads = reads_of(sample) if sample.server_read_bytes_per_s else None
        if reads is None:
            return
        key = reads.read_ahead_kb, reads.rsize_bytes
        if key in self._sums or len(self._sums) < MOST_VALUES:
            self._sums.setdefault(key, _ReadSums()).add(reads)

    def verdicts(self) -> tuple[ReadAheadVerdict, ...]:
        """Return the verdict of more than half of the bytes under each read-ahead, the smallest first."""
        verdicts = []
        ordered = sorted(self._sums.items(), key=lambda item: (item[0][0], item[0][1] or 0))
        for _, sums in ordered:
            for use, reads in sums.uses.items():
                if reads.fetched_bytes > sums.fetched_bytes / 2:
                    verdicts.append(ReadAheadVerdict(use, reads))
        return tuple(verdicts)
