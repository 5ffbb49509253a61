"""bench's proposal: of two settings the winner, of a search the best, unless another job would lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nfstuned.model.bench import Bench, BenchSetting
from nfstuned.view.bench import bench_document, proposal_lines
from tests.core.bench_values import COMPARED, SEARCHED, measured

ONE, FOUR = BenchSetting("1 connection", connections=1), BenchSetting("4 connections", connections=4)


def numbers(four: Mapping[str, float]) -> Bench:
    """Return a comparison of one connection with four; `four` has their gain by the job's name."""
    bench = measured(
        "nconnect",
        (ONE, FOUR),
        lambda job, setting: 1e6 * (four.get(job.name, 1) if setting == FOUR else 1),
    )
    assert four.keys() <= {job.name for job in bench.suite.jobs}
    return bench


def with_read_aheads(kernels: float, profiles: float) -> Bench:
    rates = {128: kernels, 15360: profiles}
    return measured("quick", COMPARED.settings, lambda _, setting: rates[setting.read_ahead_kb or 0])


@pytest.mark.parametrize(
    ("bench", "key", "best", "present"),
    [
        (numbers({"read-4k": 2}), "nconnect", 4, 4),
        (numbers({"read-4k": 0.5}), "nconnect", 1, 4),
        (COMPARED, "read_ahead_kb", 15360, 128),
        (with_read_aheads(5e7, 1e7), "read_ahead_kb", 128, 128),
        (SEARCHED, "read_ahead_kb", 4096, 128),
    ],
    ids=["four", "one", "the profile's", "the kernel's", "a search's"],
)
def test_the_best_setting_for_all_jobs_is_proposed(bench: Bench, key: str, best: int, present: int) -> None:
    assert list(proposal_lines(bench)) == [
        f"Best for all jobs: {key} = {best}; the mount has {present}. To change it: nfstuned(1), BENCH."
    ]
    document = bench_document(bench)
    assert {document["proposed_nconnect"], document["proposed_read_ahead_kb"]} == {best, None}
    assert document[f"proposed_{key}"] == best


@pytest.mark.parametrize("four", [{}, {"read-4k": 2, "write-4k": 0.5}], ids=["no difference", "a job loses"])
def test_nothing_is_proposed_that_no_job_gains_by_or_that_costs_another_job(
    four: Mapping[str, float],
) -> None:
    assert list(proposal_lines(numbers(four))) == []


def test_an_unknown_number_of_the_mount_is_called_unknown() -> None:
    bench = numbers({"read-4k": 2})
    (line,) = proposal_lines(replace(bench, mount=replace(bench.mount, connections=None)))
    assert "nconnect = 4; the mount has an unknown number." in line


def test_where_too_few_runs_of_a_job_count_nothing_is_proposed() -> None:
    bench = numbers({"read-4k": 2})
    runs = tuple(run for run in bench.runs if run.job != "write-4k" or run.turn < 3)
    assert list(proposal_lines(replace(bench, runs=runs))) == []


def test_a_search_that_ended_after_two_values_is_no_comparison() -> None:
    ends = tuple(setting for setting in SEARCHED.settings if setting.read_ahead_kb in {128, 15360})
    runs = tuple(run for run in SEARCHED.runs if run.setting in {setting.name for setting in ends})
    assert list(proposal_lines(replace(SEARCHED, settings=ends, runs=runs))) == []
