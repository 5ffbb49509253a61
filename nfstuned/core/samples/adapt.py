"""The closed loop: a superblock's read-ahead follows the use that its own reads make of it.

The aim is the largest read-ahead, up to a bound, that the reads use up. It goes down where much more comes
from the server than programs read. It goes up by doubling while nothing is wasted. A step up that wastes is
taken back, and the next one waits twice as long. A file keeps the read-ahead that it was opened with
(mm/readahead.c, file_ra_state_init): the interval of a step says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

from nfstuned.core.policy.plan import changed_by_another
from nfstuned.core.samples.evidence import DIRECT_PART, FULL, NEAR_ONE, Reads
from nfstuned.core.samples.sample import amount, rtt_ms
from nfstuned.model.kernel import whole_pages
from nfstuned.model.mounts import Decision, Superblock
from nfstuned.model.policy import KERNEL_KB
from nfstuned.model.samples import Sample

_WASTED, _USED = 1.12, 1.07
"""The bytes sent for each byte read through the page cache above which a read-ahead is wasted, and up to
which it is used. On a full link programs get the inverse: eight streams 0.96 of it at 1.08, 0.88 at 1.19."""
_UNCLEAR = 32.0
"""Above it most of the bytes are not read(2)'s but those of mapped files, which nobody counts."""
_FAULTED, _IN_ORDER = 0.07, 0.05
"""The same for mapped files, in major faults for each window that was fetched: a fault begins a run of pages
in order, and a run ends with about a window that nobody reads."""
_FAULTED_WAITING = 0.3
"""The first where the link has room: there a window that nobody reads slows nobody, and the machine's other
programs have page faults as well."""
_ROOM = 0.8
"""The largest part of the bandwidth-delay product that is in flight where the link has room."""
_HERE_AND_THERE, _ANYTHING = 0.5, 1.5
"""From the first on each page costs a window; above the second the machine's faults may be of anything."""
_ENOUGH_WINDOWS = 8
"""Each reader has about a window that is fetched and not yet read. With few windows that looks like waste.
The step down then costs little, and the next steps take it back."""
_ENOUGH_BYTES = 16 << 20
_ENOUGH_CALLS = 32
"""For mapped files: so many windows do not have as many faults of other programs by chance."""
_LESS = 16
"""The divisor of a step down for pages here and there. Small files that are mapped as a whole have a fault
for each window as well. After this step such a file takes several windows, and the value stays."""
_FULL_STREAM = 0.9
"""The least part of its windows that a stream fetches. Stretches of read(2) fetch a third of theirs."""
_SLOWED = 0.7
"""The largest part of the first bytes a second that the server then sends."""
_FULL_WINDOW = 0.5
"""Smaller calls, as a part of the read-ahead, are of small files: their ends bound them already."""
_BETTER = 0.8
"""At the least read-ahead the ratio is at most so many times the first, or the bytes are not read-ahead's."""
_PROOF = 16
"""Verdicts after a step up in which waste is the step's. As many later ones do not judge its rest."""
_LARGER = 2
"""Windows so many times the read-ahead are of files that were opened with a larger one, or of large reads:
their waste is not the present value's."""
_MOST_WAIT = 32
"""Verdicts that a step up waits for at most."""
_UNCLEAR_USE = 1 / 8
"""The part of a verdict of use that a verdict of neither use nor waste counts for."""
_CACHED = 0.5
"""The least bytes sent for each byte read of such a verdict."""
_MILD = 8
"""Waste that a read-ahead so many times smaller would end: of a step up, and not of another load."""
_DEAF = 64
"""Verdicts of waste that are left alone where less read-ahead did not help; twice as many the next time."""
_MOST_DEAF = 128


class Bounds(NamedTuple):
    """Between which values, in KiB, a superblock's read-ahead may move."""

    least_kb: int
    most_kb: int
    unmoved_kb: int
    """The value without any step: the profile's, or without a number the original."""
    by_need: bool = False
    """No vendor names the upper bound: up only as long as the requests in flight are too few for the link."""

    def adapted(self, kb: int) -> int | None:
        """Return the value of a record for a step; None where it is the value without any."""
        return None if kb == self.unmoved_kb else kb


