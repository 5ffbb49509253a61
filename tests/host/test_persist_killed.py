"""kill -9 at each system call that writes nfstuned's own drop-in: none, the old one or the new one, whole."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nfstuned.core.nconnect.persist import sections, with_sections
from nfstuned.host.change.persist import PATH, load_persisted, write_persisted
from tests.host.replacing import BEGIN, END, PROJECT

OLD, NEW = with_sections({"old": 4}), with_sections({"new": 8, "other": 4})
_PROGRAM = f"""\
import ctypes, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from nfstuned.host.change.persist import load_persisted, write_persisted
path, lock, text = sys.argv[2:]
os.access("{BEGIN}", os.F_OK)
problem = write_persisted(path, load_persisted(path), bytes.fromhex(text).decode(), lock)
os.access("{END}", os.F_OK)
os.write(2, problem.encode())
os._exit(bool(problem))
"""
_CALL = re.compile(r"^([a-z_0-9]+)\(")
_WRITING = re.compile("^(open|link|rename|unlink|mkdir|chmod|fchmod|fchown|write|fsync|ftruncate|fsetxattr)")
"""What changes nothing leaves what the call before left."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="no strace"),
]


@dataclass(frozen=True)
class Call:
    """One system call: its name, and which one of that name it is."""

    name: str
    number: int


def make(tree: Path, text: str | None) -> Path:
    (tree / "etc").mkdir(parents=True)
    if text is not None:
        (tree / PATH).parent.mkdir()
        (tree / PATH).write_text(text)
    return tree


def command(tree: Path) -> list[str]:
    paths = os.pathsep.join([str(PROJECT), *(path for path in sys.path if "site-packages" in path)])
    arguments = [paths, str(tree / PATH), str(tree / "lock"), NEW.encode().hex()]
    return [sys.executable, "-S", "-E", "-B", "-c", _PROGRAM, *arguments]


def calls(tree: Path) -> Iterator[Call]:
    """Yield every system call that changes something, from before the file is read until all is done."""
    log = tree.with_suffix(".log")
    subprocess.run(["strace", "-o", str(log), *command(tree)], check=True)
    seen: Counter[str] = Counter()
    inside = False
    for line in log.read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        seen[found[1]] += 1
        inside = inside or BEGIN in line
        if inside and _WRITING.match(found[1]):
            yield Call(found[1], seen[found[1]])
        if END in line:
            return
    raise AssertionError("the end was not seen")


@pytest.mark.parametrize("old", [None, OLD], ids=["made", "replaced"])
def test_a_kill_at_any_call_leaves_one_whole_file_or_none(tmp_path: Path, old: str | None) -> None:
    found = list(calls(make(tmp_path / "whole", old)))
    assert {"write", "fsync", "fchmod"} <= {call.name for call in found}
    seen: Counter[str | None] = Counter()
    for number, call in enumerate(found):
        tree = make(tmp_path / str(number), old)
        inject = f"inject={call.name}:signal=KILL:when={call.number}"
        done = subprocess.run(
            ["strace", "-o", "/dev/null", "-e", inject, *command(tree)], capture_output=True, check=False
        )
        assert done.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}, (call, done.stderr)
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
