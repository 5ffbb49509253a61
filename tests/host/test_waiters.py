"""Which programs wait with files of a superblock: from a /proc of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.root import Root
from nfstuned.parse.proc.processes import parse_state, read_waiters

NODES = "36 1 0:43 / /mnt/a rw - nfs4 nas:/a rw\n37 1 0:44 / /mnt/b rw - nfs4 nas:/b rw\n"


def process(root: Path, pid: int, name: str, states: str, **files: str) -> None:
    folder = root / f"proc/{pid}"
    (folder / "fdinfo").mkdir(parents=True)
    (folder / "mountinfo").write_text(NODES)
    for number, state in enumerate(states):
        task = folder / f"task/{pid + number}"
        task.mkdir(parents=True)
        (task / "stat").write_text(f"{pid + number} ({name}) {state} 1 1 1 0 -1\n")
    for number, mount_id in enumerate(files.get("opened", "").split()):
        (folder / f"fdinfo/{number}").write_text(f"pos:\t0\nflags:\t02\nmnt_id:\t{mount_id}\n")
    if "cwd" in files:
        (folder / "cwd").symlink_to(files["cwd"])


def test_a_program_that_waits_is_named_with_the_superblocks_that_it_has_files_of(tmp_path: Path) -> None:
    process(tmp_path, 900, "cp", "D", opened="36 37")
    process(tmp_path, 812, "a (b) c", "SD", cwd="/mnt/a/deep")
    process(tmp_path, 813, "bash", "S", cwd="/mnt/a")
    process(tmp_path, 814, "dd", "D", cwd="/home")
    (tmp_path / "proc/self").mkdir()
    found = read_waiters(Root(str(tmp_path)), frozenset({"0:43", "0:44"}))
    assert found == {"0:43": ("a (b) c (812)", "cp (900)"), "0:44": ("cp (900)",)}
    assert read_waiters(Root(str(tmp_path)), frozenset({"0:99"})) == {}


def test_of_a_process_that_has_just_ended_nothing_is_said(tmp_path: Path) -> None:
    (tmp_path / "proc/7/task/7").mkdir(parents=True)
    assert read_waiters(Root(str(tmp_path)), frozenset({"0:43"})) == {}


@pytest.mark.parametrize("text", ["", "12", "12 (sh", "12 (sh)"])
def test_what_is_no_line_of_stat_is_no_state(text: str) -> None:
    assert parse_state(text)[1] == ""
