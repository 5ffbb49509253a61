"""The judgement of a soak: read-aheads by configuration and rivals, stalls by outages, and trends.

Nothing here is the daemon's: the numbers are those of nfstuned.toml(5) and docs/guide.md. Times are seconds
of CLOCK_MONOTONIC.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from tests.lab.kit.server import AZURE_2

GRACE_S = 10.0
"""A value may be wrong for so long after a mount, a rival's write or the end of a reload."""
KERNELS_KB, VENDORS_KB = 128, 15360
TRIES, WINDOW_S, SLACK_S = 3, 60.0, 5.0
"""The service answers so many writes of a rival in a window; the soak does not know its end exactly."""
STALLED_S, FOLLOW_S, MARGIN_S = 15.0, 5.0, 10.0
"""A request that waits for so long is a stall, the service looks so often, and emulation is slow."""
SAMPLE_S, SLOW_S = 10.0, 2.0
"""The longest interval of samples, before the first look at a request; and emulation, in which the observer
stood still for 1.2 s at most."""
DUE_S = STALLED_S + SAMPLE_S + FOLLOW_S + SLOW_S
"""A write that waits for so long in an outage needs an entry."""
WRITE, JOB, UNMOUNT = "write", "job", "unmount"
"""The kinds of waits: a write of a page with its fsync, a benchmark's many calls, and umount(8)."""
MOST_WRONG = 200
MOST_GROWTH_KB, MOST_KB_AN_HOUR, LONG_HOURS = 3072, 128, 0.8
"""Of the memory, beyond twice the error of its trend: in all of the time, and an hour in the later half. The
first ten minutes were seen to add 1.6 MiB, as modules are imported and caches fill."""
GENERIC, ACCOUNT, LOOP = "generic", "account", "loop"
"""The kinds of mounts: with a number of the configuration for all other servers or for an account, which the
closed loop never moves, and with the vendor's."""
Bounds = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """The part of the configuration that changes."""

    generic_kb: int = 1024
    account_kb: int = 8192
    adapt: str = "down"
    sample_s: int = 5

    def text(self) -> str:
        return (
            f'[daemon]\nsample_interval = "{self.sample_s}s"\n'
            f"[profile.generic]\nread_ahead_kb = {self.generic_kb}\n"
            f'[profile.azure-files]\nadapt = "{self.adapt}"\n'
            f'[profile.account]\ninherits = "azure-files"\nread_ahead_kb = {self.account_kb}\n'
            f'[[policy]]\nmatch.server = "{AZURE_2}"\nprofile = "account"\n'
        )

    def bounds(self, kind: str) -> Bounds:
        """Return the least and the largest right value of a kind of mounts."""
        exact = {GENERIC: self.generic_kb, ACCOUNT: self.account_kb}.get(kind, VENDORS_KB)
        return (KERNELS_KB, exact) if kind == LOOP and self.adapt != "off" else (exact, exact)


class Fate(Enum):
    """The right end of a rival's write."""

    ANSWERED = "set again"
    LEFT = "left"
    EITHER = "either"


@dataclass(frozen=True)
class Wrong:
    """A read-ahead that was wrong for longer than the grace."""

    at: float
    point: str
    mount: str
    """Its kind."""
    kb: int
    right: str
    after: str
    """The last disturbance."""
    lasted_s: float


@dataclass(eq=False)
class Judged:
    """A mount, and its values' right bounds."""

    point: str
    kind: str
    disturbed: float
    after: str = "mount"
    is_first: bool = True
    """It has not had its first right value, which is the largest: the loop begins there."""
    is_right: bool = False
    fate: Fate = Fate.ANSWERED
    rival_kb: int = 0
    _writes: list[tuple[float, bool]] = field(default_factory=list)
    """Of rivals that the service has answered: when, and whether it is sure that it counts them."""
    _wrong_since: float | None = None

    def disturb(self, now: float, after: str) -> None:
        self.disturbed, self.after, self.is_right = now, after, False

    def rival(self, now: float, kb: int) -> Fate:
        """Note a rival's write, and return its right end."""
        self.disturb(now, "rival")
        self.rival_kb = kb
        most = [at for at, _ in self._writes if now - at < WINDOW_S + SLACK_S]
        least = [at for at, sure in self._writes if sure and now - at < WINDOW_S - SLACK_S]
        if self.fate is Fate.ANSWERED and len(least) >= TRIES:
            self.fate = Fate.LEFT
        elif self.fate is Fate.ANSWERED and len(most) >= TRIES:
            self.fate = Fate.EITHER
        elif self.fate is Fate.ANSWERED:
            self._writes = [(at, sure) for at, sure in self._writes if at in most]
            self._writes.append((now, True))
        return self.fate

    def renew(self, now: float) -> None:
        """Note a reload: the service forgets its contests, and answers a rival's value that is there."""
        self._writes = [(now, self.fate is Fate.LEFT)] if self.fate is not Fate.ANSWERED else []
        self.fate = Fate.ANSWERED
        self.disturb(now, "reload")

    def accepts(self, kb: int, in_force: Sequence[Settings]) -> bool:
        alone = self.fate is Fate.LEFT and len(in_force) == 1
        if kb == self.rival_kb and self.fate is not Fate.ANSWERED:
            return True
        return not alone and any(least <= kb <= most for least, most in self.right(in_force))

    def right(self, in_force: Sequence[Settings]) -> list[Bounds]:
        found = [settings.bounds(self.kind) for settings in in_force]
        return [(most, most) for _, most in found] if self.is_first else found

    def look(self, now: float, kb: int, in_force: Sequence[Settings]) -> Wrong | None:
        """Return the value if it is wrong for longer than the grace, again at each look."""
        if self.accepts(kb, in_force):
            self.is_right, self._wrong_since = True, None
            return None
        self.is_right = False
        self._wrong_since = now if self._wrong_since is None else self._wrong_since
        lasted_s = now - max(self._wrong_since, self.disturbed)
        if lasted_s <= GRACE_S:
            return None
        left = f"{self.rival_kb} of the rival" if self.fate is not Fate.ANSWERED else ""
        right = " or ".join(filter(None, [*(f"{a} to {b}" for a, b in self.right(in_force)), left]))
        after = f"{max(self._wrong_since - self.disturbed, 0):.1f} s after {self.after}"
        return Wrong(now - lasted_s, self.point, self.kind, kb, right, after, lasted_s)


