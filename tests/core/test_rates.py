from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nfstuned.core.samples.rates import connection_sends, make_look, rates, sends_between
from nfstuned.core.samples.sample import KINDS, WATCHING_OPS, is_idle, kinds, one_line, sample_to_json
from nfstuned.model.kernel import LEASE_OPS, ByteCounters, MountStats, OpCounters, Options, Transport
from nfstuned.model.mounts import Snapshot
from nfstuned.model.samples import Counted, Look, OpRate, Sample, TransportRate
from nfstuned.parse.proc.mountstats import operation_row
from tests.core.counters import (
    GROUP,
    MIB,
    OPTIONS,
    counted,
    cut,
    line,
    looks,
    mount,
    moved,
    op,
    stanza,
    stats,
    superblock,
)


def one(before: MountStats, now: MountStats, seconds: float = 10.0) -> Sample:
    (sample,) = rates(*looks(before, now, seconds))
    return sample


def reads_seen(shown: Look) -> dict[str, int]:
    found = {}
    for one_of_them in shown.superblocks:
        ((_, row),) = filter(None, map(operation_row, (one_of_them.stats.operations or b"").split(b"\n")))
        found[one_of_them.device] = row[0]
    return found


def seen(snapshot: Snapshot, *stats: MountStats) -> Look:
    """A look at a host whose mountstats has these mounts."""
    return make_look(snapshot, cut(*stats), 0.0, 0.0)


class TestLook:
    def test_bind_mounts_are_one_superblock(self) -> None:
        snapshot = Snapshot((superblock(mount(30), mount(31, point="/srv/bound")),))
        points = ("/mnt/data", "/srv/bound")
        assert make_look(snapshot, cut(stanza(7), stanza(7, "/srv/bound")), 5e8, 100.0) == Look(
            5e8, 100.0, (counted(stanza(7), points=points),)
        )

    def test_the_same_export_mounted_twice_on_one_point_is_one_superblock(self) -> None:
        snapshot = Snapshot((superblock(mount(30), mount(31, parent=30)),))
        assert seen(snapshot, stanza(7), stanza(7)).superblocks == (counted(stanza(7)),)

    def test_superblocks_stacked_on_one_point_are_told_apart_by_what_lies_below(self) -> None:
        upper, lower = mount(29, "0:44", parent=30), mount(30, "0:43")
        snapshot = Snapshot((superblock(upper), superblock(lower)))
        assert reads_seen(seen(snapshot, stanza(1), stanza(2))) == {"0:43": 1, "0:44": 2}

    @pytest.mark.parametrize("parents", [(1, 1), (30, 29)])
    def test_superblocks_that_cannot_be_told_apart_are_left_out(self, parents: tuple[int, int]) -> None:
        ways = (mount(29, "0:44", parent=parents[0]), mount(30, "0:43", parent=parents[1]))
        assert seen(Snapshot(tuple(map(superblock, ways))), stanza(1), stanza(2)).superblocks == ()

    def test_a_mount_that_appeared_between_the_two_files_is_not_guessed_at(self) -> None:
        for superblocks in (
            (superblock(mount(30)),),
            (superblock(mount(30)), superblock(mount(31, "0:44", parent=30)), superblock(mount(32, "0:45"))),
        ):
            shown = seen(Snapshot(superblocks), stanza(7), replace(stanza(1), age_s=0))
            assert shown.superblocks == ()

    @pytest.mark.parametrize(
        ("options", "group"),
        [
            ({"vers": "3", "proto": "tcp", "addr": "10.0.0.4"}, "v3 tcp 10.0.0.4:2049"),
            ({"vers": "4.2", "proto": "tcp6", "addr": "fd00::4"}, "v4.2 tcp6 [fd00::4]:2049"),
            ({"vers": "4", "proto": "tcp", "port": "20049", "addr": "127.0.0.1"}, "v4 tcp 127.0.0.1:20049"),
            ({"vers": "4.1", "proto": "tcp", "xprtsec": "none", "addr": "::1"}, "v4.1 tcp [::1]:2049"),
            ({"vers": "4", "proto": "tcp", "xprtsec": "mtls", "addr": "1.2.3.4"}, "v4 tcp 1.2.3.4:2049 mtls"),
            ({}, "v? ? [server:/data]:2049"),
        ],
    )
    def test_a_transport_group_is_one_client_of_the_kernel(self, options: dict[str, str], group: str) -> None:
        shown = replace(mount(30), options=Options(tuple(options.items())))
        (found,) = seen(Snapshot((superblock(shown),)), stanza(1)).superblocks
        assert found.group == group


