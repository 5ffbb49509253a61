"""A full disk, a read-only /etc, an immutable file or folder: a clear error, and the old file intact.

Each is made in a mount namespace of its own, which is gone when the test is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.nconnect.persist import with_sections
from tests.cli.conftest import CONFIG, MOUNT_NFS, REPOSITORY
from tests.cli.conftest import ENTRY as OLD
from tests.tree import put
from tests.users import may_unshare

FSTAB, DROP_IN = "fstab", "nfsmount.conf.d/50-nfstuned.conf"
SECTIONS = with_sections({"gone.example.org": 4})
_PROGRAM = """\
import contextlib, io, json, os, subprocess, sys
from nfstuned.cli.app import main
from nfstuned.host.root import Root
tree, options, texts, prepare, file, *words = sys.argv[1:]
etc = tree + "/etc"
subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", etc], check=True)
for name, content in json.loads(texts).items():
    os.makedirs(os.path.dirname(f"{etc}/{name}"), exist_ok=True)
    with open(f"{etc}/{name}", "w") as new:
        new.write(content)
def state():
    keys = ("st_ino", "st_mode", "st_nlink", "st_mtime_ns")
    return [getattr(os.stat(f"{etc}/{file}"), key) for key in keys] if os.path.exists(f"{etc}/{file}") else []
before = state()
prepared = subprocess.run(["sh", "-ec", prepare], cwd=etc, capture_output=True, text=True)
if prepared.returncode:
    print(json.dumps({"skip": prepared.stderr}))
    sys.exit()
out = io.StringIO()
out.reconfigure = lambda **_: None
with contextlib.redirect_stdout(out):
    status = main(["nconnect", *words, "--format", "json"], Root(tree))
folder = os.path.dirname(f"{etc}/{file}")
print(json.dumps({
    "status": status, "document": json.loads(out.getvalue()), "same": state() == before,
    "text": open(f"{etc}/{file}").read() if os.path.exists(f"{etc}/{file}") else "",
    "names": sorted(os.listdir(folder)) if os.path.isdir(folder) else [],
}))
"""


pytestmark = [
    pytest.mark.skipif(not may_unshare(), reason="no mount namespace for this user"),
    pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt"),
]


def attempt(tree: Path, file: str, text: str, prepare: str, options: str = "size=256k") -> dict[str, Any]:
    """Return the result on a small tmpfs that a shell command made difficult; "" is no drop-in."""
    (tree / "etc").mkdir()
    put(tree / "proc/sys/kernel/osrelease", "6.12.43+deb13-amd64\n")
    put(tree / "usr/sbin/mount.nfs", MOUNT_NFS % b"2.8.3")
    texts = {"nfstuned/nfstuned.toml": CONFIG, FSTAB: OLD, **({file: text} if text else {})}
    words = ("fstab", "--yes") if file == FSTAB else ("persist",)
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", _PROGRAM]
    command += [str(tree), options, json.dumps(texts), prepare, file, *words]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    if "skip" in found:
        pytest.skip(found["skip"])
    return found


def test_on_a_roomy_disk_the_entry_is_changed(tmp_path: Path) -> None:
    found = attempt(tmp_path, FSTAB, OLD, "true")
    assert (found["status"], found["text"] != OLD) == (0, True)
    assert found["names"] == ["fstab", "fstab.nfstuned-backup", "nfstuned"]


@pytest.mark.parametrize("text", ["", SECTIONS])
def test_on_a_roomy_disk_the_drop_in_is_written(tmp_path: Path, text: str) -> None:
    found = attempt(tmp_path, DROP_IN, text, "true")
    assert (found["status"], found["names"]) == (0, ["50-nfstuned.conf"])
    assert '[ Server "10.1.2.4" ]\nnconnect=8\n' in found["text"]
    assert ("gone.example.org" in found["text"]) == bool(text)


LINE, NO_DROP_IN, SECTION = (FSTAB, OLD), (DROP_IN, ""), (DROP_IN, SECTIONS)
FULL = "dd if=/dev/zero of=full bs=4k 2>/dev/null || true"
READ_ONLY = "mount -o remount,ro ."
DENIED, NO_SPACE = "Operation not permitted", "No space left on device"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "prepare", "inodes", "words"),
    [
        (LINE, FULL, 0, NO_SPACE),
        (LINE, "true", 4, NO_SPACE),
        (LINE, READ_ONLY, 0, "Read-only file system"),
        (LINE, "chattr +i fstab", 0, DENIED),
        (LINE, "chattr +a fstab", 0, DENIED),
        (LINE, "mount --bind fstab fstab", 0, "it is a mount point of its own"),
        (NO_DROP_IN, FULL, 0, NO_SPACE),
        (NO_DROP_IN, "true", 4, NO_SPACE),
        (NO_DROP_IN, READ_ONLY, 0, "Read-only file system"),
        (NO_DROP_IN, "mkdir nfsmount.conf.d; chattr +i nfsmount.conf.d", 0, DENIED),
        (SECTION, FULL, 0, NO_SPACE),
        (SECTION, "true", 6, NO_SPACE),
        (SECTION, READ_ONLY, 0, "Read-only file system"),
        (SECTION, f"chattr +i {DROP_IN}", 0, DENIED),
        (SECTION, f"mount --bind {DROP_IN} {DROP_IN}", 0, "mount point of its own"),
    ],
)
def test_a_refusal_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, old: tuple[str, str], prepare: str, inodes: int, words: str
) -> None:
    file, text = old
    found = attempt(tmp_path, file, text, prepare, "size=64k" + (f",nr_inodes={inodes}" if inodes else ""))
    (action,) = found["document"]["actions"]
    assert (found["status"], action["outcome"]) == (1, "failed")
    assert words in action["reason"]
    assert "so that it is as it was; " in action["reason"]
    assert (found["same"], found["text"]) == (True, text)
    own = {"fstab", "nfstuned"} if file == FSTAB else {"50-nfstuned.conf"} if text else set()
    assert set(found["names"]) - {"full"} == own
