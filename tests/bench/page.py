"""Parts of a page of docs/ that a measurement writes, each between two marks, and the lines behind them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
KEPT = PROJECT / "tests/data"
"""Where the measured lines stay; tests hold the pages to them."""
RELIABILITY = PROJECT / "docs/reliability.md"
COUNTED = (
    "in an emulated guest with a processor of 1,000 million instructions a second. All times are the "
    "guest's: its clock counts the instructions, so that other work of the machine does not change them."
)
"""The place of measurements in a guest with `counted` limits."""
Row = dict[str, Any]


def rows_of(text: str) -> list[Row]:
    """Return the measured lines of a text of JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def filled(page: str, name: str, lines: Iterable[str]) -> str:
    """Return the page with these lines as the part of that name; raises ValueError without its two marks."""
    begin, end = f"<!-- measured: {name} -->\n", f"<!-- end: {name} -->\n"
    before, after = page.index(begin) + len(begin), page.index(end)
    return page[:before] + "".join(f"{line}\n" for line in lines) + page[after:]