NEGATIVE = 18446743919241604546
"""A negative sum of times without its sign, as a kernel printed it."""
OPERATIONS = {
    "rates and mean times": (
        op(1000, rtt_ms=5000, queue_ms=100),
        op(1100, rtt_ms=5120, queue_ms=150, transmissions=1105, errors=20),
        OpRate(10.0, 1.2, 0.5, 1.7, 0.5, 2.0, 0.0, 2000.0, 1500.0),
    ),
    "only sent again": (op(7), op(7, transmissions=9), OpRate(0, None, None, None, 0.2, 0, 0, 0, 0)),
    "timed out": (op(1), op(11)._replace(timeouts=5), OpRate(1, 0, 0, 0, 0, 0, 0.5, 200, 150)),
    "given up before it was sent": (op(1), op(11, transmissions=4), OpRate(1, 0, 0, 0, 0, 0, 0, 200, 150)),
    "not there before": (None, op(50), OpRate(5, 0, 0, 0, 0, 0, 0, 1000, 750)),
    "not there before, no errors": (None, op(50, errors=None), OpRate(5, 0, 0, 0, 0, None, 0, 1000, 750)),
    "errors not counted before": (op(1, errors=None), op(11), OpRate(1, 0, 0, 0, 0, None, 0, 200, 150)),
    "errors not counted any more": (op(1), op(11, errors=None), OpRate(1, 0, 0, 0, 0, None, 0, 200, 150)),
    "a sum of times fell below zero": (
        op(1),
        op(11, rtt_ms=20)._replace(queue_ms=NEGATIVE),
        OpRate(1, 2, None, 2, 0, 0, 0, 200, 150),
    ),
    "a sum of times was below zero": (
        op(10)._replace(queue_ms=NEGATIVE),
        op(20)._replace(queue_ms=NEGATIVE + 20),
        OpRate(1, 0, 2, 0, 0, 0, 0, 200, 150),
    ),
    "a sum of times with its sign": (
        op(10, queue_ms=-500),
        op(20, queue_ms=-480),
        OpRate(1, 0, 2, 2, 0, 0, 0, 200, 150),
    ),
    "counters of 32 bits wrap": (
        op((1 << 32) - 40, rtt_ms=100),
        op(60, rtt_ms=300),
        OpRate(10, 2, 0, 2, 0, 0, 0, None, None),
    ),
    "counters of 64 bits wrap": (
        op((1 << 64) - 40, rtt_ms=100),
        op(60, rtt_ms=300),
        OpRate(10, 2, 0, 2, 0, 0, 0, 2000, 1500),
    ),
}


