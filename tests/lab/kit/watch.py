"""The values that the read-aheads of several mounts have over the time, looked at every half millisecond."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.lab.kit.mounts import BDI, table_device

STEP_S = 0.0003
"""Of sleep between two looks; with the looks themselves it is half a millisecond."""
WATCH_S = 2.0


@dataclass
class Watched:
    """One mount, with each change of its value: seconds since mount(8) returned, and KiB."""

    point: Path
    device: str
    returned: float
    values: list[tuple[float, int]] = field(default_factory=list)

    def right_after_s(self, kb: int) -> float | None:
        """When it had the value for the first time; None where it never had."""
        return next((after for after, value in self.values if value == kb), None)

    def lost(self, kb: int) -> list[tuple[float, int]]:
        """Return its other values after it had this one."""
        first = self.right_after_s(kb)
        return [] if first is None else [one for one in self.values if one[0] > first and one[1] != kb]

    def __str__(self) -> str:
        return f"{self.device}: " + ", ".join(
            f"{kb} after {after * 1000:.1f} ms" for after, kb in self.values
        )


class Watch:
    """Looks at every mount that it was given, each for two seconds, in a thread of its own."""

    def __init__(self) -> None:
        self.done: list[Watched] = []
        self.gaps: list[float] = []
        """Between two looks, in seconds."""
        self._active: dict[int, Watched] = {}
        self._new: list[tuple[int, Watched]] = []
        self._ending = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def add(self, point: Path, device: str, returned: float) -> Watched:
        """Watch a mount from now on; `returned` is when its mount(8) did."""
        watched = Watched(point, device, returned)
        fd = os.open(BDI / device / "read_ahead_kb", os.O_RDONLY)
        self._look(fd, watched)
        self._new.append((fd, watched))
        return watched

    def end(self) -> None:
        """Return when each mount was watched for its time."""
        self._ending = True
        self._thread.join()

    def _run(self) -> None:
        while self._active or self._new or not self._ending:
            began = time.perf_counter()
            while self._new:
                fd, watched = self._new.pop()
                self._active[fd] = watched
            for fd, watched in list(self._active.items()):
                if self._look(fd, watched) > WATCH_S:
                    del self._active[fd]
                    os.close(fd)
                    self.done.append(watched)
            time.sleep(STEP_S)
            if self._active:
                self.gaps.append(time.perf_counter() - began)

    @staticmethod
    def _look(fd: int, watched: Watched) -> float:
        value = int(os.pread(fd, 64, 0))
        after = time.perf_counter() - watched.returned
        if not watched.values or watched.values[-1][1] != value:
            watched.values.append((after, value))
        return after


@dataclass(frozen=True)
class Seen:
    """The changes of value of all mounts."""

    mounts: tuple[Watched, ...]
    gap_s: float
    """The median between two looks at a mount."""

    def __str__(self) -> str:
        return f"{len(self.mounts)} mounts, looked at every {self.gap_s * 1000:.2f} ms"

    def story(self, kb: int) -> str:
        """How many had the value at the first look, when the others had it, and how many lost it."""
        late = [m.right_after_s(kb) for m in self.mounts if m.values[0][1] != kb]
        times = " ".join("never" if one is None else f"{one * 1000:.1f}" for one in late) or "-"
        lost = sum(1 for m in self.mounts if m.lost(kb))
        first = len(self.mounts) - len(late)
        return f"{self}: {first} right at the first look, others after {times} ms; lost by {lost}"


def mount_and_watch(options: str, sources: list[tuple[str, Path]]) -> Seen:
    """Mount each source at its point, one after the other, and watch it from its mount(8)'s return on."""
    watch = Watch()
    pending: list[Watched] = []
    try:
        for source, point in sources:
            # No pipes, and no timeout: the first look comes when mount(8) is gone.
            subprocess.run(["mount", "-t", "nfs", "-o", options, source, str(point)], check=True)
            returned = time.perf_counter()
            device = table_device(point)
            if device is None:
                raise LookupError(f"{point} is not mounted")
            pending.append(watch.add(point, device, returned))
            while pending and pending[0] in watch.done:
                _unmount(pending.pop(0))
    finally:
        watch.end()
        for watched in pending:
            _unmount(watched)
    return Seen(tuple(watch.done), median(watch.gaps))


def _unmount(watched: Watched) -> None:
    subprocess.run(["umount", str(watched.point)], check=True)


@contextmanager
def busy(processors: int) -> Iterator[None]:
    """Keep so many processors busy while the block runs."""
    programs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(processors)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()
