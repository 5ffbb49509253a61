"""The completion scripts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.cli.completion import FILES
from tests.cli.conftest import REPOSITORY, Host

MakeHost = Callable[[str], Host]
FOLDER = REPOSITORY / "docs/completion"


@pytest.mark.parametrize("shell", FILES)
def test_the_files_are_those_that_the_command_prints(
    shell: str, host: MakeHost, golden: Callable[[Path, str], None]
) -> None:
    run = host("no-nfs").run("completion", shell)
    assert (run.status, run.err) == (0, "")
    golden(FOLDER / FILES[shell], run.out)


@pytest.mark.parametrize("shell", FILES)
def test_the_shell_understands_its_file(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([program, "-n", FOLDER / FILES[shell]], check=True)


def complete(*words: str) -> list[str]:
    """Return what bash offers for the last of the words, with no program to call."""
    script = f"""\
        source {FOLDER / FILES["bash"]}
        PATH=
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _nfstuned
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = ["bash", "--norc", "-c", script, "bash", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("nfstuned", "st"), ["status"]),
        (("nfstuned", "sa"), ["samples"]),
        (("nfstuned", "co"), ["config", "completion"]),
        (("nfstuned", "config", ""), ["show", "check", "schema", "-h", "--help"]),
        (("nfstuned", "config", "show", "--f"), ["--format"]),
        (("nfstuned", "apply", "--d"), ["--dry-run"]),
        (("nfstuned", "apply", "--dry-run", "--format", ""), ["text", "json"]),
        (("nfstuned", "status", "--format", "="), ["text", "json"]),
        (("nfstuned", "status", "--format", "=", "j"), ["json"]),
        (("nfstuned", "completion", "b"), ["bash"]),
        (("nfstuned", "samples", "--format", ""), ["text", "json", "csv"]),
        (("nfstuned", "samples", "--f"), ["--file", "--format"]),
        (("nfstuned", "top", "--sort", "over"), ["over-fetch"]),
        (("nfstuned", "top", "--"), ["--interval", "--sort", "--count", "--file", "--help"]),
        (("nfstuned", "nonsense", "x"), []),
        (("nfstuned", "explain", "NFS00"), ["NFS000"]),
        (("nfstuned", "check", "--select", "NFS00"), ["NFS000"]),
        (("nfstuned", "check", "--fail-on", ""), ["error", "warning", "advice", "info"]),
        (("nfstuned", "check", "--fstab", ""), []),
        (("nfstuned", "check", "--offline", "--fa"), ["--fail-on"]),
    ],
)
def test_bash_completes_without_starting_a_program(words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(*words) == offered