@pytest.mark.parametrize(("before", "now", "rate"), OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_has_rates_and_means(before: OpCounters | None, now: OpCounters, rate: OpRate) -> None:
    earlier = stats(GETATTR=op(1)) if before is None else stats(READ=before, GETATTR=op(1))
    assert one(earlier, stats(READ=now, GETATTR=op(1))).ops == {"READ": rate}


class TestRates:
    def test_bytes_are_what_programs_asked_for_and_what_the_server_moved(self) -> None:
        before = stats(total=ByteCounters(5 * MIB, MIB, 0, 0, 3 * MIB, MIB, 0, 0))
        now = stats(total=ByteCounters(15 * MIB, 21 * MIB, 10 * MIB, 40 * MIB, 33 * MIB, 11 * MIB, 0, 0))
        sample = one(before, now)
        assert (sample.time, sample.interval_s, sample.device) == (5e8 + 10, 10.0, "0:43")
        assert (sample.read_bytes_per_s, sample.write_bytes_per_s) == (2 * MIB, 6 * MIB)
        assert (sample.direct_read_bytes_per_s, sample.direct_write_bytes_per_s) == (MIB, 4 * MIB)
        assert (sample.server_read_bytes_per_s, sample.server_write_bytes_per_s) == (3 * MIB, MIB)
        assert sample.over_fetch_ratio == 1.5

    def test_a_read_ahead_is_that_of_the_whole_interval_and_rsize_that_of_the_mount(self) -> None:
        rsize = Options((*OPTIONS.pairs, ("rsize", "262144")))
        shown = superblock(replace(mount(30), options=rsize))._replace(read_ahead_kb=15360)
        before = make_look(Snapshot((shown,)), cut(stats()), 0.0, 0.0)
        now = make_look(Snapshot((shown,)), cut(replace(stats(), age_s=1010)), 10.0, 10.0)
        (sample,) = rates(before, now)
        assert (sample.read_ahead_kb, sample.rsize_bytes) == (15360, 262144)
        earlier = replace(before, superblocks=(replace(before.superblocks[0], read_ahead_kb=128),))
        (sample,) = rates(earlier, now)
        assert (sample.read_ahead_kb, sample.rsize_bytes) == (None, 262144)

    def test_events_are_rates_and_what_the_kernel_does_not_show_is_unknown(self) -> None:
        """A damaged line, or one that fell, costs these figures alone."""
        assert of_events("0 " * 27, f"{'7 ' * 21}10 20 30 40 50 60 ") == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.7)
        assert of_events("5 " * 27, "5 " * 27) == (0.0,) * 7
        assert of_events(f"{'4294967290 ' * 27}", f"{'4 ' * 27}") == (1.0,) * 7
        assert of_events("5 " * 27 + "1 ", "5 " * 27 + "9 ") == (0.0,) * 7
        for before, now in ((None, "0 " * 27), ("9 " * 27, "8 " * 27), ("0 ", "0 ")):
            assert of_events(before, now) == (None,) * 7
        assert of_events("0 " * 25, "10 " * 27) == (1.0, 1.0, 1.0, 1.0, None, None, 1.0)
        for damaged in ("x " * 27, "-1 " * 27, "", f"{'9' * 30} " * 27):
            assert of_events(damaged, damaged) == (None,) * 7

    def test_only_operations_that_ended_in_the_interval_appear(self) -> None:
        assert one(stats(READ=op(7), WRITE=op(7)), stats(READ=op(7), WRITE=op(8))).ops.keys() == {"WRITE"}

    @pytest.mark.parametrize("cut", [0, 1])
    def test_a_look_that_was_cut_short_is_followed_by_no_burst(self, cut: int) -> None:
        """Operations that it does not show are not new."""
        pair = (stats(GETATTR=op(1)), stats(GETATTR=op(1), READ=op(1_000_000)))
        before, now = (replace(look, whole=n != cut) for n, look in enumerate(pair))
        assert rates(*looks(before, now)) == ()


