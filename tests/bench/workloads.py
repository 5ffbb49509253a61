"""`python -m tests.bench.workloads FOLDER KERNEL`: the table of docs/workloads.md from what a guest measured.

The folder has what `python -m tests.lab.workloads` leaves: a line of JSON for each run. It is kept in
tests/data, and a test holds the page to it. The page has the bytes alone: how fast an emulated processor is,
and what else has its machine, says nothing of another.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.part import Part

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/workloads.md"
KEPT = PROJECT / "tests/data/workloads.jsonl"
BEGIN, END = "<!-- measured: made by tests/bench/workloads.py -->\n", "<!-- end -->\n"
FROM_MEMORY = 0.9
"""Of what was read: where the server sent less, a run says nothing of the read-ahead."""
Case = tuple[int, int, str, str]
"""The round trip in ms, the readers, the engine and the pattern."""


def ratios(text: str) -> dict[Case, dict[int, list[float]]]:
    """Return by case and read-ahead in KiB what the server sent for each byte that was read, in each run."""
    found: defaultdict[Case, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in map(json.loads, text.splitlines()):
        case = row["rtt_ms"], row["readers"], row["engine"], row["pattern"]
        found[case][row["kb"]].append(row["sent_bytes"] / row["read_bytes"])
    return {case: {kb: of_kb[kb] for kb in sorted(of_kb)} for case, of_kb in found.items()}


def shown(runs: list[float]) -> str:
    """Return a cell: the median, with the least and the most; "-" where a run came from memory."""
    if min(runs) < FROM_MEMORY:
        return "-"
    least, middle, most = (_short(take(runs)) for take in (min, median, max))
    return middle if least == most else f"{middle} ({least} to {most})"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def table(text: str, kernel: str) -> Iterator[str]:
    """Yield the lines of the page's measured part."""
    known = ratios(text)
    first = next(iter(known.values()))
    turns = len(next(iter(first.values())))
    distances = " and ".join(f"{rtt} ms" for rtt in dict.fromkeys(case[0] for case in known))
    yield f"Linux {kernel}, a round trip of {distances}, {turns} runs of 3 s: the bytes that the server sent"
    yield "for each byte that a program read, the median with the least and the most."
    yield ""
    yield "| Readers | " + " | ".join(f"{kb} KiB" for kb in first) + " |"
    yield "|---" * (len(first) + 1) + "|"
    for (_, readers, engine, pattern), row in known.items():
        yield f"| {readers}, {engine}, {pattern} | {' | '.join(map(shown, row.values()))} |"


PART = Part(PAGE, KEPT, BEGIN, END, table)
page, make = PART.filled, PART.make


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
