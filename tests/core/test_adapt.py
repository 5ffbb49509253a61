"""The loop's steps: on recorded counters, on any others, and over days of changing loads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import log
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.adapt import Bounds, Memory, ServerLink, Waste, bounds_of, step
from nfstuned.core.samples.evidence import Reads, reads_of
from nfstuned.model.mounts import Decision, Hold, Record, Superblock
from nfstuned.model.samples import Sample
from tests.parse.test_samples import SAMPLES

MIB = 1 << 20
BOUNDS = Bounds(128, 15360, 15360)


class Load(NamedTuple):
    """Programs that read in one way: the counters of four seconds, by the read-ahead in KiB."""

    name: str
    runs: Mapping[int, tuple[float, Reads]]
    """Bytes a second that programs got, and the reads."""

    def minute(self, kb: int) -> tuple[float, Reads]:
        """Return a minute of it; between two recorded values the counters are in between."""
        below, above = (
            max(each for each in self.runs if each <= kb),
            min(each for each in self.runs if each >= kb),
        )
        part = 0.0 if below == above else log(kb / below) / log(above / below)
        (rate, less), (other, more) = self.runs[below], self.runs[above]

        def between(one: float | None, two: float | None) -> float:
            return ((one or 0.0) * (1 - part) + (two or 0.0) * part) * 15

        reads = Reads(
            between(less.read_bytes, more.read_bytes),
            0.0,
            between(less.fetched_bytes, more.fetched_bytes),
            between(less.requests, more.requests),
            kb,
            less.rsize_bytes,
            between(less.calls, more.calls),
            between(less.faults, more.faults),
            seconds=60.0,
        )
        return between(rate, other) / 15, reads


def recorded() -> dict[str, Load]:
    """Return the loads of tests/data/loads.txt, which the lab recorded."""
    loads: dict[str, dict[int, tuple[float, Reads]]] = {}
    lines = Path(__file__).parents[1].joinpath("data/loads.txt").read_text().splitlines()
    for line in lines:
        if line.startswith("#"):
            continue
        name, numbers = line.split("|")
        kb, rate, read, sent, requests, calls, faults = map(int, numbers.split())
        reads = Reads(read, 0.0, sent, requests, kb, 262144, calls, faults)
        loads.setdefault(name.strip(), {})[kb] = (rate, reads)
    return {name: Load(name, runs) for name, runs in loads.items()}


LOADS = recorded()


def settle(load: Load, kb: int, minutes: int = 60) -> Iterator[int]:
    """Yield the value of each minute under a load."""
    memory, moved = Memory(), False
    for _ in range(minutes):
        yield kb
        if moved:
            # Its read-ahead was not the same at both ends: no evidence.
            moved = False
            continue
        memory, change = step(memory, load.minute(kb)[1], BOUNDS, ServerLink())
        if change is not None:
            kb, moved = change.kb, True


@pytest.mark.parametrize("start", [128, 1024, 15360])
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_each_load_ends_with_nine_tenths_of_the_better_of_the_kernels_and_the_vendors(
    load: Load, start: int
) -> None:
    values = list(settle(load, start))
    delivered = sum(load.minute(kb)[0] for kb in values[30:]) / 30
    best = max(load.minute(kb)[0] for kb in (128, 15360))
    assert delivered >= 0.9 * best, values


def test_two_hundred_hours_of_changing_loads_have_no_oscillation() -> None:
    """The loads change every 10 to 120 minutes, some of them together with another."""
    chance = random.Random(37)  # noqa: S311 - made-up hours
    memory, kb, moved, steps = Memory(), 15360, False, []
    loads = list(LOADS.values())
    left, load, shares = 0, loads[0], []
    for minute in range(200 * 60):
        if left == 0:
            left, load = chance.randint(10, 120), chance.choice(loads)
        left -= 1
        rate, reads = load.minute(kb)
        shares.append(rate / max(load.minute(each)[0] for each in (128, 15360)))
        noise = chance.uniform(0.9, 1.1)
        reads = replace(reads, read_bytes=reads.read_bytes * noise, fetched_bytes=reads.fetched_bytes * noise)
        if moved:
            moved = False
            continue
        memory, change = step(memory, reads, BOUNDS, ServerLink())
        if change is not None:
            kb, moved = change.kb, True
            steps.append(minute)
    hours = [sum(1 for at in steps if at // 60 == hour) for hour in range(200)]
    assert sum(hours) / 200 < 2
    assert max(hours) <= 10
    assert mean(shares) > 0.95
    assert all(after - before >= 2 for before, after in pairwise(steps))


def test_a_load_after_another_is_judged_by_itself() -> None:
    """Less did not help the second load as far as the first one's ratio shows."""
    memory, kb = Memory(), 15360
    for name in ["8 read, sequential, 1 ms"] * 2 + ["1 read, stretches, 1 ms"] * 6:
        memory, change = step(memory, LOADS[name].minute(kb)[1], BOUNDS, ServerLink())
        kb = kb if change is None else change.kb
    assert kb == 128


