"""`sh dev/lab KERNEL --changed`: what counts as changed, and that nothing boots for nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import __main__ as command
from tests.lab import image, payload

Git = Callable[..., None]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Run git in a project with a branch `main`, and another one that left it and was left by it."""
    monkeypatch.setattr(payload, "PROJECT", tmp_path)
    monkeypatch.chdir(tmp_path)
    who = {f"GIT_{role}_{key}": "x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}

    def git(*words: str) -> None:
        environment = {**kept, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", *words], check=True, capture_output=True, env=environment)

    git("init", "--initial-branch=main")
    for name in ("kept", "moved", "mains"):
        Path(name).write_text(f"{name}\n")
    git("add", ".")
    git("commit", "-m", "first")
    git("checkout", "-b", "mine")
    git("mv", "moved", "há")
    git("commit", "-m", "mine")
    git("checkout", "main")
    Path("mains").write_text("later\n")
    git("commit", "-am", "later")
    git("checkout", "mine")
    return git


def test_by_default_it_is_what_is_not_committed_and_new_files(git: Git) -> None:
    assert command._changed(None) == set()  # noqa: SLF001 - the rest boots
    Path("kept").write_text("other\n")
    Path("new").touch()
    Path("staged").touch()
    git("add", "staged")
    assert command._changed(None) == {"kept", "new", "staged"}  # noqa: SLF001


def test_with_a_revision_it_is_all_since_this_branch_left_it(git: Git) -> None:
    Path("new").touch()
    assert command._changed("main") == {"moved", "há", "new"}  # noqa: SLF001
    git("add", "new")
    git("commit", "-m", "new")
    assert command._changed("main") == {"moved", "há", "new"}  # noqa: SLF001
    assert command._changed("HEAD~1") == {"new"}  # noqa: SLF001


@pytest.mark.usefixtures("git")
def test_nothing_boots_for_what_touches_nothing_nor_for_what_git_does_not_know(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(image, "ensure", lambda _: pytest.fail("it would build an image"))
    assert command.main(["6.12", "--changed"]) == 0
    assert capsys.readouterr().err == "lab: no scenario is touched: nothing to boot for\n"
    assert command.main(["6.12", "--changed", "nowhere"]) == 2
    assert "Not a valid object name nowhere" in capsys.readouterr().err
