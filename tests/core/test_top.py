"""The content of `nfstuned top`, its order, its keys, and saved copies of mountstats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.rates import rates
from nfstuned.core.samples.top import (
    NAME,
    SORTS,
    List,
    Saved,
    TopEntry,
    TopState,
    arrange,
    frame,
    frame_between,
    frame_since_mounted,
    parse_keys,
    press,
)
from nfstuned.model.kernel import MountStats, Options
from nfstuned.model.samples import SuperblockKey
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_stanzas
from tests.core.counters import cut, moved, op, stats, written
from tests.core.tops import first_frame, looks, second_frame, snapshot

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
        assert samples == list(rates(before, now))
        assert (FRAME.seconds, FRAME.time) == (10.0, now.time)

    def test_a_first_look_has_every_superblock_and_no_rate(self) -> None:
        first = first_frame()
        assert first.seconds is None
        assert [entry.counted.key for entry in first.entries] == [DATA, HOME, FAR]
        assert not any(entry.sample or entry.figures or entry.sends for entry in first.entries)

    def test_a_superblock_that_is_new_has_no_rate_and_is_shown(self) -> None:
        (new,) = [entry for entry in FRAME.entries if entry.sample is None]
        assert (new.counted.key, new.used) == (NEW, False)

    def test_what_mountstats_does_not_show_is_counted(self) -> None:
        assert FRAME.silent == 1

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

    def test_what_is_not_known_has_no_figure(self) -> None:
        assert "write-rtt" not in FRAME.entries[2].figures
        assert "over-fetch" not in FRAME.entries[1].figures

    def test_a_look_at_another_host_has_nothing(self) -> None:
        _, now = looks()
        before = replace(now, superblocks=())
        assert all(entry.sample is None for entry in frame(before, now, snapshot(now)).entries)


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
    def test_the_greatest_comes_first_and_the_unknown_last(
        self, sort: str, keys: list[SuperblockKey]
    ) -> None:
        assert order(TopState(sort=sort)) == keys

    def test_reversed_the_unknown_still_comes_last(self) -> None:
        assert order(TopState(sort="over-fetch", reverse=True)) == [DATA, FAR, HOME, NEW]
        assert order(TopState(sort="name", reverse=True)) == [FAR, NEW, HOME, DATA]

    def test_idle_ones_can_be_left_out(self) -> None:
        assert order(TopState(used_only=True)) == [DATA, FAR]

    @pytest.mark.parametrize("sort", SORTS)
    def test_no_superblock_is_lost_whatever_comes_first(self, sort: str) -> None:
        for reverse in (False, True):
            assert sorted(order(TopState(sort=sort, reverse=reverse))) == sorted([DATA, HOME, FAR, NEW])

    def test_the_order_does_not_depend_on_the_kernels(self) -> None:
        assert order(TopState(sort="connections"), FRAME.entries[::-1]) == order(TopState(sort="connections"))


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

    def test_a_selection_that_is_gone_begins_anew_at_the_top(self) -> None:
        assert after("down", state=TopState(selected=("0:9", 9))).selected == FAR

    def test_keys_over_nothing_do_nothing(self) -> None:
        for key in ("down", "enter", "end", "page up"):
            assert press(TopState(), key, List((), 5)) == TopState()

    def test_the_columns_are_gone_through_both_ways(self) -> None:
        assert after("s").sort == after(">").sort == SORTS[1]
        assert after("<").sort == SORTS[-1]
        assert after(*["s"] * len(SORTS)).sort == SORTS[0]
        assert after("r", "s").reverse is False

    def test_switches_switch_back(self) -> None:
        for key in "rpi":
            assert after(key) != TopState()
            assert after(key, key) == TopState()

    def test_the_help_is_left_with_any_key_and_hides_what_it_would_do(self) -> None:
        assert after("h").help
        assert after("?", "down") == TopState()
        assert after("h", "q").done

    def test_q_ends_it(self) -> None:
        assert after("q").done

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


KERNELS = Path(__file__).parents[1] / "parse/data"
MIB = 1 << 20
USED = stats(100, moved(50 * MIB), READ=op(50, 100))


def saved(*mounts: MountStats) -> Saved:
    return Saved.of("copy", cut(*mounts), mounts)


def placed(point: str, mount: MountStats) -> MountStats:
    return replace(mount, point=point)


def test_mounts_with_the_same_counters_are_one_superblock_where_bytes_moved() -> None:
    idle = stats(100, GETATTR=op(3))
    mounts = (placed("/a", USED), placed("/b", idle), placed("/folder", USED), placed("/c", idle))
    shown = frame_since_mounted(saved(*(replace(mount, source=f"server:{mount.point}") for mount in mounts)))
    assert [entry.counted.mount_points for entry in shown.entries] == [("/a", "/folder"), ("/b",), ("/c",)]
    other = replace(USED, age_s=101)
    assert len(frame_since_mounted(saved(placed("/a", USED), placed("/b", other))).entries) == 2


def test_mounts_of_one_source_are_one_superblock_also_while_it_is_busy() -> None:
    """The second was printed a moment after the first."""
    busier = placed("/bound", replace(USED, bytes=moved(51 * MIB)))
    (entry,) = frame_since_mounted(saved(placed("/a", USED), busier)).entries
    assert entry.counted.mount_points == ("/a", "/bound")
    alone = Options((*USED.options.pairs, ("nosharecache", "")))
    apart = (replace(mount, options=alone) for mount in (placed("/a", USED), busier))
    assert len(frame_since_mounted(saved(*apart)).entries) == 2


def bound(age_s: int, read: int) -> Saved:
    """A copy of an export and of a bind of a folder in it; Linux 6.12 prints options without an address."""
    real = (KERNELS / "6.12/mountstats").read_text()
    opts = next(line for line in real.splitlines() if "opts:" in line and "vers=4.2" in line)
    text = "".join(
        written(replace(stats(age_s, moved(read)), source=source, point=point)).replace("\topts:\trw", opts)
        for source, point in (("nas:/a", "/data"), ("nas:/a/home", "/home"))
    )
    mounts = (mount for mount in parse_mountstats(text) if isinstance(mount, MountStats))
    return Saved.of("copy", parse_stanzas([text.encode()]), mounts)


def test_a_bind_of_a_folder_is_no_superblock_of_its_own() -> None:
    (entry,) = frame_since_mounted(bound(100, 50 * MIB)).entries
    assert (entry.counted.mount_points, entry.counted.group) == (("/data", "/home"), "v4.2 tcp nas:2049")
    (entry,) = frame_between(bound(100, 50 * MIB), bound(110, 60 * MIB)).entries
    assert entry.sample is not None
    assert (entry.counted.mount_points, entry.sample.read_bytes_per_s) == (("/data", "/home"), MIB)


def test_the_means_since_a_mount_are_of_its_own_age() -> None:
    shown = frame_since_mounted(saved(placed("/a", USED), placed("/b", replace(USED, age_s=50))))
    rates = [entry.sample.read_bytes_per_s for entry in shown.entries if entry.sample is not None]
    assert rates == [MIB / 2, MIB]
    sample = shown.entries[0].sample
    assert sample is not None
    assert (sample.ops["READ"].per_s, sample.ops["READ"].rtt_ms) == (0.5, 2.0)


def test_a_mount_without_an_age_or_made_this_second_has_no_rates() -> None:
    for age in (None, 0):
        (entry,) = frame_since_mounted(saved(replace(USED, age_s=age))).entries
        assert entry.sample is None


def test_mounts_that_lie_on_each_other_are_silent() -> None:
    """Their stanzas have the same source and mount point, and nothing says which is whose."""
    shown = frame_since_mounted(saved(USED, replace(USED, age_s=90), placed("/b", USED)))
    assert (len(shown.entries), shown.silent) == (1, 2)


def test_a_superblock_is_found_again_under_any_of_its_mount_points() -> None:
    later = replace(USED, age_s=110, bytes=moved(60 * MIB))
    shown = frame_between(saved(placed("/b", USED)), saved(placed("/a", later), placed("/b", later)))
    (entry,) = shown.entries
    assert (shown.seconds, entry.counted.mount_points) == (10.0, ("/a", "/b"))
    assert entry.sample is not None
    assert entry.sample.read_bytes_per_s == MIB


def test_the_time_between_copies_is_that_of_mounts_that_lasted_where_as_many_were_made_again() -> None:
    """As autofs does with what nobody uses for a while."""
    lasts, made_again = placed("/a", USED), placed("/b", replace(USED, age_s=5))
    later = replace(lasts, age_s=160, bytes=moved(110 * MIB)), replace(made_again, age_s=25)
    shown = frame_between(saved(lasts, made_again), saved(*later))
    assert shown.seconds == 60.0
    rates = [entry.sample and entry.sample.read_bytes_per_s for entry in shown.entries]
    assert rates == [MIB, None]