class TestResets:
    def test_a_superblock_that_came_or_went_or_whose_number_was_reused_has_no_sample(self) -> None:
        earlier, later = looks(stats(), stats())
        assert rates(replace(earlier, superblocks=()), later) == ()
        assert rates(earlier, replace(later, superblocks=())) == ()
        other = replace(later.superblocks[0], bdi=99)
        assert rates(earlier, replace(later, superblocks=(other,))) == ()

    @pytest.mark.parametrize(
        ("age", "samples"),
        [*((age, 0) for age in (0, 999, 1000, 1040, 1100)), *((age, 1) for age in (1059, 1060, 1061, None))],
    )
    def test_a_superblock_that_ages_otherwise_is_another(self, age: int | None, samples: int) -> None:
        """Ages are whole seconds, or unknown."""
        earlier = Look(5e8, 100.0, (counted(stats(age=1000)),))
        assert len(rates(earlier, Look(5e8 + 60, 160.0, (counted(stats(age=age)),)))) == samples

    @pytest.mark.parametrize(
        ("before", "now"),
        [
            (stats(total=moved(read=9 * MIB)), stats(total=moved(read=MIB))),
            (stats(total=moved(server_written=1 << 40)), stats(total=moved(server_written=1 << 30))),
            (stats(READ=op(5000)), stats(READ=op(3))),
            (stats(READ=op(5, transmissions=10)), stats(READ=op(6, transmissions=6))),
            (stats(READ=op(5, errors=2)), stats(READ=op(6, errors=0))),
            (stats(READ=op(5), WRITE=op(5)), stats(READ=op(5))),
            (stats(), stats(total=moved(read=1 << 62))),
            (stats(), replace(stats(), bytes=None)),
        ],
    )
    def test_a_counter_without_a_likely_growth_is_no_burst(self, before: MountStats, now: MountStats) -> None:
        assert rates(*looks(before, now)) == ()

    def test_one_reset_leaves_the_other_superblocks_alone(self) -> None:
        earlier, later = looks(stats(READ=op(9)), stats(READ=op(3)))
        other = counted(stats(age=None), "0:50")
        earlier = replace(earlier, superblocks=(*earlier.superblocks, other))
        later = replace(later, superblocks=(*later.superblocks, other))
        assert [sample.device for sample in rates(earlier, later)] == ["0:50"]

    def test_bytes_wrap_at_64_bits_only(self) -> None:
        near = (1 << 64) - 400
        assert one(stats(total=moved(near)), stats(total=moved(600))).read_bytes_per_s == 100
        assert rates(*looks(stats(total=moved((1 << 32) - 400)), stats(total=moved(600)))) == ()


class TestTime:
    @pytest.mark.parametrize(
        ("seconds", "wall"), [(0.0, 5e8), (-5.0, 5e8), (math.nan, 5e8), (math.inf, 5e8), (10.0, math.nan)]
    )
    def test_no_time_between_looks_or_on_the_clock_is_no_sample(self, seconds: float, wall: float) -> None:
        earlier, later = looks(stats(), stats())
        assert rates(earlier, replace(later, time=wall, monotonic_s=100.0 + seconds)) == ()

    @pytest.mark.parametrize("wall", [5e8 + 8 * 3600, 5e8 - 3600])
    def test_a_suspended_machine_or_a_set_clock_does_not_change_a_rate(self, wall: float) -> None:
        earlier, later = looks(stats(READ=op(0)), stats(READ=op(50)))
        (sample,) = rates(earlier, replace(later, time=wall))
        assert (sample.time, sample.interval_s, sample.ops["READ"].per_s) == (wall, 10.0, 5.0)


def shares(earlier: tuple[MountStats, ...], later: tuple[MountStats, ...]) -> tuple[Sample, ...]:
    """Samples of several superblocks of one transport group, ten seconds apart."""
    before, now = (
        tuple(counted(replace(stanza, age_s=None), f"0:{40 + n}") for n, stanza in enumerate(stanzas))
        for stanzas in (earlier, later)
    )
    return rates(Look(0.0, 0.0, before), Look(10.0, 10.0, now))


