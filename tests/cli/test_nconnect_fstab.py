"""`nfstuned nconnect fstab`: what it shows, what it asks, what it changes, and what it refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
JSON = ("--format", "json")
pytestmark = pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")


@pytest.fixture
def here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Host:
    return furnish(Host(tmp_path, capsys))


def fstab(here: Host) -> Path:
    return here.tree / "etc/fstab"


def etc(here: Host) -> set[str]:
    return {path.name for path in (here.tree / "etc").iterdir()} - {"nfstuned"}


def test_it_does_not_ask_where_nobody_sees_the_difference(here: Host) -> None:
    main, side = pty.openpty()
    command = here.command("nconnect", "fstab")
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
    returned, out, dialog = on_a_terminal(here.command("nconnect", "fstab", *JSON), answer)
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
    command = [*watch, *here.command("nconnect", "fstab", "--yes", *JSON)]
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


def test_without_findmnt_nothing_is_changed(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here.tree))
    run = here.run("nconnect", "fstab", "--yes", *JSON)
    assert (run.status, "findmnt" in run.action["reason"]) == (1, True)
    assert (fstab(here).read_text(), etc(here)) == (ENTRY, {"fstab"})


@pytest.mark.usefixtures("as_user")
def test_what_a_user_may_not_read_is_named(host: MakeHost) -> None:
    here = host("no-nfs")
    put(fstab(here), ENTRY)
    put(here.tree / "etc/nfsmount.conf", "[ x ]\n", 0)
    (here.tree / "etc/auto.master").mkdir()
    run = here.run("nconnect", "fstab", "--dry-run")
    assert "/etc/nfsmount.conf: permission denied; root can read it\n" in run.err
    assert "/etc/auto.master: a directory instead of a file: not read\n" in run.err
