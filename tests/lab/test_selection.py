"""The tiers run what they say."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.lab import left, recipe, selection
from tests.lab.left import LEFT
from tests.lab.payload import PROJECT, SCENARIOS
from tests.lab.rootdisk import Way
from tests.lab.roots import SUITES
from tests.lab.selection import Length

NAMES = [series.name for series in recipe.SERIES]
FILES = {file.stem for file in SCENARIOS.glob("test_*.py")}
LEFT_AS_A_WHOLE = {
    "test_calls",
    "test_hostile_servers",
    "test_idle",
    "test_overflow",
    "test_storm",
    "test_tunnel",
}


def test_no_tier_forgets_a_kernel() -> None:
    for tier in ("short", "ci", "all"):
        assert {choice.kernel for choice in selection.choices(tier)} == set(NAMES)


def test_none_runs_nothing() -> None:
    assert selection.choices("none") == ()


def test_ci_runs_long_scenarios_and_races_on_the_oldest_and_the_newest_kernel_only() -> None:
    for length in (Length.LONG, Length.RACE):
        on = {choice.kernel for choice in selection.choices("ci") if choice.length is length}
        assert on == {NAMES[0], NAMES[-1]}


def test_ci_runs_what_says_nothing_of_the_kernel_once_and_a_release_everywhere() -> None:
    for tier, kernels in (("ci", NAMES[:1]), ("all", NAMES)):
        once = [choice for choice in selection.choices(tier) if choice.length is Length.ONCE]
        files = set(selection.scenarios(Length.ONCE)) - (LEFT_AS_A_WHOLE if tier == "ci" else set())
        assert Counter(choice.scenario for choice in once) == dict.fromkeys(files, len(kernels))
        assert {choice.kernel for choice in once} == set(kernels)


def test_ci_leaves_single_tests_and_a_release_none() -> None:
    boots = selection.boots(selection.choices("ci"), "ci")
    assert {test for boot in boots for test in boot.without} == {
        f"{file}.py::{test}" for file, tests in LEFT.items() for test in tests if file not in LEFT_AS_A_WHOLE
    }
    for tier in ("all", "full"):
        assert {boot.without for boot in selection.boots(selection.choices(tier), tier)} == {()}


@pytest.mark.slow
def test_what_ci_leaves_are_tests_by_the_names_that_pytest_has_for_them(tmp_path: Path) -> None:
    """pytest passes over the name of a test to leave where there is none."""
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--import-mode=importlib", f"-c{ini}"]
    argv += ["-pno:cacheprovider", f"--rootdir={PROJECT}", SCENARIOS.relative_to(PROJECT).as_posix()]
    there = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.splitlines()
    names = [f"{argv[-1]}/{file}.py::{test}" for file, tests in LEFT.items() for test in tests]
    assert Counter(names) == Counter(name for name in there if name in names)


def test_ci_has_each_file_but_those_whose_tests_it_leaves_and_those_of_a_release() -> None:
    there = {choice.scenario for choice in selection.choices("ci")}
    of_a_release = {*selection.scenarios(Length.RELEASE), *selection.scenarios(Length.MEASURE)}
    assert FILES - there == LEFT_AS_A_WHOLE | of_a_release


def test_a_release_has_all_that_there_is_on_every_kernel() -> None:
    every = {
        (kernel, length, name)
        for kernel in NAMES
        for length in Length
        for name in selection.scenarios(length)
    }
    for tier in ("all", "full"):
        chosen = selection.choices(tier)
        assert len(chosen) == len(every)
        assert {(choice.kernel, choice.length, choice.scenario) for choice in chosen} == every


def test_what_a_release_alone_is_asked_for_is_not_for_ci() -> None:
    lengths = {choice.length for choice in selection.choices("ci")}
    assert set(Length) - lengths == {Length.MEASURE, Length.RELEASE}
    alone = [boot for boot in selection.boots(selection.choices("ci"), "ci") if boot.alone]
    assert [boot.lengths for boot in alone] == [{Length.RACE}, {Length.RACE}]


def test_a_file_with_tests_that_few_tiers_run_has_no_other() -> None:
    """A boot chooses tests by their markers: it would run such a test wherever it runs the file's others."""
    files = [selection.lengths(file.read_text()) for file in SCENARIOS.glob("test_*.py")]
    few = {Length.ONCE, Length.MEASURE, Length.RELEASE}
    assert [lengths for lengths in files if lengths & few and len(lengths) > 1] == []


def test_a_scenario_without_a_marker_is_short() -> None:
    assert selection.lengths("def test_a() -> None: ...\n") == {Length.SHORT}


