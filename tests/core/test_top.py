"""The content of `nfstuned top`, its order and its keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.rates import rates
from nfstuned.core.samples.seen import SeenReads
from nfstuned.core.samples.top import (
    NAME,
    SORTS,
    List,
    TopEntry,
    TopState,
    arrange,
    parse_keys,
    press,
)
from nfstuned.model.samples import SuperblockKey
from tests.core.tops import first_frame, looks, second_frame

FRAME = second_frame()
DATA, HOME, FAR, NEW = (entry.counted.key for entry in FRAME.entries)
ROWS = List((DATA, FAR, HOME, NEW), 2)
KEYS = ("up", "down", "page up", "page down", "home", "end", "enter", *"qhpirs<>?kjgG xQ")


def after(*keys: str, state: TopState | None = None) -> TopState:
    state = state or TopState()
    for key in keys:
        state = press(state, key, ROWS)
    return state


def order(state: TopState, entries: Iterable[TopEntry] = FRAME.entries) -> list[SuperblockKey]:
    return [entry.counted.key for entry in arrange(entries, state)]


class TestFrame:
    def test_it_is_the_samples_that_the_service_takes(self) -> None:
        before, now = looks()
        samples = [entry.sample for entry in FRAME.entries if entry.sample is not None]
        assert samples == list(SeenReads().add(now, rates(before, now)))
        assert (FRAME.seconds, FRAME.time) == (10.0, now.time)

    def test_a_first_look_has_every_superblock_and_no_rate(self) -> None:
        first = first_frame()
        assert first.seconds is None
        assert [entry.counted.key for entry in first.entries] == [DATA, HOME, FAR]
        assert not any(entry.sample or entry.figures or entry.sends for entry in first.entries)

    def test_a_superblock_that_is_new_has_no_rate_and_is_shown(self) -> None:
        (new,) = [entry for entry in FRAME.entries if entry.sample is None]
        assert (new.counted.key, new.used) == (NEW, False)

    def test_figures_are_those_of_the_sample(self) -> None:
        data = FRAME.entries[0]
        mib = 1 << 20
        assert data.figures["read"] == pytest.approx(70 * mib)
        assert data.figures["total"] == pytest.approx(74 * mib)
        assert data.figures["over-fetch"] == pytest.approx(8 / 7)
        assert data.figures["ops"] == pytest.approx(93.1)
        assert (data.figures["read-rtt"], data.figures["write-rtt"]) == (30.0, 50.0)
        assert data.figures["retrans"] == pytest.approx(0.1)
        assert data.sends == (200, 200)
        assert data.read_ahead_kb == 15360
        assert set(SORTS) - {NAME} == data.figures.keys()


class TestOrder:
    @pytest.mark.parametrize(
        ("sort", "keys"),
        [
            ("total", [DATA, FAR, HOME, NEW]),
            ("over-fetch", [FAR, DATA, HOME, NEW]),
            ("read-rtt", [DATA, FAR, HOME, NEW]),
            ("write-rtt", [DATA, FAR, HOME, NEW]),
            ("name", [DATA, HOME, NEW, FAR]),
        ],
    )
    def test_the_greatest_is_first_and_the_unknown_last(self, sort: str, keys: list[SuperblockKey]) -> None:
        assert order(TopState(sort=sort)) == keys

    def test_reversed_the_unknown_still_comes_last(self) -> None:
        assert order(TopState(sort="over-fetch", reverse=True)) == [DATA, FAR, HOME, NEW]
        assert order(TopState(sort="name", reverse=True)) == [FAR, NEW, HOME, DATA]

    def test_idle_ones_can_be_left_out(self) -> None:
        assert order(TopState(used_only=True)) == [DATA, FAR]


class TestKeys:
    def test_the_selection_moves_and_stays_in_the_list(self) -> None:
        assert after("down").selected == FAR
        assert after("j", "j").selected == HOME
        assert after("down", "up", "k").selected == DATA
        assert after("end").selected == after("G", "down").selected == NEW
        assert after("G", "home").selected == after("G", "g").selected == DATA
        assert after("page down").selected == HOME
        assert after("page down", "page down", "page up").selected == FAR

    def test_a_line_opens_and_closes_and_keeps_the_selection(self) -> None:
        opened = after("down", "enter")
        assert opened.selected == FAR
        assert opened.opened == {FAR}
        assert after(" ", state=opened).opened == frozenset()
        assert after("enter").opened == {DATA}

    def test_keys_over_nothing_do_nothing(self) -> None:
        for key in ("down", "enter", "end", "page up"):
            assert press(TopState(), key, List((), 5)) == TopState()

    def test_the_columns_are_gone_through_both_ways(self) -> None:
        assert after("s").sort == after(">").sort == SORTS[1]
        assert after("<").sort == SORTS[-1]
        assert after(*["s"] * len(SORTS)).sort == SORTS[0]
        assert after("r", "s").reverse is False

    def test_the_help_is_left_with_any_key_and_hides_what_it_would_do(self) -> None:
        assert after("h").help
        assert after("?", "down") == TopState()
        assert after("h", "q").done

    @given(st.lists(st.sampled_from(KEYS), max_size=30), st.integers(1, 50))
    def test_whatever_is_typed_the_selection_is_one_of_the_list(self, keys: list[str], page: int) -> None:
        state = TopState()
        rows = replace(ROWS, page=page)
        for key in keys:
            state = press(state, key, rows)
        assert state.selected in {None, *ROWS.shown}
        assert state.opened <= set(ROWS.shown)
        assert state.sort in SORTS


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (b"q", ("q",)),
        (b"jj<G?", ("j", "j", "<", "G", "?")),
        (b"\x1b[A\x1b[B", ("up", "down")),
        (b"\x1bOA\x1bOB\x1bOH\x1bOF", ("up", "down", "home", "end")),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", ("page up", "page down", "home", "end")),
        (b"\r\n ", ("enter", "enter", " ")),
        (b"\x1b", ("escape",)),
        (b"\x1b[1;5A", ()),
        (b"\x1b[200~q\x1b[201~", ("q",)),
        (b"\x1b[24~\x1bOPp", ("p",)),
        ("é\x00\x7fq".encode(), ("q",)),
        (b"", ()),
    ],
)
def test_keys_have_names_and_no_part_of_a_sequence_is_a_letter(typed: bytes, keys: tuple[str, ...]) -> None:
    assert parse_keys(typed) == keys


@given(st.binary())
def test_nothing_that_is_typed_raises(typed: bytes) -> None:
    assert all(key.isprintable() for key in parse_keys(typed))
