"""`sh dev/test`: the arguments of its pytests, and its exit status."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.tree import put

SCRIPT = Path(__file__).parents[1] / "dev/test"
WORKERS = len(os.sched_getaffinity(0)) + 1
"""As nproc(1) counts processors, and one more."""
SETUP = """\
set -eu
cd "$(dirname "$0")/.."
for each in python tests prometheus site deploy lab; do eval "setup_$each() { :; }"; done
"""
PYTEST = """\
#!/bin/sh
[ "$*" != "-m tests.lab.image" ] || exec touch image
echo "$@" >>started
case "$*" in *" -m lab"*) exit "$LAB" ;; esac
exit "$WITHOUT"
"""


def run(tree: Path, *arguments: str, without: int = 0, lab: int = 0) -> tuple[int, list[str]]:
    """Return its exit status, and the arguments of each pytest, which end with these statuses."""
    put(tree / "dev/setup.sh", SETUP)
    shutil.copy(SCRIPT, tree / "dev/test")
    put(tree / ".venv/bin/python", PYTEST, 0o755)
    put(tree / "unshare", '#!/bin/sh\n[ "$1" = --mount ] && shift && exec "$@"\n', 0o755)
    more = {"PATH": f"{tree}:{os.environ['PATH']}", "WITHOUT": str(without), "LAB": str(lab)}
    command = ["sh", "dev/test", *arguments]
    done = subprocess.run(
        command, cwd=tree, env=os.environ | more, check=False, capture_output=True, text=True
    )
    assert ("on kernels" in done.stderr) == (" -m lab" in (tree / "started").read_text())
    return done.returncode, (tree / "started").read_text().splitlines()


@pytest.mark.parametrize(("option", "tier"), [((), "ci"), (("--all",), "all")])
def test_only_the_lab_runs_in_a_single_process(option: tuple[str, ...], tier: str, tmp_path: Path) -> None:
    assert run(tmp_path, *option, "-k", "mine", "tests") == (
        0,
        [
            f"-m pytest --numprocesses={WORKERS} --dist=worksteal -k mine tests --lab=none",
            f"-m pytest --lab={tier} -m lab -k mine tests --numprocesses=0",
        ],
    )


def test_without_arguments_the_lab_collects_only_files_that_have_a_boot(tmp_path: Path) -> None:
    put(tmp_path / "tests/test_boots.py", "@pytest.mark.lab\n")
    put(tmp_path / "tests/test_others.py", "@pytest.mark.slow\n")
    _, (without, lab) = run(tmp_path)
    assert without == f"-m pytest --numprocesses={WORKERS} --dist=worksteal --lab=none"
    assert lab == "-m pytest --lab=ci -m lab tests/test_boots.py --numprocesses=0"


@pytest.mark.parametrize("status", [0, 1, 5])
def test_quick_boots_nothing(status: int, tmp_path: Path) -> None:
    quick = f"-m pytest --numprocesses={WORKERS} --dist=worksteal --quick -x --lab=none"
    assert run(tmp_path, "--quick", "-x", without=status, lab=1) == (status, [quick])


@pytest.mark.parametrize(
    ("statuses", "status", "pytests"),
    [
        *(((0, 1), 1, 2), ((1, 0), 1, 2), ((1, 1), 1, 2), ((0, 2), 2, 2), ((1, 3), 3, 2)),
        *(((5, 0), 0, 2), ((0, 5), 0, 2), ((5, 1), 1, 2), ((1, 5), 1, 2), ((5, 5), 5, 2)),
        # After an interrupt or a wrong argument nothing boots.
        *(((2, 0), 2, 1), ((3, 0), 3, 1), ((4, 0), 4, 1)),
    ],
)
def test_the_worse_status_counts_if_tests_ran(
    statuses: tuple[int, int], status: int, pytests: int, tmp_path: Path
) -> None:
    found, started = run(tmp_path, without=statuses[0], lab=statuses[1])
    assert (found, len(started)) == (status, pytests)


@pytest.mark.parametrize(
    ("arguments", "builds"), [((), True), (("--all",), True), (("-k", "mine"), False), (("--quick",), False)]
)
def test_an_image_is_built_for_all_tests(arguments: tuple[str, ...], tmp_path: Path, *, builds: bool) -> None:
    run(tmp_path, *arguments)
    deadline = time.monotonic() + 10
    while builds and os.geteuid() == 0 and not (tmp_path / "image").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (tmp_path / "image").exists() == (builds and os.geteuid() == 0)
