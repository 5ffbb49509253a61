"""The texts and the figures that the fuzzer keeps in tests/data, and its part of docs/reliability.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.bench.page import KEPT, RELIABILITY, filled
from tests.fuzz.targets import TARGETS

INPUTS = KEPT / "fuzz-texts.jsonl"
"""A line has a parser's name and a text, with bytes that are not UTF-8 as lone surrogates."""
RESULTS = KEPT / "fuzz.jsonl"
GOAL = 20
"""CPU minutes that each parser gets once."""

_METHOD = (
    "The rows `check-` are whole checks of a file, an image or a host without its network: rules, changes "
    "and formats. The fuzzer (atheris with libFuzzer) begins with the texts of the tests, and changes them "
    "towards new edges of the code."
)
_PROMISE = (
    "A parser returns its rows, or its error with a line that exists. A finding is any other error, a "
    "rule that crashes (NFS000), 5 s of CPU time for a text of at most 64 KiB, 2 GB of memory, rows a "
    "thousand times longer than their text, or a broken promise, such as a sample that does not come "
    "back as it was written. The tests read the kept texts again."
)


class Result(NamedTuple):
    """A parser's figures, those of all runs."""

    parser: str
    cpu_s: float = 0.0
    executions: int = 0
    edges: int = 0
    """Edges of the program's code that its texts reach, by the last run."""
    findings: Sequence[str] = ()
    """The kinds of its faults, those that are mended too."""
    day: str = ""


def inputs() -> dict[str, list[bytes]]:
    """Return each parser's kept texts."""
    kept: dict[str, list[bytes]] = {}
    for line in INPUTS.read_text().splitlines() if INPUTS.exists() else ():
        name, text = json.loads(line)
        kept.setdefault(name, []).append(text.encode("utf-8", "surrogateescape"))
    return kept


def lines_of_inputs(kept: Mapping[str, Sequence[bytes]]) -> str:
    """Return the lines that `inputs` reads back."""
    rows = ((name, text.decode("utf-8", "surrogateescape")) for name in sorted(kept) for text in kept[name])
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def results() -> dict[str, Result]:
    """Return each parser's figures, also of those that had no run."""
    rows = RESULTS.read_text().splitlines() if RESULTS.exists() else ()
    had = {row["parser"]: Result(**row) for row in map(json.loads, rows)}
    return {name: had.get(name, Result(name)) for name in TARGETS}


def part(figures: Mapping[str, Result], kept: Mapping[str, Sequence[bytes]]) -> Iterator[str]:
    """Yield the lines of the page."""
    minutes = sum(each.cpu_s for each in figures.values()) / 60
    executions = sum(each.executions for each in figures.values())
    days = sorted({each.day for each in figures.values()})
    yield ""
    times = f"{minutes:,.0f} CPU minutes and {executions:,} executions"
    yield f"{len(figures)} parsers had {times} until {days[-1]}. {_METHOD}"
    yield ""
    done = sum(round(each.cpu_s / 60, 1) >= GOAL for each in figures.values())
    yield f"Each parser gets {GOAL} CPU minutes once: {done} of {len(figures)} have had them."
    yield ""
    yield _PROMISE
    yield ""
    yield "| Parser | CPU minutes | Executions | Edges | Texts kept | Findings |"
    yield "|---|---|---|---|---|---|"
    for name, each in figures.items():
        texts, found = len(kept.get(name, ())), len(each.findings) or "-"
        cells = (name, f"{each.cpu_s / 60:.1f}", f"{each.executions:,}", f"{each.edges:,}", texts, found)
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""


def write_page() -> None:
    """Write the fuzzer's part of the page."""
    page = RELIABILITY.read_text()
    RELIABILITY.write_text(filled(page, "fuzz", part(results(), inputs())))
