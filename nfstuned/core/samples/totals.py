"""Totals of the kernel's counters that never fall: through wraps, resets, damage and new mounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import add
from types import MappingProxyType
from typing import TypeVar

from nfstuned.core.samples.delta import (
    GROUP_OPS,
    NO_BYTES,
    NO_GROWTH,
    NO_OPS,
    NOTHING_ELSEWHERE,
    UNBOUNDED,
    Delta,
    Elsewhere,
    OpDelta,
    ResetError,
    Span,
    continues,
    delta,
    grown,
    zeroed,
)
from nfstuned.core.samples.sample import kind_of
from nfstuned.errors import ParseError
from nfstuned.model.kernel import Stanza, Transport
from nfstuned.model.metrics import CountedPlace, GroupTotals, OpTotals, SuperblockTotals, Totals
from nfstuned.model.samples import Counted, Look, SuperblockKey
from nfstuned.parse.proc.mountstats import parse_transports

_MOST_SUM = 2.0**63


def _with_ops(known: Mapping[str, OpTotals], ops: Mapping[str, OpDelta]) -> Mapping[str, OpTotals]:
    """Return the totals by kind with the growth of operations; those of the whole group are apart.

    A sum of times that fell adds nothing.
    """
    kinds = dict(known)
    for name, op in ops.items():
        if name in GROUP_OPS:
            continue
        had = kinds.get(kind := kind_of(name), OpTotals())
        kinds[kind] = OpTotals(
            had.ops + op.ops,
            had.retransmissions + op.retransmissions,
            had.timeouts + op.timeouts,
            had.errors if op.errors is None else (had.errors or 0) + op.errors,
            had.queue_ms + max(0, op.queue_ms),
            had.rtt_ms + max(0, op.rtt_ms),
            had.execute_ms + max(0, op.execute_ms),
        )
    return MappingProxyType(kinds)


def add_connections(had: GroupTotals, lines: tuple[Transport, ...], now_s: float) -> GroupTotals:
    """Add the growth of a group's connections since its last look, by their order.

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
    known: dict[SuperblockKey, SuperblockTotals] = field(default_factory=dict)
    """The last totals of each superblock, by device and bdi: it is counted on from there, wherever it is
    mounted by now."""
    present: list[CountedPlace] = field(default_factory=list)
    taken: dict[str, Elsewhere] = field(default_factory=dict)
    """By group, once its own operations were counted in this look."""
    connected: set[str] = field(default_factory=set)
    """The groups with connections that were counted in this look."""
    groups_present: dict[str, None] = field(default_factory=dict)


