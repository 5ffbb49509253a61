"""The tables of docs/workloads.md: `python -m tests.bench.workloads FOLDER KERNEL` writes them.

The folder has the file of `python -m tests.lab.documents workloads`: a line of JSON for each run. The file is
kept in tests/data, and a test compares the page with it.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from nfstuned.core.samples.sample import speed
from tests.bench.part import Part

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/workloads.md"
KEPT = PROJECT / "tests/data/workloads.jsonl"
BEGIN, END = "<!-- measured: made by tests/bench/workloads.py -->\n", "<!-- end -->\n"
FROM_MEMORY = 0.9
"""Of the bytes read: where the server sent less, a run does not show the read-ahead."""


class Case(NamedTuple):
    """Who reads how, and how far away."""

    rtt_ms: int
    readers: int
    engine: str
    pattern: str

    @property
    def way(self) -> str:
        """How it is read."""
        return f"{self.engine}, {self.pattern}"


class Run(NamedTuple):
    """The result of a run."""

    bytes_per_s: float
    sent_for_each: float
    """Bytes that the server sent for each byte that was read."""


Runs = Mapping[int, list[Run]]
"""By read-ahead in KiB."""


def measured(text: str) -> dict[Case, Runs]:
    """Return the runs of each case."""
    found: defaultdict[Case, defaultdict[int, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for row in map(json.loads, text.splitlines()):
        case = Case(row["rtt_ms"], row["readers"], row["engine"], row["pattern"])
        found[case][row["kb"]].append(Run(row["bytes_per_s"], row["sent_bytes"] / row["read_bytes"]))
    return {case: {kb: runs[kb] for kb in sorted(runs)} for case, runs in found.items()}


def counts(runs: list[Run]) -> bool:
    """Return whether all bytes came from the server."""
    return min(run.sent_for_each for run in runs) >= FROM_MEMORY


def throughput(runs: list[Run]) -> float:
    """Return the median, in bytes a second."""
    return median(run.bytes_per_s for run in runs)


def cell(runs: list[Run]) -> str:
    """Return throughput and bytes sent for each byte read, medians; "-" where a run came from memory."""
    if not counts(runs):
        return "-"
    sent = median(run.sent_for_each for run in runs)
    return f"{speed(throughput(runs))}, {sent:{',.0f' if sent >= 10 else '.1f'}}"


def table(text: str, kernel: str) -> Iterator[str]:
    """Yield the lines of the page's measured part."""
    known = measured(text)
    one = next(iter(known.values()))
    turns = len(next(iter(one.values())))
    mbit = json.loads(text.partition("\n")[0])["mbit"]
    yield f"Linux {kernel} over {mbit} Mbit/s: what programs got, and how many bytes the server sent for each"
    yield f"byte that they read; medians of {turns} runs of 3 s."
    for rtt_ms in dict.fromkeys(case.rtt_ms for case in known):
        yield ""
        yield f"A round trip of {rtt_ms} ms:"
        yield ""
        yield "| Readers | " + " | ".join(f"{kb} KiB" for kb in one) + " |"
        yield "|---" * (len(one) + 1) + "|"
        for case, runs in known.items():
            if case.rtt_ms == rtt_ms:
                yield f"| {case.readers}, {case.way} | {' | '.join(map(cell, runs.values()))} |"


PART = Part(PAGE, KEPT, BEGIN, END, table)
make = PART.make


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
