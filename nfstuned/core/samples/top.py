"""A moment of `nfstuned top`, its order, and the effect of each key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nfstuned.core.mounts.volumes import UNNAMED, volume_name
from nfstuned.core.samples.rates import rates, sends_between
from nfstuned.core.samples.sample import combine, is_idle, label_of, rtt_ms
from nfstuned.core.samples.seen import SeenReads
from nfstuned.errors import ParseError
from nfstuned.model.mounts import KubeletNames, Snapshot
from nfstuned.model.samples import Counted, Look, Sample, SuperblockKey
from nfstuned.model.stalls import Stalled
from nfstuned.parse.proc.mountstats import parse_transports

_CONTROLS = {b"\r": "enter", b"\n": "enter", b"\x1b": "escape"}
_SEQUENCES = {
    b"A": "up",
    b"B": "down",
    b"H": "home",
    b"F": "end",
    b"1~": "home",
    b"4~": "end",
    b"5~": "page up",
    b"6~": "page down",
    b"7~": "home",
    b"8~": "end",
}
_KEY = (
    rb"(?s)\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"  # ECMA-48 5.4: parameters, intermediates, a final byte
    rb"|\x1bO(?P<ss3>.)"  # with "application cursor keys", as some terminals are left
    rb"|(?P<plain>\x1b|[\r\n]|[ -~])"
    rb"|(?P<other>.)"  # control characters, and bytes of letters that mean nothing here
)


def parse_keys(data: bytes) -> tuple[str, ...]:
    """Return the names of the keys: "up", "page down", "enter", or the character itself.

    An unknown sequence is left out as a whole, so that no part of a sequence is taken for a letter. Nothing
    is raised.
    """
    names: list[str] = []
    for key in re.finditer(_KEY, data):
        plain = key["plain"]
        if plain:
            names.append(_CONTROLS.get(plain) or plain.decode("ascii"))
        elif name := _SEQUENCES.get(key["csi"] or key["ss3"] or b""):
            names.append(name)
    return tuple(names)


NAME, TOTAL = "name", "total"
SORTS = (
    TOTAL, "read", "write", "over-fetch", "ops", "read-rtt", "write-rtt", "connections", "queue", "in-flight",
    "retrans", "server-read", "server-write", NAME,
)  # fmt: skip
"""The sort keys of rows: the greatest first, names from A to Z."""
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TopEntry:
    """A superblock; `sample` is None until two looks show it, and where its counters fell."""

    counted: Counted
    sample: Sample | None = None
    sends: tuple[int, ...] = ()
    """The requests that each of its connections sent in the interval; empty where that is not known."""
    read_ahead_kb: int | None = None
    figures: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    """By the words of SORTS; without those not known."""
    stalled_s: float = 0.0
    """For how long its server has left requests unanswered, as the service knows; 0 also without it."""
    stalled_operations: tuple[str, ...] = ()
    """Which those are, the most frequent first."""
    note: str = ""
    """Of a saved copy: why there are no rates, or rates of another interval than the frame's."""
    all_operations: bool = True
    """No operation is unknown, as it is in a copy without its line: else no sum of operations is known."""
    names: KubeletNames = UNNAMED

    @property
    def label(self) -> str:
        """Its volume and pod where a kubelet mounted it, else its first mount point, and how many more."""
        points = self.counted.mount_points
        return volume_name(points, self.names, self.counted.source) or label_of(
            points or (self.counted.device,)
        )

    @property
    def used(self) -> bool:
        """Whether anybody used it, as the service judges that, or waits to."""
        return self.stalled_s > 0 or (self.sample is not None and not is_idle(self.sample))

    @property
    def unsure(self) -> bool:
        """Whether it may have been used: lines of operations are missing, and requests were sent."""
        if self.used or self.all_operations or self.sample is None:
            return False
        with suppress(ParseError):
            lines = parse_transports(self.counted.stats.transports)
            return not lines or any(line.sends for line in lines)
        return True


@dataclass(frozen=True, slots=True)
class Frame:
    """All superblocks at one moment."""

    time: float
    """In Unix seconds."""
    seconds: float | None
    """The interval that the rates are of; None for the first look, which has no rates."""
    entries: tuple[TopEntry, ...]
    silent: int = 0
    """Mounted superblocks without statistics in mountstats; of a live host, ambiguous ones too."""
    ambiguous: int = 0
    """Mounts of a saved copy with several stanzas of one source and mount point, with other counters."""
    copies: tuple[str, ...] = ()
    """The saved copies that it is made of; then it has no time. Empty for the mounts of now.

    Rates of a single copy are means since each superblock was mounted, and `seconds` is None.
    """


