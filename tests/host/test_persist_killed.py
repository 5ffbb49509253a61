"""kill -9 at each system call that writes nfstuned's own drop-in: none, the old one or the new one, whole."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from nfstuned.core.nconnect.persist import sections, with_sections
from nfstuned.host.persist import PATH, load_persisted, write_persisted
from tests.host.replacing import BEGIN, END, calls, kill_at, python

OLD, NEW = with_sections({"old": 4}), with_sections({"new": 8, "other": 4})
_PROGRAM = f"""\
import ctypes, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from nfstuned.host.persist import load_persisted, write_persisted
path, lock, text = sys.argv[2:]
os.access("{BEGIN}", os.F_OK)
problem = write_persisted(path, load_persisted(path), bytes.fromhex(text).decode(), lock)
os.access("{END}", os.F_OK)
os.write(2, problem.encode())
os._exit(bool(problem))
"""
_WRITING = re.compile("^(open|link|rename|unlink|mkdir|chmod|fchmod|fchown|write|fsync|ftruncate|fsetxattr)")
"""What changes nothing leaves what the call before left."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")]


def make(tree: Path, text: str | None) -> Path:
    (tree / "etc").mkdir(parents=True)
    if text is not None:
        (tree / PATH).parent.mkdir()
        (tree / PATH).write_text(text)
    return tree


def command(tree: Path) -> list[str]:
    return python(_PROGRAM, str(tree / PATH), str(tree / "lock"), NEW.encode().hex())


@pytest.mark.parametrize("old", [None, OLD], ids=["made", "replaced"])
def test_a_kill_at_any_call_leaves_one_whole_file_or_none(tmp_path: Path, old: str | None) -> None:
    whole = command(make(tmp_path / "whole", old))
    found = [call for call in calls(whole, tmp_path / "log") if _WRITING.match(call.name)]
    assert {"write", "fsync", "fchmod"} <= {call.name for call in found}
    seen: Counter[str | None] = Counter()
    for number, call in enumerate(found):
        tree = make(tmp_path / str(number), old)
        kill_at(call, command(tree))
        seen[check(tree)] += 1
    assert set(seen) == {old, NEW}


def check(tree: Path) -> str | None:
    """Return which text a killed write left; the next one goes on from there."""
    file, lock = tree / PATH, str(tree / "lock")
    text = file.read_text() if file.exists() else None
    counting = [path.name for path in file.parent.glob("[!.]*.conf")] if file.parent.exists() else []
    assert counting == ([] if text is None else [file.name])
    assert text is None or sections(text) is not None
    assert write_persisted(str(file), load_persisted(str(file)), with_sections({"again": 2}), lock) == ""
    assert sections(file.read_text()) == {"again": 2}
    assert not list(file.parent.glob(".*"))
    return text
