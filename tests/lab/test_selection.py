"""The tiers run what they say."""

from __future__ import annotations

from tests.lab import recipe, selection
from tests.lab.rootdisk import Way
from tests.lab.roots import SUITES
from tests.lab.selection import Length

NAMES = [series.name for series in recipe.SERIES]


def test_no_tier_forgets_a_kernel() -> None:
    for tier in ("short", "ci", "all"):
        assert {choice.kernel for choice in selection.choices(tier)} == set(NAMES)


def test_none_runs_nothing() -> None:
    assert selection.choices("none") == ()


def test_ci_runs_long_scenarios_and_races_on_the_oldest_and_the_newest_kernel_only() -> None:
    for length in (Length.LONG, Length.RACE):
        on = {choice.kernel for choice in selection.choices("ci") if choice.length is length}
        assert on == {NAMES[0], NAMES[-1]}


def test_a_scenario_without_a_marker_is_short() -> None:
    assert selection.lengths("def test_a() -> None: ...\n") == {Length.SHORT}


def test_a_file_can_hold_both_lengths() -> None:
    assert selection.lengths("@pytest.mark.long\ndef test_a() -> None: ...\n") == {Length.SHORT, Length.LONG}


def test_a_file_marked_long_is_long_as_a_whole() -> None:
    marks = (
        "pytestmark = pytest.mark.long\n",
        'pytestmark = [pytest.mark.usefixtures("x"), pytest.mark.long]\n',
        "pytestmark = [\n    pytest.mark.timeout(9),\n    pytest.mark.long,\n]\n",
    )
    assert [selection.lengths(mark) for mark in marks] == [{Length.LONG}] * 3


def test_marks_of_one_test_are_not_those_of_its_file() -> None:
    source = "pytestmark = [\n    PATIENT,\n]\n\n@pytest.mark.race\ndef test_a() -> None: ...\n"
    assert selection.lengths(source) == {Length.SHORT, Length.RACE}


def test_races_come_first() -> None:
    chosen = selection.choices("all")
    first = [choice.kernel for choice in chosen if choice.length is Length.RACE]
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
