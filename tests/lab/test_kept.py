"""What passed is recalled for the very same files alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.lab import guest, kept, recipe, results
from tests.lab.selection import Boot, Length

BOOT = Boot("5.10-long", "5.10", frozenset({Length.LONG}), ("test_check",))
JUNIT = (
    '<testsuite><testcase classname="tests.lab.scenarios.test_check" name="test_it" time="1"/></testsuite>'
)
OWN, OTHERS = "tests/lab/scenarios/test_check.py", "tests/lab/scenarios/test_live.py"
PRODUCT, UNSEEN = "nfstuned/model/mounts.py", "docs/guide.md"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    (folder / ".gitignore").write_text("ignored\n")
    for name in (OWN, OTHERS, PRODUCT, UNSEEN):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("1")
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    return folder


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "cache", lambda: tmp_path / "cache")


def passed(tmp_path: Path, of: str, when: str = "20260101-000000", status: int = 0) -> results.Run:
    folder = tmp_path / "cache/results" / when / BOOT.name
    (folder / "files").mkdir(parents=True)
    (folder / "files/junit.xml").write_text(JUNIT)
    boot = guest.Result("5.10.0", guest.Verdict.ENDED, status, 9.0, "said", "", folder / "files")
    run = results.Run(boot, (), folder)
    kept.keep(run, of)
    return run


def test_a_boot_that_passed_is_recalled_with_its_outcomes(tmp_path: Path) -> None:
    passed(tmp_path, "these", "20260101-000000")
    latest = passed(tmp_path, "these", "20260102-000000")
    found = kept.recall("5.10.0", "these")
    assert found is not None
    assert found.folder == latest.folder
    assert found.boot.passed
    assert [(one.scenario, one.test, one.trouble) for one in found.outcomes] == [
        ("test_check", "test_it", "")
    ]


def test_neither_other_files_nor_a_failure_nor_lost_results_are_recalled(tmp_path: Path) -> None:
    passed(tmp_path, "these", "20260101-000000", status=1)
    lost = passed(tmp_path, "these", "20260102-000000")
    (lost.folder / "files/junit.xml").write_text(JUNIT[:30])
    passed(tmp_path, "others", "20260103-000000")
    assert kept.recall("5.10.0", "these") is None


def test_each_file_counts_that_its_guest_sees(project: Path) -> None:
    seen = [kept.fingerprint(BOOT, project)]
    for name in (OTHERS, UNSEEN, "ignored"):
        (project / name).write_text("other")
        assert kept.fingerprint(BOOT, project) == seen[0], name
    for name in (OWN, PRODUCT, "nfstuned/new.py", "tests/lab/kit/new.py", "tests/lab/scenarios/conftest.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("other")
        seen.append(kept.fingerprint(BOOT, project))
    (project / PRODUCT).unlink()
    seen.append(kept.fingerprint(BOOT, project))
    assert None not in seen
    assert len(set(seen)) == 7


def test_a_clone_has_the_same_files(project: Path, tmp_path: Path) -> None:
    commit = ["git", "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "m"]
    subprocess.run(commit, cwd=project, check=True)
    subprocess.run(["git", "clone", "--quiet", str(project), str(tmp_path / "clone")], check=True)
    assert kept.fingerprint(BOOT, tmp_path / "clone") == kept.fingerprint(BOOT, project)


def test_another_boot_is_another(project: Path) -> None:
    boots = [BOOT, Boot("5.10-long", "5.10", BOOT.lengths, ("test_live",)), Boot("a", "a", BOOT.lengths, ())]
    boots.append(Boot("5.10-long", "5.10", BOOT.lengths, BOOT.scenarios, full=True))
    boots.append(Boot("5.10-long", "5.10", BOOT.lengths, BOOT.scenarios, without=("test_check.py::test_a",)))
    assert len({kept.fingerprint(boot, project) for boot in boots}) == 5


def test_without_git_nothing_is_known(tmp_path: Path) -> None:
    assert kept.fingerprint(BOOT, tmp_path) is None