class TestTransport:
    def test_means_are_over_all_connections_of_the_group_and_unknown_when_nothing_was_sent(self) -> None:
        before = stats(lines=(line(100, 500, 50), line(10, 20, 0)))
        now = stats(lines=(line(110, 530, 60), line(20, 60, 10)))
        assert one(before, now).transport == TransportRate(GROUP, 2, 3.5, 1.0, 0.0, 0.0, 64, 0.0)
        assert one(stats(), stats()).transport == TransportRate(GROUP, 2, None, None, None, None, 64, 0.0)

    def test_means_are_unknown_when_a_connection_came_or_began_anew(self) -> None:
        for lines in ((line(9, 9), line(9, 9), line(9, 9)), (line(3, 3), line(9, 9))):
            sample = one(stats(lines=(line(5, 5), line(5, 5))), stats(lines=lines))
            assert sample.transport == TransportRate(GROUP, len(lines), None, None, max_slots=64)

    def test_means_are_unknown_when_the_superblock_moved_to_another_server(self) -> None:
        earlier, later = looks(stats(lines=(line(1, 1),)), stats(lines=(line(9, 9),)))
        moved_on = replace(later.superblocks[0], group="v4.1 tcp 10.10.10.11:2049")
        (sample,) = rates(earlier, replace(later, superblocks=(moved_on,)))
        assert sample.transport == TransportRate("v4.1 tcp 10.10.10.11:2049", 1, None, None, max_slots=64)

    def test_a_connection_that_was_made_fewer_times_than_before_is_another_one(self) -> None:
        before, now = Transport("tcp", 0, 3, 0, *(10,) * 8), Transport("tcp", 0, 1, 0, *(20,) * 8)
        rate = one(stats(lines=(before,)), stats(lines=(now,))).transport
        assert (rate.in_flight, rate.connects_per_s) == (None, None)

    def test_what_a_transport_does_not_count_is_unknown(self) -> None:
        before, now = (Transport("udp", 0, None, None, sends, sends, 0, sends, 0) for sends in (1, 2))
        rate = one(stats(lines=(before,)), stats(lines=(now,))).transport
        assert (rate.in_flight, rate.sending, rate.pending) == (1.0, None, None)
        assert (rate.max_slots, rate.connects_per_s) == (None, None)

    def test_ten_shares_of_a_server_have_one_and_the_same_transport(self) -> None:
        later = tuple(stats(lines=(line(10 + n, 40),)) for n in range(10))
        samples = shares((stats(lines=(line(),)),) * 10, later)
        assert {one.transport for one in samples} == {TransportRate(GROUP, 1, 4.0, 0.0, 0.0, 0.0, 64, 0.0)}

    def test_operations_of_the_group_are_counted_once_and_the_rest_each(self) -> None:
        before, now = stats(READ=op(), SEQUENCE=op()), stats(READ=op(10), SEQUENCE=op(10))
        samples = shares((before,) * 3, (now,) * 3)
        assert sum(sample.ops["READ"].per_s for sample in samples) == 3.0
        assert ["SEQUENCE" in sample.ops for sample in samples] == [True, False, False]


SAMPLE = Sample(
    time=5e8,
    interval_s=60.0,
    device="0:43",
    mount_points=("/mnt/data",),
    source="server:/data",
    read_bytes_per_s=104.2e6,
    write_bytes_per_s=0.0,
    server_read_bytes_per_s=110e6,
    server_write_bytes_per_s=0.0,
    over_fetch_ratio=1.056,
    ops=MappingProxyType({"READ": OpRate(105.0, 1.23, 0.1, 1.4, 0.0, None)}),
    transport=TransportRate(GROUP, 4, 3.5, 0.0),
)
QUIET = replace(SAMPLE, read_bytes_per_s=0.0, server_read_bytes_per_s=0.0, ops={})


def of_events(before: str | None, now: str | None) -> tuple[float | None, ...]:
    """The rates of events over ten seconds, with their bytes, of which 1 MiB a second were read."""

    def counted(read: int, events: str | None, seconds: int) -> Look:
        (stanza,) = cut(replace(stats(total=moved(read)), age_s=1000 + seconds))
        line = None if events is None else events.encode()
        shown = make_look(
            Snapshot((superblock(mount(30)),)), [stanza._replace(events=line)], 0.0, float(seconds)
        )
        assert shown.superblocks
        return shown

    (sample,) = rates(counted(0, before, 0), counted(10 * MIB, now, 10))
    assert sample.read_bytes_per_s == MIB
    return (
        sample.silly_renames_per_s,
        sample.short_reads_per_s,
        sample.short_writes_per_s,
        sample.delays_per_s,
        sample.pnfs_reads_per_s,
        sample.pnfs_writes_per_s,
        sample.read_ahead_calls_per_s,
    )


