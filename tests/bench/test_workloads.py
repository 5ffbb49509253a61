"""docs/workloads.md and its pictures of the loop show the lines that a guest measured, and the losses."""

from __future__ import annotations

import pytest

from tests.bench.page import KEPT, filled, rows_of
from tests.bench.workloads import PAGE, losses, picture, picture_file, tables

RELEASES = [path.stem.removeprefix("workloads-") for path in sorted(KEPT.glob("workloads-*.jsonl"))]


@pytest.mark.parametrize("release", RELEASES)
def test_page_and_picture_are_of_the_kept_lines(release: str) -> None:
    rows = rows_of((KEPT / f"workloads-{release}.jsonl").read_text())
    page = PAGE.read_text()
    assert page == filled(page, release, tables(release, rows))
    assert picture_file(release).read_text() == picture(release, rows)


def test_a_case_below_nine_tenths_is_a_loss_unless_it_came_from_memory() -> None:
    def row(adapted: float, sent: float = 1.0) -> dict[str, object]:
        fixed = {"128": [8e6, sent], "15360": [22e6, sent]}
        case = {"rtt_ms": 20, "mbit": 200, "readers": 1, "way": "read, sequential", "fixed": fixed}
        return case | {"adapted": [adapted, sent], "values": [15360, 512], "samples": 3, "wasted_bytes": 1}

    rows = [row(22e6), row(19e6), row(7e6), row(7e6, sent=0.1)]
    assert losses(rows) == rows[1:3]
    assert "- 1, read, sequential, 20 ms: 0.86 of the better, 2.38 of 128 KiB" in list(tables("7.3", rows))
