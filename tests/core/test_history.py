"""Many samples as a few numbers: columns, series, mean times, and their lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timezone
from itertools import pairwise
from types import MappingProxyType
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples import history
from nfstuned.core.samples.history import NAMES, Axis
from nfstuned.core.samples.sample import kinds, ratio
from nfstuned.model.samples import OpRate, Sample
from nfstuned.view.history import ASCII, BLOCKS, CSV_HEADER, WIDTH, csv_row, history_lines, sparkline
from nfstuned.view.words import duration, printable
from tests.core.test_read_ahead_evidence import sample as reading
from tests.parse.test_samples import SAMPLE, SAMPLES

START = 1_785_000_000.0
QUIET = replace(SAMPLE, ops=MappingProxyType({}), over_fetch_ratio=None)


def at(step: int, read: float, interval_s: float = 60.0) -> Sample:
    return replace(QUIET, time=START + 60 * (step + 1), interval_s=interval_s, read_bytes_per_s=read)


def collected(samples: Sequence[Sample]) -> tuple[Axis, list[history.MountHistory]]:
    found = history.History()
    for sample in samples:
        found.add(sample)
    axis = found.axis()
    assert axis is not None
    return axis, list(found.mounts(axis))


def lines(samples: Sequence[Sample], bars: str = BLOCKS) -> list[str]:
    axis, mounts = collected(samples)
    return list(history_lines(axis, iter(mounts), bars, timezone.utc))


def test_each_end_has_its_zone_where_summer_time_ends_between_them() -> None:
    summer, winter = 1_792_843_200.0, 1_792_929_600.0  # the afternoons of 24 and 25 October 2026
    axis, mounts = collected([replace(QUIET, time=time) for time in (summer, winter)])
    first, *_ = history_lines(axis, iter(mounts), BLOCKS, ZoneInfo("Europe/Berlin"))
    assert first == "2026-10-24 13:59:00 CEST to 2026-10-25 13:00:00 CET"


def test_a_span_beyond_all_widths_has_wider_columns() -> None:
    found = history.Series(40)
    for step in (0, 2 * 365 * 1440):
        found.add(at(step, 1e6))
    axis = found.axis()
    assert axis is not None
    assert axis.width_s == 8_640_000


def test_the_text_says_what_it_shows() -> None:
    ops = MappingProxyType({"READ": OpRate(8.0, 1.5, 0.1, 1.7, 0.0, 0.0)})
    samples = [replace(at(step, 1e6 * (step + 1)), ops=ops, over_fetch_ratio=1.25) for step in range(8)]
    assert lines(samples) == [
        "2026-07-25 17:20:00 to 2026-07-25 17:28:00 UTC",
        "a column is 60 s; blank: not in use, or the service did not run",
        "",
        "/mnt/a and 1 more  server:/a",
        "  8 samples, in use for 8 min                         min     median        max",
        "  read        ▂▃▄▅▆▇██                           1.0 MB/s   4.5 MB/s   8.0 MB/s",
        "  write       ▁▁▁▁▁▁▁▁                                  0          0          0",
        "  over-fetch  ████████                               1.25       1.25       1.25",
        "  read RTT    ████████                             1.5 ms     1.5 ms     1.5 ms",
        "  operation                                 /s        RTT      queue    execute",
        "  READ                                     8.0     1.5 ms     0.1 ms     1.7 ms",
    ]


def test_the_text_says_what_the_reads_tell_of_the_read_ahead() -> None:
    found = lines([reading(3.0, 512, 1024), reading(3.0, 512, 1024)])
    assert found[-2:] == [
        "  a read-ahead of 15360 KiB is wasted: the server sent 1.1 GB, 3.00 times as",
        "    much as programs read, unless they map files, which is not counted",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.00"), (1.25, "1.25"), (99.94, "99.94"), (99.96, "100"), (12345.6, "12346"), (1e8, "1e+08")],
)
def test_a_ratio_has_five_characters_at_most(value: float, text: str) -> None:
    assert ratio(value) == text


@given(st.lists(SAMPLES, min_size=1, max_size=5))
def test_no_line_is_too_wide_or_moves_the_cursor_and_no_bar_is_lost(samples: list[Sample]) -> None:
    axis, mounts = collected(samples)
    for mount in mounts:
        assert all(len(row.means) == axis.columns <= history.COLUMNS for row in mount.rows)
        assert all(row.least <= row.median <= row.most for row in mount.rows)
    for line in lines(samples, ASCII):
        assert line.isprintable()
        assert len(line) <= WIDTH or any(figure > 1e15 for figure in _figures(samples))


def _figures(samples: list[Sample]) -> Iterator[float]:
    """What no mount delivers makes a wide cell."""
    for sample in samples:
        rates = (sample.read_bytes_per_s, sample.write_bytes_per_s, sample.over_fetch_ratio)
        yield from (rate or 0.0 for rate in rates)
        yield from (op.rtt_ms or 0.0 for op in sample.ops.values())


@given(st.lists(st.none() | st.floats(0, 1e100), max_size=40))
def test_every_value_has_a_bar_and_the_greatest_the_highest(values: list[float | None]) -> None:
    bars = sparkline(values, ASCII)
    assert [bar == " " for bar in bars] == [value is None for value in values]
    known = [value for value in values if value is not None]
    if known and max(known) > 0:
        assert bars[values.index(max(known))] == "#"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 s"), (1.5, "1.5 s"), (90, "90 s"), (120, "2 min")),
        *((5400, "90 min"), (12600, "3.5 h"), (2e6, "23.1 d")),
    ],
)
def test_a_duration_has_the_unit_of_its_size(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(SAMPLES)
def test_a_row_of_csv_has_a_cell_for_each_column(sample: Sample) -> None:
    row = csv_row(sample)
    assert len(row) == len(CSV_HEADER)
    cells = dict(zip(CSV_HEADER, row, strict=True))
    assert cells["read_bytes_per_s"] == sample.read_bytes_per_s
    assert (cells["write_per_s"] is None) == ("WRITE" not in sample.ops)
    assert str(cells["group"]).removeprefix("'") == printable(sample.transport.group)
    assert all(cell is None or cell != math.inf for cell in row)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *((f"{lead}1", f"'{lead}1") for lead in ("=HYPERLINK(", "+", "-", "@SUM(A", "'=")),
        *(("\t=1", "\\t=1"), ("\r=1", "\\r=1")),
        ("\x1b]0;x\x07\udc9b", "\\x1b]0;x\\x07\\x9b"),
        ("fs:/é", "fs:/é"),
    ],
)
def test_no_cell_of_csv_is_obeyed_by_a_terminal_or_a_spreadsheet(text: str, cell: str) -> None:
    transport = replace(SAMPLE.transport, group=text)
    sample = replace(SAMPLE, source=text, mount_points=(text,), device=text, transport=transport)
    row = dict(zip(CSV_HEADER, csv_row(sample), strict=True))
    assert [row[key] for key in ("source", "mount_point", "device", "group")] == [cell] * 4
    # A reader that takes one apostrophe away has the text again.
    assert cell.removeprefix("'") == printable(text)


def series(samples: list[Sample], most: int = history.MOST_POINTS) -> tuple[Axis, list[history.MountSeries]]:
    found = history.Series(most)
    for sample in samples:
        found.add(sample)
    axis = found.axis()
    assert axis is not None
    return axis, list(found.mounts())


def test_without_samples_there_is_nothing() -> None:
    assert history.Series().axis() is None
    assert list(history.Series().mounts()) == []


def test_each_width_is_a_multiple_of_the_one_before() -> None:
    assert all(wide % narrow == 0 for narrow, wide in pairwise(history.WIDTHS_S))


def test_few_samples_are_points_of_their_own() -> None:
    axis, (mount,) = series([at(step, float(step)) for step in range(4)])
    assert axis == Axis(START, START + 240, 4)
    assert mount.lines["read"] == (0.0, 1.0, 2.0, 3.0)
    assert (mount.samples, mount.used_s, mount.read_bytes) == (4, 240.0, 360.0)
    assert mount.most["read"] == 3.0
    assert mount.means["read"] == 1.5


def test_too_many_points_become_fewer_and_keep_the_sum() -> None:
    samples = [at(step, float(step % 7)) for step in range(3000)]
    axis, (mount,) = series(samples, 100)
    assert (axis.width_s, axis.columns) == (1800, 100)
    read = pytest.approx(60 * sum(step % 7 for step in range(3000)))
    assert math.fsum(value or 0 for value in mount.lines["read"]) * axis.width_s == read
    assert mount.read_bytes == read


def test_the_order_of_samples_does_not_matter() -> None:
    samples = [at(step, float(step)) for step in range(900)]
    axis, (mount,) = series(samples)
    backwards, (other,) = series([samples[0], *samples[:0:-1]])
    assert (axis, mount.lines["read"]) == (backwards, other.lines["read"])


def test_mounts_are_apart_and_have_all_names_that_they_had() -> None:
    moved = replace(at(1, 1.0), device="0:99", mount_points=("/mnt/a", "/bind"))
    _, mounts = series([at(0, 1.0), moved, replace(at(0, 1.0), source="other:/a")])
    assert [(mount.points, mount.source) for mount in mounts] == [
        (("/mnt/a", "/mnt/b"), "other:/a"),
        (("/mnt/a", "/bind"), "server:/a"),
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


def op(rtt_ms: float | None, per_s: float = 1.0) -> OpRate:
    return OpRate(per_s, rtt_ms, 0.0, rtt_ms, 0.0, 0.0)


def buckets(*rtts_ms: float | None) -> list[int]:
    count = history.MeanTimesCount()
    for rtt_ms in rtts_ms:
        count.add({"read": op(rtt_ms)})
    found = count.counted()
    assert [one.kind for one in found] == ["read"] * len(found)
    return [number for one in found for number in one.intervals]


@pytest.mark.parametrize(
    ("rtt_ms", "bucket"), [(0.0, 0), (0.2, 0), (0.21, 1), (1.0, 2), (1000.0, 11), (1000.1, 12), (1e100, 12)]
)
def test_the_end_of_a_bucket_is_in_it_and_the_last_has_none(rtt_ms: float, bucket: int) -> None:
    assert buckets(rtt_ms) == [int(number == bucket) for number in range(len(history.BOUNDS_MS) + 1)]


def test_what_is_not_known_is_not_counted() -> None:
    assert buckets(None) == []
    assert sum(buckets(None, 3.0)) == 1


@given(st.lists(SAMPLES, max_size=6))
def test_every_known_mean_is_in_one_bucket(samples: list[Sample]) -> None:
    count = history.MeanTimesCount()
    known = 0
    for sample in samples:
        of_kind = kinds(sample)
        known += sum(one.rtt_ms is not None for one in of_kind.values())
        count.add(of_kind)
    found: tuple[history.MeanTimes, ...] = count.counted()
    assert sum(sum(one.intervals) for one in found) == known
    assert len({one.kind for one in found}) == len(found)
