"""Many samples as lines of a bounded number of points."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.history import MOST_POINTS, NAMES, WIDTHS_S, Axis, History, MountSeries, Series
from nfstuned.model.samples import Sample
from tests.core.test_history import QUIET, START, at
from tests.parse.test_samples import SAMPLE, SAMPLES


def series(samples: list[Sample], most_points: int = MOST_POINTS) -> tuple[Axis, list[MountSeries]]:
    found = Series(most_points)
    for sample in samples:
        found.add(sample)
    axis = found.axis()
    assert axis is not None
    return axis, list(found.mounts())


def test_without_samples_there_is_nothing() -> None:
    assert Series().axis() is None
    assert list(Series().mounts()) == []


def test_each_width_is_a_multiple_of_the_one_before() -> None:
    assert all(wide % narrow == 0 for narrow, wide in pairwise(WIDTHS_S))


def test_few_samples_are_points_of_their_own() -> None:
    axis, (mount,) = series([at(step, float(step)) for step in range(4)])
    assert axis == Axis(START, START + 240, 4)
    assert mount.lines["read"] == (0.0, 1.0, 2.0, 3.0)
    assert (mount.samples, mount.used_s, mount.read_bytes) == (4, 240.0, 360.0)
    assert mount.most["read"] == 3.0
    assert mount.means["read"] == 1.5


def test_a_mount_that_was_idle_has_a_gap_and_not_a_zero() -> None:
    _, (mount,) = series([at(0, 8.0), at(1, 0.0), at(4, 4.0)])
    assert mount.lines["read"] == (8.0, 0.0, None, None, 4.0)


def test_too_many_points_become_fewer_and_keep_the_sum() -> None:
    samples = [at(step, float(step % 7)) for step in range(3000)]
    axis, (mount,) = series(samples, 100)
    assert axis.width_s == 1800
    assert axis.columns == 100
    means = [value for value in mount.lines["read"] if value is not None]
    assert math.fsum(means) * axis.width_s == pytest.approx(60 * sum(step % 7 for step in range(3000)))
    assert mount.read_bytes == pytest.approx(60 * sum(step % 7 for step in range(3000)))


def test_a_week_of_a_minute_each_has_points_of_half_an_hour() -> None:
    axis, (mount,) = series([at(step, 1.0) for step in range(0, 7 * 1440, 7)])
    assert axis.width_s == 1800
    assert axis.columns == 336
    assert set(mount.lines["read"]) == {1.0}


def test_the_means_of_a_point_are_those_of_the_text() -> None:
    samples = [at(step, float(step * step % 11)) for step in range(30) if step % 5]
    history = History()
    for sample in samples:
        history.add(sample)
    axis, (mount,) = series(samples)
    (told,) = history.mounts(axis)
    assert told.rows[0].means == mount.lines["read"]


def test_the_order_of_samples_does_not_matter() -> None:
    samples = [at(step, float(step)) for step in range(900)]
    axis, (mount,) = series(samples)
    backwards, (other,) = series([samples[0], *samples[:0:-1]])
    assert (axis, mount.lines["read"]) == (backwards, other.lines["read"])


def test_mounts_are_apart_and_have_all_names_that_they_had() -> None:
    moved = replace(at(1, 1.0), device="0:99", mount_points=("/mnt/a", "/bind"))
    _, mounts = series([at(0, 1.0), moved, replace(at(0, 1.0), source="other:/a")])
    assert [(mount.label, mount.source) for mount in mounts] == [
        ("/mnt/a and 1 more", "other:/a"),
        ("/mnt/a and 1 more", "server:/a"),
    ]
    assert mounts[1].keys == {"/mnt/a", "/mnt/b", "/bind", "0:43", "0:99"}


def test_what_is_never_known_has_no_line() -> None:
    _, (mount,) = series([replace(QUIET, ops=MappingProxyType({}))])
    assert "over-fetch" not in mount.lines
    assert "read-rtt" not in mount.lines
    _, (mount,) = series([SAMPLE])
    assert (mount.lines["read-rtt"], mount.lines["read-ops"]) == ((1.5,), (8.0,))
    assert mount.lines["connections"] == (4.0,)


@given(st.lists(SAMPLES, min_size=1, max_size=6), st.integers(2, 20))
def test_no_line_is_too_long_and_no_value_is_beyond_all_others(samples: list[Sample], most: int) -> None:
    axis, mounts = series(samples, most)
    assert 1 <= axis.columns <= most
    assert sum(mount.samples for mount in mounts) == len(samples)
    for mount in mounts:
        assert mount.lines.keys() <= set(NAMES)
        for name, line in mount.lines.items():
            assert len(line) == axis.columns
            known = [value for value in line if value is not None]
            assert known
            # The least numbers there are have few digits.
            assert all(0 <= value <= mount.most[name] * (1 + 1e-9) + 1e-290 for value in known)
