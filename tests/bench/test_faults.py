"""docs/reliability.md shows the faults that a guest measured, and the daemon broke no promise in any."""

from __future__ import annotations

import pytest

from tests.bench.faults import PART, joined, part, troubles
from tests.bench.page import KEPT, RELIABILITY, filled, rows_of
from tests.lab.kit.faultstates import listed

RELEASES = [path.stem.removeprefix("faults-") for path in sorted(KEPT.glob("faults-*.jsonl"))]


@pytest.mark.parametrize("release", RELEASES)
def test_the_page_is_of_the_kept_lines(release: str) -> None:
    page = RELIABILITY.read_text()
    assert page == filled(page, PART, part(release, rows_of((KEPT / f"faults-{release}.jsonl").read_text())))


@pytest.mark.parametrize("release", RELEASES)
def test_each_measured_fault_is_listed_and_no_promise_was_broken(release: str) -> None:
    """The page names those of the list that are not measured yet."""
    rows = rows_of((KEPT / f"faults-{release}.jsonl").read_text())
    measured = [(row["phase"], row["fault"], row["error"]) for row in rows]
    assert set(measured) <= set(listed())
    assert len(set(measured)) == len(measured)
    assert troubles(rows) == []


def test_a_fault_that_was_measured_again_keeps_its_place() -> None:
    old, new = ('{"phase": "stop", "fault": "%s", "error": "", "lines": %d}\n' for _ in range(2))
    text = joined(old % ("a", 1) + old % ("b", 1), new % ("a", 2) + new % ("c", 2))
    assert [(row["fault"], row["lines"]) for row in rows_of(text)] == [("a", 2), ("b", 1), ("c", 2)]


def test_errors_of_a_call_with_the_same_outcome_are_a_line_and_a_broken_promise_is_listed() -> None:
    row = {"day": "2026-11-30", "phase": "cycle", "fault": "write: a record", "outcome": "served", "lines": 1}
    rows = [
        {**row, "error": "EIO", "recovery_s": 1.0, "trouble": ""},
        {**row, "error": "ENOSPC", "recovery_s": 2.25, "trouble": ""},
        {**row, "error": "EDQUOT", "recovery_s": None, "outcome": "silent", "trouble": "it was silent"},
    ]
    lines = list(part("7.3", rows))
    assert "| `write` of a record: EIO, ENOSPC | served | 2.2 | 1 |" in lines
    assert "| `write` of a record: EDQUOT | silent |  | 1 |" in lines
    assert lines[0].startswith("Linux 7.3, 2026-11-30: 3 faults, 1 broken promises.")
    assert "- cycle write: a record EDQUOT: it was silent" in lines
    assert f"Not measured yet ({len(listed()) - 2}):" in lines
