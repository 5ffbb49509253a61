"""The demonstration keeps its promises, and prints it so that it can be read anywhere."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab import demo
from tests.lab.conftest import Lab

PROJECT = Path(__file__).parents[2]
LIMIT_S = 180
GUEST = [
    "lab: 11.2 s  7.2 is up",
    "@heading Before",
    "@command mount SOURCE POINT",
    "@output 128",
    "@text that is little",
    "some program's warning",
    "@failed no sample",
]


def _print(*, colour: bool) -> tuple[list[str], list[str], list[str]]:
    shown: list[str] = []
    progress: list[str] = []
    printer = demo.Printer(colour, shown.append, progress.append)
    for line in GUEST:
        printer(line)
    return shown, progress, printer.failures


def test_what_is_not_of_the_demonstration_is_not_shown() -> None:
    shown, progress, failures = _print(colour=False)
    assert shown == ["", "Before", "  # mount SOURCE POINT", "  128", "  -- that is little"]
    assert progress == ["11.2 s  7.2 is up"]
    assert failures == ["no sample"]


def test_colour_changes_no_word() -> None:
    shown, _, _ = _print(colour=True)
    text = "\n".join(shown)
    assert "\033[" in text
    for style in ("\033[1m", "\033[2m", "\033[0m"):
        text = text.replace(style, "")
    assert text.splitlines() == _print(colour=False)[0]


def test_only_nfs_mounts_of_this_machine_are_announced() -> None:
    row = "36 25 0:43 / /mnt rw shared:1 - {} host:/nfs rw"
    assert demo.nfs_mounts("\n".join(row.format(kind) for kind in ("nfs", "ext4", "nfs4", "nfsd"))) == 2


@pytest.mark.lab
def test_an_unknown_kernel_is_named(lab_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del lab_folder
    assert demo.main(["4.4"]) == 2
    assert "4.4" in capsys.readouterr().err


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_the_demonstration_keeps_its_promises(lab: Lab) -> None:
    del lab  # the image is there; the disk of the other guests is made at the same time
    started = time.monotonic()
    argv = [sys.executable, "-m", "tests.lab.demo"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - started < LIMIT_S
    assert "\033" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 200
    for shown in ("15360/15360 ok", "read-ahead 128 -> 15360 KiB", "of memory (RSS)"):
        assert shown in done.stdout
