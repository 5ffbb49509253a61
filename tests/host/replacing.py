"""Processes that write one file, watched and killed by their system calls."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_CALL = re.compile(r"^([a-z_0-9]+)\(")
_PROGRAM = """\
import ctypes, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from nfstuned.host.files.replace import read_original, replace_file
os.access("/nfstuned-test-begins", os.F_OK)
done = replace_file(read_original(sys.argv[2]), bytes.fromhex(sys.argv[3]), sys.argv[4])
os.access("/nfstuned-test-ends", os.F_OK)
os.write(2, done.problem.encode())
os._exit(bool(done.problem))
"""
BEGIN, END = "/nfstuned-test-begins", "/nfstuned-test-ends"


@dataclass(frozen=True)
class Call:
    """One system call: its name, and its number among those of that name."""

    name: str
    number: int


def calls(program: Sequence[str], log: Path) -> Iterator[Call]:
    """Yield every system call of a program, from before the file is read until all is done."""
    subprocess.run(["strace", "-o", str(log), *program], check=True)
    seen: Counter[str] = Counter()
    inside = False
    for line in log.read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        seen[found[1]] += 1
        inside = inside or BEGIN in line
        if inside:
            yield Call(found[1], seen[found[1]])
        if END in line:
            return
    raise AssertionError("the end was not seen")


def kill_at(call: Call, program: Sequence[str]) -> None:
    """Run a program that is killed as soon as it makes a call."""
    inject = f"inject={call.name}:signal=KILL:when={call.number}"
    words = ["strace", "-o", "/dev/null", "-e", inject, *program]
    done = subprocess.run(words, capture_output=True, check=False)
    assert done.returncode in {-signal.SIGKILL, 128 + signal.SIGKILL}, (call, done.stderr)


def python(program: str, *arguments: str) -> list[str]:
    """Return a program of this project's modules; its first argument is the search path."""
    paths = os.pathsep.join([str(PROJECT), *(path for path in sys.path if "site-packages" in path)])
    return [sys.executable, "-S", "-E", "-B", "-c", program, paths, *arguments]


def command(file: Path, text: bytes) -> list[str]:
    """Return the command; it ends with 0 after a replacement."""
    return python(_PROGRAM, str(file), text.hex(), lock(file))


def lock(file: Path) -> str:
    """Return a lock's name for a file, not beside it."""
    return f"{file.parent}.lock"
