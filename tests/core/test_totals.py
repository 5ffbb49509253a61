from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.rates import make_look
from nfstuned.core.samples.totals import MOST_GONE, add_look
from nfstuned.model.kernel import ByteCounters, MountStats
from nfstuned.model.metrics import CountedPlace, OpTotals, Totals
from nfstuned.model.samples import Counted, Look
from nfstuned.parse.proc.mountstats import parse_stanzas
from tests.core.counters import GROUP, cut, line, moved, op, stats
from tests.core.test_delta import REAL, data, host, unhurried
from tests.parse.damage import damaged, tokens_damaged

PLACE = CountedPlace("0:43", "/mnt/data")
MOVES = ((0, 5, "/mnt/data"), (2, 7, "/bind"), (4, 17, "/bind"), (6, 57, "/mnt/data"))
"""When one superblock is seen, after how many READs, and where."""


def superblock(stanza: MountStats, number: int = 43, point: str = "/mnt/data", group: str = GROUP) -> Counted:
    (cut_out,) = cut(stanza)
    return Counted(f"0:{number}", number, (point,), "server:/data", group, cut_out)


EMPTY = Totals()
Contests = dict[str, int] | None


def look(at: float, *seen: Counted) -> Look:
    return Look(1e9 + at, at, seen)


def counts(*looks: Look, before: Totals = EMPTY, most: int = 100, contests: Contests = None) -> Totals:
    for each in looks:
        before = add_look(before, each, contests or {}, most)
    return before


def aged(age: int, **ops: int) -> MountStats:
    return replace(stats(age), ops=MappingProxyType({name: op(number) for name, number in ops.items()}))


WRAP = stats(1000, moved(2**64 - 5), READ=op(2**32 - 3)), stats(1010, moved(10), READ=op(4))
FALL = tuple(stats(1000 + 10 * n, moved(read)) for n, read in enumerate((500_000, 100, 130)))
SLOWER = stats(1000, READ=op(5, rtt_ms=50)), stats(1010, READ=op(6, rtt_ms=40))
GROWTH = {
    "a wrap": (WRAP, 15, OpTotals(7, errors=0)),
    "a fall, and growth from there": (FALL, 30, None),
    "a leap": ((aged(1000, READ=5), stats(1010, moved(2**62), READ=op(2**50))), 0, OpTotals(errors=0)),
    "a sum of times that fell": (SLOWER, 0, OpTotals(1, errors=0)),
    "a stanza of another superblock": ((aged(10, READ=5), aged(900, READ=800)), 0, None),
}
"""The stanzas of looks ten seconds apart, the bytes that programs read, and the totals of reads."""


