"""What bench says to write: of two settings the winner, unless the mount has it or another job would lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.app.policy import configuration
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench, BenchSetting
from nfstuned.view.bench import bench_document, policy_lines
from tests.core.bench_values import COMPARED, SEARCHED, measured

FIRST = "The first mount of a server decides for all: sudo nfstuned apply --persist,"


def numbers(four: Mapping[str, float], connections: int | None = 1) -> Bench:
    """A comparison of one connection with four, by the name of a job how many times as fast those are."""
    settings = (BenchSetting("1 connection", connections=1), BenchSetting("4 connections", connections=4))
    bench = measured(
        "latency",
        settings,
        lambda job, setting: 1e6 * (four.get(job.name, 1) if setting.connections == 4 else 1),
    )
    return replace(bench, subject=replace(bench.subject, mount_point="/my data", connections=connections))


def test_where_more_connections_win_it_says_what_to_write() -> None:
    assert list(policy_lines(numbers({"read-4k-alone": 2}))) == [
        "To have that, in /etc/nfstuned/conf.d/bench.toml:",
        "    [profile.measured]",
        '    inherits = "azure-files"',
        "    nconnect = 4",
        "    [[policy]]",
        '    match = { mount_point = "/my data" }',
        '    profile = "measured"',
        f"{FIRST} and sudo nfstuned apply --remount '/my data'",
    ]
    assert bench_document(numbers({"read-4k-alone": 2}))["proposed_nconnect"] == 4


def test_what_it_says_to_write_is_a_configuration(tmp_path: Path) -> None:
    for bench in (numbers({"read-4k-alone": 2}), SEARCHED):
        text = "\n".join(line for line in policy_lines(bench) if line.startswith(" "))
        (tmp_path / "etc/nfstuned/conf.d").mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc/nfstuned/conf.d/bench.toml").write_text(text)
        policy = configuration(Root(str(tmp_path)))
        assert policy.assignments[0].profile == "measured"


def test_where_fewer_connections_win_it_says_that_too() -> None:
    assert "    nconnect = 1" in policy_lines(numbers({"read-4k-alone": 0.5}, connections=4))


@pytest.mark.parametrize(
    ("four", "said"),
    [
        ({"read-4k-alone": 2}, ["The mount has the better number of connections: 4."]),
        ({}, []),
        ({"read-4k-alone": 2, "write-4k-alone": 0.5}, []),
    ],
    ids=["it has them", "no difference", "a job gains and another loses"],
)
def test_it_proposes_nothing_that_the_mount_has_or_that_costs_another_job(
    four: Mapping[str, float], said: list[str]
) -> None:
    bench = numbers(four, connections=4)
    assert four.keys() <= {job.name for job in bench.suite.jobs}
    assert list(policy_lines(bench)) == said


def test_of_two_read_aheads_the_faster_is_proposed() -> None:
    assert list(policy_lines(COMPARED)) == ["To have that: sudo nfstuned apply"]
    has = replace(COMPARED, subject=replace(COMPARED.subject, read_ahead_kb=15360))
    assert list(policy_lines(has)) == ["The mount has the best read-ahead: 15360 KiB."]


def test_where_the_kernels_read_ahead_is_faster_it_is_proposed() -> None:
    """As with many readers at random, for whom most of what is fetched is for nothing."""
    rates = {128: 5e7, 15360: 1e7}
    bench = measured("quick", COMPARED.settings, lambda _, setting: rates[setting.read_ahead_kb or 0])
    lines = tuple(policy_lines(replace(bench, subject=replace(bench.subject, read_ahead_kb=15360))))
    assert lines[3:5] == ("    read_ahead_kb = 128", "    lower = true")
    assert bench_document(bench)["proposed_read_ahead_kb"] == 128