def test_a_file_can_hold_both_lengths() -> None:
    source = "@pytest.mark.long\ndef test_a() -> None: ...\ndef test_b() -> None: ...\n"
    assert selection.lengths(source) == {Length.SHORT, Length.LONG}


def test_a_file_whose_tests_all_have_a_marker_has_no_short_one() -> None:
    source = "@pytest.mark.long\ndef test_a() -> None: ...\n@pytest.mark.once\ndef test_b() -> None: ...\n"
    assert selection.lengths(source) == {Length.LONG, Length.ONCE}


def test_a_file_marked_long_is_long_as_a_whole() -> None:
    marks = (
        "pytestmark = pytest.mark.long\n",
        'pytestmark = [pytest.mark.usefixtures("x"), pytest.mark.long]\n',
        "pytestmark = [\n    pytest.mark.timeout(9),\n    pytest.mark.long,\n]\n",
    )
    assert [selection.lengths(f"{mark}def test_a() -> None: ...\n") for mark in marks] == [{Length.LONG}] * 3


def test_marks_of_one_test_are_not_those_of_its_file() -> None:
    source = "pytestmark = [\n    PATIENT,\n]\n\n@pytest.mark.race\ndef test_a() -> None: ...\n"
    assert selection.lengths(f"{source}def test_b() -> None: ...\n") == {Length.SHORT, Length.RACE}


@pytest.mark.parametrize("tier", ["short", "ci", "all"])
def test_every_scenario_of_a_tier_has_a_boot(tier: str) -> None:
    chosen = selection.choices(tier)
    boots = selection.boots(chosen, tier)
    assert {choice: sum(boot.carries(choice) for boot in boots) for choice in chosen} == dict.fromkeys(
        chosen, 1
    )
    assert len({boot.name for boot in boots}) == len(boots)


@pytest.mark.parametrize("tier", ["ci", "all"])
def test_a_boot_takes_ten_minutes_at_most_but_for_those_alone_and_single_files(tier: str) -> None:
    boots = [boot for boot in selection.boots(selection.choices(tier), tier) if not boot.alone]
    assert [boot for boot in boots if boot.seconds > 660 and len(boot.scenarios) > 1] == []


def test_the_longest_boots_start_first_behind_those_that_are_alone() -> None:
    boots = selection.boots(selection.choices("ci"), "ci")
    assert [boot.alone for boot in boots] == sorted((boot.alone for boot in boots), reverse=True)
    others = [boot.seconds for boot in boots if not boot.alone]
    assert others == sorted(others, reverse=True)


@pytest.mark.parametrize(
    ("length", "host"),
    [(Length.MEASURE, Length.RACE), (Length.RELEASE, Length.ONCE), (Length.SHORT, Length.LONG)],
)
def test_some_lengths_have_the_boots_of_others(length: Length, host: Length) -> None:
    boots = selection.boots(selection.choices("all"), "all")
    shared = [boot.kernel for boot in boots if {length, host} <= boot.lengths]
    assert set(shared) == set(NAMES)
    assert [boot.name for boot in boots if length in boot.lengths and host not in boot.lengths] == []
    alone = [choice for choice in selection.choices("all") if choice.length is length]
    assert {boot.lengths for boot in selection.boots(alone, "all")} == {frozenset({length})}


def test_what_waits_has_a_guest_of_its_own() -> None:
    waiting = [boot for boot in selection.boots(selection.choices("ci"), "ci") if boot.waits]
    assert {file for boot in waiting for file in boot.scenarios} == selection.WAITING
    assert {boot.kernel for boot in waiting} == {NAMES[0], NAMES[-1]}


def test_half_an_hour_of_mixed_load_is_for_all_scenarios_too_on_two_kernels() -> None:
    full = {
        tier: {
            (boot.kernel, boot.scenarios)
            for boot in selection.boots(selection.choices(tier), tier)
            if boot.full
        }
        for tier in ("ci", "all", "full")
    }
    assert full["ci"] == set()
    assert full["all"] == {(kernel, ("test_answers",)) for kernel in (NAMES[0], NAMES[-1])}
    assert full["all"] < full["full"]


def test_how_long_is_known_of_files_that_are_there() -> None:
    assert selection.SECONDS.keys() | selection.SECONDS_FULL.keys() | selection.WAITING <= FILES
    assert left.SECONDS.keys() == LEFT.keys() - LEFT_AS_A_WHOLE
    assert [file for file, seconds in left.SECONDS.items() if seconds >= selection.SECONDS[file]] == []