class TestSuperblock:
    def test_what_it_did_before_the_first_look_is_not_counted(self) -> None:
        """A restart of the daemon would else show as a burst of all that the mount ever did."""
        seen = superblock(stats(1, moved(7, 6, 5, 4, 3), READ=op(9), SEQUENCE=op(4)))
        totals = counts(look(1.0, seen))
        assert totals.superblocks[PLACE].bytes == (0,) * 6
        assert totals.superblocks[PLACE].kinds == {}
        assert (totals.groups[GROUP].sends, totals.groups[GROUP].upkeep) == (0, 0)

    def test_one_that_was_made_since_the_last_look_is_counted_from_its_own_zero(self) -> None:
        read = op(9, rtt_ms=70, transmissions=11)
        seen = superblock(stats(5, moved(7, 6, 5, 4, 3), (line(8),), READ=read, SEQUENCE=op(4)))
        totals = counts(look(-9.0), look(1.0, seen))
        assert (totals.groups[GROUP].sends, totals.groups[GROUP].upkeep) == (8, 4)
        assert totals.superblocks[PLACE].bytes == (7, 6, 3, 0, 5, 4)
        assert totals.superblocks[PLACE].kinds == {"read": OpTotals(9, 2, 0, 0, 0, 70, 70)}
        assert totals.superblocks[PLACE].since == 1e9 + 1.0

    @pytest.mark.parametrize(("seen", "read_bytes", "read"), GROWTH.values(), ids=GROWTH)
    def test_only_growth_that_a_machine_can_make_is_counted(
        self, seen: tuple[MountStats, ...], read_bytes: int, read: OpTotals | None
    ) -> None:
        totals = counts(*(look(10.0 * n, superblock(stanza)) for n, stanza in enumerate(seen)))
        assert totals.superblocks[PLACE].bytes[0] == read_bytes
        assert totals.superblocks[PLACE].kinds.get("read") == read

    def test_another_superblock_in_its_place_goes_on_from_its_numbers(self) -> None:
        first, second = aged(1000, READ=5), aged(3, READ=2)
        totals = counts(look(0.0, superblock(first)), look(10.0, replace(superblock(second), bdi=99)))
        assert totals.superblocks[PLACE].kinds["read"].ops == 2
        assert totals.superblocks[PLACE].since == 1e9 + 10.0

    def test_an_old_one_in_its_place_that_was_not_counted_before_begins_now(self) -> None:
        first, second = superblock(aged(1000, READ=5)), replace(superblock(aged(80, READ=7)), bdi=99)
        totals = counts(look(0.0, first), look(90.0), look(100.0, second))
        assert totals.superblocks[PLACE].kinds.get("read", OpTotals()).ops == 0

    def test_a_younger_one_is_another_one_where_its_bdi_is_not_known(self) -> None:
        seen = [(at, superblock(aged(age, READ=n))) for at, age, n in ((0, 50, 9), (9, 3, 4))]
        totals = counts(*(look(at, replace(each, bdi=None)) for at, each in seen))
        assert totals.superblocks[PLACE].kinds["read"].ops == 4

    def test_an_age_that_wraps_makes_no_other_superblock(self) -> None:
        """Of 32 bits it does so after 50 days with 1,000 jiffies a second: nothing is to be counted again."""
        seen = [(0, 4294967, 10**9), (10, 9, 10**9 + 5), (20, 19, 10**9 + 7)]
        totals = counts(*(look(at, superblock(aged(age, READ=n))) for at, age, n in seen))
        assert totals.superblocks[PLACE].kinds["read"].ops == 2
        assert totals.superblocks[PLACE].since == 1e9

    def test_one_that_was_out_of_sight_is_not_counted_twice(self) -> None:
        first, last = look(0.0, superblock(aged(1000, READ=5))), look(20.0, superblock(aged(1020, READ=8)))
        totals = counts(first, look(10.0), last)
        assert totals.superblocks[PLACE].kinds["read"].ops == 3
        assert totals.present == (PLACE,)

    def test_one_whose_stanza_is_cut_off_stays_and_is_made_up_for(self) -> None:
        cut = replace(aged(1010, READ=6), whole=False)
        before = counts(look(0.0, superblock(aged(1000, READ=5))))
        between = counts(look(10.0, superblock(cut)), before=before)
        assert between.superblocks == before.superblocks
        assert (between.present, between.groups_present) == ((PLACE,), (GROUP,))
        after = counts(look(20.0, superblock(aged(1020, READ=9))), before=between)
        assert after.superblocks[PLACE].kinds["read"].ops == 4

    def test_one_that_is_seen_under_another_mount_point_now_goes_on_there(self) -> None:
        """Its first mount went and a bind mount of it stays: each operation is in one of both places."""
        seen = [superblock(aged(1 + at, READ=number), point=point) for at, number, point in MOVES]
        looks = [look(at, one) for (at, _, _), one in zip(MOVES, seen, strict=True)]
        totals = counts(look(-9.0), *looks, contests={"0:43": 1})
        bound = CountedPlace("0:43", "/bind")
        assert totals.superblocks[PLACE].kinds["read"].ops == 5 + 40
        assert totals.superblocks[bound].kinds["read"].ops == 2 + 10
        assert [totals.superblocks[place].contests for place in (PLACE, bound)] == [1, 0]
        assert totals.superblocks[PLACE].since == totals.superblocks[bound].since == 1e9
        assert totals.present == (PLACE,)

    @given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from([None, "/a", "/b", "/c"])), max_size=12))
    def test_operations_count_in_one_place_at_any_point(self, steps: list[tuple[int, str | None]]) -> None:
        totals, done, seen = Totals(), 0, []
        for at, (more, point) in enumerate(steps):
            done += more
            if point is None:
                totals = counts(look(at), before=totals)
                continue
            seen.append(done)
            totals = counts(look(at, superblock(aged(1000 + at, READ=done), point=point)), before=totals)
        kinds = [found.kinds.get("read", OpTotals()) for found in totals.superblocks.values()]
        assert sum(kind.ops for kind in kinds) == (seen[-1] - seen[0] if seen else 0)

    def test_contests_only_grow(self) -> None:
        totals = Totals()
        for at, number in enumerate((2, 3, 0, 1)):
            found = {"0:43": number} if number else {}
            totals = counts(look(at, superblock(aged(1000 + at))), before=totals, contests=found)
        assert totals.superblocks[PLACE].contests == 4

    def test_a_new_superblock_at_the_same_place_has_contests_of_its_own(self) -> None:
        totals = Totals()
        for at in range(3):
            mounted = replace(superblock(aged(1)), bdi=at)
            totals = counts(look(10.0 * at, mounted), before=totals, contests={"0:43": 1})
        assert totals.superblocks[PLACE].contests == 3


