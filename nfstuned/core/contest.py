"""When another writer keeps changing a value: insist for a while, then leave it."""

from __future__ import annotations

from dataclasses import dataclass

TRIES = 3
WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Contest:
    """The times at which one superblock's value was set again, and whether it is now left alone."""

    bdi: int
    times: tuple[float, ...] = ()
    left: bool = False
    count: int = 0
    """How often another writer's value was found."""

    def again(self, now: float) -> Contest:
        """Return the contest after another change at `now` (monotonic seconds).

        A fourth change within 60 s ends it; `left` then stays for as long as the superblock lives.
        """
        recent = tuple(time for time in self.times if now - time < WINDOW_S)
        if self.left or len(recent) >= TRIES:
            return Contest(self.bdi, recent, left=True, count=self.count + 1)
        return Contest(self.bdi, (*recent, now), count=self.count + 1)