class Values:
    """All mounts' values. It is used by one thread at a time."""

    def __init__(self, settings: Settings) -> None:
        self.in_force: tuple[Settings, ...] = (settings,)
        """During a reload the old settings and the new ones."""
        self.mounts: dict[str, Judged] = {}
        self.wrong: dict[tuple[str, float], Wrong] = {}
        self.first_s: list[float] = []
        """From the return of mount(8) to the right value."""
        self.again_s: list[float] = []
        """From a rival's write to the right value."""
        self.left: set[str] = set()
        """Mounts that the service had to leave to a rival."""

    def add(self, point: str, kind: str, returned: float) -> None:
        self.mounts[point] = Judged(point, kind, returned)

    def rival(self, point: str, now: float, kb: int) -> Fate:
        fate = self.mounts[point].rival(now, kb)
        self.left |= {point} if fate is Fate.LEFT else set()
        return fate

    def begin_reload(self, settings: Settings) -> None:
        self.in_force = (*self.in_force, settings)

    def end_reload(self, now: float, *, loaded: bool) -> None:
        self.in_force = self.in_force[-1:] if loaded else self.in_force[:1]
        for judged in self.mounts.values() if loaded else ():
            judged.renew(now)

    def look(self, point: str, now: float, kb: int) -> None:
        judged = self.mounts[point]
        was_right, since_s = judged.is_right, now - judged.disturbed
        wrong = judged.look(now, kb, self.in_force)
        if wrong is not None:
            key = (point, round(wrong.at, 3))
            if key in self.wrong or len(self.wrong) < MOST_WRONG:
                self.wrong[key] = replace(wrong, kb=self.wrong[key].kb) if key in self.wrong else wrong
        elif judged.is_right and not was_right:
            if judged.is_first:
                self.first_s.append(since_s)
                judged.is_first = False
            elif judged.after == "rival" and judged.fate is Fate.ANSWERED:
                self.again_s.append(since_s)


class Outage(NamedTuple):
    """A time in which a server was silent or stopped; without an address it was all of it."""

    kind: str
    address: str
    began: float
    ended: float
    back: float
    """The server serves again: to start it takes seconds."""


class Wait(NamedTuple):
    """A program's work on a mount, from its begin to its end."""

    point: str
    address: str
    began: float
    ended: float
    kind: str = WRITE


class StallEntry(NamedTuple):
    """A journal entry about a stall, or about its end."""

    point: str
    at: float
    is_end: bool


class Due(NamedTuple):
    """The writes that need an entry, each with its time within an outage."""

    reported: list[Wait]
    missed: list[Wait]


def due(outages: Sequence[Outage], waits: Sequence[Wait], entries: Sequence[StallEntry]) -> Due:
    """Return the writes that wait for DUE_S within an outage.

    An earlier stall of the mount without an end counts as its entry. A benchmark may work in the cache before
    it waits, and umount(8) takes the mount out of the table first.
    """
    of_point: dict[str, list[StallEntry]] = {}
    for entry in entries:
        of_point.setdefault(entry.point, []).append(entry)
    found = Due([], [])
    for wait in waits:
        for outage in outages:
            began, ended = max(wait.began, outage.began), min(wait.ended, outage.ended)
            if wait.kind != WRITE or outage.address not in {"", wait.address} or ended - began < DUE_S:
                continue
            is_reported = _is_reported(wait, outage, of_point.get(wait.point, []))
            (found.reported if is_reported else found.missed).append(wait._replace(began=began, ended=ended))
    return found