def add_look(
    before: Totals,
    look: Look,
    contests: Mapping[str, int],
    most: int,
    between: Callable[[], None] = lambda: None,
) -> Totals:
    """Return the totals with a look's growth; `contests` is how often another writer wrote, by device.

    Only growth between looks counts: the counters of a superblock from before the first look would be a burst
    to programs that read the totals, each time the daemon starts. A superblock that was made since the look
    before is counted from its own zero. At most `most` superblocks are counted: those that were stay, new
    ones wait for room. No number falls as long as its superblock or group is kept. `between` is called after
    each superblock, for work that cannot wait until the end.
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
        now, had = places[place], counting.superblocks.get(place)
        with suppress(ParseError):  # it stays as it was, and is counted later
            had = counting.superblocks[place] = _added(counting, had, now, contests.get(place.device, 0))
        if had is not None:
            counting.present.append(place)
            if now.group in counting.groups:
                counting.groups_present[now.group] = None
        between()
    return Totals(
        looked_s=look.monotonic_s,
        superblocks=_without_oldest(counting.superblocks, counting.present),
        present=tuple(counting.present),
        groups=_without_oldest(counting.groups, counting.groups_present),
        groups_present=tuple(counting.groups_present),
        left_out=left_out,
        left_out_total=before.left_out_total + len(left_out - before.left_out),
    )


def _known(before: Totals) -> dict[SuperblockKey, SuperblockTotals]:
    """Return the last totals of each superblock; where its bdi is not known, only if it is there."""
    known: dict[SuperblockKey, SuperblockTotals] = {}
    present = set(before.present)
    for place, block in before.superblocks.items():
        had = known.get(block.counted.key)
        newer = had is None or had.looked_s < block.looked_s
        if newer and (block.counted.bdi is not None or place in present):
            known[block.counted.key] = block
    return known


def _added(
    counting: _Counting, had: SuperblockTotals | None, now: Counted, contests: int
) -> SuperblockTotals:
    """Return the superblock's totals with its growth, and count its group. Raises ParseError for damage.

    `had` are the totals of its place, None for a new place.
    """
    if not now.stats.whole:
        raise ParseError("/proc/self/mountstats", 0, f"the stanza of {now.source} is cut off")
    # All superblocks of a group show the same connections: the first that can is asked.
    lines = () if now.group in counting.connected else parse_transports(now.stats.transports)
    last = counting.known.get(now.key, had)
    fresh = last is None or _is_another(last.counted, now)
    last_s = counting.before.looked_s if last is None or fresh else last.looked_s
    span = UNBOUNDED if last_s is None else Span.of(counting.look.monotonic_s - last_s)
    # Ages are whole seconds of jiffies.
    age_s = now.stats.age_s
    born = fresh and last_s is not None and age_s is not None and age_s <= 1.1 * span.seconds + 2
    grew = NO_GROWTH
    if born:
        grew = _delta(counting, now, zeroed(now.stats), UNBOUNDED, None)
    elif last is not None and not fresh and continues(last.counted.stats, now.stats, span.seconds):
        grew = _delta(counting, now, last.counted.stats, span, last.looked_s)
    ops = grew.ops or NO_OPS
    new = GroupTotals(0.0, () if born and not _is_old(counting, now.group) else lines)
    group = counting.groups.get(now.group, new)
    if now.group not in counting.connected:
        counting.connected.add(now.group)
        group = add_connections(group, lines, counting.look.monotonic_s)
    upkeep = sum(op.ops for name, op in ops.items() if name in GROUP_OPS)
    counting.groups[now.group] = replace(group, upkeep=group.upkeep + upkeep)
    seen = 0 if last is None or fresh else last.contests_seen
    return SuperblockTotals(
        now,
        counting.look.monotonic_s,
        counting.look.time if last is None or fresh else last.since,
        tuple(map(add, had.bytes if had else NO_BYTES, grew.bytes or NO_BYTES)),
        _with_ops(had.kinds if had else {}, ops),
        (had.contests if had else 0) + (contests - seen if contests >= seen else contests),
        contests,
    )


def _is_another(before: Counted, now: Counted) -> bool:
    """Return whether the superblock was replaced: by its bdi, or, without one, as it is younger.

    An age alone does not show it: its jiffies wrap on 32-bit machines.
    """
    if before.bdi is not None or now.bdi is not None:
        return before.bdi != now.bdi
    ages = before.stats.age_s, now.stats.age_s
    return ages[0] is not None and ages[1] is not None and ages[1] < ages[0]


def _delta(counting: _Counting, now: Counted, old: Stanza, span: Span, since_s: float | None) -> Delta:
    """Return the growth since a look, or since the superblock was made where that is None.

    The first superblock of a group that can has the group's own operations in it. A counter that fell and did
    not wrap, or grew beyond reason, adds nothing: the next look goes on from its number.
    """
    counted = counting.taken.get(now.group)
    leads = counted is None and _can_lead(counting, now.group, since_s)
    grew = delta(old, now.stats, span, NOTHING_ELSEWHERE if leads else counted or _COUNTED_ELSEWHERE)
    if leads:
        shared = _COUNTED_ELSEWHERE if since_s is None else Elsewhere.of(old, now.stats)
        counting.taken[now.group] = shared
    return grew


def _can_lead(counting: _Counting, group: str, since_s: float | None) -> bool:
    """Return whether a growth has the group's own operations since they were counted last, and no more.

    A new superblock shows the group's operations from before it came. A superblock that missed a look shows
    operations that another superblock counted meanwhile.
    """
    if since_s is None:
        return not _is_old(counting, group)
    had = counting.before.groups.get(group)
    return had is None or had.looked_s == since_s


def _is_old(counting: _Counting, group: str) -> bool:
    """Return whether a group was there before; nobody knows where any superblock was left out."""
    return group in counting.before.groups_present or bool(counting.before.left_out)


def _without_oldest(values: dict[_Key, _Value], present: Iterable[_Key]) -> Mapping[_Key, _Value]:
    """Return the values; of those that are gone only the latest."""
    gone = values.keys() - set(present)
    if len(gone) > MOST_GONE:
        oldest = set(sorted(gone, key=lambda key: values[key].looked_s)[: len(gone) - MOST_GONE])
        values = {key: value for key, value in values.items() if key not in oldest}
    return MappingProxyType(values)
