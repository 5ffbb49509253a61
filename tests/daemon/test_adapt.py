"""The daemon's loop over a tree of files: its reads move a superblock's read-ahead, and nothing else does."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from nfstuned.app.read_ahead import carry_out, plan_without_holds
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.tuner import Tuner
from nfstuned.host.observe import observe_superblocks
from nfstuned.host.read_ahead import State, undo
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.mounts import Hold, Record
from nfstuned.model.policy import ADAPT_DOWN, ADAPT_OFF, ADAPT_ON, Policy, Profile, ReadAhead
from nfstuned.model.samples import OpRate, Sample
from tests.daemon.test_tuner import POLICY, Host
from tests.parse.test_samples import SAMPLE

MB = 1e6
READS = OpRate(100.0, 20.0, 0.0, 20.0, 0.0, 0.0)


def sample(host: Host, read: float, sent: float) -> Sample:
    """A minute of read(2) in bytes a second, of the server's bytes, and of large READs, 20 ms away."""
    kb = host.value("0:43")
    op = READS._replace(per_s=sent / min(kb * 1024, 262144))
    return replace(
        SAMPLE,
        device="0:43",
        read_bytes_per_s=read,
        direct_read_bytes_per_s=0.0,
        server_read_bytes_per_s=sent,
        read_ahead_kb=kb,
        rsize_bytes=262144,
        ops=MappingProxyType({"READ": op}),
        bdp_bytes=sent * 0.02,
    )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def mounted(host: Host) -> Host:
    host.appear("0:43")
    host.mount("0:43")
    host.look()
    assert host.value("0:43") == 15360
    return host


WASTE = "the server sent 1.2 GB, 2.00 times as much as programs read"


def wasteful(host: Host) -> None:
    host.tuner.adapt([sample(host, 10 * MB, 20 * MB)])
    host.look()


def orderly(host: Host, times: int = 1) -> None:
    for _ in range(times):
        host.tuner.adapt([sample(host, 20 * MB, 20 * MB)])
        host.look()


def test_waste_moves_the_value_down_and_use_moves_it_back_to_the_profiles(mounted: Host) -> None:
    wasteful(mounted)
    record = mounted.state.get("0:43")
    assert record is not None
    assert (record.original_kb, record.written_kb, record.adapted_kb) == (128, 4096, 4096)
    orderly(mounted, 2)
    assert mounted.value("0:43") == 15360
    assert mounted.state.get("0:43") == record._replace(written_kb=15360, adapted_kb=None)
    assert mounted.entries.texts(Message.READ_AHEAD_ADAPTED) == [
        f"/mnt/a: read-ahead 15360 -> 4096 KiB, of at most 15360, as {WASTE}",
        "/mnt/a: read-ahead 4096 -> 8192 KiB, of at most 15360, as its reads use all of it",
        "/mnt/a: read-ahead 8192 -> 15360 KiB, of at most 15360, as its reads use all of it",
    ]
    assert len(mounted.entries.texts(Message.READ_AHEAD_SET)) == 1


def test_a_moved_value_stays_at_looks_events_and_starts_and_is_set_again_after_another_writer(
    mounted: Host,
) -> None:
    wasteful(mounted)
    for serve in (mounted.tuner.added, mounted.tuner.may_be_written):
        serve("0:43")
        mounted.look(deep=True)
        assert mounted.value("0:43") == 4096
    mounted.set("0:43", 128)
    mounted.tuner.may_be_written("0:43")
    assert mounted.value("0:43") == 4096
    mounted.tuner = Tuner(mounted.root, Reporter(mounted.entries.journal), lambda: mounted.now)
    mounted.tuner.policy = POLICY
    mounted.look(deep=True)
    assert mounted.value("0:43") == 4096


def test_the_profiles_number_from_another_writer_does_not_end_the_loop(mounted: Host) -> None:
    wasteful(mounted)
    mounted.set("0:43", 15360)
    mounted.tuner.may_be_written("0:43")
    assert mounted.value("0:43") == 4096
    mounted.look()
    wasteful(mounted)
    assert mounted.value("0:43") == 2048


def test_a_second_announcement_keeps_the_moved_value(mounted: Host) -> None:
    wasteful(mounted)
    mounted.tuner.added("0:43")
    mounted.set("0:43", 128)
    mounted.tuner.may_be_written("0:43")
    assert mounted.value("0:43") == 4096


def test_a_number_that_somebody_writes_by_hand_stays_where_no_vendor_names_one(host: Host) -> None:
    host.tuner.policy = of_azure(None, ADAPT_ON)
    host.appear("0:43")
    host.mount("0:43")
    for _ in range(2):
        host.look()
        host.tuner.adapt([sample(host, 20 * MB, 20 * MB)])
    host.set("0:43", 1024)
    for _ in range(3):
        wasteful(host)
    assert host.value("0:43") == 1024


def test_a_record_out_of_bounds_moves_nothing(mounted: Host) -> None:
    record = mounted.state.get("0:43")
    assert record is not None
    for kb in (0, -5, 10**9):
        mounted.state.put(record._replace(adapted_kb=kb))
        mounted.look()
        assert mounted.value("0:43") == 15360


def test_nothing_below_the_kernels_value_nor_below_the_value_before_nfstuned(host: Host) -> None:
    host.volume("0:43")
    host.set("0:43", 1000)
    host.mount("0:43")
    host.look()
    host.look()
    for read in (1, 10, 10):
        host.tuner.adapt([sample(host, read * MB, 20 * MB)])
        host.look()
        assert host.value("0:43") == 1000