def frame(
    before: Look | None,
    now: Look,
    snapshot: Snapshot,
    stalled: Stalled | None = None,
    reads: SeenReads | None = None,
) -> Frame:
    """Return the frame of two looks, each superblock once; `snapshot` is the later look's."""
    seconds = now.monotonic_s - before.monotonic_s if before is not None else None
    found = rates(before, now) if before is not None else ()
    samples = {sample.device: sample for sample in (reads.add(now, found) if reads else found)}
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
            max(0.0, now.monotonic_s - stall.since_s) if (stall := stalls.get(counted.key)) else 0.0,
            stall.operations if stall else (),
        )
        for counted in now.superblocks
    )
    mounted = sum(1 for superblock in snapshot.superblocks if superblock.mounts)
    return Frame(now.time, seconds, entries, max(0, mounted - len(entries)))


def rdma_of(counted: Counted) -> Mapping[str, int]:
    """Return the RDMA counters of the group's connections since they were made, as sums."""
    sums: Counter[str] = Counter()
    with suppress(ParseError):
        for transport in parse_transports(counted.stats.transports):
            sums.update(transport.rdma)
    return sums


def figures_of(sample: Sample, *, all_operations: bool = True) -> Mapping[str, float]:
    """Return the figures that rows show and are sorted by; no sum of operations unless all are known."""
    every = combine(list(sample.ops.values())) if all_operations else None
    read, written = sample.read_bytes_per_s, sample.write_bytes_per_s
    known = {
        TOTAL: None if read is None or written is None else read + written,
        "read": read,
        "write": written,
        "server-read": sample.server_read_bytes_per_s,
        "server-write": sample.server_write_bytes_per_s,
        "over-fetch": sample.over_fetch_ratio,
        "ops": every and every.per_s,
        "read-rtt": rtt_ms(sample, "read"),
        "write-rtt": rtt_ms(sample, "write"),
        "queue": every and every.queue_ms,
        "retrans": every and every.retrans_per_s,
        "in-flight": sample.transport.in_flight,
        "connections": sample.transport.connections,
    }
    return MappingProxyType({name: value for name, value in known.items() if value is not None})


@dataclass(frozen=True, slots=True)
class TopState:
    """The choices of the person at the screen."""

    sort: str = TOTAL
    reverse: bool = False
    selected: SuperblockKey | None = None
    """None for whatever comes first."""
    opened: frozenset[SuperblockKey] = frozenset()
    offset: int = 0
    """How many lines of the list are above the screen."""
    used_only: bool = False
    paused: bool = False
    help: bool = False
    done: bool = False


def arrange(entries: Iterable[TopEntry], state: TopState) -> tuple[TopEntry, ...]:
    """Return the entries that the state shows, as it sorts them; unknown figures come last either way.

    Of equal ones the busier comes first, then names decide: a row does not jump without a reason.
    """
    chosen = [entry for entry in entries if entry.used or not state.used_only]
    chosen.sort(key=lambda entry: (entry.label, entry.counted.device))
    if state.sort == NAME:
        return tuple(chosen[::-1] if state.reverse else chosen)
    chosen.sort(key=lambda entry: (-entry.figures.get(TOTAL, 0.0), -entry.figures.get("ops", 0.0)))
    sign = 1 if state.reverse else -1
    known = [entry for entry in chosen if state.sort in entry.figures]
    known.sort(key=lambda entry: sign * entry.figures[state.sort])
    return (*known, *(entry for entry in chosen if state.sort not in entry.figures))


@dataclass(frozen=True, slots=True)
class List:
    """The list that a key acts on: the superblocks from top to bottom, and the lines of a page."""

    shown: Sequence[SuperblockKey]
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
    """Return the state after a key, by its name; a key without a meaning changes nothing.

    The help covers everything: any key but q only takes it away.
    """
    name = _ALIASES.get(key, key)
    if state.help and name != "q":
        return replace(state, help=False)
    act = _PRESSES.get(name)
    return state if act is None else act(state, rows)
