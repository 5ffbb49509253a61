"""Looks at the kernel's counters to numbers that never fall: through wraps, resets, damage and new mounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from nfstuned.core.samples.delta import (
    GROUP_OPS,
    NOTHING_ELSEWHERE,
    STILL,
    UNBOUNDED,
    Elsewhere,
    OpDelta,
    ResetError,
    Span,
    continues,
    delta,
    grown,
    unused,
)
from nfstuned.core.samples.sample import kind_of
from nfstuned.errors import ParseError
from nfstuned.model.kernel import Stanza, Transport
from nfstuned.model.samples import Counted, Look
from nfstuned.model.totals import CountedPlace, GroupTotals, OpTotals, SuperblockTotals, Totals
from nfstuned.parse.proc.mountstats import parse_transports

_MOST_SUM = 2.0**63


class Growth(NamedTuple):
    """The growth of a superblock's counters; the operations of its whole group are apart."""

    bytes: tuple[int, ...] = STILL
    kinds: Mapping[str, OpTotals] = MappingProxyType({})
    upkeep: int = 0


def superblock_growth(old: Stanza, now: Stanza, span: Span, without: Elsewhere) -> Growth:
    """Return the growth of a superblock's counters, without operations that are counted elsewhere.

    A counter that fell and did not wrap, or grew beyond reason, adds nothing: the next look goes on from its
    number. Raises ParseError for damage.
    """
    grew = delta(old, now, span, without)
    kinds: dict[str, OpTotals] = {}
    upkeep = 0
    for name, op in (grew.ops or {}).items():
        if name in GROUP_OPS:
            upkeep += op.ops
        else:
            kind = kind_of(name)
            kinds[kind] = _added_op(kinds.get(kind, OpTotals()), op)
    return Growth(grew.bytes or STILL, kinds, upkeep)


def _added_op(totals: OpTotals, op: OpDelta) -> OpTotals:
    times = (max(0, time) for time in (op.queue_ms, op.rtt_ms, op.execute_ms))
    return add(totals, OpTotals(op.ops, op.retransmissions, op.timeouts, op.errors, *times))


def add(first: OpTotals, other: OpTotals) -> OpTotals:
    """Return the sums of both; None only where neither is known."""
    return OpTotals._make(
        None if one is None and another is None else (one or 0) + (another or 0)
        for one, another in zip(first, other, strict=True)
    )


def connected(had: GroupTotals, lines: tuple[Transport, ...], now_s: float) -> GroupTotals:
    """Return the group with what its connections did since its last look, by their order.

    A connection with smaller numbers than before is another, and counted from its own zero, as is a
    connection more than there ever were. When there are fewer, nobody can say which went: nothing is counted
    in this look, and of those that come back nothing of before.
    """
    span = Span.of(now_s - had.looked_s) if had.lines else UNBOUNDED
    back = lines[len(had.lines) : had.most_lines]
    known = [*had.lines, *back, *[None] * (len(lines) - len(had.lines) - len(back))]
    pairs = zip(known, lines, strict=True) if len(known) == len(lines) else ()
    growth = [_line(old, new, span) for old, new in pairs]
    sums = [sum(column) for column in zip(*growth, strict=True)] or [0, 0, 0, 0]
    return replace(
        had,
        looked_s=now_s,
        lines=lines,
        most_lines=max(had.most_lines, len(lines)),
        sends=had.sends + sums[0],
        connects=had.connects + sums[1],
        in_flight_sum=had.in_flight_sum + sums[2],
        backlog_sum=had.backlog_sum + sums[3],
    )


def _line(old: Transport | None, new: Transport, span: Span) -> tuple[int, int, int, int]:
    after = (new.sends, new.connects or 0, new.in_flight_sum, new.backlog_sum)
    if old is None:
        return after
    try:
        return (
            grown(old.sends, new.sends, span.most_ops),
            grown(old.connects or 0, new.connects or 0, span.most_ops),
            grown(old.in_flight_sum, new.in_flight_sum, _MOST_SUM, (64,)),
            grown(old.backlog_sum, new.backlog_sum, _MOST_SUM, (64,)),
        )
    except ResetError:
        another = new.sends <= old.sends and (new.connects or 0) <= (old.connects or 0)
        return after if another else (0, 0, 0, 0)


