"""The order of a measurement, differences, the best read-ahead, and the runs that count."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.bench.compare import (
    CLOSE,
    best_value,
    difference,
    figures,
    from_memory,
    has_all_results,
    over_fetch,
    spread,
)
from nfstuned.core.bench.connections import unlike_setting, used_connections
from nfstuned.core.bench.plan import (
    candidates,
    next_value,
    scaled,
    seconds,
    steps,
    with_jobs,
    with_long_runs,
)
from nfstuned.host.bench.documents import names, suite
from nfstuned.host.bench.fio import arguments
from nfstuned.model.bench import (
    BenchSetting,
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
from nfstuned.model.samples import Look
from tests.core.counters import line, looks, moved, stats

JOB = Job("read", Pattern.READ, 65536)
OTHER = Job("other", Pattern.RANDOM_READ, 4096, direct=True)
OLD, NEW = BenchSetting("old", 128), BenchSetting("new", 15360)
SUITE = Suite("s", "a suite", (JOB, OTHER), repeats=3)


def ran(setting: BenchSetting, speed: float, job: Job = JOB) -> Run:
    delivered = Delivered(speed, speed / job.block_bytes, 2.0, 3.0, 5.0)
    return Run(job.name, setting.name, 1, delivered)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("full", [False, True])
def test_a_suite_that_comes_along_has_all_results(name: str, *, full: bool) -> None:
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
        *("n0", "o0", "o1", "n1", "n2", "o2", "o3", "n3")
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


def test_a_plan_has_a_time() -> None:
    assert seconds(SUITE, (OLD, NEW)) > 16 * JOB.runtime_s


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
    assert difference("read", (OLD, NEW), old, new).outcome is outcome


def test_a_run_of_another_job_or_with_a_problem_does_not_count() -> None:
    measured = [ran(OLD, 1.0), ran(OLD, 2.0, OTHER), replace(ran(OLD, 9.0), problem="from memory")]
    assert figures(measured, "read", "old") == [1.0]
    assert spread([1.0, 5.0, 2.0]) == Spread(2.0, 1.0, 5.0, 3)
    assert spread([]) is None


def test_a_measurement_is_whole_where_each_job_has_a_run_that_counts_under_each_setting() -> None:
    old, new = BenchSetting("a", 128), BenchSetting("b", 15360)
    failed = replace(ran(new, 0), problem="No space left on device")
    assert has_all_results([ran(old, 1), failed, ran(new, 1)])
    assert not has_all_results([ran(old, 1), failed])
    assert not has_all_results(
        [ran(old, 1), ran(new, 1), replace(ran(new, 1, replace(JOB, name="other")), problem="x")]
    )


def test_noise_alone_is_seldom_called_a_difference() -> None:
    """With seven runs each once in 1716 times, however they are distributed: here as widely as it comes."""
    chance = random.Random(7)  # noqa: S311 - no secret
    called = 0
    for _ in range(2000):
        old, new = ([chance.lognormvariate(5, 0.3) for _ in range(7)] for _ in range(2))
        called += difference("read", (OLD, NEW), old, new).outcome is not Relation.SAME
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


def test_a_run_from_memory_does_not_count() -> None:
    assert "40%" in from_memory(0.6)
    assert not from_memory(1.0)
    assert not from_memory(None)


def test_connections_with_few_requests_are_not_counted() -> None:
    assert used_connections((69, 61, 51, 51)) == 4
    # Transports that were added to a mount without nconnect (kernel-facts.md).
    assert used_connections((232, 0, 0, 0)) == 1
    assert used_connections((100, 1)) == 1
    assert used_connections((0, 0)) == 0


def test_a_run_counts_only_with_the_connections_of_its_setting() -> None:
    idle = stats(lines=(line(),) * 4)
    all_four, three = (
        looks(idle, stats(lines=tuple(line(sends) for sends in each)))
        for each in ((9, 8, 9, 8), (9, 8, 9, 0))
    )
    assert unlike_setting(None, *three) == unlike_setting(4, *all_four) == ""
    assert unlike_setting(4, *three).startswith("3 of 4 connections")
    assert "does not show" in unlike_setting(4, Look(0, 0), Look(1, 1))


def test_over_fetch_is_by_the_kernels_count_and_of_mapped_files_by_fios() -> None:
    """The kernel does not count reads of mapped files, and fio leaves out its ramp."""
    grown = looks(stats(), stats(total=moved(read=1000, server_read=4000)))
    fio = Delivered(800.0, 1.0, 1.0, None, 2.5)
    mapped = replace(JOB, engine=Engine.MAPPED)
    assert over_fetch(JOB, *grown, fio) == 4.0
    assert over_fetch(mapped, *grown, fio) == 2.0
    assert over_fetch(replace(mapped, ramp_s=1.0), *grown, fio) is None
    assert over_fetch(replace(JOB, pattern=Pattern.WRITE), *grown, fio) is None
    assert over_fetch(JOB, Look(0, 0), Look(1, 1), fio) is None


def test_a_job_with_gaps_skips_them() -> None:
    assert "--rw=read:1048576" in arguments(Job("gaps", Pattern.READ, 1 << 16, skip_bytes=1 << 20), "/data")
    assert "--rw=randread" in arguments(OTHER, "/data")