def bounds_of(superblock: Superblock, decision: Decision, page_kb: int) -> Bounds | None:
    """Return the bounds of a superblock's read-ahead; None where its reads do not move it.

    nfstuned only raises, unless the profile lowers: the value before it is a bound, too.
    """
    kb, record = superblock.read_ahead_kb, superblock.record
    if kb is None or decision.most_kb is None or (record is not None and record.hold is not None):
        return None
    if changed_by_another(superblock):
        return None
    original = kb if record is None else record.original_kb
    least = KERNEL_KB if decision.lower else max(KERNEL_KB, original)
    most = whole_pages(decision.most_kb, page_kb)
    if not least <= kb <= most or least == most:
        return None
    return Bounds(least, most, original if decision.by_need else most, decision.by_need)


class Waste(NamedTuple):
    """The measure of a waste."""

    of_faults: bool
    value: float
    """The bytes sent for each byte read, or the major faults for each window of mapped files."""
    least: float = 0.0
    """Less is of another load."""

    def is_like(self, other: Waste) -> bool:
        """Whether it is of the same kind, and not much more."""
        return self.of_faults is other.of_faults and other.least <= self.value <= other.value / _BETTER


@dataclass(frozen=True, slots=True)
class Memory:
    """The past of a superblock's loop, as far as it decides."""

    reads: Reads | None = None
    """Reads under one value that do not suffice for a verdict yet."""
    credit: float = 0.0
    """Verdicts of use since the last step or waste."""
    wait: int = 1
    """So many of them lead to the next step up."""
    clean: int = 0
    """Verdicts without waste since the last step or waste."""
    raised_kb: int | None = None
    """The value before the last step, if that was up and is not proven yet."""
    began: Reads | None = None
    """The reads with the largest ratio since the first of the steps down."""
    deaf: int = 0
    """Verdicts of waste that are still left alone."""
    deaf_to: Waste | None = None
    """The waste that they are about; more waste, and of another kind, is heard."""
    was_deaf: int = _DEAF // 2


class Move(NamedTuple):
    """A change of a read-ahead to `kb` KiB."""

    kb: int
    why: str


class ServerLink(NamedTuple):
    """The bytes that fill the link to the server, and those of READs in flight; None for unknown."""

    bdp_bytes: float | None = None
    in_flight_bytes: float | None = None

    @property
    def has_room(self) -> bool:
        """Whether fewer bytes are in flight than fill it."""
        return None not in self and (self.in_flight_bytes or 0.0) < _ROOM * (self.bdp_bytes or 0.0)

    def is_short(self, kb: int) -> bool:
        """Whether a read-ahead is less than twice the bytes that fill it."""
        return self.bdp_bytes is not None and kb * 1024 < 2 * self.bdp_bytes


def link_of(sample: Sample) -> ServerLink:
    """Return the link as an interval and those before it have shown it."""
    rtt, sent = rtt_ms(sample, "read"), sample.server_read_bytes_per_s
    return ServerLink(sample.bdp_bytes, None if rtt is None or sent is None else sent * rtt / 1000)


def step(memory: Memory, reads: Reads, bounds: Bounds, link: ServerLink) -> tuple[Memory, Move | None]:
    """Return the memory after the reads of another interval, and the next step; None: no change."""
    if _is_torn(reads):
        return memory, None
    before, at = memory.reads, (reads.read_ahead_kb, reads.rsize_bytes)
    if before is not None and (before.read_ahead_kb, before.rsize_bytes) == at:
        both = before + reads
        reads = reads if _is_torn(both) else both
    if not _suffices(reads):
        return replace(memory, reads=reads), None
    memory = replace(memory, reads=None)
    less_kb = _less(reads, link)
    if less_kb is None:
        return _without_waste(memory, reads, bounds, link)
    if reads.calls and _buffered(reads) > _LARGER * reads.read_ahead_kb * 1024 * reads.calls:
        return memory, None
    if memory.deaf and memory.deaf_to is not None and _sign(reads).is_like(memory.deaf_to):
        return replace(memory, deaf=memory.deaf - 1), None
    return _with_waste(memory, reads, max(less_kb, bounds.least_kb), bounds)


