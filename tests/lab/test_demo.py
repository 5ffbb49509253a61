"""The demonstration keeps its promises, and prints it so that it can be read anywhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import demo
from tests.lab.__main__ import main
from tests.lab.conftest import Lab

PROJECT = Path(__file__).parents[2]
GUEST = [
    "lab: 11.2 s  7.2 is up",
    "@heading Before",
    "@command mount SOURCE POINT",
    "@output 128",
    "@text that is little",
    "some program's warning",
    "@failed no sample",
]


@pytest.mark.parametrize("colour", [False, True])
def test_the_demonstration_is_shown_and_nothing_else(*, colour: bool) -> None:
    shown: list[str] = []
    progress: list[str] = []
    printer = demo.Printer(colour, shown.append, progress.append)
    for line in GUEST:
        printer(line)
    text = "\n".join(shown)
    assert ("\033" in text) is colour
    plain = re.sub("\033\\[[0-9]+m", "", text)
    assert plain.splitlines() == ["", "Before", "  # mount SOURCE POINT", "  128", "  -- that is little"]
    assert progress == ["11.2 s  7.2 is up"]
    assert printer.failures == ["no sample"]


def test_only_nfs_mounts_of_this_machine_are_announced() -> None:
    row = "36 25 0:43 / /mnt rw shared:1 - {} host:/nfs rw"
    assert demo.nfs_mounts("\n".join(row.format(kind) for kind in ("nfs", "ext4", "nfs4", "nfsd"))) == 2


@pytest.mark.lab
def test_an_unknown_kernel_is_named(lab_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del lab_folder
    assert main(["4.4", "demo"]) == 2
    assert "4.4" in capsys.readouterr().err


@pytest.mark.lab
@pytest.mark.timeout(600)
def test_the_demonstration_keeps_its_promises(lab: Lab) -> None:
    del lab  # the image is there; the disk of the other guests is made at the same time
    argv = [sys.executable, "-m", "tests.lab", "newest", "demo"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\033" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 200
    for shown in ("15360/15360 ok", "read-ahead 128 -> 15360 KiB", "of memory (RSS)"):
        assert shown in done.stdout
