"""A guest that dies, hangs or stays silent is recognized, and never passes."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab import guest, image, recipe, runs
from tests.lab.guest import Limits, Verdict

PANIC = "[   12.1] Kernel panic - not syncing: sysrq triggered crash\n"
LOCKUP = "watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"


def test_an_end_needs_the_word_of_this_boot() -> None:
    assert guest.end_status("1 passed\n@@lab-end abcd 0\n", "abcd") == 0
    assert guest.end_status("1 passed\n@@lab-end other 0\n", "abcd") is None
    assert guest.end_status("1 passed\n", "abcd") is None


@pytest.mark.parametrize(
    ("verdict", "output", "more"),
    [
        (Verdict.ENDED, "1 passed\n", {"status": 0, "files": Path("files")}),
        (Verdict.LOST, "1 passed\n", {"status": 0}),
        (Verdict.DIED, "", {"console": PANIC}),
        (Verdict.DIED, "test_a PASSED\n", {}),
        (Verdict.HUNG, "test_a PASSED\n", {"in_time": False}),
        (Verdict.HUNG, "test_a\n", {"in_time": False, "console": LOCKUP}),
        (Verdict.SILENT, "", {"in_time": False, "console": "Linux version"}),
    ],
)
def test_each_way_to_end_has_its_verdict(verdict: Verdict, output: str, more: dict[str, Any]) -> None:
    """A boot passes with its end marker and its results alone; a soft lockup is no death."""
    ended_early: dict[str, Any] = {"console": "", "in_time": True, "status": None, "files": None}
    assert guest.judge(output, **(ended_early | more)) is verdict


def test_an_empty_result_disk_holds_no_results(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(1 << 20))
    assert guest.unpack(disk, tmp_path / "files") is None


def test_a_result_disk_gives_its_files_back(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with tarfile.open(disk, "w") as tar:
        member = tarfile.TarInfo("junit.xml")
        member.size = 3
        tar.addfile(member, io.BytesIO(b"<a>"))
    with disk.open("ab") as file:
        file.truncate(1 << 20)
    assert guest.unpack(disk, tmp_path / "files") == tmp_path / "files"
    assert (tmp_path / "files/junit.xml").read_bytes() == b"<a>"


JUNIT = """<testsuites><testsuite name="pytest">
<testcase classname="tests.lab.scenarios.test_a" name="test_one" time="0.5"/>
<testcase classname="tests.lab.scenarios.test_a" name="test_two"><failure message="m">why</failure></testcase>
<testcase classname="tests.lab.scenarios.test_b" name="test_x"><skipped message="no sysfs"/></testcase>
<testcase classname="" name="tests.lab.scenarios.test_c"><error message="m">no import</error></testcase>
</testsuite></testsuites>"""


def test_outcomes_name_test_and_trouble(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(JUNIT)
    found = runs.read_outcomes(junit)
    names = ["test_a::test_one", "test_a::test_two", "test_b::test_x", "tests.lab.scenarios.test_c"]
    assert [one.test for one in found] == names
    assert [one.trouble for one in found] == ["", "why", "", "no import"]
    assert found[2].skipped == "no sysfs"


@pytest.mark.parametrize(
    ("verdict", "status", "outcomes", "reason"),
    [
        (Verdict.ENDED, 0, ["", ""], ""),
        (Verdict.ENDED, 1, ["", "why"], "why"),
        (Verdict.ENDED, 0, [], "status 0"),
        (Verdict.ENDED, 5, [""], "status 5"),
        (Verdict.DIED, None, ["why"], "the guest died"),
        (Verdict.DIED, None, [], "the guest died"),
    ],
)
def test_a_run_passes_when_its_boot_ended_well_and_all_its_tests_passed(
    verdict: Verdict, status: int | None, outcomes: list[str], reason: str, tmp_path: Path
) -> None:
    result = guest.Result("6.1", verdict, status, 1.0, "", "", tmp_path)
    found = tuple(runs.Outcome(str(number), trouble) for number, trouble in enumerate(outcomes))
    failure = runs.Run(result, found, tmp_path).failure
    assert bool(failure) == bool(reason)
    assert reason in failure


def test_ci_boots_each_kernel_once_and_the_system_on_the_newest() -> None:
    names = [str(boot) for boot in runs.boots("ci")]
    assert names[0] == "newest-system"
    assert names[1:] == [f"{series.name}-kernel" for series in recipe.SERIES]
    assert runs.boots("none") == ()
    (first, *others) = runs.boots("all")
    assert str(first) == "newest-release"
    assert [str(boot) for boot in others] == names
    assert [boot.brief for boot in runs.boots("ci")] == [False, True, True, True, True, False]
    assert not any(boot.brief for boot in others)


SCRIPTS = {
    Verdict.SILENT: "sleep 1000",
    Verdict.HUNG: "echo working; sleep 1000",
    Verdict.DIED: "echo working",
    Verdict.LOST: """disk=${4#file=}; echo "@@lab-end $(tar -xOf "${disk%%,*}" word) 0" """,
}


@pytest.mark.slow
@pytest.mark.parametrize("verdict", SCRIPTS, ids=lambda verdict: verdict.name.lower())
def test_every_bad_end_is_known(verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script takes the emulator's place; its fourth argument is the disk with the payload."""
    (tmp_path / "payload").mkdir()
    monkeypatch.setattr(guest, "_machine", lambda *_: ["sh", "-c", SCRIPTS[verdict], "qemu"])
    limits = Limits(total_s=20, first_s=1, quiet_s=1)
    result = guest.boot("6.1", tmp_path / "payload", tmp_path / "results", lambda _: None, limits)
    assert result.verdict is verdict, result.explain()
    assert not result.passed


def test_a_boot_without_a_first_word_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "payload").mkdir()
    monkeypatch.setattr(guest, "_machine", lambda *_: ["true"])
    lines: list[str] = []
    limits = Limits(total_s=20, first_s=1, quiet_s=1, retries=2)
    guest.boot("6.1", tmp_path / "payload", tmp_path / "results", lines.append, limits)
    assert len(lines) == 2


@pytest.mark.lab
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("started_lab")
def test_a_guest_that_panics_has_died(lab_folder: Path, say: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "start").write_text("echo working; sleep 1; echo c >/proc/sysrq-trigger\n")
    limits = Limits(total_s=300, first_s=240, quiet_s=20, retries=1)
    result = guest.boot(image.release("newest"), tmp_path, lab_folder / "panic", say, limits)
    assert result.verdict is Verdict.DIED, result.explain()