def test_where_less_does_not_help_the_first_value_comes_back_for_long(mounted: Host) -> None:
    """Mapped files are read in order next to read(2): their bytes count on one side alone."""
    values = []
    for _ in range(3 + 64):
        wasteful(mounted)
        values.append(mounted.value("0:43"))
    assert values == [4096, 2048, 1024, 512, 256, 128, *[15360] * 61]


def of_azure(read_ahead: ReadAhead | None, adapt: str) -> Policy:
    return replace(POLICY, profiles=(Profile("azure-files", read_ahead, adapt=adapt),))


@pytest.mark.parametrize(
    ("policy", "kb"),
    [
        (replace(POLICY, mode="observe"), 15360),
        (of_azure(ReadAhead(15360, own=True), ADAPT_ON), 15360),
        (of_azure(ReadAhead(15360), ADAPT_OFF), 15360),
        (POLICY, 20480),
    ],
    ids=["observed", "the administrator's number", "off", "another writer's value"],
)
def test_nothing_moves_where_reads_may_not_move_it(mounted: Host, policy: Policy, kb: int) -> None:
    mounted.tuner.policy = policy
    mounted.set("0:43", kb)
    mounted.look()
    before = mounted.value("0:43")
    for _ in range(3):
        wasteful(mounted)
    assert mounted.value("0:43") == before
    assert mounted.entries.texts(Message.READ_AHEAD_ADAPTED) == []


def test_an_undo_ends_the_loop_and_the_next_apply_begins_with_the_profiles_number(mounted: Host) -> None:
    wasteful(mounted)
    undo(mounted.root, mounted.state)
    for _ in range(3):
        wasteful(mounted)
    record = mounted.state.get("0:43")
    assert record is not None
    assert (mounted.value("0:43"), record.hold, record.adapted_kb) == (128, Hold.UNDONE, None)
    planned = plan_without_holds(observe_superblocks(mounted.root, deep=False), POLICY)
    carry_out(mounted.root, planned)
    assert mounted.value("0:43") == 15360


def test_off_and_back_begins_with_the_profiles_number(mounted: Host) -> None:
    wasteful(mounted)
    for policy in (of_azure(ReadAhead(15360), ADAPT_OFF), POLICY):
        mounted.tuner.policy = policy
        mounted.look()
        assert mounted.value("0:43") == 15360


def test_without_samples_the_profiles_number_counts(mounted: Host) -> None:
    wasteful(mounted)
    mounted.tuner.policy = replace(POLICY, sample_interval_s=0.0)
    mounted.look()
    assert mounted.value("0:43") == 15360


def test_a_measurement_that_puts_the_value_back_does_not_end_the_loop(mounted: Host) -> None:
    wasteful(mounted)
    for kb in (128, 8192, 128, 8192):
        mounted.set("0:43", kb)
        mounted.tuner.may_be_written("0:43")
        mounted.look()
    assert mounted.value("0:43") == 8192
    mounted.set("0:43", 4096)
    wasteful(mounted)
    assert mounted.tuner.contests["0:43"].left
    mounted.now += 61
    wasteful(mounted)
    wasteful(mounted)
    assert mounted.value("0:43") == 2048


def test_a_record_that_cannot_be_kept_is_reported_and_moves_nothing(
    mounted: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_state: State, record: Record) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), record.device)

    monkeypatch.setattr(State, "put", full)
    wasteful(mounted)
    assert mounted.value("0:43") == 15360
    assert mounted.entries.texts(Message.READ_AHEAD_FAILED) == [
        "/mnt/a: read-ahead of 4096 KiB refused: 0:43: No space left on device"
    ]


def test_an_undo_between_a_look_and_its_sample_stays(mounted: Host) -> None:
    evidence = sample(mounted, 10 * MB, 20 * MB)
    undo(mounted.root, mounted.state)
    mounted.set("0:43", 15360)
    mounted.tuner.adapt([evidence])
    record = mounted.state.get("0:43")
    assert record is not None
    assert (record.hold, record.adapted_kb) == (Hold.UNDONE, None)


def test_the_next_superblock_of_a_number_has_none_of_it(mounted: Host) -> None:
    wasteful(mounted)
    mounted.vanish("0:43")
    mounted.appear("0:43")
    record = mounted.state.get("0:43")
    assert record is not None
    assert (mounted.value("0:43"), record.adapted_kb) == (15360, None)


def test_without_a_number_only_on_moves_it_up_to_twice_the_bytes_that_fill_the_link(host: Host) -> None:
    host.tuner.policy = of_azure(None, ADAPT_ON)
    host.appear("0:43")
    host.mount("0:43")
    host.look()
    values = []
    # 200 Mbit/s and 20 ms: 500 kB are in flight.
    for _ in range(8):
        kb = host.value("0:43")
        rate = min(25 * MB, 2 * kb * 1024 / 0.02)
        host.tuner.adapt([sample(host, rate, rate)])
        host.look()
        values.append(host.value("0:43"))
    assert values == [256, 512, 1024, 1024, 1024, 1024, 1024, 1024]
    bounded = Profile("azure-files", adapt=ADAPT_ON, read_ahead_max_kb=512)
    host.tuner.policy = replace(POLICY, profiles=(bounded,))
    host.look()
    assert host.value("0:43") == 512
    host.tuner.policy = of_azure(None, ADAPT_DOWN)
    host.look()
    assert host.value("0:43") == 128