def test_what_is_alone_comes_first() -> None:
    chosen = selection.choices("all")
    first = [choice.kernel for choice in chosen if choice.length in selection.ALONE]
    assert set(first) == set(NAMES)
    assert [choice.kernel for choice in chosen[: len(first)]] == first


def test_ci_boots_root_disks_of_each_way_and_suite_and_a_release_on_every_kernel() -> None:
    ci, everything = selection.disks("ci"), selection.disks("all")
    assert {disk.way for disk in ci} == set(Way)
    assert {(disk.kernel, disk.suite) for disk in ci} == {(NAMES[0], SUITES[0]), (NAMES[-1], SUITES[-1])}
    for way in (Way.SERVICE, Way.PERSIST):
        assert {disk.kernel for disk in everything if disk.way is way} == set(NAMES)
    assert set(ci) < set(everything)
    assert len(set(everything)) == len(everything)
    assert selection.disks("short") == selection.disks("none") == ()


def test_every_scenario_file_says_what_it_is_about() -> None:
    assert set(selection.ABOUT) == FILES


def test_each_capability_has_files_and_scenarios() -> None:
    about = {word for words in selection.ABOUT.values() for word in words.split()}
    parts = {word for words in selection.PARTS.values() for word in words.split()}
    assert about - parts == {"kernel"}
    assert parts - about == {"image"}


@pytest.mark.parametrize("part", selection.PARTS)
def test_each_part_is_still_there(part: str) -> None:
    """Its files are elsewhere by now? Then say so in PARTS, or their changes touch everything."""
    assert (PROJECT / part).is_dir() if part.endswith("/") else list(PROJECT.glob(f"{part}*"))


@pytest.mark.parametrize(
    ("file", "about"),
    [
        ("nfstuned/core/readahead/plan.py", "readahead"),
        ("nfstuned/core/nconnect/fstab_text.py", "fstab"),
        ("nfstuned/host/telemetry/scrape.py", "metrics"),
        ("nfstuned/cli/check.py", "check"),
        ("systemd/nfstuned.service", "package"),
        ("tests/lab/golden/clean.txt", "check"),
    ],
)
def test_a_file_touches_the_scenarios_about_its_capability(file: str, about: str) -> None:
    wanted = {name for name, words in selection.ABOUT.items() if about in words.split()}
    chosen = selection.touched([file])
    assert wanted <= set(chosen) < FILES
    assert all(chosen[name].startswith(f"{file}: ") and about in chosen[name] for name in wanted)


def test_the_longest_beginning_of_a_path_counts() -> None:
    assert set(selection.touched(["nfstuned/core/nconnect/live.py"])) == {"test_live"}
    of_all = {"test_live", "test_persist", "test_remount", "test_apply_fstab", "test_transports"}
    assert of_all <= set(selection.touched(["nfstuned/core/nconnect/groups.py"]))


@pytest.mark.parametrize(
    "file",
    [
        *("nfstuned/errors.py", "nfstuned/model/mounts.py", "nfstuned/parse/proc/mountstats.py"),
        *("nfstuned/host/root.py", "nfstuned/new/room.py", "pyproject.toml", "who/knows"),
        *("tests/lab/kit/daemon.py", "tests/lab/scenarios/conftest.py", "tests/lab/recipe.py"),
    ],
)
def test_what_others_stand_on_touches_everything(file: str) -> None:
    assert selection.touched([file]) == dict.fromkeys(sorted(FILES), f"{file}: all scenarios stand on it")


def test_a_scenario_touches_itself() -> None:
    file = "tests/lab/scenarios/test_idle.py"
    assert selection.touched([file]) == {"test_idle": f"{file}: itself"}
    assert selection.touched(["tests/lab/scenarios/test_that_is_gone.py"]) == {}


@pytest.mark.parametrize(
    "file",
    [
        *("README.md", "LICENSE", "docs/images.md", "docs/rules/NFS101.md", ".ci/run", "dev/test"),
        *("tests/core/test_rates.py", "tests/conftest.py", "tests/lab/test_guest.py", "tests/lab/README.md"),
    ],
)
def test_what_no_guest_sees_touches_nothing(file: str) -> None:
    assert selection.touched([file]) == {}


def test_the_first_of_several_reasons_is_told() -> None:
    changed = ["udev/99-nfstuned.rules", "tests/lab/scenarios/test_udev_rule.py", "README.md"]
    chosen = selection.touched(changed)
    assert chosen["test_udev_rule"] == "tests/lab/scenarios/test_udev_rule.py: itself"
    assert chosen["test_udev_mask"] == "udev/99-nfstuned.rules: udev"
    assert selection.touched([]) == {}
