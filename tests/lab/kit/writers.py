"""Programs that write a page to each mount and sync it, again and again: somebody waits for the server.

They are threads of a process of their own, which starts no other: a child closes the files of its parent
before it becomes another program, and close(2) waits for a silent server. The process that starts it holds no
file of a mount for the same reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

EVERY_S = 2.0
LEAVE_S = 240.0
_COMMAND = (sys.executable, "-m", "tests.lab.kit.writers")


class Writers:
    """The process. `ended` gets each write's mount point, its begin (CLOCK_MONOTONIC) and its error or ""."""

    def __init__(self, ended: Callable[[str, float, str], None]) -> None:
        self._ended = ended
        self._left: dict[str, threading.Event] = {}
        self._process = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self) -> None:
        """Pass on the process's lines until it ends."""
        assert self._process.stdout is not None
        with self._process.stdout:
            for line in self._process.stdout:
                word, point, began, why = line.rstrip("\n").split("\t")
                if word == "left":
                    self._left.pop(point).set()
                else:
                    self._ended(point, float(began), why)

    def begin(self, point: str) -> None:
        self._left[point] = threading.Event()
        self._tell(point)

    def leave(self, point: str) -> bool:
        """Return whether the writer has closed its file and ended, in time."""
        event = self._left.get(point)
        if event is None:
            return True
        self._tell(point)
        return event.wait(LEAVE_S)

    def kill(self) -> None:
        """End it: no mount has a writer any more."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()

    def _tell(self, point: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{point}\n")


def _write(point: str, leaving: threading.Event) -> None:
    file = Path(point, "page")
    while not leaving.wait(EVERY_S):
        began, why = time.monotonic(), ""
        try:
            fd = os.open(file, os.O_RDWR | os.O_CREAT)
            try:
                os.write(fd, b"x" * 4096)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            why = str(error)
        _print("wrote", point, f"{began:.3f}", why)
    _print("left", point, "0", "")


def _print(*words: str) -> None:
    # One call, so that threads do not mix their lines.
    os.write(1, ("\t".join(words) + "\n").encode())


def main() -> None:
    """Begin to write at a mount point at its first line, and end at its second."""
    leaving: dict[str, threading.Event] = {}
    for line in sys.stdin:
        point = line.strip()
        if point in leaving:
            leaving.pop(point).set()
        else:
            leaving[point] = threading.Event()
            threading.Thread(target=_write, args=(point, leaving[point]), daemon=True).start()


if __name__ == "__main__":
    main()
