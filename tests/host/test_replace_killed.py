"""kill -9 at each system call of a replacement: the old file or the new one, whole, whenever it comes."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from nfstuned.host.files.replace import BACKUP, read_original, replace_file
from nfstuned.host.files.write import NEW as TEMPORARY
from tests.host.replacing import calls, command, kill_at, lock

OLD, NEW = b"the old text\n" * 50, b"the new text\n" * 60
MODE = 0o640
_HARMLESS = {"brk", "lseek", "madvise", "mmap", "mremap", "munmap"}
"""They change no file, and how many there are differs from run to run."""
_TEMPORARY = re.compile(rf"\.[0-9a-f]{{16}}{TEMPORARY}")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")]


def make(folder: Path) -> Path:
    folder.mkdir()
    file = folder / "fstab"
    file.write_bytes(OLD)
    file.chmod(MODE)
    os.setxattr(file, "user.mark", b"kept")
    return file


def test_a_kill_at_any_system_call_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    whole = command(make(tmp_path / "whole"), NEW)
    found = [call for call in calls(whole, tmp_path / "log") if call.name not in _HARMLESS]
    names = {call.name for call in found}
    assert {"write", "fsync", "flock", "fsetxattr", "fchmod"} <= names
    assert names & {"rename", "renameat", "renameat2"}
    assert names & {"link", "linkat"}
    seen: Counter[bytes] = Counter()
    for number, call in enumerate(found):
        file = make(tmp_path / str(number))
        kill_at(call, command(file, NEW))
        seen[check(file)] += 1
    assert seen[OLD] > 10
    assert seen[NEW] > 0


def check(file: Path) -> bytes:
    """Return the text that a killed replacement left, and remove its other files."""
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
    assert replace_file(read_original(str(file)), NEW + b"again\n", lock(file)).problem == ""
    assert not any(_TEMPORARY.fullmatch(path.name) for path in file.parent.iterdir())
    assert backup.read_bytes() == OLD
    return text
