"""`nfstuned apply --fstab`: what it shows, what it asks, what it changes, and what it refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nfstuned.host.files.replace import BACKUP
from tests.cli.conftest import Host
from tests.cli.terminal import on_a_terminal
from tests.cli.test_apply_files import OLD, furnish, only

NEW = "# mine\n10.1.2.4:/vol1 /mnt/vol1\tnfs vers=4.1,hard,nconnect=8 0 0\n"
DIFF = """\
--- /etc/fstab
+++ /etc/fstab (new)
@@ -1,2 +1,2 @@
 # mine
-10.1.2.4:/vol1 /mnt/vol1	nfs vers=4.1,hard 0 0
+10.1.2.4:/vol1 /mnt/vol1	nfs vers=4.1,hard,nconnect=8 0 0
"""
PROGRAM = (
    "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
    "sys.exit(main(['apply', '--fstab', '--format', sys.argv[2]], Root(sys.argv[1])))"
)
PROJECT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Host:
    return furnish(Host(tmp_path, capsys))


def fstab(here: Host) -> Path:
    return here.tree / "etc/fstab"


def etc(here: Host) -> set[str]:
    return {path.name for path in (here.tree / "etc").iterdir()} - {"nfstuned"}


def test_a_dry_run_shows_the_difference_and_changes_nothing(here: Host) -> None:
    before = fstab(here).stat().st_ino
    run = here.run("apply", "--fstab", "--dry-run")
    assert (run.status, run.err) == (0, "")
    assert run.out == DIFF + (
        "/etc/fstab:2  /mnt/vol1 nconnect none -> 8  planned  (azure-netapp-files asks for nconnect=8)\n"
        "1 planned\n"
    )
    assert (fstab(here).stat().st_ino, fstab(here).read_text()) == (before, OLD)
    assert etc(here) == {"fstab"}


def test_with_yes_it_is_done_and_the_old_file_is_kept(here: Host) -> None:
    fstab(here).chmod(0o600)
    run = here.run("apply", "--fstab", "--yes")
    assert run.status == 0
    assert run.out.startswith(DIFF)
    assert "1 done\n" in run.out
    assert f"The old file is {fstab(here)}{BACKUP}.\n" in run.out
    assert fstab(here).read_text() == NEW
    assert stat.S_IMODE(fstab(here).stat().st_mode) == 0o600
    assert (here.tree / f"etc/fstab{BACKUP}").read_text() == OLD


def test_a_second_time_there_is_nothing_to_do(here: Host) -> None:
    here.run("apply", "--fstab", "--yes")
    run = here.run("apply", "--fstab")
    assert (run.status, run.err) == (0, "")
    assert (
        run.out == "Nothing to do: no NFS entry of /etc/fstab asks for another nconnect than its profile.\n"
    )
    assert etc(here) == {"fstab", f"fstab{BACKUP}"}


def test_json_is_one_document_and_the_difference_is_talk(here: Host) -> None:
    run = here.run("apply", "--fstab", "--yes", "--format", "json")
    assert run.status == 0
    assert run.err == DIFF
    assert only(run) == {
        "kind": "fstab",
        "target": "/etc/fstab:2",
        "mount_point": "/mnt/vol1",
        "old": None,
        "new": 8,
        "outcome": "done",
        "reason": "azure-netapp-files asks for nconnect=8",
    }


def test_without_a_terminal_nothing_is_changed_unasked(here: Host) -> None:
    run = here.run("apply", "--fstab", "--format", "json")
    assert run.status == 2
    assert "--yes" in run.err
    assert only(run)["outcome"] == "planned"
    assert fstab(here).read_text() == OLD


def test_it_does_not_ask_where_nobody_sees_the_difference(here: Host) -> None:
    main, side = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, str(here.tree), "text"]
    process = subprocess.Popen(command, stdin=side, stdout=subprocess.PIPE, stderr=side, cwd=PROJECT)
    os.close(side)
    out, _ = process.communicate(timeout=60)
    os.close(main)
    assert process.returncode == 2
    assert out.decode().startswith(DIFF)
    assert fstab(here).read_text() == OLD


@pytest.mark.parametrize(
    ("answer", "status", "outcome", "text"),
    [(b"y\n", 0, "done", NEW), (b"n\n", 1, "skipped", OLD), (b"\n", 1, "skipped", OLD)],
)
def test_on_a_terminal_it_asks(here: Host, answer: bytes, status: int, outcome: str, text: str) -> None:
    returned, out, dialog = on_a_terminal([sys.executable, "-c", PROGRAM, str(here.tree), "json"], answer)
    assert (returned, fstab(here).read_text()) == (status, text)
    assert json.loads(out)["actions"][0]["outcome"] == outcome
    assert "Change it? [y/N]" in dialog
    assert DIFF.splitlines()[-1] in dialog


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_nothing_is_written_but_by_the_replacement(
    here: Host, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What happens when that is killed is shown where it is tested (tests/host/test_replace_killed.py)."""
    log = tmp_path_factory.mktemp("log") / "calls"
    kinds = "/^(open|creat|renam|link|symlink|unlink|mkdir|rmdir|truncat|mknod|chmod|chown|fchmodat|fchownat)"
    program = PROGRAM.replace("'--format'", "'--yes', '--format'")
    watch = ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={kinds}"]
    command = [*watch, sys.executable, "-c", program, str(here.tree), "json"]
    subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
    calls = re.findall(r"^\d+ +(\w+)\((.*)", log.read_text(), re.MULTILINE)
    writing = [
        name
        for name, rest in calls
        if str(here.tree) in rest
        and (not name.startswith("open") or re.search("O_(WRONLY|RDWR|CREAT)", rest))
    ]
    assert [re.sub("at2?$", "", name) for name in writing] == [
        *("mkdir", "mkdir", "chmod", "open"),  # the lock
        *("open", "link", "link", "rename", "unlink"),
    ]


