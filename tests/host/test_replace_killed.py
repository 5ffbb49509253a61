"""kill -9 at each system call of a replacement: the old file or the new one, whole, whenever it comes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nfstuned.host.files.replace import BACKUP, read_original, replace
from nfstuned.host.files.write import NEW as TEMPORARY
from tests.host.replacing import BEGIN, END, command, lock

OLD, NEW = b"the old text\n" * 50, b"the new text\n" * 60
MODE = 0o640
_CALL = re.compile(r"^([a-z_0-9]+)\(")
_HARMLESS = {"brk", "lseek", "madvise", "mmap", "mremap", "munmap"}
"""They change no file, and how many there are differs from run to run."""
_TEMPORARY = re.compile(rf"\.[0-9a-f]{{16}}{TEMPORARY}")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="no strace"),
]


@dataclass(frozen=True)
class Call:
    """One system call: its name, and which one of that name it is."""

    name: str
    number: int


def make(folder: Path) -> Path:
    folder.mkdir()
    file = folder / "fstab"
    file.write_bytes(OLD)
    file.chmod(MODE)
    os.setxattr(file, "user.mark", b"kept")
    return file


def calls(folder: Path) -> Iterator[Call]:
    """Yield every system call of one replacement, from before the file is read until all is done."""
    log = folder.with_suffix(".log")
    subprocess.run(["strace", "-o", str(log), *command(make(folder), NEW)], check=True)
    seen: Counter[str] = Counter()
    inside = False
    for line in log.read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        seen[found[1]] += 1
        inside = inside or BEGIN in line
        if inside and found[1] not in _HARMLESS:
            yield Call(found[1], seen[found[1]])
        if END in line:
            return
    raise AssertionError("the end was not seen")


def test_a_kill_at_any_system_call_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    found = list(calls(tmp_path / "whole"))
    names = {call.name for call in found}
    assert {"write", "fsync", "flock", "fsetxattr", "fchmod"} <= names
    assert names & {"rename", "renameat", "renameat2"}
    assert names & {"link", "linkat"}
    seen: Counter[bytes] = Counter()
    for number, call in enumerate(found):
        file = make(tmp_path / str(number))
        inject = f"inject={call.name}:signal=KILL:when={call.number}"
        done = subprocess.run(
            ["strace", "-o", "/dev/null", "-e", inject, *command(file, NEW)], capture_output=True, check=False
        )
        assert done.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}, (call, done.stderr)
        seen[check(file)] += 1
    assert seen[OLD] > 10
    assert seen[NEW] > 0


def check(file: Path) -> bytes:
    """Return which text a killed replacement left, when all is as it should be; and mend what it left."""
    text = file.read_bytes()
    assert text in {OLD, NEW}
    assert (file.stat().st_mode & 0o7777, os.getxattr(file, "user.mark")) == (MODE, b"kept")
    assert {path.name for path in file.parent.iterdir() if not _TEMPORARY.fullmatch(path.name)} <= {
        "fstab",
        "fstab" + BACKUP,
    }
    backup = file.with_name("fstab" + BACKUP)
    if text == NEW or backup.exists():
        assert backup.read_bytes() == OLD
    assert replace(read_original(str(file)), NEW + b"again\n", lock(file)).problem == ""
    assert not any(_TEMPORARY.fullmatch(path.name) for path in file.parent.iterdir())
    assert backup.read_bytes() == OLD
    return text
