"""The judgement of a soak finds each fault that it is for; the page and the pictures show the kept data."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.bench.page import RELIABILITY, rows_of
from tests.lab import soak
from tests.lab.kit import judge
from tests.lab.kit.judge import (
    ACCOUNT,
    GENERIC,
    GRACE_S,
    JOB,
    LOOP,
    UNMOUNT,
    Fate,
    Outage,
    Settings,
    StallEntry,
    Values,
    Wait,
    broken,
    due,
    is_listed,
    outside,
    outside_part,
    trend,
    unended,
    waiting,
)
from tests.lab.kit.shell import wait_for
from tests.lab.kit.writers import Writers

HERE, THERE = "10.10.10.10", "10.10.10.11"


def looked(values: Values, kb: int, *times: float) -> list[int]:
    """Look at the mount "a" at these times; return the wrong values so far."""
    for now in times:
        values.look("a", now, kb)
    return [wrong.kb for wrong in values.wrong.values()]


@pytest.fixture
def values() -> Values:
    values = Values(Settings())
    values.add("a", GENERIC, 0.0)
    return values


def test_a_value_is_wrong_after_the_grace_alone_and_counts_once(values: Values) -> None:
    assert looked(values, 128, 0.1, GRACE_S) == []
    assert looked(values, 128, GRACE_S + 1, GRACE_S + 2) == [128]
    (wrong,) = values.wrong.values()
    assert (wrong.point, wrong.right, wrong.lasted_s) == ("a", "1024 to 1024", GRACE_S + 1.9)
    assert values.first_s == []


def test_the_time_to_the_first_value_is_that_of_its_first_look(values: Values) -> None:
    assert looked(values, 128, 0.1) == []
    assert looked(values, 1024, 0.2, 0.3) == []
    assert values.first_s == [0.2]
    assert looked(values, 15360, 1, 12) == [15360]


def test_the_loop_begins_at_the_vendors_value_and_stays_in_its_bounds() -> None:
    values = Values(Settings(adapt="on"))
    values.add("a", LOOP, 0.0)
    assert looked(values, 128, 0.1, 9, 15) == [128]
    assert looked(values, 15360, 16) == [128]
    assert looked(values, 128, 17, 40) == [128]
    assert looked(values, 64, 41, 52) == [128, 64]
    values.begin_reload(Settings(adapt="off"))
    values.end_reload(53, loaded=True)
    assert looked(values, 128, 54, 64) == [128, 64, 128]


def test_a_rival_is_answered_three_times_in_a_minute_and_then_left(values: Values) -> None:
    looked(values, 1024, 0.1)
    assert [values.rival("a", now, 64) for now in (10, 20, 30)] == [Fate.ANSWERED] * 3
    looked(values, 64, 30.1)
    assert looked(values, 1024, 30.4) == []
    assert values.again_s == [pytest.approx(0.4)]
    assert values.rival("a", 40, 64) is Fate.LEFT
    assert looked(values, 64, 41, 60) == []
    assert values.left == {"a"}
    assert looked(values, 1024, 61, 72) == [1024]


def test_the_end_of_a_rivals_minute_is_not_known_exactly(values: Values) -> None:
    looked(values, 1024, 0.1)
    assert [values.rival("a", now, 64) for now in (10, 11, 12, 71)][-1] is Fate.EITHER
    assert looked(values, 64, 72, 100) == []
    assert looked(values, 1024, 101, 120) == []
    values.add("a", GENERIC, 0.0)
    assert [values.rival("a", now, 64) for now in (10, 11, 12, 78)][-1] is Fate.ANSWERED


def test_a_reload_allows_both_values_and_then_only_the_new_one_and_ends_contests(values: Values) -> None:
    looked(values, 1024, 0.1)
    for now in (1, 2, 3, 4):
        values.rival("a", now, 64)
    values.begin_reload(Settings(generic_kb=256))
    assert looked(values, 1024, 20) + looked(values, 256, 40) + looked(values, 64, 60) == []
    values.end_reload(61, loaded=True)
    assert looked(values, 64, 62) == []
    assert looked(values, 1024, 62.5, 73) == [1024]
    assert looked(values, 256, 74) == [1024]
    # It has answered the value that was there.
    assert [values.rival("a", now, 64) for now in (80, 81, 82)] == [Fate.ANSWERED, Fate.ANSWERED, Fate.LEFT]


def test_a_refused_configuration_changes_nothing(values: Values) -> None:
    looked(values, 1024, 0.1)
    values.begin_reload(Settings(generic_kb=256))
    values.end_reload(1, loaded=False)
    assert looked(values, 256, 2, 13) == [256]


def test_the_configuration_sets_a_number_for_each_kind() -> None:
    settings = Settings(512, 4096, "off", 10)
    assert [settings.bounds(kind) for kind in (GENERIC, ACCOUNT, LOOP)] == [
        (512, 512),
        (4096, 4096),
        (15360, 15360),
    ]
    assert "read_ahead_kb = 512" in settings.text()


def entries(*times: float, ends: tuple[float, ...] = ()) -> list[StallEntry]:
    found = [StallEntry("a", at, is_end=False) for at in times]
    return sorted([*found, *(StallEntry("a", at, is_end=True) for at in ends)], key=lambda one: one.at)


def test_a_long_wait_in_an_outage_needs_an_entry() -> None:
    outage, wait = Outage("silent", HERE, 100, 150, 150), Wait("a", HERE, 101, 170)
    within = wait._replace(ended=150)
    assert due([outage], [wait], []) == ([], [within])
    assert due([outage], [wait], entries(125)) == ([within], [])
    assert due([outage], [wait], entries(80)) == ([within], [])
    assert due([outage], [wait], entries(80, ends=(90,))) == ([], [within])
    assert due([outage], [wait], entries(181)) == ([], [within])
    assert due([outage], [wait._replace(address=THERE)], []) == ([], [])
    assert due([outage._replace(address="", kind="stopped")], [wait], []) == ([], [within])
    assert due([outage], [wait._replace(kind=UNMOUNT), wait._replace(kind=JOB)], []) == ([], [])


def test_an_entry_is_due_after_a_sample_a_stall_and_a_look() -> None:
    outage, wait = Outage("silent", HERE, 100, 150, 150), Wait("a", HERE, 110, 142)
    assert due([outage], [wait], []).missed == [wait]
    assert due([outage], [wait._replace(ended=141.9)], []) == ([], [])


def test_only_a_request_that_the_kernel_lists_can_be_reported() -> None:
    wait = Wait("a", HERE, 101, 150)
    assert is_listed(wait, [(120, {"a", "b"})])
    assert not is_listed(wait, [(103, {"a"}), (120, {"b"})])


def test_a_stall_is_made_up_where_no_program_waits_for_its_server() -> None:
    wait = Wait("b", HERE, 100, 130)
    seen, addresses = waiting([wait], {HERE, THERE}), {"a": HERE, "c": THERE}
    assert outside(seen, addresses, entries(105, 120, 135)) == []
    assert outside(seen, addresses, entries(104, 136)) == entries(104, 136)
    assert outside(seen, addresses, [StallEntry("c", 120, is_end=False)]) != []
    assert outside(waiting([wait._replace(kind=JOB)], {HERE}), addresses, entries(120)) == entries(120)
    assert outside(seen, addresses, entries(ends=(10,))) == []


def test_a_stall_is_outside_of_outages_from_ten_seconds_after_the_server_is_back() -> None:
    spans = broken(
        [Outage("silent", HERE, 100, 110, 112), Outage("stopped", "", 300, 310, 320)], {HERE, THERE}
    )
    assert outside(spans, {"a": HERE}, entries(99, 100, 122, 123, 330)) == entries(99, 123)
    assert outside(spans, {"a": THERE}, entries(100, 330)) == entries(100)


def test_the_part_outside_is_of_the_server_with_the_least() -> None:
    spans = {HERE: [(10.0, 30.0), (0.0, 20.0), (90.0, 120.0)], THERE: [(0.0, 10.0)]}
    assert outside_part(spans, 0, 100) == pytest.approx(0.6)
    assert outside_part({}, 0, 100) == 1


def test_a_stall_without_its_end_is_found() -> None:
    assert unended(entries(1, 9, ends=(5,))) == entries(9)
    assert unended(entries(1, ends=(5,))) == []


def test_a_trend_has_its_error() -> None:
    noise = (0, 3, 1, -2, 0, -3, 2, -1)
    flat = [(10.0 * at, 22000.0 + noise[at % 8]) for at in range(720)]
    grown = [(at, kb + 50 * at / 3600) for at, kb in flat]
    assert abs(trend(flat).per_hour) <= max(2 * trend(flat).error, 0.1)
    assert trend(grown).per_hour == pytest.approx(50, abs=1)
    assert trend(flat[:2]).error == float("inf")
    assert (judge.quantile([3, 1, 2], 0.5), judge.quantile([], 1)) == (2, 0)


def test_mounts_that_were_made_are_more_than_those_seen_with_the_right_value() -> None:
    one = {"events": {"mount": 12, "unmount": 12, "refused": 2, "outage": 3}, "mounts": 9, "through_tls": 4}
    cells = [cell(one) for name, cell in soak.CELLS.items() if "mount" in name and "from" not in name]
    assert cells == ["12; 4", "9; 3", "2; 0", "27"]


KEPT = soak.kept()


def test_the_page_has_the_kept_soaks() -> None:
    soaks = [rows_of(file.read_text()) for file in KEPT]
    assert RELIABILITY.read_text() == soak.page(RELIABILITY.read_text(), soaks)


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_the_picture_is_of_the_kept_soak(file: Path) -> None:
    rows = rows_of(file.read_text())
    drawing = soak.picture_file(rows[-1]["release"]).read_text()
    assert drawing == soak.picture(rows)
    ET.fromstring(drawing)  # noqa: S314 - our own text


def test_writers_write_until_they_are_to_leave(tmp_path: Path) -> None:
    wrote: list[tuple[str, str]] = []
    writers = Writers(lambda point, _, why: wrote.append((point, why)))
    reading = threading.Thread(target=writers.run)
    reading.start()
    try:
        for name in ("a", "gone"):
            writers.begin(str(tmp_path / name))
        (tmp_path / "a").mkdir()
        wait_for("a write of each", lambda: len({point for point, _ in wrote}) == 2)
        assert writers.leave(str(tmp_path / "a"))
        assert writers.leave("unknown")
    finally:
        writers.kill()
        reading.join()
    assert (tmp_path / "a/page").stat().st_size == 4096
    assert {bool(why) for point, why in wrote if point.endswith("gone")} == {True}


def test_memory_grows_by_its_sum_and_in_hours_by_its_later_half() -> None:
    def growth(hours: float, per_hour: float, first_kb: float = 0) -> str:
        times = [10.0 * at for at in range(int(hours * 360))]
        memory = [(at, 22000 + min(first_kb, at) + per_hour * at / 3600 + at % 30) for at in times]
        return judge.grows(hours, *judge.trends(memory))

    assert growth(0.17, 9600) == ""
    assert growth(0.17, 30000) != ""
    assert growth(2, 0, first_kb=900) == ""
    assert "in the later half" in growth(2, 300)
