"""`python -m tests.bench.shapes FOLDER KERNEL`: the table of docs/performance.md that holds bench to a sweep.

The folder has the file of `python -m tests.lab.documents shapes`: a line of JSON for each link and reader. It
is kept in tests/data, and a test holds the page to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from nfstuned.core.samples.sample import speed
from tests.bench.part import Part

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/performance.md"
KEPT = PROJECT / "tests/data/shapes.jsonl"
BEGIN, END = "<!-- shapes: made by tests/bench/shapes.py -->\n", "<!-- end of shapes -->\n"
GOOD = 0.95
"""Of the best of a sweep: so much a proposal should give."""


def rows(text: str) -> list[dict[str, Any]]:
    """Return the links and readers that were measured."""
    return [json.loads(line) for line in text.splitlines()]


def medians_of(row: dict[str, Any]) -> dict[int, float]:
    """Return the throughput of each value of the sweep, in bytes a second."""
    return {int(kb): median(runs) for kb, runs in row["bytes_per_s"].items()}


def share(row: dict[str, Any]) -> float:
    """Return the throughput of the proposed value, as a share of the best value's in the sweep."""
    medians = medians_of(row)
    return float(medians[row["proposed_kb"]] / max(medians.values()))


def table(text: str, kernel: str) -> Iterator[str]:
    """Yield the lines of the page's measured part."""
    links = rows(text)
    runs = len(next(iter(links[0]["bytes_per_s"].values())))
    good = sum(share(row) >= GOOD for row in links)
    yield f"Linux {kernel}; the sweep has {runs} runs under each value. In {good} of {len(links)} the"
    yield f"proposal gave at least {GOOD:.0%} of the best value's median."
    yield ""
    yield "| ROUND TRIP | LINK | READERS | 128 KiB | BEST OF THE SWEEP | PROPOSED | OF THE BEST |"
    yield "|---:|---:|---|---:|---:|---:|---:|"
    for row in links:
        medians = medians_of(row)
        best = max(medians, key=lambda kb: medians[kb])
        yield (
            f"| {row['rtt_ms']} ms | {row['mbit']} Mbit/s | {row['job']} | {speed(medians[128])} | "
            f"{speed(medians[best])} with {best} KiB | {row['proposed_kb']} KiB | {share(row):.0%} |"
        )


PART = Part(PAGE, KEPT, BEGIN, END, table)
make = PART.make


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
