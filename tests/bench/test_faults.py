"""docs/reliability.md shows the faults that a guest measured, and the daemon broke no promise in any."""

from __future__ import annotations

import json

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


def test_faults_that_were_measured_again_replace_the_old_ones_in_the_order_of_the_list() -> None:
    names = [*listed()[:3], ("stop", "given up", "")]
    old, again = (
        [{"phase": phase, "fault": fault, "error": error, "lines": lines} for phase, fault, error in names]
        for lines in (1, 2)
    )
    texts = (
        "".join(f"{json.dumps(row)}\n" for row in rows) for rows in ((old[3], old[1], old[0]), again[1:3])
    )
    found = [(row["phase"], row["fault"], row["error"], row["lines"]) for row in rows_of(joined(*texts))]
    assert found == [(*names[0], 1), (*names[1], 2), (*names[2], 2)]


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
