"""Fuzz the parsers, keep the texts that reach most of their code, and write the figures: `sh dev/fuzz`."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import heapq
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.kept import GOAL, INPUTS, RESULTS, Result, inputs, lines_of_inputs, results, write_page
from tests.fuzz.targets import TARGETS

PROJECT = Path(__file__).parents[2]
WORK = PROJECT / "build/fuzz"
LIMITS = ("-max_len=65536", "-timeout=60", "-rss_limit_mb=2048", "-report_slow_units=60")
SLICE_S = 300
"""CPU time after which the texts and the figures are written."""
MOST_KEPT = 8_000
"""Bytes of a parser's kept texts: the repository has those of all parsers."""
_MOST_WORDS = 400


class Slice(NamedTuple):
    """A run of the fuzzer's process."""

    cpu_s: float
    executions: int


def fuzz(name: str, seconds: float) -> Slice:
    """Fuzz a parser for so many seconds of CPU time, its process's start included."""
    corpus, found = _folder("corpus", name), _folder("found", name)
    seeds = _folder("seeds", name)
    with _alone():
        kept = inputs().get(name, ())
    for text in (*TARGETS[name].seeds(), *kept):
        (seeds / hashlib.sha256(text).hexdigest()[:20]).write_bytes(text)
    words = WORK / f"{name}.dict"
    words.write_text("".join(f'"{word}"\n' for word in _words(seeds)))
    began = _cpu_s()
    output = _child(
        name, seconds, (*LIMITS, f"-dict={words}", f"-artifact_prefix={found}/", str(corpus), str(seeds))
    )
    counts = re.findall(r"(?m)^#(\d+)|^stat::number_of_executed_units: (\d+)", output)
    return Slice(_cpu_s() - began, max((int(a or b) for a, b in counts), default=0))


def minimized(name: str) -> tuple[int, list[bytes]]:
    """Leave those of a parser's texts that reach all of its code; return its edges, and the few to keep."""
    files = [file for kind in ("corpus", "seeds") for file in sorted(_folder(kind, name).iterdir())]
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder, "control")
        control.write_text("\n".join(map(str, (len(files), 0, *files))) + "\n")
        _child(name, SLICE_S, ("-max_len=65536", "-merge_inner=1", f"-merge_control_file={control}"))
        rows = [line.split()[1:] for line in control.read_text().splitlines() if line.startswith("FT ")]
    features: dict[bytes, frozenset[int]] = {}
    for number, *row in rows:  # a row has only new features, and a text may be there twice
        text = files[int(number)].read_bytes()
        features[text] = features.get(text, frozenset()).union(map(int, row))
    # A feature is an edge, and one of eight numbers of times that a text took it.
    edges = {text: frozenset(each >> 3 for each in those) for text, those in features.items()}
    chosen = list(_covering(features))
    for file in _folder("corpus", name).iterdir():
        if file.read_bytes() not in chosen:
            file.unlink()
    kept: list[bytes] = []
    for text in dict.fromkeys((*_covering(edges), *chosen)):
        if sum(map(len, kept)) + len(text) <= MOST_KEPT:
            kept.append(text)
    return len(frozenset().union(*edges.values())), sorted(kept)


def _covering(reached: Mapping[bytes, frozenset[int]]) -> Iterator[bytes]:
    """Yield texts that reach everything, those that add most for their size first."""
    done: set[int] = set()
    left = [(-len(those) / (len(text) + 20), text) for text, those in reached.items()]
    heapq.heapify(left)
    while left:
        _, text = heapq.heappop(left)
        rank = (-len(reached[text] - done) / (len(text) + 20), text)
        if not rank[0]:
            continue
        if left and rank > left[0]:
            heapq.heappush(left, rank)
        else:
            done |= reached[text]
            yield text


def findings(name: str) -> list[str]:
    """Return the kinds of a parser's faults; each has a text below build/fuzz/found."""
    kinds = (
        re.sub(r"^(timeout|oom|crash|slow-unit|leak)-[0-9a-f]+$", r"\1", file.name)
        for file in _folder("found", name).iterdir()
    )
    return sorted(set(kinds))


def run(name: str, seconds: float) -> None:
    """Fuzz a parser, and keep its texts and its figures after each slice."""
    left = seconds
    while left > 1:
        done = fuzz(name, min(left, SLICE_S))
        if not done.executions:
            return
        left -= done.cpu_s
        edges, kept = minimized(name)
        record(name, done, edges, kept)
        print(
            f"{name}: {done.cpu_s:.0f} s, {done.executions} executions, {edges} edges",
            *findings(name),
            flush=True,
        )


def record(name: str, done: Slice, edges: int, kept: list[bytes]) -> None:
    """Add a slice to a parser's figures."""
    with _alone():
        INPUTS.write_text(lines_of_inputs({**inputs(), name: kept}))
        figures = results()
        had = figures[name]
        figures[name] = Result(
            name,
            round(had.cpu_s + done.cpu_s, 1),
            had.executions + done.executions,
            edges,
            sorted({*had.findings, *findings(name)}),
            datetime.now(timezone.utc).date().isoformat(),
        )
        RESULTS.write_text("".join(f"{json.dumps(each._asdict())}\n" for each in figures.values()))
        write_page()


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the kept files: a run with other parsers has the same."""
    with (WORK / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _words(folder: Path) -> list[str]:
    """Return the words that most texts of a folder have, as a dictionary of libFuzzer."""
    counts: Counter[str] = Counter()
    for file in folder.iterdir():
        counts.update(set(re.findall(r"[\w.:/=+-]{2,30}", file.read_bytes().decode("ascii", "ignore"))))
    return [word for word, _ in counts.most_common(_MOST_WORDS)]


def _child(name: str, seconds: float, options: Iterable[str]) -> str:
    """Run the fuzzer's process; return its output, which is also kept below build/fuzz."""
    (packages,) = (WORK / "venv/lib").glob("python3*/site-packages")
    arguments = (name, str(seconds), str(_folder("found", name)), "-print_final_stats=1", *options)
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": str(packages),
            "TMPDIR": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = (sys.executable, "-m", "tests.fuzz.child", *arguments)
        done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, check=False)
    output = done.stderr.decode(errors="replace")
    (WORK / f"{name}.log").write_text(output)
    if "stat::number_of_executed_units" not in output and "MERGE-INNER" not in output:
        print(f"{name}: its process ended with {done.returncode}: see {WORK / name}.log", file=sys.stderr)
    return output


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _folder(kind: str, name: str) -> Path:
    folder = WORK / kind / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(prog="dev/fuzz", description=__doc__)
    parser.add_argument("parsers", nargs="*", metavar="PARSER", choices=[[], *TARGETS], default=[])
    parser.add_argument("--minutes", type=float, default=GOAL, help="CPU time for each parser")
    parser.add_argument(
        "--total", action="store_true", help="less the CPU time that the parser has had before"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the parsers, and the CPU minutes that each has had"
    )
    parser.add_argument("--page", action="store_true", help="only write the page, from the kept figures")
    order = parser.parse_args()
    if order.page:
        write_page()
        return
    had = {name: result.cpu_s for name, result in results().items()}
    if order.list:
        print("\n".join(f"{name} {cpu_s / 60:.1f}" for name, cpu_s in had.items()))
        return
    for name in order.parsers or TARGETS:
        run(name, order.minutes * 60 - (had[name] if order.total else 0.0))


if __name__ == "__main__":
    main()
