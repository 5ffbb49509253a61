"""The order of a measurement, the runs that count, and the comparison of two measurements."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.bench import compare, connections, plan
from nfstuned.core.bench.compare import BenchComparison, BenchError, Changed, compare_benches
from nfstuned.host.bench.documents import names, parse_bench, suite
from nfstuned.host.bench.fio import arguments
from nfstuned.model.bench import (
    Bench,
    BenchSetting,
    Delivered,
    Engine,
    Job,
    Pattern,
    Relation,
    Run,
    Suite,
    Varies,
)
from nfstuned.model.kernel import Mount
from nfstuned.model.samples import Look
from nfstuned.parse.proc.mounts import parse_mountinfo
from nfstuned.view.bench import bench_document, since_lines
from nfstuned.view.words import to_json
from tests.core.bench_values import COMPARED, SEARCHED, VENDORS
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
        # The temporary mount of a comparison of connections has its own read-ahead, which must not matter.
        assert job.direct or found.varies is not Varies.CONNECTIONS


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


def test_settings_come_by_turns_and_a_plan_has_a_time() -> None:
    """No setting is always the first; the time counts the warm-up too, and a search takes more."""
    planned = plan.steps(SUITE, (OLD, NEW))
    assert [step.setting.name[0] + str(step.turn) for step in planned if step.job == JOB] == [
        *("n0", "o0", "o1", "n1", "n2", "o2", "o3", "n3")
    ]
    assert [step.job for step in planned] == [JOB] * 8 + [OTHER] * 8
    assert 16 * JOB.runtime_s < plan.seconds(SUITE, (OLD, NEW)) < plan.seconds(SUITE, ())


@given(st.integers(1, 1 << 40), st.sampled_from(names()))
def test_a_scaled_file_is_whole_blocks_and_enough_for_its_depth(size: int, name: str) -> None:
    for job in plan.scaled(suite(name, full=False), 2.0, size, None).jobs:
        assert job.file_bytes % job.block_bytes == 0
        assert job.file_bytes >= job.block_bytes * job.depth
        assert job.ramp_s < job.runtime_s == 2.0


@pytest.mark.parametrize(("round_trip_ms", "seconds"), [(0.2, 5), (62.5, 5), (62.6, 6), (100, 8), (9000, 60)])
def test_a_run_that_read_ahead_can_change_lasts_80_round_trips(round_trip_ms: float, seconds: float) -> None:
    searched = plan.with_long_runs(suite("read-ahead", full=False), round_trip_ms)
    assert {job.runtime_s for job in searched.jobs} == {seconds}
    direct = suite("netapp", full=False)
    assert plan.with_long_runs(direct, round_trip_ms) == direct


def test_a_suite_can_be_one_of_its_jobs() -> None:
    assert plan.with_jobs(SUITE, ["other"]).jobs == (OTHER,)
    assert plan.with_jobs(SUITE, []) == SUITE
    with pytest.raises(ValueError, match="no job 'another', but read, other"):
        plan.with_jobs(SUITE, ["another"])


def compared(old: list[float], new: list[float]) -> Relation:
    before, after = ([ran(OLD, speed) for speed in old], OLD), ([ran(NEW, speed) for speed in new], NEW)
    return compare.difference("read", before, after).outcome


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ([100, 101, 102, 99, 98], [300, 310, 305, 299, 320], Relation.FASTER),
        ([300, 310, 305, 299, 320], [100, 101, 102, 99, 98], Relation.SLOWER),
        # Apart, but by less than matters.
        ([100, 101, 102, 99, 98], [103, 104, 103.5, 103.1, 104.2], Relation.SAME),
        ([100, 200, 300, 150, 250], [250, 400, 500, 450, 350], Relation.SAME),  # far apart, but they overlap
        ([100, 101, 102, 99], [300, 310, 305, 299, 320], Relation.UNKNOWN),
        ([], [], Relation.UNKNOWN),
        ([0] * 5, [1] * 5, Relation.UNKNOWN),
    ],
)
def test_a_difference_is_more_than_the_noise(old: list[float], new: list[float], outcome: Relation) -> None:
    assert compared(old, new) is outcome


def test_a_measurement_is_whole_where_each_job_has_a_run_that_counts_under_each_setting() -> None:
    failed = replace(ran(NEW, 0), problem="No space left on device")
    assert compare.has_all_results([ran(OLD, 1), failed, ran(NEW, 1)])
    assert not compare.has_all_results([ran(OLD, 1), failed])
    assert not compare.has_all_results([ran(OLD, 1), replace(ran(OLD, 1, OTHER), problem="x")])


def test_noise_alone_is_seldom_called_a_difference() -> None:
    """With seven runs each once in 1716 times, however they are distributed: here as widely as it comes."""
    chance = random.Random(7)  # noqa: S311 - no secret
    called = 0
    for _ in range(2000):
        old, new = ([chance.lognormvariate(5, 0.3) for _ in range(7)] for _ in range(2))
        called += compared(old, new) is not Relation.SAME
    assert called <= 5


def searched(speeds: dict[int, float]) -> tuple[int, int]:
    measured: dict[int, float] = {}
    values = tuple(sorted(speeds))
    while (kb := plan.next_value(values, measured)) is not None:
        assert kb not in measured
        measured[kb] = speeds[kb]
    return compare.best_value(measured), len(measured)


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
    values = plan.candidates(15360, 128)
    found, count = searched(dict(zip(values, speeds, strict=True)))
    assert found == best
    assert speeds[values.index(found)] >= (1 - compare.CLOSE) * max(speeds)
    assert count <= 7


@given(st.integers(0, 7), st.floats(1.1, 3), st.floats(1.1, 3))
def test_a_single_peak_is_found(peak: int, rise: float, fall: float) -> None:
    values = plan.candidates(15360, 128)
    speeds = {
        value: 100.0 / (rise ** (peak - index) if index <= peak else fall ** (index - peak))
        for index, value in enumerate(values)
    }
    assert searched(speeds)[0] == values[peak]


def test_a_run_from_memory_does_not_count() -> None:
    assert "40%" in compare.from_memory(0.6)
    assert not any(map(compare.from_memory, (0.9, 1.0, None)))


@pytest.mark.parametrize(
    ("sends", "used"),
    # In the second row transports were added to a mount without nconnect (kernel-facts.md).
    [((69, 61, 51, 51), 4), ((232, 0, 0, 0), 1), ((100, 1), 1), ((0, 0), 0)],
)
def test_connections_with_few_requests_are_not_counted(sends: tuple[int, ...], used: int) -> None:
    assert connections.used_connections(sends) == used


def test_a_run_counts_only_with_the_connections_of_its_setting() -> None:
    idle = stats(lines=(line(),) * 4)
    all_four, three = (
        looks(idle, stats(lines=tuple(line(sends) for sends in each)))
        for each in ((9, 8, 9, 8), (9, 8, 9, 0))
    )
    assert connections.wrong_connections(None, *three) == connections.wrong_connections(4, *all_four) == ""
    assert connections.wrong_connections(4, *three).endswith(": 3 instead of 4")
    assert "does not show" in connections.wrong_connections(4, Look(0, 0), Look(1, 1))


def test_over_fetch_is_by_the_kernels_count_and_of_mapped_files_by_fios() -> None:
    """The kernel does not count reads of mapped files, and fio leaves out its ramp."""
    grown = looks(stats(), stats(total=moved(read=1000, server_read=4000)))
    fio = Delivered(800.0, 1.0, 1.0, None, 2.5)
    mapped = replace(JOB, engine=Engine.MAPPED)
    assert compare.over_fetch(JOB, *grown, fio) == 4.0
    assert compare.over_fetch(mapped, *grown, fio) == 2.0
    assert compare.over_fetch(replace(mapped, ramp_s=1.0), *grown, fio) is None
    assert compare.over_fetch(replace(JOB, pattern=Pattern.WRITE), *grown, fio) is None
    assert compare.over_fetch(JOB, Look(0, 0), Look(1, 1), fio) is None


def test_a_job_with_gaps_skips_them() -> None:
    assert "--rw=read:1048576" in arguments(Job("gaps", Pattern.READ, 1 << 16, skip_bytes=1 << 20), "/data")
    assert "--rw=randread" in arguments(OTHER, "/data")


def times(bench: Bench, factor: float, job: str = "") -> Bench:
    """Return the measurement with another throughput, of one job or of all."""
    return replace(
        bench,
        runs=tuple(
            replace(run, delivered=replace(run.delivered, bytes_per_s=run.delivered.bytes_per_s * factor))
            if run.delivered is not None and job in {"", run.job}
            else run
            for run in bench.runs
        ),
    )


def outcomes(comparison: BenchComparison) -> dict[tuple[str, str], Relation]:
    return {(each.job, each.after.name): each.outcome for each in comparison.compared}


def test_three_runs_are_too_few_for_a_difference() -> None:
    comparison = compare_benches(times(VENDORS, 0.5), VENDORS)
    assert set(outcomes(comparison).values()) == {Relation.UNKNOWN}
    assert "has 3 runs of each job, and a comparison needs 5: --repeats 5" in compare.lack_of_runs(
        VENDORS, VENDORS.suite
    )
    assert not compare.lack_of_runs(COMPARED, COMPARED.suite)
    shorter = replace(COMPARED, suite=replace(COMPARED.suite, repeats=4))
    assert compare.lack_of_runs(shorter, COMPARED.suite).startswith("the earlier measurement has 4 runs")


def test_a_setting_is_the_same_by_its_value_and_not_by_its_name() -> None:
    _, setting = COMPARED.settings
    renamed = BenchSetting("profile measured", setting.read_ahead_kb)
    runs = tuple(replace(run, setting=renamed.name) for run in COMPARED.runs if run.setting == setting.name)
    comparison = compare_benches(replace(COMPARED, settings=(renamed,), runs=runs), COMPARED)
    assert outcomes(comparison) == {(job.name, setting.name): Relation.SAME for job in COMPARED.suite.jobs}


def test_all_other_changes_are_named() -> None:
    subject = replace(
        COMPARED.mount,
        kernel="6.1.0-30",
        read_ahead_kb=15360,
        connections=None,
        options="rw,vers=4.1,rsize=1048576,wsize=1048576,soft,nconnect=1",
        host="",
    )
    comparison = compare_benches(replace(COMPARED, mount=subject), COMPARED)
    assert set(comparison.changed) == {
        Changed("kernel", "6.1.0-30", "6.12.48+deb13-amd64"),
        Changed("read-ahead in KiB", "15360", "128"),
        Changed("connections", "unknown", "4"),
        Changed("options", "soft,nconnect=1", "hard,nconnect=4"),
        Changed("host", "nothing", "client"),
    }


def test_a_masked_secret_is_no_change_and_stays_masked() -> None:
    subject = replace(COMPARED.mount, source="//nas/x", options="rw,password=abcd,vers=3.1.1")
    now = replace(COMPARED, mount=subject)
    before = parse_bench(to_json(bench_document(now)), "x")
    assert before.mount.options != now.mount.options
    assert compare_benches(before, now).changed == ()
    other = replace(now, mount=replace(subject, options="rw,vers=3.1.1"))
    assert "abcd" not in " ".join(since_lines(compare_benches(other, now)))


def test_other_jobs_are_refused_with_the_reason() -> None:
    with pytest.raises(BenchError, match="it has suite azure-files instead of quick"):
        compare.demand_same_jobs(VENDORS, COMPARED.suite)
    first, *others = COMPARED.suite.jobs
    longer = replace(COMPARED.suite, jobs=(replace(first, runtime_s=60.0), *others))
    with pytest.raises(BenchError, match=r"sequential-read: runtime_s was 2\.0 and is now 60\.0"):
        compare.demand_same_jobs(COMPARED, longer)
    with pytest.raises(BenchError, match="job random-read-4k is only there"):
        compare.demand_same_jobs(COMPARED, replace(COMPARED.suite, jobs=(first,)))


def test_without_a_setting_in_common_nothing_is_compared() -> None:
    as_it_is = BenchSetting("as it is")
    with pytest.raises(BenchError, match=r"its settings .* differ from these .as it is"):
        compare.demand_same_jobs(COMPARED, COMPARED.suite, (as_it_is,))
    assert len(compare_benches(SEARCHED, SEARCHED).compared) == 2 * len(SEARCHED.settings)


def test_sentences_have_the_numbers() -> None:
    lines = list(since_lines(compare_benches(times(COMPARED, 0.5, "sequential-read"), COMPARED)))
    assert lines[0] == "Against the measurement of 2026-09-21 14:13:20 UTC:"
    assert lines[1] == (
        "sequential-read, 128 KiB: 2.00 times as fast: "
        "12.0 MB/s (11.6 MB/s to 12.4 MB/s) now, 6.0 MB/s (5.8 MB/s to 6.2 MB/s) then"
    )
    assert "random-read-4k, 128 KiB: no difference beyond the noise" in lines[3]
    assert lines[-1] == "Mount, options, kernel and fio are the same."


V41 = (
    "36 27 0:46 / /data rw,noatime shared:9 - nfs4 sa1.file.core.windows.net:/sa1/share rw,vers=4.1,"
    "rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp,nconnect=4,timeo=600,retrans=2,"
    "sec=sys,clientaddr=10.0.0.5,local_lock=none,addr=10.0.0.4\n"
)
V3 = (
    "37 27 0:47 / /data rw shared:9 - nfs anf:/vol1 rw,sync,vers=3,rsize=262144,wsize=262144,namlen=255,hard,"
    "nocto,proto=tcp,port=2050,timeo=600,retrans=2,sec=sys,mountaddr=10.1.2.4,mountvers=3,mountport=635,"
    "mountproto=udp,fsc,local_lock=all,addr=10.1.2.4\n"
)


def mount(line: str) -> Mount:
    (parsed,) = parse_mountinfo(line)
    assert isinstance(parsed, Mount)
    return parsed


def changed(old: str, new: str) -> Mount:
    assert old in V41
    return mount(V41.replace(old, new))


def test_of_nfs3_it_has_no_locks_and_asks_the_same_mountd() -> None:
    own = connections.own_mount(mount(V3), 8)
    assert own.synchronous
    assert own.options == (
        "vers=3,rsize=262144,wsize=262144,hard,nocto,port=2050,timeo=600,retrans=2,sec=sys,"
        "mountaddr=10.1.2.4,mountvers=3,mountport=635,mountproto=udp,nolock,proto=tcp6,nconnect=8,"
        "addr=::ffff:10.1.2.4"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (mount(V41), ""),
        (mount(V3), ""),
        (changed("addr=10.0.0.4", "addr=fd00::4"), "address is fd00::4"),
        (changed("addr=10.0.0.4", "addr=::ffff:10.0.0.4"), "address is ::ffff:10.0.0.4"),
        (changed(",addr=10.0.0.4", ""), "address is not shown"),
        (changed("proto=tcp", "proto=rdma"), "protocol is rdma"),
        (changed("vers=4.1,", ""), "version"),
    ],
)
def test_a_mount_without_a_second_one_has_the_reason(line: Mount, reason: str) -> None:
    obstacle = connections.own_mount_obstacle(line)
    assert reason in obstacle
    assert bool(reason) == bool(obstacle)


def test_an_address_that_is_hidden_from_fstab_counts_not_the_name() -> None:
    """A tunnel's mount goes to this machine, whatever its source is called."""
    tunnel = replace(mount(V41.replace("addr=10.0.0.4", "port=20049,addr=127.0.0.1")), source="127.0.0.1:/s")
    assert connections.own_mount(tunnel, 4).options.endswith(
        "port=20049,proto=tcp6,nconnect=4,addr=::ffff:127.0.0.1"
    )


@pytest.mark.parametrize(
    ("asked", "present", "target", "most"),
    [*((None, 4, 8, 4), (None, 1, 8, 8), (None, 1, None, None), (None, 1, 1, None)), (16, 4, 8, 16)],
)
def test_one_connection_is_compared_with_those_asked_for_those_there_or_the_profiles(
    asked: int | None, present: int | None, target: int | None, most: int | None
) -> None:
    assert connections.compared_connections(asked, present, target) == most
