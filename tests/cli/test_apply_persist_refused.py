"""A full disk, a read-only /etc, an immutable file or folder: a clear error, and what was there intact.

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

from nfstuned.core.nconnect.persist import with_sections
from tests.cli.test_apply_persist import CONFIG, FSTAB, MOUNT_NFS

PROJECT = Path(__file__).parents[2]
OLD = with_sections({"gone.example.org": 4})
_PROGRAM = """\
import contextlib, io, json, os, subprocess, sys
from nfstuned.cli.app import main
from nfstuned.host.root import Root
tree, options, config, fstab, text, prepare = sys.argv[1:]
etc = tree + "/etc"
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", etc], check=True)
os.mkdir(etc + "/nfstuned")
contents = {"nfstuned/nfstuned.toml": config, "fstab": fstab}
if text:
    os.mkdir(etc + "/nfsmount.conf.d")
    contents["nfsmount.conf.d/50-nfstuned.conf"] = text
for name, content in contents.items():
    with open(f"{etc}/{name}", "w") as file:
        file.write(content)
prepared = subprocess.run(["sh", "-ec", prepare], cwd=etc, capture_output=True, text=True)
if prepared.returncode:
    print(json.dumps({"skip": prepared.stderr}))
    sys.exit()
out = io.StringIO()
out.reconfigure = lambda **_: None
with contextlib.redirect_stdout(out):
    status = main(["apply", "--persist", "--format", "json"], Root(tree))
folder = etc + "/nfsmount.conf.d"
names = sorted(os.listdir(folder)) if os.path.isdir(folder) else None
print(json.dumps({
    "status": status, "document": json.loads(out.getvalue()), "names": names,
    "text": open(folder + "/50-nfstuned.conf").read() if names else "",
}))
"""


def _may_unshare() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not (shutil.which("unshare") and _may_unshare()), reason="no mount namespace for this user"
)


def attempt(tree: Path, text: str, prepare: str, options: str = "size=256k") -> dict[str, Any]:
    """Return what came of it on a small tmpfs that a shell command made difficult."""
    for name in ("etc", "proc/sys/kernel", "usr/sbin"):
        (tree / name).mkdir(parents=True)
    (tree / "proc/sys/kernel/osrelease").write_text("6.12.43+deb13-amd64\n")
    (tree / "usr/sbin/mount.nfs").write_bytes(MOUNT_NFS % b"2.8.3")
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", _PROGRAM]
    done = subprocess.run(
        [*command, str(tree), options, CONFIG, FSTAB, text, prepare],
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


@pytest.mark.parametrize("text", ["", OLD])
def test_on_a_roomy_disk_it_is_done(tmp_path: Path, text: str) -> None:
    found = attempt(tmp_path, text, "true")
    assert found["status"] == 0
    assert '[ Server "10.1.2.4" ]\nnconnect=8\n' in found["text"]
    assert ("gone.example.org" in found["text"]) == bool(text)
    assert found["names"] == ["50-nfstuned.conf"]


@pytest.mark.parametrize(
    ("text", "prepare", "options", "words"),
    [
        ("", "dd if=/dev/zero of=full bs=4k 2>/dev/null || true", "size=64k", "No space left on device"),
        ("", "true", "size=64k,nr_inodes=4", "No space left on device"),
        ("", "mount -o remount,ro .", "size=64k", "Read-only file system"),
        ("", "mkdir nfsmount.conf.d; chattr +i nfsmount.conf.d", "size=64k", "Operation not permitted"),
        (OLD, "dd if=/dev/zero of=full bs=4k 2>/dev/null || true", "size=64k", "No space left on device"),
        (OLD, "true", "size=64k,nr_inodes=6", "No space left on device"),
        (OLD, "mount -o remount,ro .", "size=64k", "Read-only file system"),
        (OLD, "chattr +i nfsmount.conf.d/50-nfstuned.conf", "size=64k", "Operation not permitted"),
        (OLD, "f=nfsmount.conf.d/50-nfstuned.conf; mount --bind $f $f", "size=64k", "mount point of its own"),
    ],
    ids=[
        *("no file, full", "no file, no inode", "no file, read-only", "no file, immutable folder"),
        *("full", "no inode", "read-only", "immutable", "bind mount"),
    ],
)
def test_a_refusal_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, text: str, prepare: str, options: str, words: str
) -> None:
    found = attempt(tmp_path, text, prepare, options)
    (action,) = found["document"]["actions"]
    assert (found["status"], action["outcome"]) == (1, "failed")
    assert words in action["reason"]
    assert "so that it is as it was; " in action["reason"]
    assert found["text"] == text
    assert (found["names"] or []) == (["50-nfstuned.conf"] if text else [])