class TestGroup:
    def test_connections_and_upkeep_are_counted_once_for_all_superblocks(self) -> None:
        def both(age: int, sends: int, upkeep: int) -> list[Counted]:
            lines = (line(sends, 2 * sends, sends), line(sends))
            shown = stats(age, lines=lines, SEQUENCE=op(upkeep), READ=op(sends))
            return [superblock(shown, n, f"/mnt/{n}") for n in (43, 44)]

        totals = counts(look(0.0, *both(100, 5, 7)), look(10.0, *both(110, 8, 9)))
        group = totals.groups[GROUP]
        assert (group.sends, group.in_flight_sum, group.backlog_sum, group.upkeep) == (6, 6, 3, 2)
        assert [each.kinds["read"].ops for each in totals.superblocks.values()] == [3, 3]
        assert all("other" not in each.kinds for each in totals.superblocks.values())

    def test_the_connections_are_read_of_one_superblock_and_not_of_each(self) -> None:
        def both(age: int, reads: int) -> list[Counted]:
            first, second = (superblock(aged(age, READ=reads), n, f"/mnt/{n}") for n in (43, 44))
            return [first, replace(second, stats=second.stats._replace(transports=b"\txprt:\ttcp damaged"))]

        totals = counts(look(0.0, *both(100, 5)), look(10.0, *both(110, 8)))
        assert [each.kinds["read"].ops for each in totals.superblocks.values()] == [3, 3]

    @pytest.mark.parametrize("missed", [(43,), (44,), (43, 44)])
    def test_upkeep_counts_once_with_a_superblock_unread_for_a_look(self, missed: tuple[int, ...]) -> None:
        def seen(turn: int, upkeep: int, n: int) -> Counted:
            shown = superblock(aged(100 + 10 * turn, SEQUENCE=upkeep), n, f"/mnt/{n}")
            return replace(shown, stats=shown.stats._replace(whole=turn != 2 or n not in missed))

        turns = enumerate((10, 20, 35, 50))
        looks = [look(10.0 * turn, *(seen(turn, upkeep, n) for n in (43, 44))) for turn, upkeep in turns]
        assert counts(*looks).groups[GROUP].upkeep == 40

    def test_a_connection_that_was_replaced_is_counted_from_its_own_zero(self) -> None:
        seen = [superblock(stats(1000 + 10 * n, lines=(line(sends),))) for n, sends in enumerate((50, 4, 6))]
        assert counts(*(look(10.0 * n, each) for n, each in enumerate(seen))).groups[GROUP].sends == 6

    def test_one_more_connection_is_counted_and_one_less_counts_nothing(self) -> None:
        lines = ((line(50),), (line(51), line(7)), (line(7),), (line(9),))
        seen = [superblock(stats(1000 + 10 * n, lines=each)) for n, each in enumerate(lines)]
        totals = [counts(*(look(10.0 * n, each) for n, each in enumerate(seen[:end]))) for end in (2, 3, 4)]
        assert [each.groups[GROUP].sends for each in totals] == [8, 8, 10]


class TestRoom:
    def test_those_that_are_counted_stay_and_new_ones_wait_for_room(self) -> None:
        a, b, c = (superblock(aged(1000), n, f"/{n}") for n in (1, 2, 3))
        at_first = counts(look(0.0, b, c), most=2)
        full = counts(look(0.0, a, b, c), before=at_first, most=2)
        assert [place.device for place in full.present] == ["0:2", "0:3"]
        assert (full.left_out, full.left_out_total) == (frozenset({CountedPlace("0:1", "/1")}), 1)
        assert counts(look(0.0, a, b, c), before=full, most=2).left_out_total == 1
        room = counts(look(0.0, a, c), before=full, most=2)
        assert [place.device for place in room.present] == ["0:3", "0:1"]
        assert (room.left_out, room.left_out_total) == (frozenset(), 1)

    def test_only_so_many_that_are_gone_are_kept(self) -> None:
        totals = Totals()
        for n in range(MOST_GONE + 10):
            gone = superblock(aged(10), n, f"/{n}", group=f"group {n}")
            totals = counts(look(float(n), gone), before=totals)
        assert len(totals.superblocks) == len(totals.groups) == MOST_GONE + 1
        assert CountedPlace("0:9", "/9") in totals.superblocks
        assert CountedPlace("0:8", "/8") not in totals.superblocks


