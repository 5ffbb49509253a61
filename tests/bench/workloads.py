"""`python -m tests.bench.workloads FOLDER KERNEL`: the tables and the picture of docs/workloads.md.

The folder has what `python -m tests.lab.workloads` leaves: a line of JSON for each run. It is kept in
tests/data, and a test holds the page to it. matplotlib draws the picture, from the same lines.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from nfstuned.core.samples.sample import speed
from nfstuned.parse.fields import count
from nfstuned.view.bench_picture import PARAMETERS, plain_frame
from tests.bench.part import Part

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/workloads.md"
PICTURE = PROJECT / "docs/pictures/workloads.svg"
KEPT = PROJECT / "tests/data/workloads.jsonl"
BEGIN, END = "<!-- measured: made by tests/bench/workloads.py -->\n", "<!-- end -->\n"
FROM_MEMORY = 0.9
"""Of what was read: where the server sent less, a run says nothing of the read-ahead."""
_COLOURS = {1: "#0969da", 8: "#bc4c00"}


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
    """What a run delivered."""

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
    """Tell whether all that was read came from the server."""
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


def picture(text: str, kernel: str) -> bytes:
    """Return what each way of reading gains and loses by the read-ahead, beside the least one, as an SVG."""
    # matplotlib takes a second to load, and the tables do not need it.
    from matplotlib import rc_context  # noqa: PLC0415 - see above
    from matplotlib.figure import Figure  # noqa: PLC0415 - see above

    known = measured(text)
    ways = tuple(dict.fromkeys(case.way for case in known))
    nearest = min(case.rtt_ms for case in known)
    with rc_context(PARAMETERS):
        drawn = Figure(figsize=(11, 5.6), layout="constrained")
        drawn.suptitle(f"Throughput by the read-ahead in KiB, beside that with the least; Linux {kernel}")
        places = drawn.subplots(2, math.ceil(len(ways) / 2), sharex=True, sharey=True).flat
        panels = dict(zip(ways, places, strict=False))
        for way, axes in panels.items():
            _frame(axes, way)
        for case, runs in known.items():
            _draw(panels[case.way], case, runs, dashes="-" if case.rtt_ms == nearest else "--")
        keys = [axes.get_legend_handles_labels() for axes in panels.values()]
        handles, labels = max(keys, key=lambda key: len(key[1]))
        drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        file = BytesIO()
        drawn.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _frame(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda kb, _: f"{kb:.0f}")
    axes.yaxis.set_major_formatter(lambda times, _: f"{times:g}" if times >= 1 else f"1/{1 / times:g}")
    axes.axhline(1, color="#59636e", linewidth=0.8)
    plain_frame(axes, "both")


def _draw(axes: Axes, case: Case, runs: Runs, dashes: str) -> None:
    """Draw a case; nothing where that with the least read-ahead came from memory."""
    shown = {kb: throughput(of_kb) for kb, of_kb in runs.items() if counts(of_kb)}
    if min(runs) not in shown:
        return
    times = [each / shown[min(runs)] for each in shown.values()]
    who = f"{count(case.readers, 'reader')}, {case.rtt_ms} ms"
    axes.plot(list(shown), times, dashes, marker="o", markersize=4, color=_COLOURS[case.readers], label=who)
    axes.set_xticks(list(runs))


PART = Part(PAGE, KEPT, BEGIN, END, table)
page = PART.filled


def make(folder: Path, kernel: str) -> list[Path]:
    """Keep what was measured, write the page and draw the picture; return the files."""
    made = PART.make(folder, kernel)
    PICTURE.write_bytes(picture(KEPT.read_text(), kernel))
    return [*made, PICTURE]


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
