"""What is measured in which order, what a difference is, which read-ahead is best, and what limits a job."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.bench.compare import difference, figures, is_whole, spread
from nfstuned.core.bench.limits import (
    Meters,
    beside,
    carrying,
    find_limit,
    from_memory,
    unlike_setting,
)
from nfstuned.core.bench.plan import (
    CLOSE,
    MOST_TRIED,
    Bounds,
    best_value,
    bounds,
    candidates,
    next_value,
    scaled,
    seconds,
    steps,
    with_jobs,
    with_long_runs,
)
from nfstuned.host.bench.fio import arguments
from nfstuned.host.bench.suites import names, suite
from nfstuned.model.bench import (
    BenchSetting,
    BenchStep,
    Beside,
    Delivered,
    Engine,
    Job,
    Pattern,
    Relation,
    Run,
    Spread,
    Suite,
    Varies,
)
from nfstuned.model.samples import OpRate
from tests.core.test_rates import SAMPLE

JOB = Job("read", Pattern.READ, 65536)
OTHER = Job("other", Pattern.RANDOM_READ, 4096, direct=True)
OLD, NEW = BenchSetting("old", 128), BenchSetting("new", 15360)
SUITE = Suite("s", "a suite", (JOB, OTHER), repeats=3)


def ran(setting: BenchSetting, speed: float, job: Job = JOB, beside: Beside = Beside()) -> Run:  # noqa: B008 - frozen
    return Run(BenchStep(1, job, setting), Delivered(speed, speed / job.block_bytes, 2.0, 3.0, 5.0), beside)


def runs(old: list[float], new: list[float]) -> list[Run]:
    return [*(ran(OLD, speed) for speed in old), *(ran(NEW, speed) for speed in new)]


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("full", [False, True])
def test_a_suite_that_comes_along_is_whole(name: str, *, full: bool) -> None:
    found = suite(name, full=full)
    assert found.jobs
    assert found.repeats >= 3
    assert len({job.name for job in found.jobs}) == len(found.jobs)
    for job in found.jobs:
        assert job.file_bytes % job.block_bytes == 0
        assert job.depth == 1 or job.engine is Engine.ASYNCHRONOUS
        assert 0 <= job.ramp_s <= job.runtime_s


@pytest.mark.parametrize("name", names())
def test_a_suite_that_compares_connections_goes_past_the_page_cache(name: str) -> None:
    """The temporary mount has a read-ahead of its own, which must not matter."""
    found = suite(name, full=False)
    assert found.varies is not Varies.CONNECTIONS or all(job.direct for job in found.jobs)


def test_the_vendors_jobs_are_the_vendors() -> None:
    azure = suite("azure-files", full=True)
    assert Counter((job.pattern, job.block_bytes) for job in azure.jobs) == Counter(
        (pattern, size << 10)
        for pattern in (Pattern.RANDOM_READ, Pattern.RANDOM_WRITE)
        for size in (4, 8, 64, 1024)
    )
    assert {(job.depth, job.files, job.file_bytes, job.direct, job.runtime_s) for job in azure.jobs} == {
        (64, 4, 4 << 30, True, 1800.0)
    }
    netapp = suite("netapp", full=True)
    assert [(job.name, job.depth, job.threads, job.file_bytes, job.runtime_s) for job in netapp.jobs] == [
        (name, 128, 4, 4 << 30, 600.0)
        for name in ("8k-random-reads", "8k-random-writes", "64k-sequential-reads", "64k-sequential-writes")
    ]


def test_settings_come_by_turns_and_none_is_always_the_first() -> None:
    planned = steps(SUITE, (OLD, NEW))
    assert [step.setting.name[0] + str(step.turn) for step in planned if step.job == JOB] == [
        *("n0", "o0", "o1", "n1", "n2", "o2", "o3", "n3"),
    ]
    assert [step.job for step in planned] == [JOB] * 8 + [OTHER] * 8


@given(st.integers(1, 1 << 40), st.sampled_from(names()))
def test_a_scaled_file_is_whole_blocks_and_enough_for_its_depth(size: int, name: str) -> None:
    for job in scaled(suite(name, full=False), 2.0, size, None).jobs:
        assert job.file_bytes % job.block_bytes == 0
        assert job.file_bytes >= job.block_bytes * job.depth
        assert job.ramp_s < job.runtime_s == 2.0


@pytest.mark.parametrize(("round_trip_ms", "seconds"), [(0.2, 5), (62.5, 5), (62.6, 6), (100, 8), (9000, 60)])
def test_a_run_that_a_read_ahead_can_change_lasts_for_80_round_trips(
    round_trip_ms: float, seconds: float
) -> None:
    searched = with_long_runs(suite("read-ahead", full=False), round_trip_ms)
    assert {job.runtime_s for job in searched.jobs} == {seconds}
    direct = suite("netapp", full=False)
    assert with_long_runs(direct, round_trip_ms) == direct


def test_a_plan_has_a_time_and_a_rate_bounds_bytes_and_blocks() -> None:
    assert seconds(SUITE, (OLD, NEW)) > 16 * JOB.runtime_s
    most = bounds(SUITE, (OLD, NEW), 1 << 20)
    runs_s = 8 * JOB.runtime_s
    assert most == Bounds(
        SUITE.bytes_on_disk,
        1 << 20,
        int(2 * runs_s * (1 << 20)),
        int(runs_s * ((1 << 20) / 65536 + (1 << 20) / 4096)),
    )
    assert bounds(SUITE, (OLD, NEW), None) == Bounds(SUITE.bytes_on_disk)


def test_a_suite_can_be_one_of_its_jobs() -> None:
    assert with_jobs(SUITE, ["other"]).jobs == (OTHER,)
    assert with_jobs(SUITE, []) == SUITE
    with pytest.raises(ValueError, match="no job 'another', but read, other"):
        with_jobs(SUITE, ["another"])


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ([100, 101, 102, 99, 98], [300, 310, 305, 299, 320], Relation.FASTER),
        ([300, 310, 305, 299, 320], [100, 101, 102, 99, 98], Relation.SLOWER),
        (
            [100, 101, 102, 99, 98],
            [103, 104, 103.5, 103.1, 104.2],
            Relation.SAME,
        ),  # apart, but by less than matters
        ([100, 200, 300, 150, 250], [250, 400, 500, 450, 350], Relation.SAME),  # far apart, but they overlap
        ([100, 101, 102, 99], [300, 310, 305, 299, 320], Relation.UNKNOWN),
        ([], [], Relation.UNKNOWN),
        ([0] * 5, [1] * 5, Relation.UNKNOWN),
    ],
)
def test_a_difference_is_more_than_the_noise(old: list[float], new: list[float], outcome: Relation) -> None:
    assert difference(runs(old, new), JOB, OLD, NEW).outcome is outcome


def test_a_run_of_another_job_or_with_a_problem_does_not_count() -> None:
    measured = [ran(OLD, 1.0), ran(OLD, 2.0, OTHER), replace(ran(OLD, 9.0), problem="from memory")]
    assert figures(measured, JOB, OLD) == [1.0]
    assert spread([1.0, 5.0, 2.0]) == Spread(2.0, 1.0, 5.0, 3)
    assert spread([]) is None
    spoiled = replace(ran(OLD, 1e6, beside=Beside(rtt_ms=1.0)), problem="no")
    assert find_limit(JOB, [spoiled]) == ""


def test_a_measurement_is_whole_where_each_job_has_a_run_that_counts_under_each_setting() -> None:
    old, new = BenchSetting("a", 128), BenchSetting("b", 15360)
    failed = replace(ran(new, 0), problem="No space left on device")
    assert is_whole([ran(old, 1), failed, ran(new, 1)])
    assert not is_whole([ran(old, 1), failed])
    assert not is_whole(
        [ran(old, 1), ran(new, 1), replace(ran(new, 1, replace(JOB, name="other")), problem="x")]
    )


def test_noise_alone_is_seldom_called_a_difference() -> None:
    """With seven runs each once in 1716 times, however they are distributed: here as widely as it comes."""
    chance = random.Random(7)  # noqa: S311 - no secret
    called = 0
    for _ in range(2000):
        old, new = ([chance.lognormvariate(5, 0.3) for _ in range(7)] for _ in range(2))
        called += difference(runs(old, new), JOB, OLD, NEW).outcome is not Relation.SAME
    assert called <= 5


def searched(speeds: dict[int, float]) -> tuple[int, int]:
    measured: dict[int, float] = {}
    values = tuple(sorted(speeds))
    while (kb := next_value(values, measured)) is not None:
        assert kb not in measured
        measured[kb] = speeds[kb]
    return best_value(measured), len(measured)


def test_the_candidates_have_the_policys_and_the_present_value() -> None:
    assert candidates(15360, 128) == (128, 256, 512, 1024, 2048, 4096, 8192, 15360)
    assert len(candidates(15360, 200)) <= MOST_TRIED
    assert candidates(None, 384) == (128, 256, 384, 512, 1024, 2048, 4096, 8192, 16384)


@pytest.mark.parametrize(
    ("speeds", "best"),
    [
        ((10, 20, 40, 80, 100, 100, 100, 100), 2048),  # a plateau: its smallest value
        ((10, 20, 30, 40, 50, 60, 70, 80), 15360),
        ((650, 800, 900, 942, 900, 800, 600, 380), 1024),  # home-ops#5862 has three of these
        ((100, 100, 100, 100, 100, 100, 100, 100), 128),
        ((100, 90, 80, 70, 60, 50, 40, 30), 128),
    ],
)
def test_the_search_finds_the_best_with_few_measurements(speeds: tuple[float, ...], best: int) -> None:
    found, count = searched(dict(zip(candidates(15360, 128), speeds, strict=True)))
    assert speeds[candidates(15360, 128).index(found)] >= (1 - CLOSE) * max(speeds)
    assert count <= 7
    assert found == best or speeds[candidates(15360, 128).index(best)] <= max(speeds)


@given(st.integers(0, 7), st.floats(1.1, 3), st.floats(1.1, 3))
def test_a_single_peak_is_found(peak: int, rise: float, fall: float) -> None:
    values = candidates(15360, 128)
    speeds = {
        value: 100.0 / (rise ** (peak - index) if index <= peak else fall ** (index - peak))
        for index, value in enumerate(values)
    }
    assert searched(speeds)[0] == values[peak]


def test_what_came_from_memory_does_not_count() -> None:
    assert "40%" in from_memory(ran(OLD, 1.0, beside=Beside(over_fetch=0.6)))
    assert not from_memory(ran(OLD, 1.0, beside=Beside(over_fetch=1.0)))
    assert not from_memory(ran(OLD, 1.0))


@pytest.mark.parametrize(
    ("job", "beside", "said"),
    [
        (JOB, Beside(busiest_processor=0.99, rtt_ms=1.0, queue_ms=0.1), "a processor of this machine"),
        (JOB, Beside(rtt_ms=1.0, queue_ms=4.0), "more connections"),
        (JOB, Beside(rtt_ms=20.0, queue_ms=1.0), "the server and the way to it"),
        (OTHER, Beside(rtt_ms=20.0, queue_ms=0.1), "one request at a time"),
        (JOB, Beside(retransmissions_per_s=50.0, rtt_ms=1.0), "loses packets"),
        (JOB, Beside(connections=4, busiest_connection=0.97, rtt_ms=1.0), "of 4 connections one carried 97%"),
        (JOB, Beside(connections=4, busiest_connection=0.26, rtt_ms=1.0), "the server and the way to it"),
        (JOB, Beside(connections=1, busiest_connection=1.0, rtt_ms=1.0), "the server and the way to it"),
        (
            JOB,
            Beside(connections=1, tunnel_processors=0.98, rtt_ms=1.0),
            "the TLS tunnel used 1.0 processors",
        ),
        (JOB, Beside(connections=4, tunnel_processors=0.98, rtt_ms=1.0), "the server and the way to it"),
        (
            JOB,
            Beside(sent_bytes_per_s=1.5e9, sent_limit_bytes_per_s=1.5625e9, rtt_ms=1.0),
            "sent 12,000 Mbit/s, and by its size it may send 12,500",
        ),
        (JOB, Beside(sent_bytes_per_s=1e9, sent_limit_bytes_per_s=1.5625e9, rtt_ms=1.0), "the server and"),
        (JOB, Beside(), ""),
    ],
)
def test_what_limits_a_job(job: Job, beside: Beside, said: str) -> None:
    text = find_limit(job, [ran(OLD, 1e6, job, beside)])
    assert said in text
    assert bool(text) == bool(said)


def test_connections_that_carried_few_requests_are_not_counted() -> None:
    assert carrying((69, 61, 51, 51)) == 4
    # Transports that were added to a mount without nconnect (kernel-facts.md).
    assert carrying((232, 0, 0, 0)) == 1
    assert carrying((100, 1)) == 1
    assert carrying((0, 0)) == 0


def test_a_run_counts_only_with_the_connections_of_its_setting() -> None:
    four = BenchSetting("4 connections", connections=4)
    assert not unlike_setting(ran(OLD, 1.0, beside=Beside(carrying=1)))
    assert not unlike_setting(ran(four, 1.0, beside=Beside(carrying=4)))
    assert unlike_setting(ran(four, 1.0, beside=Beside(carrying=3))).startswith("3 of 4 connections")
    assert "does not show" in unlike_setting(ran(four, 1.0))


def test_what_was_counted_beside_a_run_is_none_where_it_could_not_be_read() -> None:
    assert beside(JOB, Meters(), None) == Beside()
    counted = beside(JOB, Meters(sends=(3, 1), busy=(0.5, 1.0), tunnel_processors=0.25), None)
    assert counted == Beside(
        carrying=2,
        busiest_connection=0.75,
        busy_processors=0.75,
        busiest_processor=1.0,
        tunnel_processors=0.25,
    )


def test_what_a_job_reads_is_counted_with_the_operation_that_the_kernel_reads_with() -> None:
    """NFSv4.2 reads with READ_PLUS where the kernel was built with it."""
    ops = {"READ_PLUS": OpRate(100, 0.5, 2, 2.5, 0.1, 0), "WRITE": OpRate(100, 0.25, 8, 8.25, 0.2, 0)}
    meters = Meters(replace(SAMPLE, ops=ops))
    counted = beside(JOB, meters, None)
    assert (counted.rtt_ms, counted.queue_ms, counted.retransmissions_per_s) == (0.5, 2, 0.1)
    written = beside(replace(JOB, pattern=Pattern.WRITE), meters, None)
    assert (written.rtt_ms, written.queue_ms, written.retransmissions_per_s) == (0.25, 8, 0.2)


def test_a_job_with_gaps_skips_them() -> None:
    assert "--rw=read:1048576" in arguments(Job("gaps", Pattern.READ, 1 << 16, skip_bytes=1 << 20), "/data")
    assert "--rw=randread" in arguments(OTHER, "/data")
