"""What bench says to write: of two settings the winner, unless the mount has it or another job would lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.core.policy.decision import wanted_connections
from nfstuned.host.config import builtin_policy
from nfstuned.host.policy import read_configuration
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench, BenchSetting
from nfstuned.view.bench import bench_document, policy_lines
from tests.core.bench_values import COMPARED, SEARCHED, measured

FIRST = "The first mount of a server decides for all: sudo nfstuned apply --persist,"


def numbers(four: Mapping[str, float], connections: int | None = 1) -> Bench:
    """A comparison of one connection with four, by the name of a job how many times as fast those are."""
    settings = (BenchSetting("1 connection", connections=1), BenchSetting("4 connections", connections=4))
    bench = measured(
        "nconnect",
        settings,
        lambda job, setting: 1e6 * (four.get(job.name, 1) if setting.connections == 4 else 1),
    )
    return replace(bench, mount=replace(bench.mount, mount_point="/my data", connections=connections))


def test_where_more_connections_win_it_says_what_to_write() -> None:
    assert list(policy_lines(numbers({"read-4k": 2}))) == [
        "To have that, in /etc/nfstuned/conf.d/measured-my-data.toml:",
        "    [profile.measured-my-data]",
        '    inherits = "azure-files"',
        "    nconnect = 4",
        "    nconnect_max = 4",
        "    [[policy]]",
        '    match = { mount_point = "/my data" }',
        '    profile = "measured-my-data"',
        f"{FIRST} and sudo nfstuned apply --remount '/my data'",
    ]
    assert bench_document(numbers({"read-4k": 2}))["proposed_nconnect"] == 4


def written(bench: Bench) -> str:
    return "\n".join(line for line in policy_lines(bench) if line.startswith(" "))


@pytest.mark.parametrize(
    "profile", ["azure-files", "generic", "aws-efs", "measured-other", "azure-files+random"]
)
def test_what_it_says_to_write_is_a_configuration_beside_others(profile: str, tmp_path: Path) -> None:
    folder = tmp_path / "etc/nfstuned/conf.d"
    folder.mkdir(parents=True)
    (folder / "10-other.toml").write_text(
        "[profile.measured-other]\nread_ahead_kb = 512\n"
        '[[policy]]\nmatch = { mount_point = "/other" }\nprofile = "measured-other"\n'
    )
    for bench in (numbers({"read-4k": 2}), SEARCHED):
        text = written(replace(bench, mount=replace(bench.mount, profile=profile)))
        name = bench.mount.mount_point[1:].replace(" ", "-")
        (folder / f"measured-{name}.toml").write_text(text)
    first, second, _ = read_configuration(Root(str(tmp_path))).assignments
    assert {first.profile, second.profile} == {"measured-my-data", "measured-data"}
    workload = "random" if "+" in profile else ""
    assert {first.workload, second.workload} == {workload, ""}


@pytest.mark.parametrize("version", ["3", "4.0", "4.1"])
def test_what_it_says_to_write_has_its_effect_with_every_provider(version: str, tmp_path: Path) -> None:
    folder = tmp_path / "etc/nfstuned/conf.d"
    folder.mkdir(parents=True)
    for base in builtin_policy().profiles:
        bench = numbers({"read-4k": 2})
        subject = replace(bench.mount, profile=base.name, options=f"rw,vers={version},hard")
        (folder / "measured.toml").write_text(written(replace(bench, mount=subject)))
        profile = read_configuration(Root(str(tmp_path))).profile("measured-my-data")
        assert wanted_connections(profile, version) == 4


def test_what_was_measured_before_gets_another_key_and_no_second_table() -> None:
    subject = replace(SEARCHED.mount, profile="measured-data")
    lines = list(policy_lines(replace(SEARCHED, mount=subject)))
    assert lines[0] == (
        "To have that, in the table [profile.measured-data] of /etc/nfstuned/conf.d/measured-data.toml:"
    )
    assert [line.partition(" =")[0].strip() for line in lines[1:]] == ["read_ahead_kb", "lower"]


def test_where_fewer_connections_win_it_says_that_too() -> None:
    """A profile would not take away what a mount asks for: the larger number of both counts."""
    (line,) = policy_lines(numbers({"read-4k": 0.5}, connections=4))
    assert line.startswith("To have that, remove nconnect from its origin")
    assert bench_document(numbers({"read-4k": 0.5}, connections=4))["proposed_nconnect"] == 1


@pytest.mark.parametrize(
    ("four", "said"),
    [
        ({"read-4k": 2}, ["The mount has the better number of connections: 4."]),
        ({}, []),
        ({"read-4k": 2, "write-4k": 0.5}, []),
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
    has = replace(COMPARED, mount=replace(COMPARED.mount, read_ahead_kb=15360))
    assert list(policy_lines(has)) == ["The mount has the best read-ahead: 15360 KiB."]


def test_where_the_kernels_read_ahead_is_faster_it_is_proposed() -> None:
    """As with many readers at random; also where the mount has it, since the policy asks for more."""
    rates = {128: 5e7, 15360: 1e7}
    bench = measured("quick", COMPARED.settings, lambda _, setting: rates[setting.read_ahead_kb or 0])
    for present in (128, 15360):
        lines = tuple(policy_lines(replace(bench, mount=replace(bench.mount, read_ahead_kb=present))))
        assert lines[3:5] == ("    read_ahead_kb = 128", "    lower = true")
    assert bench_document(bench)["proposed_read_ahead_kb"] == 128


def test_where_the_mount_has_more_than_the_faster_profile_it_says_how_to_lower_it() -> None:
    has = replace(COMPARED, mount=replace(COMPARED.mount, read_ahead_kb=16384))
    assert "    lower = true" in policy_lines(has)


def test_where_too_few_runs_of_a_job_count_nothing_is_proposed() -> None:
    bench = numbers({"read-4k": 2})
    runs = tuple(run for run in bench.runs if run.job != "write-4k" or run.turn < 3)
    assert list(policy_lines(replace(bench, runs=runs))) == []


def test_a_search_that_ended_after_two_values_is_no_comparison() -> None:
    ends = tuple(setting for setting in SEARCHED.settings if setting.read_ahead_kb in {128, 15360})
    runs = tuple(run for run in SEARCHED.runs if run.setting in {setting.name for setting in ends})
    assert list(policy_lines(replace(SEARCHED, settings=ends, runs=runs))) == []
