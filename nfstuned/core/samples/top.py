"""What `nfstuned top` knows at one moment, in which order it is shown, and what each key does to that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nfstuned.core.samples.rates import rates, sends_between
from nfstuned.core.samples.sample import is_idle, kinds, label, together
from nfstuned.errors import ParseError
from nfstuned.model.mounts import Snapshot
from nfstuned.model.samples import Counted, Look, OpRate, Sample
from nfstuned.model.status import Stalled
from nfstuned.parse.proc.mountstats import parse_transports

Identity = tuple[str, int | None]
"""Of a superblock: its device number and its bdi."""

NAME, TOTAL = "name", "total"
SORTS = (
    TOTAL,
    "read",
    "write",
    "over-fetch",
    "ops",
    "read-rtt",
    "write-rtt",
    "connections",
    "queue",
    "in-flight",
    "retrans",
    "server-read",
    "server-write",
    NAME,
)
"""What rows can be sorted by: the greatest first, names from A to Z."""
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TopEntry:
    """A superblock; `sample` is None until two looks show it, and where its counters began anew."""

    counted: Counted
    sample: Sample | None = None
    sends: tuple[int, ...] = ()
    """What each of its connections sent in the interval; empty where that is not known."""
    read_ahead_kb: int | None = None
    figures: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    """By the words of SORTS; without those not known."""
    stalled_s: float = 0.0
    """For how long its server has left requests unanswered, as the service knows; 0 also without it."""
    stalled_operations: tuple[str, ...] = ()
    """Which those are, the most frequent first."""

    @property
    def identity(self) -> Identity:
        """What names the same superblock in the next frame."""
        return self.counted.device, self.counted.bdi

    @property
    def used(self) -> bool:
        """Whether anybody used it, as the service judges that, or waits to."""
        return self.stalled_s > 0 or (self.sample is not None and not is_idle(self.sample))


@dataclass(frozen=True, slots=True)
class Frame:
    """All superblocks at one moment."""

    time: float
    """In Unix seconds."""
    seconds: float | None
    """The interval that the rates are of; None for the first look, which has no rates."""
    entries: tuple[TopEntry, ...]
    silent: int = 0
    """Superblocks that are mounted and of which mountstats says nothing, or nothing clear."""
    origin: str = ""
    """The saved files that it is made of; then it has no time. Empty for what is mounted now."""
    since_mounted: bool = False
    """The rates are means since each superblock was mounted; `seconds` is None."""


def frame(before: Look | None, now: Look, snapshot: Snapshot, stalled: Stalled | None = None) -> Frame:
    """Return what two looks say, each superblock once; `snapshot` is the later look's."""
    seconds = now.monotonic_s - before.monotonic_s if before is not None else None
    samples = {sample.device: sample for sample in rates(before, now)} if before is not None else {}
    sends = sends_between(before, now) if before is not None else {}
    read_ahead = {superblock.device: superblock.read_ahead_kb for superblock in snapshot.superblocks}
    stalls = stalled.stalls if stalled is not None else {}
    entries = tuple(
        TopEntry(
            counted,
            sample := samples.get(counted.device),
            sends.get(counted.device, ()),
            read_ahead.get(counted.device),
            _NOTHING if sample is None else figures_of(sample),
            max(0.0, now.monotonic_s - stall.since_s)
            if (stall := stalls.get((counted.device, counted.bdi)))
            else 0.0,
            stall.operations if stall else (),
        )
        for counted in now.superblocks
    )
    mounted = sum(1 for superblock in snapshot.superblocks if superblock.mounts)
    return Frame(now.time, seconds, entries, max(0, mounted - len(entries)))


def rdma_of(counted: Counted) -> Mapping[str, int]:
    """Return what the group's connections counted of RDMA since they were made, all together."""
    together: Counter[str] = Counter()
    with suppress(ParseError):
        for transport in parse_transports(counted.stats.transports):
            together.update(transport.rdma)
    return together


def figures_of(sample: Sample) -> Mapping[str, float]:
    """Return what rows are sorted by, and show."""
    every = together(list(sample.ops.values()))
    of_kind = kinds(sample)
    known = {
        TOTAL: sample.read_bytes_per_s + sample.write_bytes_per_s,
        "read": sample.read_bytes_per_s,
        "write": sample.write_bytes_per_s,
        "server-read": sample.server_read_bytes_per_s,
        "server-write": sample.server_write_bytes_per_s,
        "over-fetch": sample.over_fetch_ratio,
        "ops": every.per_s,
        "read-rtt": _rtt_ms(of_kind.get("read")),
        "write-rtt": _rtt_ms(of_kind.get("write")),
        "queue": every.queue_ms,
        "retrans": every.retrans_per_s,
        "in-flight": sample.transport.in_flight,
        "connections": sample.transport.connections,
    }
    return MappingProxyType({name: value for name, value in known.items() if value is not None})


