"""A mount's reads before and after a change of its read-ahead, and the service's file of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.effect import effect, effect_text
from nfstuned.core.samples.history import Series
from nfstuned.core.samples.seen import SeenReads
from nfstuned.model.effect import Effect, Pace, Seen, seen_from_json, seen_to_json
from nfstuned.model.samples import OpRate, Sample
from tests.core.tops import looks
from tests.parse.test_samples import SAMPLE, SAMPLES

READ = MappingProxyType({"READ": OpRate(40.0, 582.0, 0.1, 583.0, 0.0, 0.0)})
WASTED = replace(
    SAMPLE, read_bytes_per_s=8.5e6, server_read_bytes_per_s=24.5e6, over_fetch_ratio=2.88, ops=READ,
    read_ahead_kb=15360,
)  # fmt: skip
USED = replace(
    WASTED, time=SAMPLE.time + 120, read_bytes_per_s=22.1e6, server_read_bytes_per_s=23.8e6,
    over_fetch_ratio=1.08, ops=MappingProxyType({"READ": READ["READ"]._replace(rtt_ms=85.0)}),
    read_ahead_kb=512,
)  # fmt: skip
SHOWN = (
    "read-ahead 15360 -> 512 KiB: read 8.5 MB/s -> 22.1 MB/s, READ 582 -> 85.0 ms, over-fetch 2.88 -> 1.08"
)


def text(before: Sample, after: Sample) -> str:
    found = effect(before, after)
    assert found is not None
    return effect_text(found)


def test_the_figures_of_both_sides_are_shown() -> None:
    assert text(WASTED, USED) == SHOWN
    assert effect(WASTED, replace(USED, read_ahead_kb=15360)) is None
    assert effect(WASTED, replace(USED, server_read_bytes_per_s=70.0)) is None


@pytest.mark.parametrize(
    ("after", "end"),
    [
        (replace(USED, read_bytes_per_s=0.0), "programs mapped files in only one of the two"),
        (replace(USED, server_write_bytes_per_s=3e6), "programs wrote another part of the bytes"),
        (replace(USED, time=USED.time + 9 * 3600), "more than an hour lies between the two"),
        (
            replace(USED, direct_read_bytes_per_s=3e6),
            "programs read past the page cache another part of the bytes",
        ),
    ],
)
def test_another_load_is_not_compared(after: Sample, end: str) -> None:
    assert text(WASTED, after) == (f"read-ahead 15360 -> 512 KiB: before and after cannot be compared, {end}")


def test_of_mapped_files_the_servers_bytes_are_shown() -> None:
    before, after = (replace(each, read_bytes_per_s=0.0, over_fetch_ratio=None) for each in (WASTED, USED))
    assert text(before, after) == (
        "read-ahead 15360 -> 512 KiB: server 24.5 MB/s -> 23.8 MB/s for mapped files, READ 582 -> 85.0 ms"
    )


def test_the_last_interval_with_reads_before_and_the_first_one_after_count() -> None:
    """Of the interval in which the value changed it is not known which read-ahead its reads had."""
    seen, (_, now) = SeenReads(), looks()
    idle = replace(WASTED, server_read_bytes_per_s=0.0, read_bytes_per_s=0.0)
    for sample in (
        WASTED,
        idle,
        replace(USED, read_ahead_kb=None),
        idle,
        USED,
        replace(USED, read_bytes_per_s=9e6),
    ):
        seen.add(now, [sample])
    (known,) = seen.seen.values()
    assert known.effect is not None
    assert effect_text(known.effect) == SHOWN
    assert seen.effects == {"0:43": known.effect}
    seen.add(now, [replace(USED, read_ahead_kb=128, read_bytes_per_s=0.0)])
    assert seen.effects == {}


def test_a_report_has_the_effects_of_samples_in_the_order_of_time() -> None:
    series = Series()
    for sample in (WASTED, USED, replace(WASTED, time=WASTED.time - 60)):
        series.add(sample)
    (mount,) = series.mounts()
    assert [effect_text(each) for each in mount.effects] == [SHOWN]


NUMBER = st.floats(0, 1e100)
PACE = st.builds(Pace, st.integers(0, 2**40), NUMBER, NUMBER, st.none() | NUMBER, st.none() | NUMBER)
SEEN = st.builds(Seen, st.none() | NUMBER, st.none() | st.builds(Effect, PACE, PACE, st.text(max_size=9)))


@given(st.dictionaries(st.tuples(st.sampled_from(["0:43", "0:44"]), st.none() | st.integers(0, 2**64)), SEEN))
def test_the_file_has_everything_and_a_torn_one_has_nothing(
    known: dict[tuple[str, int | None], Seen],
) -> None:
    written = seen_to_json(known)
    assert seen_from_json(written) == known
    assert seen_from_json(written[:-1]) == {}


@pytest.mark.parametrize(
    "damaged", ["", "[]", '{"reads": 1}', '{"reads": [["0:43", 7, "x", null]]}', '{"reads": [[1, 2, 3]]}',
                '{"reads": [["0:43", 7, 1, [[128, null, 1, 1, 1], [1, 1, 1, 1, 1], ""]]]}', "[" * 100000],
)  # fmt: skip
def test_a_damaged_file_shows_nothing(damaged: str) -> None:
    assert seen_from_json(damaged) == {}


@given(SAMPLES, SAMPLES)
def test_any_two_samples_give_an_effect_in_words_or_none(before: Sample, after: Sample) -> None:
    found = effect(before, after)
    assert found is None or effect_text(found).startswith("read-ahead ")