@pytest.mark.parametrize(
    ("counts", "per_s"), [((5, 25), 2.0), ((0, 0), 0.0), ((5, 4), None), ((None, 5), None), ((5, None), None)]
)
def test_major_faults_are_the_machines(counts: tuple[int | None, int | None], per_s: float | None) -> None:
    before, now = (
        Look(at, at, (counted(stats(age=1000 + int(at))),), major_faults=faults)
        for at, faults in zip((0.0, 10.0), counts, strict=True)
    )
    (sample,) = rates(before, now)
    assert sample.major_faults_per_s == per_s


class TestTelling:
    def test_a_line_says_what_was_read_and_how_long_it_took(self) -> None:
        assert one_line(replace(QUIET, read_bytes_per_s=None)).startswith("/mnt/data: read -, write 0")
        assert one_line(SAMPLE) == (
            "/mnt/data: read 104 MB/s (server 110 MB/s), write 0, READ 1.2 ms, 4 connections"
        )

    @pytest.mark.parametrize(
        ("ops", "text"),
        [
            ({"READ": (10, 1.0, 0), "READ_PLUS": (30, 3.0, 0)}, "READ 2.5 ms"),
            (
                {"READ": (10, 150.0, 2), "WRITE": (30, 0.01, 1)},
                "READ 150 ms, WRITE 0.01 ms, 3.0 retransmissions/s",
            ),
            ({"GETATTR": (340, 0.4, 0), "OPEN": (2, 1.0, 0)}, "340 GETATTR/s of 0.4 ms"),
            ({"GETATTR": (340, None, 0), "OPEN": (2, 1.0, 0)}, "340 GETATTR/s"),
        ],
    )
    def test_a_line_has_reads_and_writes_or_else_the_most_frequent_operation(
        self, ops: dict[str, tuple[float, float | None, float]], text: str
    ) -> None:
        done = {name: OpRate(per_s, rtt, 0, 0, again, 0) for name, (per_s, rtt, again) in ops.items()}
        assert one_line(replace(QUIET, ops=done)) == f"/mnt/data: read 0, write 0, {text}, 4 connections"

    @pytest.mark.parametrize(
        ("bytes_per_s", "text"),
        [
            *((512, "512 B/s"), (0.017, "0.02 B/s"), (0.096, "0.1 B/s"), (999.4, "999 B/s")),
            *((999.6, "1.0 kB/s"), (4e16, "40000 TB/s")),
        ],
    )
    def test_a_speed_has_the_unit_that_a_person_would_use(self, bytes_per_s: float, text: str) -> None:
        both = replace(SAMPLE, read_bytes_per_s=bytes_per_s, server_read_bytes_per_s=bytes_per_s)
        assert one_line(both).startswith(f"/mnt/data: read {text}, write 0,")

    @pytest.mark.parametrize(
        ("points", "place"),
        [
            (("/a", "/b", "/c"), "/a and 2 more"),
            (("/new\nline",), "/new\\012line"),
            (("/caf\u00e9\udcff",), "/caf\u00e9\\377"),
            ((), "0:43"),
        ],
    )
    def test_a_line_is_printable_whatever_the_mount_point(self, points: tuple[str, ...], place: str) -> None:
        transport = TransportRate(GROUP, 1, None, None)
        sample = replace(QUIET, mount_points=points, transport=transport)
        assert one_line(sample) == f"{place}: read 0, write 0, 1 connection"

    def test_kinds_take_operations_together_and_each_is_in_one(self) -> None:
        ops = {
            "READ": OpRate(10, 1.0, 0, 2.0, 1, None, 1),
            "READ_PLUS": OpRate(30, 3.0, 4, 6.0, 0, 2.0),
            "GETATTR": OpRate(5, None, None, None, 0, 0),
            "SEEK": OpRate(1, 1, 1, 1, 0, None),
            "COMMIT": OpRate(3, 5, 1, 5, 0, None),
        }
        found = kinds(replace(SAMPLE, ops=ops))
        assert found == {
            "read": OpRate(40, 2.5, 3.0, 5.0, 1, 2.0, 1),
            "metadata": OpRate(5, None, None, None, 0, 0),
            "other": OpRate(4, 4.0, 1.0, 4.0, 0, None),
        }
        assert sum(rate.per_s for rate in found.values()) == sum(rate.per_s for rate in ops.values())

    def test_every_name_of_a_kind_is_one_that_kernels_print(self) -> None:
        data = Path(__file__).parents[1] / "parse/data"
        printed = {
            name.strip()
            for file in data.glob("*/mountstats")
            for name in re.findall(r"^\t *([A-Z_]+): ", file.read_text(), re.MULTILINE)
        }
        assert printed >= LEASE_OPS | WATCHING_OPS | frozenset[str]().union(*KINDS.values())

    def test_a_sample_without_use_is_idle_also_with_looks_at_the_mount_point(self) -> None:
        assert is_idle(QUIET)
        assert is_idle(replace(QUIET, ops={"SEQUENCE": OpRate(0.02, 1, 0, 1, 0, None)}))
        ops = {name: OpRate(0.2, 1, 0, 1, 0, 0) for name in ("GETATTR", "STATFS", "ACCESS", "SEQUENCE")}
        assert is_idle(replace(QUIET, ops=ops))
        assert not is_idle(replace(QUIET, ops=ops | {"GETATTR": OpRate(0.7, 1, 0, 1, 0, 0)}))

    @pytest.mark.parametrize(
        "used",
        [
            SAMPLE,
            replace(QUIET, write_bytes_per_s=1.0),
            replace(QUIET, server_write_bytes_per_s=1.0),
            replace(QUIET, ops={"GETATTR": OpRate(1, 1, 0, 1, 0, 0)}),
            replace(QUIET, ops={"GETATTR": OpRate(0.1, 1, 0, 1, 0, 0.1)}),
            replace(QUIET, ops={"LOOKUP": OpRate(0.1, 1, 0, 1, 0, 0)}),
            replace(QUIET, ops={"EXCHANGE_ID": OpRate(0.1, 1, 0, 1, 0, 0)}),
            replace(QUIET, ops={"SEQUENCE": OpRate(1, 1, 0, 1, 0.5, 0)}),
            replace(QUIET, ops={"SEQUENCE": OpRate(1, 1, 0, 1, 0, 0.5)}),
            replace(QUIET, ops={"SEQUENCE": OpRate(1, 1, 0, 1, 0, 0, 0.5)}),
        ],
    )
    def test_a_sample_with_use_or_trouble_is_not_idle(self, used: Sample) -> None:
        assert not is_idle(used)