def test_a_link_is_refused_with_what_to_do(here: Host) -> None:
    fstab(here).rename(here.tree / "real")
    fstab(here).symlink_to("../real")
    for arguments in (["--yes"], ["--dry-run"]):
        run = here.run("apply", "--fstab", *arguments, "--format", "json")
        assert run.status == 1
        action = only(run)
        assert action["outcome"] == "failed"
        assert action["reason"].startswith("/etc/fstab is a symbolic link to ../real: --follow-symlink")
    assert (here.tree / "real").read_text() == OLD
    assert here.run("apply", "--fstab", "--yes", "--follow-symlink").status == 0
    assert (here.tree / "real").read_text() == NEW
    assert fstab(here).is_symlink()
    assert (here.tree / f"real{BACKUP}").read_text() == OLD


def test_a_file_that_a_program_calls_its_own_is_refused(here: Host) -> None:
    fstab(here).write_text("# Ansible managed\n" + OLD)
    run = here.run("apply", "--fstab", "--yes", "--format", "json")
    assert run.status == 1
    assert only(run)["reason"] == "its comments say that ansible writes this file: change it there"
    assert fstab(here).read_text() == "# Ansible managed\n" + OLD


def test_without_findmnt_nothing_is_changed(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here.tree))
    run = here.run("apply", "--fstab", "--yes", "--format", "json")
    assert run.status == 1
    assert "findmnt" in only(run)["reason"]
    assert fstab(here).read_text() == OLD
    assert etc(here) == {"fstab"}


def test_a_host_without_fstab_has_nothing_to_do(here: Host) -> None:
    fstab(here).unlink()
    run = here.run("apply", "--fstab", "--yes")
    assert (run.status, run.err) == (0, "")
    assert run.out.startswith("Nothing to do")
    assert etc(here) == set()


def test_a_broken_line_is_named_and_the_rest_is_done(here: Host) -> None:
    fstab(here).write_text("10.1.2.4:/x /x nfs rw 0 x\n" + OLD)
    run = here.run("apply", "--fstab", "--yes")
    assert run.status == 0
    assert run.err == "/etc/fstab:1: fsck pass is not a number: 'x'\n"
    assert fstab(here).read_text() == "10.1.2.4:/x /x nfs rw 0 x\n" + NEW


def test_what_nfsmount_conf_adds_counts_as_asked_for(here: Host) -> None:
    (here.tree / "etc/nfsmount.conf").write_text('[ Server "10.1.2.4" ]\nnconnect=8\n')
    assert here.run("apply", "--fstab", "--dry-run").out.startswith("Nothing to do")
    (here.tree / "etc/nfsmount.conf").write_text('[ Server "10.1.2.4" ]\nnconnect=2\n')
    assert only(here.run("apply", "--fstab", "--dry-run", "--format", "json"))["old"] == 2


def test_a_drop_in_that_decides_the_options_is_named(here: Host) -> None:
    folder = here.tree / "etc/systemd/system/mnt-vol1.mount.d"
    folder.mkdir(parents=True)
    (folder / "order.conf").write_text("[Unit]\nAfter=x.service\n")
    assert only(here.run("apply", "--fstab", "--dry-run", "--format", "json"))["outcome"] == "planned"
    (folder / "x.conf").write_text("[Mount]\nOptions=vers=4.1,hard\n")
    action = only(here.run("apply", "--fstab", "--dry-run", "--format", "json"))
    assert (action["outcome"], action["reason"]) == (
        "skipped",
        "/etc/systemd/system/mnt-vol1.mount.d/x.conf:2 decides the options of this mount: change it there",
    )
    (folder / "x.conf").write_text("[Mount]\nOptions=vers=4.1,hard,nconnect=8\n")
    assert here.run("apply", "--fstab", "--dry-run").out.startswith("Nothing to do")


@pytest.mark.usefixtures("as_user")
def test_what_a_user_may_not_read_is_named(host: Callable[[str], Host]) -> None:
    here = host("no-nfs")
    (here.tree / "etc").mkdir(exist_ok=True)
    fstab(here).write_text(OLD)
    (here.tree / "etc/nfsmount.conf").write_text("[ x ]\n")
    (here.tree / "etc/nfsmount.conf").chmod(0)
    (here.tree / "etc/auto.master").mkdir()
    run = here.run("apply", "--fstab", "--dry-run")
    assert "/etc/nfsmount.conf: permission denied; root can read it\n" in run.err
    assert "/etc/auto.master: a directory where a file should be: not read\n" in run.err