def is_listed(wait: Wait, listed: Iterable[tuple[float, Container[str]]]) -> bool:
    """Return whether the kernel showed a request of the mount meanwhile; `listed` has such mounts by time."""
    return any(wait.point in points for at, points in listed if wait.began + FOLLOW_S <= at <= wait.ended)


def _is_reported(wait: Wait, outage: Outage, entries: Sequence[StallEntry]) -> bool:
    before = [entry for entry in entries if entry.at < outage.began]
    within = (entry for entry in entries if outage.began <= entry.at <= wait.ended + MARGIN_S)
    return bool(before and not before[-1].is_end) or any(not entry.is_end for entry in within)


Spans = Mapping[str, Sequence[tuple[float, float]]]
"""Begins and ends, by the server's address."""


def waiting(waits: Iterable[Wait], servers: Iterable[str]) -> Spans:
    """Return the times in which a stall of a server is explained: a single call of a program waits.

    The kernel may send a program's data before its fsync, and a benchmark takes long on a slow link as well.
    """
    spans: dict[str, list[tuple[float, float]]] = {server: [] for server in servers}
    for wait in waits:
        if wait.kind != JOB:
            spans[wait.address].append((wait.began + STALLED_S - MARGIN_S, wait.ended + FOLLOW_S))
    return spans


def broken(outages: Iterable[Outage], servers: Iterable[str]) -> Spans:
    """Return the outages of each server, and MARGIN_S after them."""
    known = list(outages)
    return {
        server: [(one.began, one.back + MARGIN_S) for one in known if one.address in {"", server}]
        for server in servers
    }


def outside(spans: Spans, addresses: Mapping[str, str], entries: Iterable[StallEntry]) -> list[StallEntry]:
    """Return the stalls that begin outside of the spans of their mount's server."""
    return [
        entry
        for entry in entries
        if not entry.is_end
        and not any(
            began <= entry.at <= ended for began, ended in spans.get(addresses.get(entry.point, ""), ())
        )
    ]


def outside_part(spans: Spans, began: float, ended: float) -> float:
    """Return the part of a time that is outside of a server's spans, of the server with the least."""
    parts = []
    for server in spans.values():
        inside, last = 0.0, began
        for first, end in sorted(server):
            inside += max(0.0, min(end, ended) - max(first, last))
            last = max(last, end)
        parts.append(1 - inside / (ended - began))
    return min(parts, default=1.0)


def unended(entries: Sequence[StallEntry]) -> list[StallEntry]:
    """Return the last entry of each mount that is still stalled by its entries."""
    last = {entry.point: entry for entry in entries}
    return [entry for entry in last.values() if not entry.is_end]


class Trend(NamedTuple):
    """A change an hour, and its standard error."""

    per_hour: float
    error: float


def trend(points: Sequence[tuple[float, float]], blocks: int = 20) -> Trend:
    """Return the slope of values over seconds, by least squares of the means of blocks.

    Neighbouring values are alike, and would make the error too small: blocks are nearly independent.
    """
    size = max(1, len(points) // blocks)
    means = [
        (mean(at for at, _ in block) / 3600, mean(value for _, value in block))
        for block in (points[first : first + size] for first in range(0, len(points), size))
        if len(block) == size
    ]
    if len(means) < 3:
        return Trend(0.0, float("inf"))
    x0, y0 = mean(x for x, _ in means), mean(y for _, y in means)
    spread = sum((x - x0) ** 2 for x, _ in means)
    slope = sum((x - x0) * (y - y0) for x, y in means) / spread
    rest = sum((y - y0 - slope * (x - x0)) ** 2 for x, y in means)
    return Trend(slope, (rest / (len(means) - 2) / spread) ** 0.5)


def trends(points: Sequence[tuple[float, float]]) -> tuple[Trend, Trend]:
    """Return the trend of values over seconds, in all of the time and in its later half."""
    return trend(points), trend(points[len(points) // 2 :])


def grows(hours: float, whole: Trend, later: Trend) -> str:
    """Return why a process grows, by its KiB after its first minutes; "" where it does not.

    A young process imports modules and fills its caches: only in an hour or more is its later half judged.
    """
    if (whole.per_hour - 2 * whole.error) * hours > MOST_GROWTH_KB:
        return f"{whole.per_hour:.0f} KiB an hour, error {whole.error:.0f}"
    if hours >= LONG_HOURS and later.per_hour - 2 * later.error > MOST_KB_AN_HOUR:
        return f"{later.per_hour:.0f} KiB an hour in the later half, error {later.error:.0f}"
    return ""


def quantile(values: Sequence[float], part: float) -> float:
    """Return the value below which so large a part of them is; 0 without any."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


def growth(cumulative: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the mean rate between each two points, at the later one's time."""
    return [(at, (value - was) / (at - before)) for (before, was), (at, value) in pairwise(cumulative)]