COUNTER = st.one_of(
    st.integers(0, 1000),
    st.integers((1 << 32) - 1000, (1 << 32) + 5),
    st.integers((1 << 64) - 1000, (1 << 64) - 1),
    st.integers(0, 1 << 62),
)
NUMBER = COUNTER | st.sampled_from([1 << 64, 10**400])
"""What no kernel prints, a damaged file may."""


def stanzas(counter: st.SearchStrategy[int]) -> st.SearchStrategy[MountStats]:
    transport = st.builds(Transport, st.just("tcp"), *[st.none()] * 3, *[counter] * 5)
    ops = st.builds(OpCounters, *[counter] * 8, st.none() | counter)
    return st.builds(
        MountStats,
        source=st.just("s:/"),
        point=st.just("/m"),
        fstype=st.just("nfs4"),
        statvers=st.just("1.1"),
        age_s=st.none() | counter,
        bytes=st.builds(ByteCounters, *[counter] * 8) | st.none(),
        transports=st.lists(transport, max_size=2).map(tuple),
        ops=st.dictionaries(st.sampled_from(["READ", "WRITE", "SEQUENCE"]), ops),
    )


STATS = stanzas(NUMBER)
SUPERBLOCKS = st.lists(st.builds(counted, STATS, st.sampled_from(["0:40", "0:41"])), max_size=3).map(tuple)
MOMENTS = st.builds(
    Look,
    time=st.floats(min_value=0),
    monotonic_s=st.sampled_from([0.0, 5e-324, 1e-9, 1.0, 10.0, 1e9, 1e300]) | st.floats(),
    superblocks=SUPERBLOCKS,
)