def _rtt_ms(op: OpRate | None) -> float | None:
    return None if op is None else op.rtt_ms


@dataclass(frozen=True, slots=True)
class TopState:
    """What the person at the screen has chosen."""

    sort: str = TOTAL
    reverse: bool = False
    selected: Identity | None = None
    """None for whatever comes first."""
    opened: frozenset[Identity] = frozenset()
    offset: int = 0
    """How many lines of the list are above the screen."""
    used_only: bool = False
    paused: bool = False
    help: bool = False
    done: bool = False


def arranged(entries: Iterable[TopEntry], state: TopState) -> tuple[TopEntry, ...]:
    """Return the entries that the state shows, as it sorts them; what is not known comes last either way.

    Of equal ones the busier comes first, then names decide: a row does not jump without a reason.
    """
    chosen = [entry for entry in entries if entry.used or not state.used_only]
    chosen.sort(key=lambda entry: (label(entry.counted), entry.counted.device))
    if state.sort == NAME:
        return tuple(chosen[::-1] if state.reverse else chosen)
    chosen.sort(key=lambda entry: (-entry.figures.get(TOTAL, 0.0), -entry.figures.get("ops", 0.0)))
    sign = 1 if state.reverse else -1
    known = [entry for entry in chosen if state.sort in entry.figures]
    known.sort(key=lambda entry: sign * entry.figures[state.sort])
    return (*known, *(entry for entry in chosen if state.sort not in entry.figures))


@dataclass(frozen=True, slots=True)
class List:
    """What a key is pressed over: the superblocks from top to bottom, and how many lines a page has."""

    shown: Sequence[Identity]
    page: int

    def _place(self, state: TopState) -> int:
        return self.shown.index(state.selected) if state.selected in self.shown else 0

    def moved(self, state: TopState, by: int) -> TopState:
        """Select another row, or the last in that direction."""
        if not self.shown:
            return state
        here = self._place(state) + by
        return replace(state, selected=self.shown[min(len(self.shown) - 1, max(0, here))])

    def toggled(self, state: TopState) -> TopState:
        """Open the selected row, or close it."""
        if not self.shown:
            return state
        here = self.shown[self._place(state)]
        return replace(state, selected=here, opened=state.opened ^ {here})


def _sorted(state: TopState, by: int) -> TopState:
    return replace(state, sort=SORTS[(SORTS.index(state.sort) + by) % len(SORTS)], reverse=False)


_Press = Callable[[TopState, List], TopState]
_PRESSES: Mapping[str, _Press] = MappingProxyType(
    {
        "q": lambda state, _: replace(state, done=True),
        "h": lambda state, _: replace(state, help=True),
        "p": lambda state, _: replace(state, paused=not state.paused),
        "i": lambda state, _: replace(state, used_only=not state.used_only),
        "r": lambda state, _: replace(state, reverse=not state.reverse),
        "s": lambda state, _: _sorted(state, 1),
        "<": lambda state, _: _sorted(state, -1),
        "up": lambda state, rows: rows.moved(state, -1),
        "down": lambda state, rows: rows.moved(state, 1),
        "page up": lambda state, rows: rows.moved(state, -rows.page),
        "page down": lambda state, rows: rows.moved(state, rows.page),
        "home": lambda state, rows: rows.moved(state, -len(rows.shown)),
        "end": lambda state, rows: rows.moved(state, len(rows.shown)),
        "enter": lambda state, rows: rows.toggled(state),
    }
)
_ALIASES = MappingProxyType({
    "?": "h", ">": "s", "k": "up", "j": "down", "g": "home", "G": "end", " ": "enter",
})  # fmt: skip


def press(state: TopState, key: str, rows: List) -> TopState:
    """Return the state after a key, as parse/keys.py names it; a key without a meaning changes nothing.

    The help covers everything: any key but q only takes it away.
    """
    name = _ALIASES.get(key, key)
    if state.help and name != "q":
        return replace(state, help=False)
    act = _PRESSES.get(name)
    return state if act is None else act(state, rows)
