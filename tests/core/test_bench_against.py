"""Two measurements beside each other: the rule of a difference, what else changed, and what is no pair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.bench.compare import (
    Against,
    Changed,
    NotComparableError,
    against,
    demand_same_jobs,
    lack_of_runs,
)
from nfstuned.host.bench.documents import parse_bench
from nfstuned.model.bench import Bench, BenchSetting, Relation
from nfstuned.view.bench import against_lines, bench_document
from nfstuned.view.words import to_json
from tests.core.bench_values import COMPARED, NEW, SEARCHED, VENDORS


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


def outcomes(told: Against) -> dict[tuple[str, str], Relation]:
    return {(each.job, each.after.name): each.outcome for each in told.compared}


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [(0.5, Relation.FASTER), (2.0, Relation.SLOWER), (1.0, Relation.SAME), (0.97, Relation.SAME)],
)
def test_each_job_under_each_setting_is_judged_as_a_difference_of_settings_is(
    factor: float, outcome: Relation
) -> None:
    told = against(times(COMPARED, factor, "sequential-read"), COMPARED)
    names = [setting.name for setting in COMPARED.settings]
    assert outcomes(told) == {
        **{("sequential-read", name): outcome for name in names},
        **{("random-read-4k", name): Relation.SAME for name in names},
    }
    assert told.compared[0].ratio == pytest.approx(1 / factor)
    assert told.changed == ()


def test_three_runs_are_too_few_for_a_difference_and_that_is_said_before() -> None:
    told = against(times(VENDORS, 0.5), VENDORS)
    assert set(outcomes(told).values()) == {Relation.UNKNOWN}
    assert "has 3 runs of each job, and a difference takes 5: --repeats 5" in lack_of_runs(
        VENDORS, VENDORS.suite
    )
    assert not lack_of_runs(COMPARED, COMPARED.suite)
    shorter = replace(COMPARED, suite=replace(COMPARED.suite, repeats=4))
    assert lack_of_runs(shorter, COMPARED.suite).startswith("the earlier measurement has 4 runs")


def test_a_setting_is_the_same_by_its_value_and_not_by_its_name() -> None:
    renamed = BenchSetting("profile measured", NEW.read_ahead_kb)
    runs = tuple(replace(run, setting=renamed.name) for run in COMPARED.runs if run.setting == NEW.name)
    told = against(replace(COMPARED, settings=(renamed,), runs=runs), COMPARED)
    assert outcomes(told) == {(job.name, NEW.name): Relation.SAME for job in COMPARED.suite.jobs}


def test_what_else_changed_is_named() -> None:
    subject = replace(
        COMPARED.mount,
        kernel="6.1.0-30",
        read_ahead_kb=15360,
        connections=None,
        options="rw,vers=4.1,rsize=1048576,wsize=1048576,soft,nconnect=1",
        host="",
    )
    told = against(replace(COMPARED, mount=subject), COMPARED)
    assert set(told.changed) == {
        Changed("kernel", "6.1.0-30", "6.12.48+deb13-amd64"),
        Changed("read-ahead in KiB", "15360", "128"),
        Changed("connections", "unknown", "4"),
        Changed("options", "soft,nconnect=1", "hard,nconnect=4"),
        Changed("host", "nothing", "client"),
    }


def test_a_secret_that_a_document_masks_is_no_change_and_is_not_told() -> None:
    subject = replace(COMPARED.mount, source="//nas/x", options="rw,password=abcd,vers=3.1.1")
    now = replace(COMPARED, mount=subject)
    before = parse_bench(to_json(bench_document(now)), "x")
    assert before.mount.options != now.mount.options
    assert against(before, now).changed == ()
    other = replace(now, mount=replace(subject, options="rw,vers=3.1.1"))
    assert "abcd" not in " ".join(against_lines(against(other, now)))


def test_other_jobs_are_refused_with_the_reason() -> None:
    with pytest.raises(NotComparableError, match="it is of suite azure-files, not of quick"):
        demand_same_jobs(VENDORS, COMPARED.suite)
    first, *others = COMPARED.suite.jobs
    longer = replace(COMPARED.suite, jobs=(replace(first, runtime_s=60.0), *others))
    with pytest.raises(NotComparableError, match=r"sequential-read: runtime_s was 2\.0 and is now 60\.0"):
        demand_same_jobs(COMPARED, longer)
    with pytest.raises(NotComparableError, match="job random-read-4k is only there"):
        demand_same_jobs(COMPARED, replace(COMPARED.suite, jobs=(first,)))


def test_without_a_setting_in_common_nothing_is_compared() -> None:
    as_it_is = BenchSetting("as it is")
    with pytest.raises(NotComparableError, match=r"its settings .* are none of these .as it is"):
        demand_same_jobs(COMPARED, COMPARED.suite, (as_it_is,))
    assert len(against(SEARCHED, SEARCHED).compared) == 2 * len(SEARCHED.settings)


def test_a_run_that_does_not_count_does_not_count_here_either() -> None:
    spoiled = replace(COMPARED, runs=tuple(replace(run, problem="from memory") for run in COMPARED.runs))
    assert set(outcomes(against(spoiled, COMPARED)).values()) == {Relation.UNKNOWN}


def test_it_is_said_in_sentences_with_the_numbers() -> None:
    lines = list(against_lines(against(times(COMPARED, 0.5, "sequential-read"), COMPARED)))
    assert lines[0] == "Against the measurement of 2026-09-21 14:13:20 UTC:"
    assert lines[1] == (
        "sequential-read, 128 KiB: 2.00 times as fast: "
        "12.0 MB/s (11.6 MB/s to 12.4 MB/s) now, 6.0 MB/s (5.8 MB/s to 6.2 MB/s) then"
    )
    assert "random-read-4k, 128 KiB: no difference beyond the noise" in lines[3]
    assert lines[-1] == "Mount, options, kernel and fio are the same."
