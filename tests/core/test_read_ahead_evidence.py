"""A verdict about read-ahead where the counters tell, and none where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.evidence import MOST_VALUES, Reads, Tally, Use, read_ahead_use
from nfstuned.model.samples import OpRate, Sample
from tests.parse.test_samples import SAMPLE, SAMPLES

KIB, MIB = 1 << 10, 1 << 20
SEQUENTIAL = Reads(256 * MIB, 0, 256 * MIB, 256, 15360, MIB)
"""Files of 256 MiB in all, once, in READs of rsize."""
NARROW = Reads(32 * MIB, 0, 32 * MIB, 256, 128, MIB)
"""32 MiB, in READs of the read-ahead."""


def test_full_reads_of_what_was_asked_for_are_the_read_aheads_help() -> None:
    assert read_ahead_use(SEQUENTIAL) is Use.HELPS
    assert read_ahead_use(replace(SEQUENTIAL, read_ahead_kb=1024)) is Use.HELPS


def test_reads_as_large_as_a_window_below_rsize_are_held_back_by_it() -> None:
    assert read_ahead_use(NARROW) is Use.TOO_SMALL
    assert read_ahead_use(replace(NARROW, rsize_bytes=256 * KIB)) is Use.TOO_SMALL


@pytest.mark.parametrize(
    ("times", "mib", "kb", "use"),
    [
        (2.0, 256, 15360, Use.WASTED),
        (2.0, 256, 129, Use.WASTED),
        (1.99, 256, 15360, None),
        (2.0, 255, 15360, None),
        (9.0, 999, 128, None),
    ],
)
def test_waste_is_twice_the_reads_with_a_value_set(times: float, mib: int, kb: int, use: Use | None) -> None:
    reads = Reads(mib * MIB / times, 0, mib * MIB, mib, kb, MIB)
    assert read_ahead_use(reads) is use
    assert read_ahead_use(replace(reads, direct_bytes=reads.read_bytes / 2)) is use
    assert read_ahead_use(replace(reads, rsize_bytes=None, requests=0)) is use


MAPPED = Reads(0, 0, 256 * MIB, 256, 1024, MIB, 256, 256)
"""A page here and there of mapped files: each fault fetched a window of 1024 KiB."""


@pytest.mark.parametrize(
    ("change", "use"),
    [
        ({}, Use.WASTED),
        ({"faults": 128.0}, Use.WASTED),
        ({"faults": 127.0}, None),  # mapped files that are read in order
        ({"faults": 385.0}, None),  # they may be of anything
        ({"faults": None}, None),
        ({"calls": None}, None),
        ({"calls": 63.0, "faults": 63.0}, None),
        ({"read_ahead_kb": 128}, None),
        ({"fetched_bytes": 255.0 * MIB}, None),
    ],
)
def test_a_fault_for_each_window_is_waste(change: Mapping[str, Any], use: Use | None) -> None:
    assert read_ahead_use(replace(MAPPED, **change)) is use


@pytest.mark.parametrize("reads", [SEQUENTIAL, NARROW])
@pytest.mark.parametrize(
    "change",
    [
        {"read_bytes": 0.0},  # only mapped files were read
        {"direct_bytes": 3 * MIB},
        {"requests": 0.0},  # served on this machine (LOCALIO), past the RPC counters
        {"requests": 32.0},  # by far larger than rsize: others are not counted (pNFS)
        {"requests": 8192.0},  # small files, or small reads at random
        {"rsize_bytes": None},
        {"rsize_bytes": 0},
        {"read_ahead_kb": 0},
        {"read_ahead_kb": 640},  # below rsize, but not by much
    ],
)
def test_counters_without_a_sign_give_no_verdict(reads: Reads, change: Mapping[str, float]) -> None:
    assert read_ahead_use(replace(reads, **change)) is None  # type: ignore[arg-type]  # some are whole numbers


@pytest.mark.parametrize("reads", [SEQUENTIAL, NARROW])
def test_a_verdict_needs_so_many_bytes_that_what_is_under_way_does_not_matter(reads: Reads) -> None:
    parts = {name: getattr(reads, name) * 0.99 for name in ("read_bytes", "fetched_bytes", "requests")}
    assert read_ahead_use(replace(reads, **parts)) is None


def sample(ratio: float, mib: int, request_kib: int, kb: int | None = 15360) -> Sample:
    """A sample whose server sent so much in a minute."""
    sent = mib * MIB / 60
    ops = {"READ_PLUS": OpRate(sent / (request_kib * KIB), 1.0, 0.0, 1.0, 0.0, 0.0)}
    return replace(
        SAMPLE,
        read_bytes_per_s=sent / ratio,
        server_read_bytes_per_s=sent,
        over_fetch_ratio=ratio,
        ops=MappingProxyType(ops),
        read_ahead_kb=kb,
        rsize_bytes=MIB,
    )


def verdicts(*samples: Sample) -> list[str]:
    tally = Tally()
    for each in samples:
        tally.add(each)
    return [str(verdict) for verdict in tally.verdicts()]


def test_each_read_ahead_has_its_own_verdict_with_the_numbers() -> None:
    narrow, wide = verdicts(sample(1.0, 512, 128, 128), sample(1.0, 512, 1024), sample(1.04, 512, 1000))
    sent = "the server sent 537 MB, 1.00 times as much as programs read, in READs of 128 KiB"
    assert narrow == f"a read-ahead of 128 KiB is too small: {sent}, where rsize allows 1024 KiB"
    sent = "the server sent 1.1 GB, 1.02 times as much as programs read, in READs of 1012 KiB"
    assert wide == f"a read-ahead of 15360 KiB helps: {sent}"
    sent = "the server sent 537 MB, 3.00 times as much as programs read"
    (wasted,) = verdicts(sample(3.0, 512, 1024))
    assert (
        wasted == f"a read-ahead of 15360 KiB is wasted: {sent}, unless they map files, which is not counted"
    )


def test_mapped_files_that_are_read_here_and_there_are_named() -> None:
    mapped = replace(
        sample(1.0, 512, 1024),
        read_bytes_per_s=0.0,
        over_fetch_ratio=None,
        read_ahead_calls_per_s=10.0,
        major_faults_per_s=9.0,
    )
    (text,) = verdicts(mapped, mapped)
    sent = "the server sent 1.1 GB for about 1080 pages of mapped files that are read here and there"
    assert text == f"a read-ahead of 15360 KiB is wasted: {sent}"


def test_more_than_half_of_what_was_sent_must_say_the_same() -> None:
    helps, wasted, neither = sample(1.0, 512, 1024), sample(3.0, 512, 1024), sample(1.5, 512, 1024)
    assert len(verdicts(helps, helps, wasted)) == 1
    assert verdicts(helps, wasted) == verdicts(helps, neither) == []


def test_a_file_with_any_number_of_values_takes_no_more_memory() -> None:
    found = verdicts(*(sample(1.0, 512, 1024, 1024 * kb) for kb in range(1, 100)))
    assert len(found) == MOST_VALUES


@given(SAMPLES, SAMPLES)
def test_no_sample_makes_it_raise(one: Sample, other: Sample) -> None:
    for text in verdicts(one, other):
        assert text.isprintable()


FLOATS = st.floats(0, 1e12)


@given(
    st.builds(
        Reads,
        *[FLOATS] * 4,
        st.integers(0, 65536),
        st.none() | st.integers(0, MIB),
        st.none() | FLOATS,
        st.none() | FLOATS,
    )
)
def test_a_verdict_is_only_given_where_its_numbers_are(reads: Reads) -> None:
    use = read_ahead_use(reads)
    if use is Use.WASTED:
        assert reads.fetched_bytes >= 2 * reads.read_bytes
        assert reads.of_faults or reads.read_bytes > 0
    elif use is not None:
        assert reads.rsize_bytes
        assert 0.9 * reads.read_bytes <= reads.fetched_bytes <= 1.1 * reads.read_bytes
        assert (use is Use.HELPS) == (1024 * reads.read_ahead_kb >= reads.rsize_bytes)