def test_where_less_did_not_help_another_load_is_heard_at_once() -> None:
    reads = Reads(10e9, 0.0, 20e9, 80_000, 15360, 262144, 1300, 0)
    deaf = Memory(deaf=64, deaf_to=Waste(of_faults=False, value=2.0))
    assert step(deaf, reads, BOUNDS, ServerLink()) == (replace(deaf, deaf=63), None)
    assert step(deaf, replace(reads, read_bytes=1e9), BOUNDS, ServerLink())[1] is not None
    milder = replace(deaf, deaf_to=Waste(of_faults=False, value=14.0, least=8.96))
    assert step(milder, reads, BOUNDS, ServerLink())[1] is not None


def values_of(
    minutes: int, kb: int, reads_at: Callable[[int], Reads], bdp_bytes: float | None = None
) -> list[int]:
    """Return the value of each minute of a load, 20 ms away from its server."""
    memory, moved, values = Memory(), False, []
    for _ in range(minutes):
        values.append(kb)
        reads = reads_at(kb)
        link = ServerLink(bdp_bytes, reads.fetched_bytes_per_s * 0.02)
        memory, change = (memory, None) if moved else step(memory, reads, BOUNDS, link)
        moved = change is not None
        kb = kb if change is None else change.kb
    return values


FAR = LOADS["1 read, sequential, 20 ms"]


@pytest.mark.parametrize(
    "hide",
    [
        lambda reads: replace(reads, read_bytes=reads.read_bytes / 0.8),
        lambda reads: replace(reads, requests=1.5 * reads.requests),
        lambda reads: replace(
            reads, read_bytes=1.05 * reads.read_bytes, direct_bytes=0.05 * reads.read_bytes,
            fetched_bytes=1.05 * reads.fetched_bytes,
        ),
    ],
    ids=["a fifth from the page cache", "small files", "direct reads"],
)  # fmt: skip
def test_a_vendors_number_comes_back_where_the_use_of_a_stream_is_hidden(
    hide: Callable[[Reads], Reads],
) -> None:
    values = values_of(120, 128, lambda kb: hide(FAR.minute(kb)[1]))
    assert values[-1] >= 4096
    memory, change = Memory(), None
    for _ in range(120):
        memory, change = step(
            memory, hide(FAR.minute(128)[1]), BOUNDS._replace(by_need=True), ServerLink(1e7)
        )
        assert change is None


def test_a_mapped_stream_beside_a_little_read_gets_its_value_back_at_once() -> None:
    mapped = LOADS["1 mmap, sequential, 20 ms"]

    def mixed(kb: int) -> Reads:
        reads, paced = mapped.minute(kb)[1], 2e6 * 60
        return reads + Reads(paced, 0.0, paced, paced / 262144, kb, 262144, paced / kb / 1024, 0.0)

    values = values_of(300, 15360, mixed)
    assert min(values) == 128
    assert values.count(15360) > 270


@pytest.mark.parametrize("name", ["8 read, sequential, 1 ms", "8 mmap, sequential, 20 ms"])
@pytest.mark.parametrize("minutes", [1, 5, 9])
def test_files_that_stay_open_for_minutes_do_not_make_it_swing(name: str, minutes: int) -> None:
    """Each of eight readers keeps the value that its file was opened with."""
    load, opened = LOADS[name], [15360] * 8
    at = 0

    def reads_at(kb: int) -> Reads:
        nonlocal at
        for reader in range(8):
            if (at + reader) % minutes == 0:
                opened[reader] = kb
        at += 1
        each = [load.minute(value)[1] for value in opened]
        sums = [sum(getattr(reads, key) for reads in each) / 8 for key in KEYS]
        return Reads(sums[0], 0.0, sums[1], sums[2], kb, 262144, sums[3], sums[4])

    values = values_of(24 * 60, 15360, reads_at)
    steps = sum(1 for before, after in pairwise(values) if before != after)
    assert steps <= 4 * 24
    assert max(values[120:]) <= 2048


