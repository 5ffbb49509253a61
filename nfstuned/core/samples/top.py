"""A moment of `nfstuned top`, from two looks or from saved copies; its order, and the effect of each key."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from nfstuned.core.policy.endpoint import split_source
from nfstuned.core.samples.delta import zeroed
from nfstuned.core.samples.rates import rates, sends_between, transport_group
from nfstuned.core.samples.sample import combine, is_idle, label, rtt_ms
from nfstuned.errors import ParseError
from nfstuned.model.kernel import MountStats, Options, Stanza
from nfstuned.model.mounts import Snapshot
from nfstuned.model.samples import Counted, Look, Sample, Stalled, SuperblockKey
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
    """Mounted superblocks without statistics in mountstats, or with ambiguous ones."""
    origin: str = ""
    """The saved files that it is made of; then it has no time. Empty for the mounts of now."""
    since_mounted: bool = False
    """The rates are means since each superblock was mounted; `seconds` is None."""


def frame(before: Look | None, now: Look, snapshot: Snapshot, stalled: Stalled | None = None) -> Frame:
    """Return the frame of two looks, each superblock once; `snapshot` is the later look's."""
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


def figures_of(sample: Sample) -> Mapping[str, float]:
    """Return the figures that rows show and are sorted by."""
    every = combine(list(sample.ops.values()))
    known = {
        TOTAL: sample.read_bytes_per_s + sample.write_bytes_per_s,
        "read": sample.read_bytes_per_s,
        "write": sample.write_bytes_per_s,
        "server-read": sample.server_read_bytes_per_s,
        "server-write": sample.server_write_bytes_per_s,
        "over-fetch": sample.over_fetch_ratio,
        "ops": every.per_s,
        "read-rtt": rtt_ms(sample, "read"),
        "write-rtt": rtt_ms(sample, "write"),
        "queue": every.queue_ms,
        "retrans": every.retrans_per_s,
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


Place = tuple[str, str]
"""Source and mount point."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved copy of mountstats; `name` is the file's, and stanzas and options are of the same text.

    It names neither superblocks nor a time. Mounts of the same age are one superblock if they have the same
    source and options, or if they moved bytes and their counters are the same: the kernel prints one mount
    after the other, and those of a busy superblock differ a little.
    """

    name: str
    stanzas: tuple[Stanza, ...]
    options: Mapping[Place, Options]

    @classmethod
    def of(cls, name: str, stanzas: tuple[Stanza, ...], mounts: Iterable[MountStats]) -> Saved:
        """Return the copy with its stanzas and its parsed mounts."""
        return cls(name, stanzas, {(mount.source, mount.point): mount.options for mount in mounts})


def frame_since_mounted(saved: Saved) -> Frame:
    """Return the mean rates of each superblock since it was mounted.

    Operations of the transport group, which the kernel counts for all mounts of a server, are in it.
    """
    counted, silent = _superblocks(saved)
    entries = []
    for now in counted:
        age_s = float(now.stats.age_s or 0)
        before = replace(now, stats=zeroed(now.stats)._replace(age_s=0))
        samples = rates(Look(0.0, 0.0, (before,)), Look(0.0, age_s, (now,)))
        entries.append(_entry(now, samples[0] if samples else None))
    return Frame(0.0, None, tuple(entries), silent, saved.name, since_mounted=True)


def frame_between(earlier: Saved, later: Saved) -> Frame:
    """Return the rates of each superblock of the later copy since the earlier was made.

    The time between them is the number of seconds by which most mounts are older. Raises ValueError where
    the copies have no mount with an age in common, or no time passed.
    """
    counted, silent = _superblocks(later)
    known = {place: stanzas[0] for place, stanzas in _by_place(earlier).items() if len(stanzas) == 1}
    pairs = []
    for now in counted:
        places = [(now.source, point) for point in now.mount_points]
        if stats := next((known[place] for place in places if place in known), None):
            pairs.append((replace(now, stats=stats), now))
    ages = [(before.stats.age_s, now.stats.age_s) for before, now in pairs]
    older_s = [later_s - age_s for age_s, later_s in ages if age_s is not None and later_s is not None]
    if not older_s:
        raise ValueError(f"{earlier.name} and {later.name} have no mount in common: name copies of one host")
    # A mount that was made in between is older by any number, as a rule by less than the time that passed.
    seconds = float(max(Counter(older_s).items(), key=lambda item: (item[1], item[0]))[0])
    if seconds == 0:
        raise ValueError(f"no second passed between {earlier.name} and {later.name}: name two copies")
    if seconds < 0:
        raise ValueError(f"{later.name} is older than {earlier.name}: name the earlier copy first")
    first = Look(0.0, 0.0, tuple(before for before, _ in pairs))
    samples = {sample.device: sample for sample in rates(first, Look(0.0, seconds, tuple(counted)))}
    entries = tuple(_entry(now, samples.get(now.device)) for now in counted)
    return Frame(0.0, seconds, entries, silent, f"{earlier.name} to {later.name}")


def _entry(counted: Counted, sample: Sample | None) -> TopEntry:
    return TopEntry(counted) if sample is None else TopEntry(counted, sample, figures=figures_of(sample))


def _by_place(saved: Saved) -> dict[Place, list[Stanza]]:
    """Return the stanzas by source and mount point, each text once."""
    places: defaultdict[Place, dict[Stanza, None]] = defaultdict(dict)
    for stanza in saved.stanzas:
        places[stanza.source, stanza.point][stanza] = None
    return {place: list(stanzas) for place, stanzas in places.items()}


def _superblocks(saved: Saved) -> tuple[list[Counted], int]:
    """Return each superblock once, and the number of mounts with ambiguous counters.

    Such a mount has several stanzas with its source and mount point.
    """
    superblocks: list[Counted] = []
    known: dict[tuple[object, ...], int] = {}
    silent = 0
    for (source, point), stanzas in _by_place(saved).items():
        if len(stanzas) > 1:
            silent += len(stanzas)
            continue
        options = saved.options.get((source, point), Options())
        # mountstats shows no address, and a bind of a folder has that in its source: only the host is shared.
        group = transport_group(options, split_source(source)[0])
        traits = _traits(stanzas[0], options, group)
        number = next((known[trait] for trait in traits if trait in known), len(superblocks))
        known |= dict.fromkeys(traits, number)
        if number < len(superblocks):
            same = superblocks[number]
            superblocks[number] = replace(same, mount_points=(*same.mount_points, point))
        else:
            rsize = options.number("rsize")
            superblocks.append(
                Counted(str(number), None, (point,), source, group, stanzas[0], rsize_bytes=rsize)
            )
    return superblocks, silent


def _traits(stanza: Stanza, options: Options, group: str) -> list[tuple[object, ...]]:
    """Return the properties that no mount of another superblock has."""
    traits: list[tuple[object, ...]] = []
    if options.pairs and options.get("nosharecache") is None:
        traits.append((stanza.source, stanza.age_s, options))
    if stanza.totals is not None and stanza.totals.strip(b" 0"):
        traits.append((group, stanza.age_s, stanza.totals, stanza.operations))
    return traits
