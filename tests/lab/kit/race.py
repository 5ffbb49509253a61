"""How long after mount(8) returned a mount had the right read-ahead."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from tests.lab.kit import server
from tests.lab.kit.mounts import BDI, Mounted, Mounts, table_device

PATIENCE_S = 5.0
STALL_MS = 25.0
"""A first look takes 5 ms to come. One that took so long came from a guest that stood still meanwhile."""
MOST_STALLS = 3
NEVER = float("inf")


@dataclass(frozen=True)
class Try:
    """One mount, in milliseconds from mount(8)'s return: when it was looked at first, and when it was right.

    `right_ms` is 0 when the first look found the right value: it was there by then, or before the return.
    """

    first_look_ms: float
    right_ms: float


@dataclass(frozen=True)
class Race:
    """Several mounts, one after the other."""

    tries: tuple[Try, ...]
    stalled: tuple[Try, ...] = ()
    """Those in which the guest stood still: they show nothing of the race, and were made again."""

    @property
    def first_looks(self) -> int:
        """How many mounts were right at the first look."""
        return sum(1 for one in self.tries if one.right_ms == 0)

    @property
    def median_ms(self) -> float:
        return median(one.right_ms for one in self.tries)

    @property
    def worst_ms(self) -> float:
        return max(one.right_ms for one in self.tries)

    @property
    def look_ms(self) -> float:
        """The median of how long the first look took to come."""
        return median(one.first_look_ms for one in self.tries)

    def __str__(self) -> str:
        late = " ".join(f"{one.right_ms:.1f}" for one in self.tries if one.right_ms) or "-"
        text = f"{self.first_looks} of {len(self.tries)} at the first look (after {self.look_ms:.1f} ms)"
        again = "".join(f"; made again: {one}" for one in self.stalled)
        return f"{text}; the others after {late} ms{again}"


def race(mount: Mounts, options: str, wanted_kb: int, shares: Iterable[str]) -> Race:
    """Mount and unmount the shares one after the other; return when each had its read-ahead.

    A first look that came late would find the value too easily, and a guest that stood still has no right to
    be called slow: such a mount is made again, as long as there are no more than MOST_STALLS of them.
    """
    tries: list[Try] = []
    stalled: list[Try] = []
    for share in shares:
        found = _try(mount, options, wanted_kb, share)
        while found.first_look_ms > STALL_MS and len(stalled) < MOST_STALLS:
            stalled.append(found)
            found = _try(mount, options, wanted_kb, share)
        tries.append(found)
    return Race(tuple(tries), tuple(stalled))


def _try(mount: Mounts, options: str, wanted_kb: int, share: str) -> Try:
    point = mount.new_point()
    source = f"{server.AZURE}:/srv/{share}"
    # No pipes: the first look comes when mount(8) is gone, not when its streams have been read.
    subprocess.run(["mount", "-t", "nfs", "-o", options, source, str(point)], check=True)
    returned = time.perf_counter()
    device = table_device(point)
    if device is None:
        raise LookupError(f"{point} is not mounted")
    found = _spin(device, wanted_kb, returned)
    mount.umount(Mounted(source, point, device))
    return found


def _spin(device: str, wanted_kb: int, returned: float) -> Try:
    wanted, first = f"{wanted_kb}\n", 0.0
    with (BDI / device / "read_ahead_kb").open() as file:
        while (now := time.perf_counter() - returned) < PATIENCE_S:
            file.seek(0)
            right = file.read() == wanted
            if right:
                return Try(first or now * 1000, now * 1000 if first else 0.0)
            first = first or now * 1000
    return Try(first, NEVER)