KEYS = ("read_bytes", "fetched_bytes", "requests", "calls", "faults")


@pytest.mark.parametrize("faults", [100, 200, 300, 600])
def test_faults_of_other_programs_do_not_keep_a_mapped_stream_at_the_kernels_value(faults: int) -> None:
    mapped = LOADS["1 mmap, sequential, 20 ms"]

    def mixed(kb: int) -> Reads:
        reads = mapped.minute(kb)[1]
        return replace(reads, faults=(reads.faults or 0.0) + faults)

    values = values_of(600, 128, mixed, bdp_bytes=25e6 * 0.02)
    rates = [mapped.minute(kb)[0] for kb in values]
    assert mean(rates[200:]) > 2 * rates[0], values


def full_link(kb: int, read: float, *, faulted: bool) -> Reads:
    """A minute of 25 MB/s: read(2), so many bytes a second, and windows that have a fault each or none."""
    sent, windows = 25e6 * 60, (25e6 - read) * 60 / kb / 1024
    calls = windows + read * 60 / kb / 1024
    faults = windows if faulted else 0.0
    return Reads(read * 60, 0.0, sent, sent / 262144, kb, 262144, calls, faults, seconds=60.0)


@pytest.mark.parametrize("read", [1e6, 2e6, 18e6])
def test_mapped_files_here_and_there_beside_read_end_with_the_kernels_value(read: float) -> None:
    """The server sends as much with any value: that the ratio stays is no sign."""
    values = values_of(120, 15360, lambda kb: full_link(kb, read, faulted=True))
    assert values[20:] == [128] * 100


@pytest.mark.parametrize("faults", [0, 100, 300, 3000])
@pytest.mark.parametrize("name", ["1 mmap, random, 20 ms", "8 mmap, random, 1 ms", "8 mmap, strided, 20 ms"])
def test_mapped_files_here_and_there_end_with_the_kernels_value_beside_other_faults(
    name: str, faults: int
) -> None:
    def mixed(kb: int) -> Reads:
        reads = LOADS[name].minute(kb)[1]
        return replace(reads, faults=(reads.faults or 0.0) + faults)

    assert max(values_of(120, 15360, mixed)[20:]) <= 256


@pytest.mark.parametrize(("preads", "pages"), [(5000, 0), (0, 6000)])
def test_mapped_files_here_and_there_beside_small_reads_end_with_the_kernels_value(
    preads: float, pages: float
) -> None:
    """So many preads of 4 KiB a minute are calls of their own; single pages are read before a write."""

    def mixed(kb: int) -> Reads:
        small = Reads(preads * 4096, 0.0, (preads + pages) * 4096, preads + pages, kb, 262144, preads, 0.0)
        return full_link(kb, 0.0, faulted=True) + small

    assert values_of(120, 15360, mixed)[20:] == [128] * 100


def test_a_value_does_not_rise_where_the_page_cache_hides_the_waste() -> None:
    stretches = LOADS["8 read, stretches, 1 ms"]

    def mixed(kb: int) -> Reads:
        reads = stretches.minute(kb)[1]
        return replace(reads, read_bytes=reads.read_bytes + 100e6 * 60)

    assert set(values_of(600, 128, mixed)) == {128}


def test_the_beginnings_of_files_end_with_the_kernels_value() -> None:
    """Their windows are full at 128 KiB, without a fault; with less of them programs read more."""
    values = values_of(120, 15360, lambda kb: full_link(kb, 25e6 / min(10, 1 + kb / 128), faulted=False))
    assert values[20:] == [128] * 100


def test_direct_reads_do_not_hide_waste() -> None:
    stretches = LOADS["8 read, stretches, 1 ms"]

    def mixed(kb: int) -> Reads:
        return stretches.minute(kb)[1] + Reads(120e9, 120e9, 120e9, 120_000, kb, 262144, 0.0, 0.0)

    assert values_of(120, 15360, mixed)[20:] == [128] * 100


def test_a_step_up_is_taken_back_within_bounds() -> None:
    reads = full_link(15360, 12.5e6, faulted=False)
    bounds = BOUNDS._replace(least_kb=4096)
    for raised_kb, kb in ((128, 4096), (7680, 7680), (30720, 4096)):
        change = step(Memory(raised_kb=raised_kb), reads, bounds, ServerLink())[1]
        assert change is not None
        assert change.kb == kb


