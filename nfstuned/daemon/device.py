"""A superblock as the daemon remembers it, under the device number that it has now."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from nfstuned.core.readahead.plan import WINDOW_S, Contest
from nfstuned.model.mounts import Decision, Outcome, Result, Superblock

MOST = 20
"""How many of a device number's latest superblocks are remembered."""


class UdevBacklog:
    """How far udev is behind for a device number.

    The kernel gives a number away again at once, and the rules that udev runs for a superblock then write to
    the next that has its number. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._waiting = deque[float](maxlen=MOST)
        """The kernel's events of superblocks for which udev has yet to run its rules."""
        self._late = deque[float](maxlen=MOST)
        """When udev ran its rules for a superblock after the next had its number."""

    def added(self, now: float) -> None:
        """Note the kernel's event of a new superblock."""
        self._waiting.append(now)

    def handled(self, now: float) -> None:
        """Note that udev has run its rules for the oldest superblock that waits for them."""
        if self._waiting:
            self._waiting.popleft()
            if self._waiting:
                self._late.append(now)

    def late(self, now: float) -> int:
        """Return how often rules for earlier superblocks wrote to the latest in the last 60 s, or will."""
        return max(0, _recent(self._waiting, now) - 1) + _recent(self._late, now)

    def is_over(self, now: float) -> bool:
        """Return whether nothing of it counts any more."""
        return not _recent((*self._waiting, *self._late), now)


def _recent(times: Iterable[float], now: float) -> int:
    return sum(1 for time in times if now - time < WINDOW_S)


@dataclass(slots=True)
class Watched:
    """A device number, the superblock that has it, and the state of all that is done about its read-ahead.

    Another bdi is another superblock: only the backlog goes on.
    """

    device: str
    bdi: int | None = None
    """The superblock's identity; None where no superblock is known to have the number."""
    backlog: UdevBacklog = field(default_factory=UdevBacklog)
    had_event: bool = False
    """The kernel announced or removed a superblock since the present look began: the look may be older."""
    decided: tuple[Superblock, Decision] | None = None
    """The last decision: to set a value again takes no look."""
    contest: Contest = field(default_factory=Contest)
    contested: list[Outcome] = field(default_factory=list)
    """Values of other writers that are not reported yet; an outcome that is only planned was given up."""
    change: Outcome | None = None
    """A change that is not reported yet: a superblock has no name before its mount shows."""
    conflict: str = ""
    """The conflict of policies that was reported."""
    is_searched: bool | None = None
    """Whether other namespaces were searched for its mounts; None where they are known."""
    nameless_s: float | None = None
    """Since when it has a change to report and no mount in any namespace (monotonic seconds)."""

    def successor(self, bdi: int | None) -> Watched:
        """Return the state once a bdi has the number, or once no bdi has it (None)."""
        if self.bdi is None:
            self.bdi = bdi
        if bdi == self.bdi:
            return self
        return Watched(self.device, bdi, self.backlog, self.had_event)

    def add_change(self, outcome: Outcome) -> None:
        """Remember a change until it is reported. Two changes become one."""
        if outcome.result is Result.SKIPPED:
            return
        earlier = self.change
        if earlier is not None and earlier.result is Result.DONE:
            outcome = replace(outcome, action=replace(outcome.action, old_kb=earlier.action.old_kb))
        self.change = outcome

    def is_forgettable(self, now: float) -> bool:
        """Return whether neither a superblock nor udev's backlog is left of the number."""
        return self.bdi is None and self.backlog.is_over(now)
