"""The read-ahead of mounts from the return of mount(8) on: its first right value, and each change of it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.lab.kit.mounts import BDI, Mounts, table_device
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import CommandError, program

STEP_S = 0.0003
"""Of sleep between two looks; with the looks themselves it is half a millisecond."""
WATCH_S = 2.0
PATIENCE_S = 5.0
STALL_MS = 25.0
"""A first look takes 5 ms. One that takes so long comes from a guest that stood still meanwhile."""
MOST_STALLS = 3
NEVER = float("inf")


@dataclass(eq=False)
class Watched:
    """A mount, with each change of its value: seconds since mount(8) returned, and KiB."""

    point: Path
    device: str
    returned: float
    """By time.perf_counter()."""
    values: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._file = os.open(BDI / self.device / "read_ahead_kb", os.O_RDONLY)
        self.look()

    def look(self) -> float:
        """Read the value; return the seconds since mount(8) returned."""
        value = int(os.pread(self._file, 64, 0))
        after = time.perf_counter() - self.returned
        if not self.values or self.values[-1][1] != value:
            self.values.append((after, value))
        return after

    def close(self) -> None:
        os.close(self._file)

    def unmount(self) -> None:
        self.close()
        subprocess.run(["umount", str(self.point)], check=True)

    def right_after_s(self, kb: int) -> float:
        """Return the time of this value; NEVER where it never had it."""
        return next((after for after, value in self.values if value == kb), NEVER)

    def lost(self, kb: int) -> list[tuple[float, int]]:
        """Return its other values after it had this one."""
        return [one for one in self.values if one[0] > self.right_after_s(kb) and one[1] != kb]

    def __str__(self) -> str:
        return f"{self.device}: " + ", ".join(f"{kb} after {s * 1000:.1f} ms" for s, kb in self.values)


def mount_and_look(options: str, source: str, point: Path) -> Watched:
    """Mount with mount(8), and look at the value as soon as it has returned."""
    # No pipes, and no timeout: the first look comes when mount(8) is gone.
    done = subprocess.run(["mount", "-t", "nfs", "-o", options, source, str(point)], check=False)
    returned = time.perf_counter()
    if done.returncode or (device := table_device(point)) is None:
        raise CommandError(f"mount of {source} at {point}: status {done.returncode}")
    return Watched(point, device, returned)


@dataclass(frozen=True)
class Race:
    """Several mounts, one after the other, until each has the wanted value."""

    wanted_kb: int
    tries: tuple[Watched, ...]
    stalled: tuple[Watched, ...] = ()
    """Mounts during which the guest stood still: they show nothing of the race, and were made again."""

    @property
    def _right_ms(self) -> list[float]:
        """The times of the right value in ms; 0 where the first look has found it."""
        kb = self.wanted_kb
        return [0.0 if one.values[0][1] == kb else one.right_after_s(kb) * 1000 for one in self.tries]

    @property
    def first_looks(self) -> int:
        """The number of mounts that were right at the first look."""
        return self._right_ms.count(0)

    @property
    def median_ms(self) -> float:
        return median(self._right_ms)

    @property
    def worst_ms(self) -> float:
        return max(self._right_ms)

    @property
    def look_ms(self) -> float:
        return median(one.values[0][0] for one in self.tries) * 1000

    def __str__(self) -> str:
        late = " ".join(f"{ms:.1f}" for ms in self._right_ms if ms) or "-"
        text = f"{self.first_looks} of {len(self.tries)} at the first look (after {self.look_ms:.1f} ms)"
        again = "".join(f"; made again: {one}" for one in self.stalled)
        return f"{text}; the others after {late} ms{again}"


def race(mount: Mounts, options: str, wanted_kb: int, shares: Iterable[str]) -> Race:
    """Mount and unmount the shares one after the other.

    A first look that came late would find the value too easily, and a guest that stood still must not be
    called slow: such a mount is made again, as long as there are no more than MOST_STALLS of them.
    """
    tries: list[Watched] = []
    stalled: list[Watched] = []
    for share in shares:
        while True:
            watched = mount_and_look(options, f"{AZURE}:/srv/{share}", mount.new_point())
            while watched.values[-1][1] != wanted_kb and watched.look() < PATIENCE_S:
                pass
            watched.unmount()
            if watched.values[0][0] * 1000 <= STALL_MS or len(stalled) == MOST_STALLS:
                break
            stalled.append(watched)
        tries.append(watched)
    return Race(wanted_kb, tuple(tries), tuple(stalled))


class Watch:
    """Looks at each of its mounts for two seconds, in a thread."""

    def __init__(self) -> None:
        self.done: list[Watched] = []
        self.gaps: list[float] = []
        """Between two looks, in seconds."""
        self.active: list[Watched] = []
        self._ending = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        """Return when each mount was watched for its time."""
        self._ending = True
        self._thread.join()

    def _run(self) -> None:
        while self.active or not self._ending:
            began = time.perf_counter()
            for watched in tuple(self.active):
                if watched.look() > WATCH_S:
                    self.active.remove(watched)
                    self.done.append(watched)
            time.sleep(STEP_S)
            if self.active:
                self.gaps.append(time.perf_counter() - began)


@dataclass(frozen=True)
class Seen:
    mounts: tuple[Watched, ...]
    gap_s: float
    """The median between two looks at a mount."""

    def story(self, kb: int) -> str:
        """Return how many had the value at the first look, the times of the others, and how many lost it."""
        late = [f"{m.right_after_s(kb) * 1000:.1f}" for m in self.mounts if m.values[0][1] != kb]
        lost = sum(bool(m.lost(kb)) for m in self.mounts)
        head = f"{len(self.mounts)} mounts, looked at every {self.gap_s * 1000:.2f} ms"
        first = len(self.mounts) - len(late)
        return f"{head}: {first} right at the first look, others after {late} ms; lost by {lost}"


def mount_and_watch(options: str, sources: list[tuple[str, Path]]) -> Seen:
    """Mount each source at its point, one after the other, and watch it from its mount(8)'s return on."""
    watch = Watch()
    pending: list[Watched] = []
    try:
        for source, point in sources:
            pending.append(mount_and_look(options, source, point))
            watch.active.append(pending[-1])
            while pending and pending[0] in watch.done:
                pending.pop(0).unmount()
    finally:
        watch.end()
        for watched in pending:
            watched.unmount()
    return Seen(tuple(watch.done), median(watch.gaps))


@contextlib.contextmanager
def busy(processors: int) -> Iterator[None]:
    """Keep so many processors busy while the block runs."""
    with contextlib.ExitStack() as stack:
        for _ in range(processors):
            stack.enter_context(program("sh", "-c", "while :; do :; done"))
        yield
