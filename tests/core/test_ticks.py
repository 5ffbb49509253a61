from __future__ import annotations

from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.view.pages import number_ticks, time_ticks

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0.0, (0, 5e-7, 1e-6)),
        (1.0, (0, 0.5, 1.0)),
        (4.0, (0, 1, 2, 3, 4)),
        (4.1, (0, 2, 4, 6)),
        (73.4e6, (0, 20e6, 40e6, 60e6, 80e6)),
        (100.0, (0, 50, 100)),
    ],
)
def test_numbers_are_round_and_reach_the_greatest(most: float, ticks: tuple[float, ...]) -> None:
    assert number_ticks(most) == pytest.approx(ticks)


@given(st.floats(0, 1e100))
def test_every_scale_begins_at_0_and_is_not_much_too_long(most: float) -> None:
    ticks = number_ticks(most)
    assert ticks[0] == 0
    assert len(ticks) in range(2, 7)
    assert ticks[-1] >= most * (1 - 1e-9)
    assert ticks[-2] < max(most, 1e-6)


def clock(start: datetime, hours: float, most: int = 8) -> list[str]:
    first = start.timestamp()
    return [label for _, label in time_ticks(first, first + hours * 3600, start.tzinfo, most)]


def test_times_are_round_on_the_wall() -> None:
    start = datetime(2026, 7, 25, 17, 20, tzinfo=timezone.utc)
    assert clock(start, 24) == ["18:00", "21:00", "26 Jul", "03:00", "06:00", "09:00", "12:00", "15:00"]
    assert clock(start, 0.1) == ["17:20", "17:21", "17:22", "17:23", "17:24", "17:25", "17:26"]
    assert clock(start, 0.01) == [
        "17:20:00",
        *(f"17:20:{second:02}" for second in (5, 10, 15, 20, 25, 30, 35)),
    ]
    assert clock(start, 24 * 7) == ["26 Jul", "27 Jul", "28 Jul", "29 Jul", "30 Jul", "31 Jul", "1 Aug"]
    assert clock(start, 24 * 800, 3) == ["2026-08-29", "2027-05-23", "2028-02-14"]


def test_they_are_round_behind_a_change_of_the_clock_too() -> None:
    spring = datetime(2026, 3, 28, 20, tzinfo=BERLIN)
    assert clock(spring, 24) == [
        "21:00",
        "29 Mar",
        "03:00",
        "06:00",
        "09:00",
        "12:00",
        "15:00",
        "18:00",
        "21:00",
    ]
    autumn = datetime(2026, 10, 24, 22, tzinfo=BERLIN)
    assert clock(autumn, 24)[:4] == ["25 Oct", "03:00", "06:00", "09:00"]
    twice = datetime(2026, 10, 25, 0, 30, tzinfo=BERLIN)
    assert clock(twice, 4) == ["00:30", "01:00", "01:30", "02:00", "02:30", "03:00", "03:30"]


@given(
    st.floats(-1e9, 1e11),
    st.floats(1, 1e10),
    st.integers(2, 16),
    st.sampled_from([None, timezone.utc, BERLIN, ZoneInfo("Asia/Kolkata")]),
)
def test_they_are_in_order_inside_and_few(
    start: float, seconds: float, most: int, zone: timezone | ZoneInfo | None
) -> None:
    ticks = time_ticks(start, start + seconds, zone, most)
    moments = [moment for moment, _ in ticks]
    assert moments == sorted(set(moments))
    assert len(ticks) <= most + 2
    assert all(start <= moment <= start + seconds for moment in moments)
