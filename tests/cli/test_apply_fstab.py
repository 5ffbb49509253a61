"""`nfstuned apply --fstab`: what it shows, what it asks, what it changes, and what it refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from nfstuned.host.files.replace import BACKUP
from tests.cli.conftest import ENTRY, REPOSITORY, Host, MakeHost, furnish
from tests.cli.terminal import on_a_terminal
from tests.tree import put

NEW = "# mine\n10.1.2.4:/vol1 /mnt/vol1\tnfs vers=4.1,hard,nconnect=8 0 0\n"
DIFF = """\
--- /etc/fstab
+++ /etc/fstab (new)
@@ -1,2 +1,2 @@
 # mine
-10.1.2.4:/vol1 /mnt/vol1	nfs vers=4.1,hard 0 0
+10.1.2.4:/vol1 /mnt/vol1	nfs vers=4.1,hard,nconnect=8 0 0
"""
NOTHING = "Nothing to do: no NFS entry of /etc/fstab asks for another nconnect than its profile.\n"
JSON = ("--format", "json")
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
    assert (fstab(here).stat().st_ino, fstab(here).read_text(), etc(here)) == (before, ENTRY, {"fstab"})


def test_with_yes_it_is_done_once_and_the_old_file_is_kept(here: Host) -> None:
    fstab(here).chmod(0o600)
    run = here.run("apply", "--fstab", "--yes")
    assert run.status == 0
    assert run.out.startswith(DIFF)
    assert "1 done\n" in run.out
    assert f"The old file is {fstab(here)}{BACKUP}.\n" in run.out
    assert (fstab(here).read_text(), stat.S_IMODE(fstab(here).stat().st_mode)) == (NEW, 0o600)
    assert (here.tree / f"etc/fstab{BACKUP}").read_text() == ENTRY
    run = here.run("apply", "--fstab")
    assert (run.status, run.out, run.err) == (0, NOTHING, "")
    assert etc(here) == {"fstab", f"fstab{BACKUP}"}


def test_json_is_one_document_and_the_difference_is_talk(here: Host) -> None:
    run = here.run("apply", "--fstab", "--yes", *JSON)
    assert (run.status, run.err) == (0, DIFF)
    assert run.action == {
        "kind": "fstab",
        "target": "/etc/fstab:2",
        "mount_point": "/mnt/vol1",
        "old": None,
        "new": 8,
        "outcome": "done",
        "reason": "azure-netapp-files asks for nconnect=8",
    }


def test_without_a_terminal_nothing_is_changed_unasked(here: Host) -> None:
    run = here.run("apply", "--fstab", *JSON)
    assert (run.status, run.action["outcome"], "--yes" in run.err) == (2, "planned", True)
    assert fstab(here).read_text() == ENTRY


def test_it_does_not_ask_where_nobody_sees_the_difference(here: Host) -> None:
    main, side = pty.openpty()
    command = here.command("apply", "--fstab")
    process = subprocess.Popen(command, stdin=side, stdout=subprocess.PIPE, stderr=side, cwd=REPOSITORY)
    os.close(side)
    out, _ = process.communicate(timeout=60)
    os.close(main)
    assert (process.returncode, fstab(here).read_text()) == (2, ENTRY)
    assert out.decode().startswith(DIFF)


@pytest.mark.parametrize(
    ("answer", "status", "outcome", "text"),
    [(b"y\n", 0, "done", NEW), (b"n\n", 1, "skipped", ENTRY), (b"\n", 1, "skipped", ENTRY)],
)
def test_on_a_terminal_it_asks(here: Host, answer: bytes, status: int, outcome: str, text: str) -> None:
    returned, out, dialog = on_a_terminal(here.command("apply", "--fstab", *JSON), answer)
    assert (returned, fstab(here).read_text()) == (status, text)
    assert json.loads(out)["actions"][0]["outcome"] == outcome
    assert "Change it? [y/N]" in dialog
    assert DIFF.splitlines()[-1] in dialog


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_only_the_replacement_writes_anything(here: Host, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What happens when that is killed is shown where it is tested (tests/host/test_replace_killed.py)."""
    log = tmp_path_factory.mktemp("log") / "calls"
    kinds = "/^(open|creat|renam|link|symlink|unlink|mkdir|rmdir|truncat|mknod|chmod|chown|fchmodat|fchownat)"
    watch = ["strace", "-f", "-y", "-o", str(log), "-e", f"trace={kinds}"]
    command = [*watch, *here.command("apply", "--fstab", "--yes", *JSON)]
    subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    calls = re.findall(r"^\d+ +(\w+)\((.*)", log.read_text(), re.MULTILINE)
    writing = [
        name
        for name, rest in calls
        if str(here.tree) in rest
        and (not name.startswith("open") or re.search("O_(WRONLY|RDWR|CREAT)", rest))
    ]
    lock = ["mkdir", "mkdir", "chmod", "open"]
    replacement = ["open", "link", "link", "rename", "unlink"]
    assert [re.sub("at2?$", "", name) for name in writing] == lock + replacement


