"""A process that replaces one file, to be watched and killed by its system calls."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_PROGRAM = """\
import ctypes, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from nfstuned.host.files.replace import read_original, replace
os.access("/nfstuned-test-begins", os.F_OK)
done = replace(read_original(sys.argv[2]), bytes.fromhex(sys.argv[3]), sys.argv[4])
os.access("/nfstuned-test-ends", os.F_OK)
os.write(2, done.problem.encode())
os._exit(bool(done.problem))
"""
BEGIN, END = "/nfstuned-test-begins", "/nfstuned-test-ends"


def command(file: Path, text: bytes) -> list[str]:
    """Return the command; it ends with 0 after a replacement."""
    paths = os.pathsep.join([str(PROJECT), *(path for path in sys.path if "site-packages" in path)])
    return [sys.executable, "-S", "-E", "-B", "-c", _PROGRAM, paths, str(file), text.hex(), lock(file)]


def lock(file: Path) -> str:
    """Return a lock's name for a file, not beside it."""
    return f"{file.parent}.lock"
