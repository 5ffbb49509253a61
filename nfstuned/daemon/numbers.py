"""How far udev is behind the kernel: the rules that it still runs are for superblocks that are gone."""

from __future__ import annotations

from collections import deque

from nfstuned.core.readahead.plan import WINDOW_S

MOST = 20
"""How many of a device number's latest superblocks are remembered."""


class DeviceNumbers:
    """The superblocks that had a device number lately.

    The kernel gives a number away again at once, and the rules that udev runs for a superblock then write to
    the next that has its number.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[float]] = {}
        """When the kernel told of superblocks for which udev has yet to run its rules (monotonic seconds)."""
        self._late: dict[str, deque[float]] = {}
        """When udev ran its rules for a superblock after the next had its number."""

    def added(self, device: str, now: float) -> None:
        """Note that the kernel told of a new superblock."""
        self._waiting.setdefault(device, deque(maxlen=MOST)).append(now)

    def handled(self, device: str, now: float) -> None:
        """Note that udev has run its rules for the oldest superblock that waits for them."""
        waiting = self._waiting.get(device)
        if not waiting:
            return
        waiting.popleft()
        if waiting:
            self._late.setdefault(device, deque(maxlen=MOST)).append(now)

    def late(self, device: str, now: float) -> int:
        """Return how often rules for earlier superblocks wrote to the latest in the last 60 s, or will."""
        waiting = _recent(self._waiting.get(device), now)
        return max(0, waiting - 1) + _recent(self._late.get(device), now)

    def forget_old(self, now: float) -> None:
        """Drop what counts no longer."""
        for table in (self._waiting, self._late):
            for device in [device for device, times in table.items() if not _recent(times, now)]:
                del table[device]


def _recent(times: deque[float] | None, now: float) -> int:
    return sum(1 for time in times or () if now - time < WINDOW_S)