def test_a_link_is_refused_with_what_to_do(here: Host) -> None:
    fstab(here).rename(here.tree / "real")
    fstab(here).symlink_to("../real")
    for way in ("--yes", "--dry-run"):
        run = here.run("apply", "--fstab", way, *JSON)
        assert (run.status, run.action["outcome"]) == (1, "failed")
        assert run.action["reason"].startswith("/etc/fstab is a symbolic link to ../real: --follow-symlink")
    assert (here.tree / "real").read_text() == ENTRY
    assert here.run("apply", "--fstab", "--yes", "--follow-symlink").status == 0
    assert fstab(here).is_symlink()
    assert (here.tree / "real").read_text() == NEW
    assert (here.tree / f"real{BACKUP}").read_text() == ENTRY


def test_a_file_that_a_program_calls_its_own_is_refused(here: Host) -> None:
    fstab(here).write_text("# Ansible managed\n" + ENTRY)
    run = here.run("apply", "--fstab", "--yes", *JSON)
    reason = "its comments say that ansible writes this file: change it there"
    assert (run.status, run.action["reason"]) == (1, reason)
    assert fstab(here).read_text() == "# Ansible managed\n" + ENTRY


def test_without_findmnt_nothing_is_changed(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here.tree))
    run = here.run("apply", "--fstab", "--yes", *JSON)
    assert (run.status, "findmnt" in run.action["reason"]) == (1, True)
    assert (fstab(here).read_text(), etc(here)) == (ENTRY, {"fstab"})


def test_a_host_without_fstab_has_nothing_to_do(here: Host) -> None:
    fstab(here).unlink()
    run = here.run("apply", "--fstab", "--yes")
    assert (run.status, run.err, run.out, etc(here)) == (0, "", NOTHING, set())


def test_a_broken_line_is_named_and_the_rest_is_done(here: Host) -> None:
    broken = "10.1.2.4:/x /x nfs rw 0 x\n"
    fstab(here).write_text(broken + ENTRY)
    run = here.run("apply", "--fstab", "--yes")
    assert (run.status, run.err) == (0, "/etc/fstab:1: fsck pass is not a number: 'x'\n")
    assert fstab(here).read_text() == broken + NEW


def test_numbers_of_nfsmount_conf_and_of_drop_ins_count(here: Host) -> None:
    def planned(name: str, text: str) -> list[dict[str, object]]:
        put(here.tree / "etc" / name, text)
        return here.run("apply", "--fstab", "--dry-run", *JSON).actions

    folder = "systemd/system/mnt-vol1.mount.d"
    assert planned("nfsmount.conf", '[ Server "10.1.2.4" ]\nnconnect=8\n') == []
    assert planned("nfsmount.conf", '[ Server "10.1.2.4" ]\nnconnect=2\n')[0]["old"] == 2
    assert planned(f"{folder}/order.conf", "[Unit]\nAfter=x.service\n")[0]["outcome"] == "planned"
    (action,) = planned(f"{folder}/x.conf", "[Mount]\nOptions=vers=4.1,hard\n")
    reason = f"/etc/{folder}/x.conf:2 decides the options of this mount: change it there"
    assert (action["outcome"], action["reason"]) == ("skipped", reason)
    assert planned(f"{folder}/x.conf", "[Mount]\nOptions=vers=4.1,hard,nconnect=8\n") == []


@pytest.mark.usefixtures("as_user")
def test_what_a_user_may_not_read_is_named(host: MakeHost) -> None:
    here = host("no-nfs")
    put(fstab(here), ENTRY)
    put(here.tree / "etc/nfsmount.conf", "[ x ]\n", 0)
    (here.tree / "etc/auto.master").mkdir()
    run = here.run("apply", "--fstab", "--dry-run")
    assert "/etc/nfsmount.conf: permission denied; root can read it\n" in run.err
    assert "/etc/auto.master: a directory where a file should be: not read\n" in run.err
