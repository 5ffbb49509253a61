"""Mounts in use: files that are written and read, and the read-ahead of each mount, watched all the time."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.mounts import BDI, Mounted

BLOCK = 4096
BLOCKS = 256
LOOK_S, BLOCK_S = 0.05, 0.1
"""Between two looks at all values, and between two blocks: dpkg has the same two processors."""


class InUse:
    """Threads that use mounts until `end`. Their findings are lists and counts that only grow."""

    def __init__(self, kb: int) -> None:
        self.wrong: list[str] = []
        """Each value of a watched mount that was not the right value, once for each look."""
        self.io_errors: list[str] = []
        self.looks = self.blocks = 0
        self._kb: int | None = kb
        self._watched: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._watch)]
        self._threads[0].start()

    def use(self, mounted: Mounted) -> None:
        """Write blocks to an open file of the mount, and read each from the server, until the end."""
        path = mounted.point / "in-use"
        self._threads.append(threading.Thread(target=self._write_and_read, args=(path,)))
        self._threads[-1].start()

    def watch(self, *mounts: Mounted) -> None:
        """From now on each of these mounts must have the right value."""
        with self._lock:
            for mounted in mounts:
                self._watched[mounted.device] = os.open(BDI / mounted.device / "read_ahead_kb", os.O_RDONLY)

    def forget(self, mounted: Mounted) -> None:
        """Watch a mount no longer, which is about to be unmounted."""
        with self._lock:
            os.close(self._watched.pop(mounted.device))

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Judge no value while a command of the block changes all of them."""
        with self._lock:
            kb, self._kb = self._kb, None
        yield
        with self._lock:
            self._kb = kb

    def end(self) -> None:
        """Return when the threads have ended."""
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _watch(self) -> None:
        while not self._ending.wait(LOOK_S):
            with self._lock:
                for device, file in self._watched.items():
                    value = int(os.pread(file, 64, 0))
                    if self._kb not in {None, value}:
                        self.wrong.append(f"{device} at {time.monotonic():.2f} s: {value} KiB")
                self.looks += self._kb is not None

    def _write_and_read(self, path: Path) -> None:
        file, number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), 0
        while not self._ending.wait(BLOCK_S):
            block, place = number.to_bytes(8, "big") * (BLOCK // 8), number % BLOCKS * BLOCK
            number += 1
            try:
                os.pwrite(file, block, place)
                os.fsync(file)
                # The next read asks the server, and not the client's memory.
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                if os.pread(file, BLOCK, place) != block:
                    self.io_errors.append(f"{path}: another block {number} than the written block")
            except OSError as error:
                self.io_errors.append(f"{path}: {error}")
            self.blocks += 1
        os.close(file)
