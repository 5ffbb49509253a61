from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.history import BOUNDS_MS, MeanTimes, MeanTimesCount
from nfstuned.core.samples.sample import kinds
from nfstuned.model.samples import OpRate, Sample
from tests.parse.test_samples import SAMPLES


def op(rtt_ms: float | None, per_s: float = 1.0) -> OpRate:
    return OpRate(per_s, rtt_ms, 0.0, rtt_ms, 0.0, 0.0)


def counted(*rtts_ms: float | None) -> list[int]:
    count = MeanTimesCount()
    for rtt_ms in rtts_ms:
        count.add({"read": op(rtt_ms)})
    found = count.counted()
    assert [one.kind for one in found] == ["read"] * len(found)
    return [number for one in found for number in one.intervals]


@pytest.mark.parametrize(
    ("rtt_ms", "bucket"), [(0.0, 0), (0.2, 0), (0.21, 1), (1.0, 2), (1000.0, 11), (1000.1, 12), (1e100, 12)]
)
def test_the_end_of_a_bucket_is_in_it_and_the_last_has_none(rtt_ms: float, bucket: int) -> None:
    assert counted(rtt_ms) == [int(number == bucket) for number in range(len(BOUNDS_MS) + 1)]


def test_an_interval_counts_once_however_many_operations_it_had() -> None:
    count = MeanTimesCount()
    count.add({"read": op(1.5, 100_000.0), "write": op(1.5, 0.01)})
    read, write = count.counted()
    assert (read.kind, write.kind) == ("read", "write")
    assert read.intervals == write.intervals


def test_what_is_not_known_is_not_counted() -> None:
    assert counted(None) == []
    assert sum(counted(None, 3.0)) == 1


@given(st.lists(SAMPLES, max_size=6))
def test_every_known_mean_is_in_one_bucket(samples: list[Sample]) -> None:
    count = MeanTimesCount()
    known = 0
    for sample in samples:
        of_kind = kinds(sample)
        known += sum(one.rtt_ms is not None for one in of_kind.values())
        count.add(of_kind)
    found: tuple[MeanTimes, ...] = count.counted()
    assert sum(sum(one.intervals) for one in found) == known
    assert len({one.kind for one in found}) == len(found)