def test_counters_without_calls_or_faults_are_skipped() -> None:
    reads = LOADS["1 mmap, random, 20 ms"].minute(15360)[1]
    torn = replace(reads, calls=None)
    assert step(Memory(), torn, BOUNDS, ServerLink()) == (Memory(), None)
    with_read = replace(torn, read_bytes=1e6, fetched_bytes=1e6)
    memory, _ = step(Memory(), with_read, BOUNDS, ServerLink())
    values = values_of(9, 15360, lambda kb: LOADS["1 mmap, random, 20 ms"].minute(kb)[1])
    memory, change = step(memory, reads, BOUNDS, ServerLink())
    assert memory.reads is None or memory.reads.calls is not None
    assert values[-1] == 128
    assert change == step(Memory(), reads, BOUNDS, ServerLink())[1]


@pytest.mark.parametrize(
    "reads",
    [
        Reads(1e9 + 40960, 1e9, 1e9 + 163840, 15300, 15360, 262144, 10, 0),
        Reads(1e9, 1e9, 1e9, 122_000, 128, 262144, 40, 0),
        Reads(1e9, 1e9, 1.1e9, 122_000, 1024, 262144, 100, 100),
    ],
)
def test_direct_reads_are_no_evidence(reads: Reads) -> None:
    memory = Memory()
    for _ in range(5):
        memory, change = step(memory, reads, BOUNDS, ServerLink())
        assert change is None


NUMBER = st.floats(0, 1e100) | st.integers(0, 2**64).map(float)
READS = st.builds(
    Reads,
    NUMBER,
    NUMBER,
    NUMBER,
    NUMBER,
    st.integers(0, 2**40),
    st.none() | st.integers(0, 2**40),
    st.none() | NUMBER,
    st.none() | NUMBER,
)


@given(st.lists(READS, max_size=20), st.booleans())
def test_no_counters_move_a_value_out_of_its_bounds(intervals: list[Reads], by_need: bool) -> None:  # noqa: FBT001
    memory, kb, bounds = Memory(), 15360, BOUNDS._replace(by_need=by_need)
    for reads in intervals:
        memory, change = step(memory, replace(reads, read_ahead_kb=kb), bounds, ServerLink())
        if change is not None:
            assert 128 <= change.kb <= 15360
            assert change.kb != kb
            kb = change.kb


@given(SAMPLES)
def test_a_sample_that_shows_no_bytes_from_the_server_moves_nothing(sample: Sample) -> None:
    sample = replace(sample, server_read_bytes_per_s=0.0, read_ahead_kb=15360)
    reads = reads_of(sample)
    for _ in range(9):
        assert reads is None or step(Memory(), reads, BOUNDS, ServerLink())[1] is None


SUPERBLOCK = Superblock("0:43", 7, 15360, record=Record("0:43", 7, 128, 15360))
DECISION = Decision(15360, "azure-files", "azure-files", lower=False, why="", most_kb=15360)


@pytest.mark.parametrize(
    ("superblock", "decision", "bounds"),
    [
        (SUPERBLOCK, DECISION, BOUNDS),
        (SUPERBLOCK, replace(DECISION, most_kb=None), None),
        (SUPERBLOCK._replace(read_ahead_kb=None), DECISION, None),
        (SUPERBLOCK._replace(read_ahead_kb=16384), DECISION, None),
        (SUPERBLOCK._replace(read_ahead_kb=64), DECISION, None),
        (SUPERBLOCK._replace(record=Record("0:43", 7, 128, 15360, Hold.UNDONE)), DECISION, None),
        (SUPERBLOCK._replace(record=Record("0:43", 7, 4096, 15360)), DECISION, Bounds(4096, 15360, 15360)),
        (
            SUPERBLOCK._replace(record=Record("0:43", 7, 4096, 15360)),
            replace(DECISION, lower=True),
            BOUNDS,
        ),
        (SUPERBLOCK._replace(record=None), DECISION, None),
        (SUPERBLOCK, replace(DECISION, by_need=True), Bounds(128, 15360, 128, by_need=True)),
        (SUPERBLOCK._replace(read_ahead_kb=128), replace(DECISION, most_kb=128), None),
    ],
)
def test_reads_move_a_value_between_the_one_before_nfstuned_and_the_policys(
    superblock: Superblock, decision: Decision, bounds: Bounds | None
) -> None:
    assert bounds_of(superblock, decision, 4) == bounds
