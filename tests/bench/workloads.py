"""`python -m tests.bench.workloads FILE KERNEL`: the tables of docs/workloads.md from what a guest measured.

The file is what `python -m tests.lab.workloads` leaves: a line of JSON for each run. It is kept in
tests/data, and a test holds the page to it.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/workloads.md"
KEPT = PROJECT / "tests/data/workloads.jsonl"
BEGIN, END = "<!-- measured: made by tests/bench/workloads.py -->\n", "<!-- end -->\n"
Case = tuple[int, int, str, str]
"""The round trip in ms, the readers, the engine and the pattern."""


@dataclass(frozen=True)
class Cell:
    """The runs of a case under a read-ahead."""

    bytes_per_s: tuple[float, ...]
    sent: float
    read: float

    @property
    def text(self) -> str:
        """Throughput in MB/s with its range, and the bytes that the server sent for each that was read."""
        least, middle, most = (_short(take(self.bytes_per_s) / 1e6) for take in (min, median, max))
        return f"{middle} ({least} to {most}), {self.sent / self.read:.1f}"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def cells(text: str) -> dict[Case, dict[int, Cell]]:
    """Return by case and read-ahead in KiB what its runs gave, in the order of the file's cases."""
    runs: defaultdict[Case, defaultdict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in map(json.loads, text.splitlines()):
        runs[row["rtt_ms"], row["readers"], row["engine"], row["pattern"]][row["kb"]].append(row)
    return {case: {kb: _cell(of_kb[kb]) for kb in sorted(of_kb)} for case, of_kb in runs.items()}


def _cell(rows: list[dict[str, Any]]) -> Cell:
    speeds = tuple(row["bytes_per_s"] for row in rows)
    return Cell(speeds, sum(row["sent_bytes"] for row in rows), sum(row["read_bytes"] for row in rows))


def tables(text: str, kernel: str) -> Iterator[str]:
    """Yield the lines of the page's measured part."""
    known = cells(text)
    first = next(iter(known.values()))
    turns = len(next(iter(first.values())).bytes_per_s)
    yield f"Linux {kernel}, {turns} runs each: MB/s, the median with the least and the most; then the bytes"
    yield "that the server sent for each byte that was read."
    for rtt_ms in dict.fromkeys(case[0] for case in known):
        yield ""
        yield f"A round trip of {rtt_ms} ms:"
        yield ""
        yield "| Readers | " + " | ".join(f"{kb} KiB" for kb in first) + " |"
        yield "|---" * (len(first) + 1) + "|"
        for (distance, readers, engine, pattern), row in known.items():
            if distance == rtt_ms:
                shown = " | ".join(cell.text for cell in row.values())
                yield f"| {readers}, {engine}, {pattern} | {shown} |"


def page(old: str, text: str, kernel: str) -> str:
    """Return the page with its measured part made anew."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n".join(tables(text, kernel)) + "\n" + END + after


def write(file: Path, kernel: str) -> None:
    """Keep what was measured, and write the page."""
    text = file.read_text()
    KEPT.write_text(text)
    PAGE.write_text(page(PAGE.read_text(), text, kernel))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
