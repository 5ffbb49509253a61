"""kill -9 at each system call of a change: the old file, the new one or none, whole, whenever it comes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from nfstuned.core.nconnect.persist import sections, with_sections
from nfstuned.host.files.replace import BACKUP, read_original, read_own_file, replace_file, write_own_file
from nfstuned.host.files.write import NEW as TEMPORARY
from nfstuned.model.mounts import PERSISTED
from tests.host.replacing import BEGIN, END, calls, command, kill_at, lock, python
from tests.tree import put

TEXTS = b"the old text\n" * 50, b"the new text\n" * 60
SECTIONS = with_sections({"old": 4}).encode(), with_sections({"new": 8, "other": 4}).encode()
MODE = 0o640
_PERSIST = f"""\
import ctypes, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from nfstuned.host.files.replace import read_own_file, write_own_file
path, lock, text = sys.argv[2:]
os.access("{BEGIN}", os.F_OK)
problem = write_own_file(path, read_own_file(path), bytes.fromhex(text).decode(), lock)
os.access("{END}", os.F_OK)
os.write(2, problem.encode())
os._exit(bool(problem))
"""
_WRITING = re.compile("^(open|link|rename|unlink|mkdir|chmod|fchmod|fchown|write|fsync|ftruncate|fsetxattr)")
"""A kill at a call that changes no file leaves the files of the call before."""
_TEMPORARY = re.compile(rf"\.[0-9a-f]{{16}}{TEMPORARY}")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")]


def texts_left(
    tmp_path: Path, make: Callable[[Path], list[str]], wanted: Collection[str], check: Callable[[Path], bytes]
) -> Counter[bytes]:
    """Kill a change at each of its calls, each time in a new folder; count the texts that are left."""
    # Without -B it writes .pyc files: all later runs find the same.
    subprocess.run([word for word in make(tmp_path / "compiled") if word != "-B"], check=True)
    found = [call for call in calls(make(tmp_path / "whole"), tmp_path / "log") if _WRITING.match(call.name)]
    assert set(wanted) <= {re.sub("at2?$", "", call.name) for call in found}
    seen: Counter[bytes] = Counter()
    for number, call in enumerate(found):
        kill_at(call, make(tmp_path / str(number)))
        seen[check(tmp_path / str(number))] += 1
    return seen


def test_a_kill_during_a_replacement_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    old, new = TEXTS

    def make(folder: Path) -> list[str]:
        file = put(folder / "fstab", old, MODE)
        os.setxattr(file, "user.mark", b"kept")
        return command(file, new)

    def check(folder: Path) -> bytes:
        file, backup = folder / "fstab", folder / f"fstab{BACKUP}"
        text = file.read_bytes()
        assert (file.stat().st_mode & 0o7777, os.getxattr(file, "user.mark")) == (MODE, b"kept")
        others = {path.name for path in folder.iterdir() if not _TEMPORARY.fullmatch(path.name)}
        assert others <= {file.name, backup.name}
        if text == new or backup.exists():
            assert backup.read_bytes() == old
        assert replace_file(read_original(str(file)), new + b"again\n", lock(file)).problem == ""
        assert not any(_TEMPORARY.fullmatch(path.name) for path in folder.iterdir())
        assert backup.read_bytes() == old
        return text

    wanted = {"write", "fsync", "fsetxattr", "fchmod", "rename", "link"}
    seen = texts_left(tmp_path, make, wanted, check)
    assert set(seen) == {old, new}
    assert seen[old] > 5


@pytest.mark.parametrize("old", [b"", SECTIONS[0]], ids=["made", "replaced"])
def test_a_kill_leaves_one_whole_drop_in_or_none(tmp_path: Path, old: bytes) -> None:
    new = SECTIONS[1]

    def make(tree: Path) -> list[str]:
        (tree / "etc").mkdir(parents=True)
        if old:
            put(tree / PERSISTED[1:], old)
        return python(_PERSIST, str(tree / PERSISTED[1:]), str(tree / "lock"), new.hex())

    def check(tree: Path) -> bytes:
        file, lock = tree / PERSISTED[1:], str(tree / "lock")
        text = file.read_text() if file.exists() else ""
        counting = [path.name for path in file.parent.glob("[!.]*.conf")] if file.parent.exists() else []
        assert counting == ([file.name] if text else [])
        assert not text or sections(text) is not None
        assert write_own_file(str(file), read_own_file(str(file)), with_sections({"again": 2}), lock) == ""
        assert sections(file.read_text()) == {"again": 2}
        assert not list(file.parent.glob(".*"))
        return text.encode()

    assert set(texts_left(tmp_path, make, {"write", "fsync", "fchmod"}, check)) == {old, new}