MOST_GONE = 256
"""How many superblocks and groups that are gone are kept, the latest ones. One that comes back after that
begins at 0, which everybody who reads counters takes for the restart that it is."""

_COUNTED_ELSEWHERE = Elsewhere(GROUP_OPS)

_Key = TypeVar("_Key")
_Value = TypeVar("_Value", SuperblockTotals, GroupTotals)


@dataclass(slots=True, eq=False)
class _Counting:
    """A look on its way into the totals."""

    before: Totals
    look: Look
    superblocks: dict[CountedPlace, SuperblockTotals]
    groups: dict[str, GroupTotals]
    known: dict[tuple[str, int | None], SuperblockTotals] = field(default_factory=dict)
    """What was seen of each superblock last, by device and bdi: it is counted on from there, wherever it is
    mounted by now."""
    present: list[CountedPlace] = field(default_factory=list)
    taken: dict[str, Elsewhere] = field(default_factory=dict)
    """The groups whose own operations were counted in this look."""
    connected: set[str] = field(default_factory=set)
    """The groups whose connections were counted in this look."""
    groups_present: dict[str, None] = field(default_factory=dict)


def count(
    before: Totals,
    look: Look,
    contests: Mapping[str, int],
    most: int,
    between: Callable[[], None] = lambda: None,
) -> Totals:
    """Return the totals with what the look shows; `contests` says per device how often another wrote.

    Counted is what happened between looks: of a superblock that was there before the first one nothing else,
    or whoever reads counters would see all of it as a burst when the daemon starts again. One that was made
    since the look before is counted from its own zero. At most `most` superblocks are counted: those that
    were stay, new ones wait for room. No number falls as long as its superblock or group is kept. `between`
    is called after each superblock, for what cannot wait until the end.
    """
    places = {
        CountedPlace(counted.device, next(iter(counted.mount_points), "")): counted
        for counted in look.superblocks
    }
    counted = dict.fromkeys(place for place in before.present if place in places)
    ordered = list(counted | dict.fromkeys(places))[:most]
    left_out = frozenset(places.keys() - set(ordered))
    counting = _Counting(before, look, dict(before.superblocks), dict(before.groups), _known(before))
    for place in ordered:
        _add(counting, place, places[place], contests.get(place.device, 0))
        between()
    return Totals(
        looked_s=look.monotonic_s,
        superblocks=_kept(counting.superblocks, counting.present),
        present=tuple(counting.present),
        groups=_kept(counting.groups, counting.groups_present),
        groups_present=tuple(counting.groups_present),
        left_out=left_out,
        left_out_total=before.left_out_total + len(left_out - before.left_out),
    )


def _known(before: Totals) -> dict[tuple[str, int | None], SuperblockTotals]:
    """Return what was seen of each superblock last; where its bdi is not known, of those that are there."""
    known: dict[tuple[str, int | None], SuperblockTotals] = {}
    present = set(before.present)
    for place, block in before.superblocks.items():
        key = block.counted.device, block.counted.bdi
        had = known.get(key)
        newer = had is None or had.looked_s < block.looked_s
        if newer and (block.counted.bdi is not None or place in present):
            known[key] = block
    return known


def _add(counting: _Counting, place: CountedPlace, now: Counted, contests: int) -> None:
    """Count one superblock; one whose stanza is damaged or cut off stays as it was, and is counted later."""
    had = counting.superblocks.get(place)
    with suppress(ParseError):
        had = counting.superblocks[place] = _added(counting, had, now, contests)
    if had is not None:
        counting.present.append(place)
        if now.group in counting.groups:
            counting.groups_present[now.group] = None


