"""The tuner's memory of a device number: its superblock, and udev's rules that are still to run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from nfstuned.core.policy.plan import WINDOW_S, Contest
from nfstuned.core.samples.adapt import Memory
from nfstuned.model.mounts import Action, Decision, Outcome, Result, Superblock

SEARCH_S = 0.3
"""How long a bdi may stay unexplained before other namespaces are searched: most are mounted by then."""
UNNAMED_S = 5.0
"""How long a change waits for a mount to name it; afterwards it is reported under the device number.

Under load the pseudo-root of an NFSv4 mount lives for seconds. Other namespaces are searched again then."""
SEARCH_GROWTH = 2
"""Later searches come when the bdi is unexplained for so many times as long: a mount may take any time."""
HIDDEN_S = 60.0
"""The time between two searches for a superblock that only other namespaces mount: they cause no event."""
MOST_SUPERBLOCKS = 20
"""The number of a device number's latest superblocks that are remembered."""


class UdevBacklog:
    """The superblocks of a device number for which udev has yet to run its rules.

    The kernel reuses a device number at once. Rules that udev runs for a superblock that has gone write to
    the superblock that has its number now. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._waiting = deque[float](maxlen=MOST_SUPERBLOCKS)
        """The times of the kernel's events, one for each of these superblocks."""
        self._late = deque[float](maxlen=MOST_SUPERBLOCKS)
        """The times at which udev ran its rules for a superblock that no longer had the number."""

    def add(self, now: float) -> None:
        """Note the kernel's event of a new superblock."""
        self._waiting.append(now)

    def remove_oldest(self, now: float) -> None:
        """Note that udev has run its rules for the oldest superblock that waits for them."""
        if self._waiting:
            self._waiting.popleft()
            if self._waiting:
                self._late.append(now)

    def late_rules(self, now: float) -> int:
        """Return how often rules for earlier superblocks ran in the last 60 s, or will run, on the latest."""
        return max(0, _recent(self._waiting, now) - 1) + _recent(self._late, now)

    def is_over(self, now: float) -> bool:
        """Return whether all of this is more than 60 s ago."""
        return not _recent((*self._waiting, *self._late), now)


def _recent(times: Iterable[float], now: float) -> int:
    return sum(1 for time in times if now - time < WINDOW_S)


@dataclass(slots=True)
class WatchedDevice:
    """A device number, the superblock that has it, and the state of its read-ahead.

    Another bdi is another superblock: of the old state only the backlog stays (`successor`).
    """

    device: str
    bdi: int | None = None
    """The superblock's identity; None where no superblock is known to have the number."""
    backlog: UdevBacklog = field(default_factory=UdevBacklog)
    had_event: bool = False
    """The kernel announced or removed a superblock after the present look began: the look may not show it."""
    decided: tuple[Superblock, Decision] | None = None
    """The last decision, so that a value is set again without another look."""
    contest: Contest = field(default_factory=Contest)
    contested: list[Outcome] = field(default_factory=list)
    """Values of other writers that are not reported yet. PLANNED stands for a value that stays as it is."""
    change: Outcome | None = None
    """A change that is not reported yet: a superblock has no name before its mount shows."""
    refusal: tuple[int, str] | None = None
    """The value that the kernel refused at last, and its reason; it was reported, and lasts."""
    conflict: str = ""
    """The reported conflict between the profiles of its mounts."""
    wanted: Action | None = None
    """Where the service only observes: the last change that it would have made, noted for one report."""
    memory: Memory = field(default_factory=Memory)
    """The loop's past."""
    unnamed_since_s: float | None = None
    """Since when the bdi is known without a mount, or its last mount here is gone; None where it has one."""

    def successor(self, bdi: int | None) -> WatchedDevice:
        """Return the state for the bdi that has the number now, None for no bdi."""
        if self.bdi is None:
            self.bdi = bdi
        if bdi == self.bdi:
            return self
        return WatchedDevice(self.device, bdi, self.backlog, self.had_event)

    def note_unnamed(self, now: float) -> None:
        """Note that no mount of the bdi is known now."""
        if self.unnamed_since_s is None:
            self.unnamed_since_s = now

    def is_searched(self, searched_s: float) -> bool:
        """Return whether a search that began at `searched_s` was for the mount of this bdi, too."""
        return self.unnamed_since_s is not None and searched_s >= self.unnamed_since_s

    def search_at_s(self, searched_s: float) -> float:
        """Return when to search other namespaces for its mount, after a search that began at `searched_s`.

        Infinity where a mount of the daemon's own namespace is known.
        """
        since = self.unnamed_since_s
        if since is None:
            is_hidden = self.decided is not None and self.decided[0].is_hidden
            return searched_s + HIDDEN_S if is_hidden else float("inf")
        if not self.is_searched(searched_s):
            return since + SEARCH_S
        return since + max(UNNAMED_S, SEARCH_GROWTH * (searched_s - since))

    def add_change(self, outcome: Outcome) -> None:
        """Remember a change until it is reported. Two changes become one, or no change at all."""
        if outcome.result is Result.SKIPPED:
            return
        earlier, done = self.change, outcome.result is Result.DONE
        if done and earlier is not None and earlier.result is Result.DONE:
            outcome = replace(outcome, action=replace(outcome.action, old_kb=earlier.action.old_kb))
        self.change = None if done and outcome.action.old_kb == outcome.action.new_kb else outcome

    def take_change(self) -> Outcome | None:
        """Return the change that is to be reported now, and forget it; a refusal that lasts is no news."""
        change, self.change = self.change, None
        if change is None:
            return None
        refusal = (change.action.new_kb, change.reason) if change.result is Result.FAILED else None
        if refusal is not None and refusal == self.refusal:
            return None
        self.refusal = refusal
        return change

    def is_forgettable(self, now: float) -> bool:
        """Return whether the number has neither a superblock nor a backlog."""
        return self.bdi is None and self.backlog.is_over(now)
