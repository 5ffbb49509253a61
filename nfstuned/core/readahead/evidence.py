"""What a superblock's counters tell of its read-ahead: that it helps, is wasted, or is too small; or nothing.

The kernel counts bytes that programs read, bytes that the server sent for it, and READ requests. It counts
neither in which order a file is read, nor in which blocks, nor reads of memory-mapped files. So a verdict is
given only where one reading of the numbers is by far the likeliest, and nothing is ever done because of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from nfstuned.core.samples.sample import KINDS, amount
from nfstuned.model.samples import Sample

KERNEL_KB = 128
"""What kernels give every NFS mount since 5.4, and some vendors' before (VM_READAHEAD_PAGES)."""
WASTE_RATIO = 2.0
"""Bytes sent for each that was read. Nobody publishes a threshold; streams show a ratio near 1."""
ENOUGH_BYTES = 256 << 20
"""Sixteen windows of the largest value that a vendor writes: what is fetched and not yet read is at most one
for each reader, so that a short look at a few streams stays below WASTE_RATIO and within NEAR_ONE."""
NEAR_ONE = (0.9, 1.1)
"""The ratio where nearly all that programs read came from the server, and nearly all of that was read. Below,
much came from the page cache, and the counters tell little of how it was read when it came."""
FULL = (0.8, 1.1)
"""A mean READ that is as large as it can be, as a part of that. The ends of files make it less. Sequential
reads of 4 KiB with a read-ahead of 128 KiB were seen to make READs of 0.98 to 1.03 times that, and with one
of 4 MiB of as much of an rsize of 256 KiB (docs/kernel-facts.md). Larger ones than a window are not the
read-ahead's, but of programs that read in larger blocks; and where they seem larger than rsize, some are not
counted (pNFS)."""
ENOUGH_WINDOWS = 256
"""For a window below rsize: what readers have in flight at both ends of an interval is a few of them."""
ROOM = 2
"""A window is too small where a READ could be so many times as large."""
DIRECT_PART = 0.01
"""Direct reads fetch nothing ahead, and their READs are as large as programs say: with more of them than this
part of all, the mean READ tells nothing. They never make a ratio look wasteful."""
MOST_VALUES = 16
"""So many pairs of read-ahead and rsize are kept of one mount; nobody sets more, but a file may hold any."""


class Use(str, Enum):
    """What a read-ahead is to the reads that were seen."""

    HELPS = "helps"
    WASTED = "is wasted"
    TOO_SMALL = "is too small"


@dataclass(frozen=True, slots=True)
class Reads:
    """What one superblock read over a time in which its read-ahead stayed the same."""

    read_bytes: float
    """What programs read, direct reads among it; not what they mapped."""
    direct_bytes: float
    fetched_bytes: float
    """What the server sent."""
    requests: float
    """READ and READ_PLUS that ended."""
    read_ahead_kb: int
    rsize_bytes: int | None = None

    @property
    def ratio(self) -> float | None:
        """Bytes sent for each byte that programs read; None when they read nothing."""
        return self.fetched_bytes / self.read_bytes if self.read_bytes else None

    @property
    def request_bytes(self) -> float:
        """How large the mean READ was; 0 without any."""
        return self.fetched_bytes / self.requests if self.requests else 0.0


def reads_of(sample: Sample) -> Reads | None:
    """Return what a sample tells of reads; None where the read-ahead is not known, or changed."""
    if sample.read_ahead_kb is None:
        return None
    seconds = sample.interval_s
    return Reads(
        read_bytes=sample.read_bytes_per_s * seconds,
        direct_bytes=sample.direct_read_bytes_per_s * seconds,
        fetched_bytes=sample.server_read_bytes_per_s * seconds,
        requests=sum(op.per_s for name in KINDS["read"] if (op := sample.ops.get(name))) * seconds,
        read_ahead_kb=sample.read_ahead_kb,
        rsize_bytes=sample.rsize_bytes,
    )


def judge(reads: Reads) -> Use | None:
    """Return what the read-ahead is to these reads; None where the counters do not tell."""
    ratio = reads.ratio
    if ratio is None:
        return None
    if ratio >= WASTE_RATIO:
        wasted = reads.fetched_bytes >= ENOUGH_BYTES and reads.read_ahead_kb > KERNEL_KB
        return Use.WASTED if wasted else None
    if not NEAR_ONE[0] <= ratio <= NEAR_ONE[1] or reads.direct_bytes > DIRECT_PART * reads.fetched_bytes:
        return None
    return _by_size(reads, reads.rsize_bytes) if reads.rsize_bytes else None


def _by_size(reads: Reads, rsize: int) -> Use | None:
    """Return what the mean READ tells, where all that was read was fetched, and all fetched was read."""
    window = reads.read_ahead_kb * 1024
    largest = min(window, rsize)
    if not FULL[0] * largest <= reads.request_bytes <= FULL[1] * largest:
        return None
    if ROOM * window <= rsize:
        return Use.TOO_SMALL if reads.fetched_bytes >= ENOUGH_WINDOWS * window > 0 else None
    return Use.HELPS if window >= rsize and reads.fetched_bytes >= ENOUGH_BYTES else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What most of the bytes that the server sent under one read-ahead say, and their numbers."""

    use: Use
    reads: Reads

    def __str__(self) -> str:
        reads = self.reads
        sent = amount(reads.fetched_bytes)
        times = f"{reads.ratio or 0.0:.2f} times what programs read"
        begin = f"a read-ahead of {reads.read_ahead_kb} KiB {self.use.value}: the server sent {sent}, {times}"
        if self.use is Use.WASTED:
            return f"{begin}, unless they map files, which is not counted"
        size = f"{begin}, in READs of {reads.request_bytes / 1024:.0f} KiB"
        room = f", where rsize allows {(reads.rsize_bytes or 0) // 1024} KiB"
        return size + room if self.use is Use.TOO_SMALL else size


@dataclass(slots=True, eq=False)
class _ReadSums:
    """What was sent under one read-ahead: in all, and for each use what was read of it."""

    fetched_bytes: float = 0.0
    uses: dict[Use, list[float]] = field(default_factory=dict)

    def add(self, reads: Reads) -> None:
        self.fetched_bytes += reads.fetched_bytes
        use = judge(reads)
        if use is not None:
            sums = self.uses.setdefault(use, [0.0, 0.0, 0.0, 0.0])
            added = (reads.read_bytes, reads.direct_bytes, reads.fetched_bytes, reads.requests)
            for index, value in enumerate(added):
                sums[index] += value


class Tally:
    """Takes the samples of one mount, each judged by itself: a day's reads in sum may look like anything."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int | None], _ReadSums] = {}

    def add(self, sample: Sample) -> None:
        """Take a sample."""
        # Most samples of a day read nothing, and there are millions.
        reads = reads_of(sample) if sample.server_read_bytes_per_s else None
        if reads is None:
            return
        key = reads.read_ahead_kb, reads.rsize_bytes
        if key in self._sums or len(self._sums) < MOST_VALUES:
            self._sums.setdefault(key, _ReadSums()).add(reads)

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return what more than half of the bytes sent under each read-ahead say, the smallest first."""
        verdicts = []
        ordered = sorted(self._sums.items(), key=lambda item: (item[0][0], item[0][1] or 0))
        for (kb, rsize), sums in ordered:
            for use, (read, direct, fetched, requests) in sums.uses.items():
                if fetched > sums.fetched_bytes / 2:
                    verdicts.append(Verdict(use, Reads(read, direct, fetched, requests, kb, rsize)))
        return tuple(verdicts)