def figures(value: object) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [figure for item in value for figure in figures(item)]
    return [value] if isinstance(value, int | float) else []


@given(MOMENTS, MOMENTS)
def test_no_figure_is_ever_negative_infinite_or_not_a_number(earlier: Look, later: Look) -> None:
    for sample in rates(earlier, later):
        assert all(math.isfinite(figure) and figure >= 0 for figure in figures(sample_to_json(sample)))
        assert one_line(sample).isprintable()


Counters = TypeVar("Counters", ByteCounters, OpCounters, Transport)


@st.composite
def lasting(draw: st.DrawFn) -> tuple[MountStats, MountStats]:
    """One superblock at two moments: its counters grow and wrap, its sums of times also fall."""
    growth = st.integers(0, 1000)
    times = growth | st.integers(-1000, 1 << 63)

    def grown(old: Counters) -> Counters:
        changes: dict[str, Any] = {
            name: (value + draw(times if name.endswith("ms") else growth)) % (1 << 64)
            for name, value in old._asdict().items()
            if isinstance(value, int)
        }
        return old._replace(**changes)

    before = draw(stanzas(COUNTER))
    now = replace(
        before,
        bytes=before.bytes and grown(before.bytes),
        transports=tuple(map(grown, before.transports)),
        ops={name: grown(old) for name, old in before.ops.items()},
    )
    return before, now


@given(lasting(), st.floats(0.01, 1000))
def test_no_figure_is_ever_negative_or_infinite(pair: tuple[MountStats, MountStats], seconds: float) -> None:
    before, now = (replace(stanza, age_s=None) for stanza in pair)
    for sample in rates(Look(0.0, 0.0, (counted(before),)), Look(seconds, seconds, (counted(now),))):
        assert all(math.isfinite(figure) and figure >= 0 for figure in figures(sample_to_json(sample)))


AMOUNT = st.integers(0, 100_000)


@given(COUNTER, AMOUNT, st.floats(0.1, 1000))
def test_what_was_added_comes_out_again(start: int, added: int, seconds: float) -> None:
    end = (start + added) % (1 << 64)
    assume(end)  # an operation whose counters all wrap to 0 at once was reset, to whoever reads them
    before = stats(total=moved(start), READ=op(start))
    now = replace(stats(total=moved(end), READ=op(end)), age_s=None)
    (sample,) = rates(Look(0.0, 0.0, (counted(before),)), Look(seconds, seconds, (counted(now),)))
    assert sample.read_bytes_per_s is not None
    assert sample.read_bytes_per_s * seconds == pytest.approx(added)
    assert sum(op.per_s for op in sample.ops.values()) * seconds == pytest.approx(added)


def connected(*sends: int, device: str = "0:46", bdi: int | None = 7) -> Look:
    """A look at a mount with a connection for each of these numbers of requests."""
    transports = tuple(Transport("tcp", None, 1, 0, count, count, 0, count, 0) for count in sends)
    (stanza,) = cut(MountStats("nas:/a", "/a", "nfs4", "1.1", transports=transports))
    return Look(0.0, 0.0, (Counted(device, bdi, ("/a",), "nas:/a", "v4.1 tcp 10.0.0.5:2049", stanza),))


@pytest.mark.parametrize(
    ("before", "now", "sends"),
    [
        (connected(5, 7, 9), connected(6, 7, 30), {"0:46": (1, 0, 21)}),
        (connected(5, 7), connected(6, 7, 30), {}),
        (connected(5, 7), connected(6, 2), {}),
        (connected(), connected(), {}),
        (connected(5), connected(6, bdi=8), {}),
        (connected(5), connected(6, device="0:47"), {}),
    ],
    ids=["same", "one more", "made anew", "none", "another superblock", "another number"],
)
def test_each_connection_has_its_requests(before: Look, now: Look, sends: dict[str, tuple[int, ...]]) -> None:
    assert sends_between(before, now) == sends


def test_damaged_connections_have_no_requests() -> None:
    (known,) = connected(10).superblocks
    assert connection_sends(known.stats, known.stats._replace(transports=b"tcp 8")) == ()