def _without_waste(
    memory: Memory, reads: Reads, bounds: Bounds, link: ServerLink
) -> tuple[Memory, Move | None]:
    kb, clean = reads.read_ahead_kb, memory.clean + 1
    memory = replace(memory, clean=clean, credit=memory.credit + _use(reads, bounds), began=None)
    if clean >= _PROOF and memory.raised_kb is not None:
        memory = replace(memory, raised_kb=None, wait=max(1, memory.wait // 2))
    if clean >= _DEAF:
        memory = replace(memory, deaf=0, was_deaf=_DEAF // 2)
    more_kb = min(2 * kb, bounds.most_kb)
    if more_kb <= kb or memory.credit < memory.wait or (bounds.by_need and not link.is_short(kb)):
        return memory, None
    why = "its reads use all of it" if _is_used(reads) else "its reads show no waste"
    return replace(memory, credit=0.0, clean=0, deaf=0, raised_kb=kb), Move(more_kb, why)


def _with_waste(memory: Memory, reads: Reads, less_kb: int, bounds: Bounds) -> tuple[Memory, Move | None]:
    """Return the memory and the next step: less, or the first value where less did not help."""
    kb, ratio = reads.read_ahead_kb, _ratio(reads)
    wait, rest = memory.wait, 0
    if memory.raised_kb is not None:
        wait = min(2 * wait, _MOST_WAIT)
        if less_kb * _MILD >= kb > memory.raised_kb:
            less_kb, rest = max(less_kb, memory.raised_kb), _PROOF
    memory = replace(memory, credit=0.0, clean=0, wait=wait, raised_kb=None, deaf=rest, deaf_to=_sign(reads))
    began = memory.began
    first = (_ratio(began) if began is not None else None) or 0.0
    if less_kb < kb:
        if ratio is not None and ratio > first:
            memory = replace(memory, began=reads)
        return memory, Move(less_kb, _waste(reads))
    if ratio is None or began is None or not bounds.least_kb <= began.read_ahead_kb <= bounds.most_kb:
        return memory, None
    memory = replace(memory, began=None)
    helped = ratio < _BETTER * first and not _is_of_waiting_stream(reads, began)
    if helped or _is_of_faults(reads):
        return memory, None
    deaf, most = min(2 * memory.was_deaf, _MOST_DEAF), max(first, ratio)
    to = Waste(of_faults=False, value=most, least=_BETTER**2 * most)
    return replace(memory, deaf=deaf, deaf_to=to, was_deaf=deaf), Move(
        began.read_ahead_kb, "less did not help"
    )


def _waste(reads: Reads) -> str:
    sent, ratio = f"the server sent {amount(_buffered(reads))}", _ratio(reads)
    if ratio is None:
        return f"{sent} in {reads.calls:.0f} windows for {reads.faults:.0f} page faults of mapped files"
    return f"{sent}, {ratio:.2f} times as much as programs read"


def _is_torn(reads: Reads) -> bool:
    """Whether a verdict needs counters that are absent."""
    return _ratio(reads) is None and None in {reads.calls, reads.faults}


def _suffices(reads: Reads) -> bool:
    if _ratio(reads) is None and (reads.calls or 0) < _ENOUGH_CALLS:
        return False
    return _buffered(reads) >= max(_ENOUGH_BYTES, _ENOUGH_WINDOWS * reads.read_ahead_kb * 1024)


def _buffered(reads: Reads) -> float:
    """Return the bytes sent for reads through the page cache."""
    return max(0.0, reads.fetched_bytes - reads.direct_bytes)


def _ratio(reads: Reads) -> float | None:
    """Return the bytes sent for each byte that programs read through the page cache; None for unclear."""
    read = reads.read_bytes - reads.direct_bytes
    ratio = _buffered(reads) / read if read > 0 else None
    return None if ratio is None or ratio > _UNCLEAR else ratio


def _faults_a_fetch(reads: Reads) -> float | None:
    """Return the major faults for each window or page that mapped files fetched; None for unclear.

    After a hundred misses the kernel fetches single pages of an open file (mm/filemap.c, MMAP_LOTSAMISS):
    READs beyond those of the windows.
    """
    window = reads.read_ahead_kb * 1024
    if reads.calls is None or reads.faults is None or _ratio(reads) is not None:
        return None
    if reads.direct_bytes > DIRECT_PART * reads.fetched_bytes:
        return None
    if reads.fetched_bytes < _FULL_WINDOW * window * reads.calls:
        # Most calls are small. Without faults they are read(2)'s, and the bytes those of other windows.
        faults = reads.faults * window / _buffered(reads)
        read2 = reads.faults < _HERE_AND_THERE * reads.calls and _HERE_AND_THERE <= faults <= _ANYTHING
        return faults if read2 else None
    of_windows = reads.calls * ceil(window / (reads.rsize_bytes or window or 1))
    pages = max(0.0, reads.requests - of_windows)
    faults = reads.faults / (reads.calls + (pages if pages <= reads.faults else 0.0))
    return min(faults, _ANYTHING)


def _less(reads: Reads, link: ServerLink) -> int | None:
    """Return a smaller read-ahead in KiB where much of this one is wasted; None where it is not."""
    kb, ratio, faults = reads.read_ahead_kb, _ratio(reads), _faults_a_fetch(reads)
    if ratio is not None and ratio > _WASTED:
        return _power_of_two(kb / ratio)
    if faults is None or faults <= (_FAULTED_WAITING if link.has_room else _FAULTED):
        return None
    return _power_of_two(kb / _LESS if faults >= _HERE_AND_THERE else kb * _IN_ORDER / faults)


def _power_of_two(most: float) -> int:
    """Return the largest power of two up to a number, 1 at least."""
    return 1 << max(0, int(most).bit_length() - 1)


def _sign(reads: Reads) -> Waste:
    ratio = _ratio(reads)
    return Waste(ratio is None, (_faults_a_fetch(reads) or 0.0) if ratio is None else ratio)


def _is_of_waiting_stream(reads: Reads, began: Reads) -> bool:
    """Whether most bytes are of mapped files in order, and come more slowly than with the first value.

    Then windows are full, and faults few. Where read(2) gets runs or the beginnings of files, less read-ahead
    does not slow the server, or programs read more.
    """
    if not reads.calls or reads.faults is None or not began.fetched_bytes_per_s:
        return False
    full = _buffered(reads) >= _FULL_STREAM * reads.read_ahead_kb * 1024 * reads.calls
    slowed = reads.fetched_bytes_per_s <= _SLOWED * began.fetched_bytes_per_s
    more = reads.read_bytes * began.seconds > began.read_bytes * reads.seconds / _BETTER
    return full and slowed and not more and reads.faults <= _IN_ORDER * reads.calls


def _is_of_faults(reads: Reads) -> bool:
    """Whether faults are as many as the windows that read(2) did not get: mapped files, here and there."""
    unread = _buffered(reads) - (reads.read_bytes - reads.direct_bytes)
    return reads.faults is not None and reads.faults * reads.read_ahead_kb * 1024 >= _HERE_AND_THERE * unread


def _use(reads: Reads, bounds: Bounds) -> float:
    """Return the weight of a verdict without waste for a step up.

    With a vendor's number, the value also comes back while small files, the page cache or direct reads hide
    the use. Where most bytes come from the page cache, they hide the waste as well.
    """
    if _is_used(reads):
        return 1.0
    ratio = _ratio(reads)
    if bounds.by_need or None in {reads.calls, reads.faults}:
        return 0.0
    if ratio is None:
        return 0.0 if _faults_a_fetch(reads) is None else _UNCLEAR_USE
    here_and_there = (reads.faults or 0.0) > _FAULTED * (reads.calls or 0.0)
    return 0.0 if ratio < _CACHED or here_and_there else _UNCLEAR_USE


def _is_used(reads: Reads) -> bool:
    """Whether programs read nearly all, and in windows or READs as large as they can be."""
    ratio, faults, window = _ratio(reads), _faults_a_fetch(reads), reads.read_ahead_kb * 1024
    if ratio is None:
        return faults is not None and faults <= _IN_ORDER
    largest = min(window, reads.rsize_bytes or window)
    if reads.direct_bytes > DIRECT_PART * reads.fetched_bytes or reads.request_bytes < FULL[0] * largest:
        return False
    return NEAR_ONE[0] <= ratio <= _USED
