"""The completion scripts, and the words that they are given."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from nfstuned.cli.app import COMPLETE, NAME, app
from tests.cli.conftest import REPOSITORY, Golden, MakeHost

FOLDER = REPOSITORY / "docs/completion"
FILES = {"bash": "nfstuned.bash", "zsh": "_nfstuned", "fish": "nfstuned.fish"}


@pytest.mark.parametrize("shell", FILES)
def test_the_files_are_those_that_the_command_prints(shell: str, host: MakeHost, golden: Golden) -> None:
    run = host("no-nfs").run("completion", shell)
    assert (run.status, run.err) == (0, "")
    golden(FOLDER / FILES[shell], run.out)
    if program := shutil.which(shell):
        subprocess.run([program, "-n", FOLDER / FILES[shell]], check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("st",), ["status"]),
        (("co",), ["completion", "config"]),
        (("--v",), ["--version"]),
        (("config", ""), ["check", "schema", "show"]),
        (("config", "show", "--f"), ["--format"]),
        (("apply", "--dry-run", "--format", ""), ["text", "json"]),
        (("status", "--format", "="), ["text", "json"]),
        (("samples", "--format", "c"), ["csv"]),
        (("top", "--sort", "over"), ["over-fetch"]),
        (("nonsense", "x"), []),
        (("explain", "nfs00"), ["NFS000"]),
        (("check", "--select", "NFS00"), ["NFS000"]),
        (("check", "--fail-on", ""), ["error", "warning", "advice", "info"]),
    ],
)
def test_the_words_that_may_follow_are_offered(words: tuple[str, ...], offered: list[str]) -> None:
    *before, incomplete = words
    items = BashComplete(app, {}, NAME, COMPLETE).get_completions(before, incomplete)
    assert [item.value for item in items] == offered


def test_bash_asks_the_program() -> None:
    script = f"""\
        source {FOLDER / FILES["bash"]}
        COMP_WORDS=(nfstuned apply --d)
        COMP_CWORD=2
        _nfstuned_completion nfstuned
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env={"PATH": path}, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["--dry-run"]
