"""A full disk, a read-only /etc, an immutable file: a clear error, and the old file intact.

Each is made in a mount namespace of its own, which is gone when the test is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_apply_fstab import CONFIG, OLD

PROJECT = Path(__file__).parents[2]
_PROGRAM = """\
import contextlib, io, json, os, subprocess, sys
from nfstuned.cli.app import main
from nfstuned.host.root import Root
tree, options, config, text, prepare = sys.argv[1:]
etc = tree + "/etc"
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", etc], check=True)
os.mkdir(etc + "/nfstuned")
for name, content in (("nfstuned/nfstuned.toml", config), ("fstab", text)):
    with open(f"{etc}/{name}", "w") as file:
        file.write(content)
before = os.stat(etc + "/fstab")
prepared = subprocess.run(["sh", "-ec", prepare], cwd=etc, capture_output=True, text=True)
if prepared.returncode:
    print(json.dumps({"skip": prepared.stderr}))
    sys.exit()
out = io.StringIO()
out.reconfigure = lambda **_: None
with contextlib.redirect_stdout(out):
    status = main(["apply", "--fstab", "--yes", "--format", "json"], Root(tree))
after = os.stat(etc + "/fstab")
keys = ("st_ino", "st_mode", "st_nlink", "st_mtime_ns")
same = [getattr(before, key) == getattr(after, key) for key in keys]
print(json.dumps({
    "status": status, "document": json.loads(out.getvalue()), "same": all(same),
    "text": open(etc + "/fstab").read(), "names": sorted(os.listdir(etc)),
}))
"""


def _may_unshare() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("unshare") and _may_unshare()), reason="no mount namespace for this user"
    ),
    pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt"),
]


def attempt(tree: Path, prepare: str, options: str = "size=256k") -> dict[str, Any]:
    """Return what came of changing an fstab on a small tmpfs that a shell command made difficult."""
    (tree / "etc").mkdir()
    (tree / "proc/sys/kernel").mkdir(parents=True)
    (tree / "proc/sys/kernel/osrelease").write_text("6.12.43+deb13-amd64\n")
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", _PROGRAM]
    done = subprocess.run(
        [*command, str(tree), options, CONFIG, OLD, prepare],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    return found


def test_on_a_roomy_disk_it_is_done(tmp_path: Path) -> None:
    found = attempt(tmp_path, "true")
    assert found["status"] == 0
    assert found["text"] != OLD
    assert found["names"] == ["fstab", "fstab.nfstuned-backup", "nfstuned"]


@pytest.mark.parametrize(
    ("prepare", "options", "words"),
    [
        ("dd if=/dev/zero of=full bs=4k 2>/dev/null || true", "size=64k", "No space left on device"),
        ("true", "size=64k,nr_inodes=4", "No space left on device"),
        ("mount -o remount,ro .", "size=64k", "Read-only file system"),
        ("chattr +i fstab", "size=64k", "Operation not permitted"),
        ("chattr +a fstab", "size=64k", "Operation not permitted"),
        ("mount --bind fstab fstab", "size=64k", "it is a mount point of its own"),
    ],
    ids=["full", "no inode", "read-only", "immutable", "append-only", "bind mount"],
)
def test_a_refusal_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, prepare: str, options: str, words: str
) -> None:
    found = attempt(tmp_path, prepare, options)
    (action,) = found["document"]["actions"]
    assert (found["status"], action["outcome"]) == (1, "failed")
    assert words in action["reason"]
    assert "so that it is as it was; " in action["reason"]
    assert (found["same"], found["text"]) == (True, OLD)
    assert set(found["names"]) - {"full"} == {"fstab", "nfstuned"}