def _added(
    counting: _Counting, had: SuperblockTotals | None, now: Counted, contests: int
) -> SuperblockTotals:
    """Return the superblock with what it grew by, and count its group; raises ParseError for damage."""
    if not now.stats.whole:
        raise ParseError("/proc/self/mountstats", 0, f"the stanza of {now.source} is cut off")
    # All superblocks of a group show the same connections: the first that can is asked.
    lines = () if now.group in counting.connected else parse_transports(now.stats.transports)
    last = counting.known.get((now.device, now.bdi), had)
    last_s = counting.before.looked_s if last is None else last.looked_s
    span = UNBOUNDED if last_s is None else Span.of(counting.look.monotonic_s - last_s)
    fresh = last is None or _anew(last.counted, now)
    # Ages are whole seconds of jiffies.
    age_s = now.stats.age_s
    born = fresh and last_s is not None and age_s is not None and age_s <= 1.1 * span.seconds + 2
    growth = Growth()
    if born:
        growth = _grow(counting, now, unused(now.stats), UNBOUNDED, None)
    elif last is not None and not fresh and continues(last.counted.stats, now.stats, span.seconds):
        growth = _grow(counting, now, last.counted.stats, span, last.looked_s)
    new = GroupTotals(0.0, () if born and not _is_old(counting, now.group) else lines)
    group = counting.groups.get(now.group, new)
    if now.group not in counting.connected:
        counting.connected.add(now.group)
        group = connected(group, lines, counting.look.monotonic_s)
    counting.groups[now.group] = replace(group, upkeep=group.upkeep + growth.upkeep)
    return _grown((had, last), now, growth, counting.look, contests)


def _anew(before: Counted, now: Counted) -> bool:
    """Tell whether it is another superblock than before: by its bdi, or, without one, as it is younger.

    An age alone does not tell: its jiffies wrap on 32-bit machines.
    """
    if before.bdi is not None or now.bdi is not None:
        return before.bdi != now.bdi
    ages = before.stats.age_s, now.stats.age_s
    return ages[0] is not None and ages[1] is not None and ages[1] < ages[0]


def _grow(counting: _Counting, now: Counted, old: Stanza, span: Span, since_s: float | None) -> Growth:
    """Return the growth since a look, or since the superblock was made where that is None.

    The first superblock of a group that can has the group's own operations in it.
    """
    counted = counting.taken.get(now.group)
    leads = counted is None and _can_lead(counting, now.group, since_s)
    without = NOTHING_ELSEWHERE if leads else counted or _COUNTED_ELSEWHERE
    growth = superblock_growth(old, now.stats, span, without)
    if leads:
        shared = _COUNTED_ELSEWHERE if since_s is None else Elsewhere.of(old, now.stats)
        counting.taken[now.group] = shared
    return growth


def _can_lead(counting: _Counting, group: str, since_s: float | None) -> bool:
    """Tell whether a growth has what its group's own operations grew by since they were counted last.

    That of a new superblock has what the group did before it came, that of a superblock that missed a look
    what another superblock counted meanwhile.
    """
    if since_s is None:
        return not _is_old(counting, group)
    had = counting.before.groups.get(group)
    return had is None or had.looked_s == since_s


def _is_old(counting: _Counting, group: str) -> bool:
    """Tell whether a group was there before; for all that is known, it was if any superblock was left out."""
    return group in counting.before.groups_present or bool(counting.before.left_out)


def _grown(
    before: tuple[SuperblockTotals | None, SuperblockTotals | None],
    now: Counted,
    growth: Growth,
    look: Look,
    contests: int,
) -> SuperblockTotals:
    """Return what its place had, which is None for a new one, with what it grew by since it was seen last."""
    had, last = before
    seen = 0 if last is None else last.contests_seen
    more = contests - seen if contests >= seen else contests
    since = look.time if last is None or _anew(last.counted, now) else last.since
    if had is None:
        return SuperblockTotals(now, look.monotonic_s, since, growth.bytes, growth.kinds, more, contests)
    kinds = had.kinds
    if growth.kinds:
        added = {kind: add(kinds.get(kind, OpTotals()), new) for kind, new in growth.kinds.items()}
        kinds = MappingProxyType({**kinds, **added})
    sums = tuple(old + new for old, new in zip(had.bytes, growth.bytes, strict=True))
    return SuperblockTotals(now, look.monotonic_s, since, sums, kinds, had.contests + more, contests)


def _kept(values: dict[_Key, _Value], present: Iterable[_Key]) -> Mapping[_Key, _Value]:
    """Return the values without those that went the longest ago, where too many are gone."""
    gone = values.keys() - set(present)
    if len(gone) > MOST_GONE:
        oldest = sorted(gone, key=lambda key: values[key].looked_s)[: len(gone) - MOST_GONE]
        values = {key: value for key, value in values.items() if key not in set(oldest)}
    return MappingProxyType(values)
