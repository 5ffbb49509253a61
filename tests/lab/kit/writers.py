"""Programs that write to mounts, a little and without end, and wait for whatever their servers do."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kit.shell import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.lab.kit.mounts import Mounted

_PROGRAM = """
import os, sys, threading, time

def write(number, folder):
    there = os.open(folder, os.O_RDONLY)
    turn = 0
    while True:
        turn += 1
        fd = os.open(f"written{turn % 3}", os.O_RDWR | os.O_CREAT, dir_fd=there)
        os.write(fd, b"x" * 4096)
        os.fsync(fd)
        os.close(fd)
        with open(f"/run/lab-writer-{number}", "w") as file:
            file.write(str(turn))
        time.sleep(float(sys.argv[1]))

for number, folder in enumerate(sys.argv[2:]):
    threading.Thread(target=write, args=(number, folder)).start()
"""


@contextlib.contextmanager
def writing(mounts: Sequence[Mounted], pause_s: float = 0.5) -> Iterator[None]:
    """Write a page to each mount, sync it and close its file, again and again, while the block runs.

    The program holds each mount's folder open, as a shell holds the folder that it is in.
    """
    turns = [Path(f"/run/lab-writer-{number}") for number in range(len(mounts))]
    for turn in turns:
        turn.unlink(missing_ok=True)
    points = [str(mounted.point) for mounted in mounts]
    with subprocess.Popen([sys.executable, "-c", _PROGRAM, str(pause_s), *points]) as process:
        try:
            wait_for("a first turn of each writer", lambda: all(turn.exists() for turn in turns), 120)
            yield
        finally:
            process.kill()