def numbers(totals: Totals) -> Iterator[tuple[object, int]]:
    for place, each in totals.superblocks.items():
        yield (place, "contests"), each.contests
        for n, value in enumerate(each.bytes):
            yield (place, n), value
        for kind, op_totals in each.kinds.items():
            for name, number in op_totals._asdict().items():
                yield (place, kind, name), number or 0
    for group, values in totals.groups.items():
        for name in ("sends", "connects", "in_flight_sum", "backlog_sum", "upkeep"):
            yield (group, name), getattr(values, name)
    yield "left out", totals.left_out_total


def never_fell(before: Totals, after: Totals) -> None:
    now = dict(numbers(after))
    fallen = {key: (value, now.get(key)) for key, value in numbers(before) if now.get(key, -1) < value}
    assert not fallen


@unhurried
@given(st.data(), st.sampled_from(sorted(REAL)))
def test_whatever_happens_to_the_kernels_file_no_number_falls(draws: st.DataObject, kernel: str) -> None:
    text = REAL[kernel]
    snapshot = host(text)
    totals, at = Totals(), 0.0
    for _ in range(draws.draw(st.integers(2, 5))):
        shown = draws.draw(st.one_of(st.just(text), damaged(text), tokens_damaged(text)))
        at += draws.draw(st.floats(0.001, 1e6))
        bdis = draws.draw(st.integers(0, 1))
        seen = make_look(snapshot, parse_stanzas([data(shown)]), at, at)
        changed = tuple(replace(each, bdi=(each.bdi or 0) + bdis) for each in seen.superblocks)
        after = counts(replace(seen, superblocks=changed), before=totals, most=draws.draw(st.integers(0, 5)))
        never_fell(totals, after)
        totals = after


def test_a_negative_number_of_connections_is_no_count() -> None:
    good = REAL["5.10"]
    assert "xprt:\ttcp 829 1 2 0 4 " in good
    bad = good.replace("xprt:\ttcp 829 1 2 0 4 ", "xprt:\ttcp 829 1 -1 0 4 ")
    texts = enumerate((good, bad), 1)
    first, second = (make_look(host(good), parse_stanzas([data(text)]), at, at) for at, text in texts)
    before = counts(first)
    never_fell(before, counts(second, before=before))


STEP = st.tuples(*(st.integers(least, most) for least, most in ((0, 10**12), (0, 10**6), (0, 9), (1, 600))))
STEPS = st.lists(STEP, min_size=1, max_size=12)


@unhurried
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), STEPS)
def test_through_wraps_and_new_superblocks_totals_are_what_really_happened(
    first_bytes: int, first_ops: int, steps: list[tuple[int, int, int, int]]
) -> None:
    """A 32-bit kernel: operations wrap at 2^32, bytes at 2^64; now and then the mount is made anew."""
    shown_bytes, shown_ops, age, at, bdi = first_bytes, first_ops, 1000, 0.0, 1
    true_bytes, true_ops = 0, 0
    totals = counts(look(at, replace(superblock(_kernel(age, shown_bytes, shown_ops)), bdi=bdi)))
    for more_bytes, more_ops, chance, seconds in steps:
        at += seconds
        age += seconds
        if chance == 0:
            shown_bytes, shown_ops, age, bdi = 0, 0, min(seconds, age), bdi + 1
        shown_bytes = (shown_bytes + more_bytes) % 2**64
        shown_ops = (shown_ops + more_ops) % 2**32
        true_bytes, true_ops = true_bytes + more_bytes, true_ops + more_ops
        seen = replace(superblock(_kernel(age, shown_bytes, shown_ops)), bdi=bdi)
        totals = counts(look(at, seen), before=totals)
        kinds = totals.superblocks[PLACE].kinds
        assert totals.superblocks[PLACE].bytes[4] == true_bytes
        assert (kinds["read"].ops if kinds else 0) == true_ops


def _kernel(age: int, server_read: int, reads: int) -> MountStats:
    read = ByteCounters(0, 0, 0, 0, server_read, 0, 0, 0)
    # A request has bytes, which are counted in 64 bits: of what was used, not all counters are ever 0 again.
    return stats(age, read, READ=op()._replace(ops=reads, transmissions=reads, bytes_sent=1))
