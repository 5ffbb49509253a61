"""The part `crowds` of docs/reliability.md, and its half that needs no guest: python -m tests.bench.crowds.

Measures the daemon's loop with 100,000 synthetic events (tests/bench/events.py), and `check` and `merge`
with 10,000 entries. `sh dev/lab KERNEL crowds` measures the other half (tests/lab/kit/crowds.py). The lines
of both are kept in tests/data; a test holds the page to them.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.bench.bench_check import cpu_s
from tests.bench.bench_merge import documents
from tests.bench.bench_mountstats import stanza
from tests.bench.page import filled
from tests.bench.test_growth import host_files
from tests.check import hosts
from tests.tree import put

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/reliability.md"
KEPT = PROJECT / "tests/data"
HOST = "host"
PROBES, KEPT_MOUNTS = 100, 10
"""As tests/lab/kit/crowds.py has it, which runs in the guest."""
PRESENT = (10, 100, 500, 1000, 2000)
LONG, FEW_EVENTS, STAYING = 100_000, 4000, 50
FEW, MANY = 1000, 10_000
COMMAND = (
    "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
    "status = main(sys.argv[2:], Root(sys.argv[1])); "
    "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')); "
    "print(peak.split()[1], file=sys.stderr); sys.exit(status)"
)
"""The program `nfstuned`, over a tree instead of /. The last line on stderr is its most memory in KiB."""
Row = dict[str, Any]


def kept(name: str) -> Path:
    """Return the file of the lines of a kernel's guest, or of HOST."""
    return KEPT / f"crowds-{name}.jsonl"


def rows_of(text: str) -> list[Row]:
    return [json.loads(line) for line in text.splitlines()]


def keep(text: str, name: str) -> list[Path]:
    """Keep the lines that were measured, and write the page's part of all that are kept; return the files."""
    kept(name).write_text(text)
    PAGE.write_text(filled(PAGE.read_text(), "crowds", part()))
    return [kept(name), PAGE]


def part() -> Iterator[str]:
    """Yield the lines of the page's part."""
    for file in sorted(set(KEPT.glob("crowds-*.jsonl")) - {kept(HOST)}):
        yield from guest_tables(rows_of(file.read_text()))
    if kept(HOST).exists():
        yield from host_tables(rows_of(kept(HOST).read_text()))


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def events(*arguments: object) -> Iterator[Row]:
    """Run the daemon's loop in a process of its own; yield its lines."""
    command = [sys.executable, "-m", "tests.bench.events", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    yield from rows_of(done.stdout)


def command(root: Path, *arguments: str) -> Row:
    """Run a command over a tree; return its wall time, CPU time and most memory."""
    began, before = time.perf_counter(), cpu_s()
    line = [sys.executable, "-c", COMMAND, str(root), *arguments]
    done = subprocess.run(line, check=False, capture_output=True, text=True)
    passed, used = time.perf_counter() - began, cpu_s() - before
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    peak = int(done.stderr.split()[-1])
    return {"seconds": round(passed, 2), "cpu_s": round(used, 2), "peak_kb": peak}


def tree_of(folder: Path, kind: str, number: int) -> Path:
    """Make a host with so many mounts, lines or sections. Present mounts have their counters, too."""
    tree = hosts.load("clean").build(folder / "tree")
    for name, text in host_files(number)[kind].items():
        put(tree / name, text)
    if kind == "mounts":
        rest = stanza().partition("\n")[2]
        heads = (f"device nas{n}:/v mounted on /mnt/{n} with fstype nfs4 statvers=1.1" for n in range(number))
        put(tree / "proc/1/mountstats", "".join(f"{head}\n{rest}" for head in heads))
    return tree


def checks() -> Iterator[Row]:
    for kind in host_files(0):
        for number in (FEW, MANY):
            with tempfile.TemporaryDirectory() as folder:
                figures = command(tree_of(Path(folder), kind, number), "check", "--offline")
            yield {"part": "check", "name": kind, "number": number} | figures


def merges() -> Iterator[Row]:
    names = [name for name in hosts.names() if not hosts.load(name).image and hosts.load(name).findings]
    for number in (FEW, MANY):
        with tempfile.TemporaryDirectory() as folder:
            place, size = Path(folder) / "documents", 0
            for made in documents(number, names, Path(folder) / "hosts"):
                size += put(place / f"{made['host']}.json", json.dumps(made)).stat().st_size
            for form in ("text", "json", "sarif", "html"):
                argv = ("merge", str(place), "--format", form, "--output", f"{folder}/x")
                yield {"part": "merge", "name": form, "number": number, "bytes": size} | command(
                    Path("/"), *argv
                )


def measure() -> Iterator[Row]:
    """Yield all lines."""
    release = os.uname().release.partition("-")[0]
    yield {"part": "host", "date": today(), "kernel": release, "python": platform.python_version()}
    for row in events(STAYING, LONG):
        yield {"part": "events"} | row
    for row in events(STAYING, LONG, "trace"):
        yield {"part": "traced"} | row
    for present in PRESENT:
        for row in events(present, FEW_EVENTS):
            yield {"part": "present", "present": present} | row
    yield from checks()
    yield from merges()


def _table(head: str, rows: Sequence[Sequence[object]]) -> Iterator[str]:
    columns = head.split(", ")
    yield ""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def _mb(kb: int) -> str:
    return f"{kb / 1024:.1f}"


def _of(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row["part"] == name]


def _event_ms(row: Row, events: int) -> str:
    return f"{row['cpu_s'] * 1000 / events:.2f}"


def _times(row: Row) -> tuple[object, ...]:
    """Return p50, p99 and the worst; "-" stands for a mount that never had its value."""
    return tuple("-" if row[name] is None else row[name] for name in ("p50_ms", "p99_ms", "worst_ms"))


def host_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines about synthetic events and the commands."""
    (host,), long, traced = _of(rows, "host"), _of(rows, "events"), _of(rows, "traced")
    yield "### Synthetic events, and commands with 10,000 entries"
    yield ""
    yield (
        f"On {host['date']}, Linux {host['kernel']}, Python {host['python']}. Superblocks come and go in a "
        f"tree of files, while {STAYING} stay. The loop, its looks, records and watches of writes are the "
        "daemon's. *Traced* is the memory of Python's objects, from a run of its own."
    )
    yield from _table(
        "Events, RSS in MB, traced in KiB, descriptors, CPU in ms an event",
        [
            (row["events"], _mb(row["rss_kb"]), other["traced_kb"], row["descriptors"], _event_ms(row, step))
            for row, other in zip(long, traced, strict=True)
            for step in [long[0]["events"]]
        ],
    )
    yield from _table(
        "Superblocks that stay, RSS in MB, CPU in ms an event",
        [(row["present"], _mb(row["rss_kb"]), _event_ms(row, row["events"])) for row in _of(rows, "present")],
    )
    for name, title in (("check", "`check --offline` of 10000"), ("merge", "`merge` of 10000 hosts to")):
        yield from _table(
            f"{title}, wall in s, CPU in s, peak memory in MB, CPU to that of 1000, memory to that of 1000",
            [_line(few, many) for few, many in _pairs(_of(rows, name))],
        )


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of FEW and of MANY entries by their name."""
    few, many = ({row["name"]: row for row in rows if row["number"] == number} for number in (FEW, MANY))
    return ((few[name], many[name]) for name in few)


def _line(few: Row, many: Row) -> Sequence[object]:
    ratios = (f"{many[key] / few[key]:.1f}" for key in ("cpu_s", "peak_kb"))
    return many["name"], many["seconds"], many["cpu_s"], _mb(many["peak_kb"]), *ratios


def guest_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a guest's tables."""
    (guest,), (end,), churn = _of(rows, "guest"), _of(rows, "end"), _of(rows, "churn")
    yield f"### Superblocks of Linux {guest['release']}"
    yield ""
    yield (
        f"On {guest['date']}, in an emulated guest with {guest['processors']} processors. A mount's time to "
        "value begins with the return of mount(2), and ends with the first look that shows the value. "
        f"Cycles of the daemon that failed: {end['failed_cycles']}; other devices kept their values: "
        f"{'yes' if end['strangers_kept'] else 'no'}."
    )
    yield ""
    yield f"{PROBES} mounts, each unmounted when it has its value, with other superblocks present:"
    yield from _table(
        "Present, p50 in ms, p99 in ms, worst in ms, never, CPU in ms a mount",
        [(row["present"], *_times(row), row["never"], row["cpu_ms_a_mount"]) for row in _of(rows, "turns")],
    )
    yield ""
    yield "The daemon at rest, and its start with all superblocks at the kernel's value:"
    rests = _of(rows, "empty") + _of(rows, "rest")
    starts = {row["present"]: row for row in _of(rows, "start")}
    yield from _table(
        "Present, RSS in MB, descriptors, CPU in ms a minute, ready after s, all right after s",
        [
            (row["present"], _mb(row["rss_kb"]), row["descriptors"], row["cpu_ms_a_minute"], *start)
            for row in rests
            for known in [starts.get(row["present"])]
            for start in [(known["ready_s"], known["right_s"]) if known else ("-", "-")]
        ],
    )
    yield ""
    yield "Mounts by four threads as fast as the guest makes them, until so many are present:"
    yield from _table(
        "Present, mounts, seconds, p50 in ms, p99 in ms, worst in ms, never, CPU in ms a mount",
        [
            (
                *(row["present"], row["mounts"], row["seconds"]),
                *_times(row),
                row["never"],
                row["cpu_ms_a_mount"],
            )
            for row in _of(rows, "grow") + _of(rows, "at once")
        ],
    )
    yield ""
    yield "Unmounts of all at once:"
    yield from _table(
        "Superblocks, unmounted after s, all forgotten after s, RSS in MB, descriptors",
        [
            (row["mounts"], row["seconds"], row["forgotten_s"], _mb(row["rss_kb"]), row["descriptors"])
            for row in _of(rows, "vanish")
        ],
    )
    number, seconds = (sum(row[name] for row in churn) for name in ("mounts", "seconds"))
    yield ""
    yield f"{number} mounts and unmounts in turns, {number / seconds:.1f} a second, while {KEPT_MOUNTS} stay:"
    yield from _table(
        "After, p50 in ms, p99 in ms, worst in ms, never, wrong, RSS in MB, descriptors, CPU in ms a mount",
        [
            (
                *(after, *_times(row), row["never"], row["wrong"]),
                *(_mb(row["rss_kb"]), row["descriptors"], row["cpu_ms_a_mount"]),
            )
            for at, row in enumerate(churn)
            for after in [sum(one["mounts"] for one in churn[: at + 1])]
        ],
    )
    yield ""


def main() -> int:
    """Measure, keep the lines, and write the page; return the exit status."""
    text = ""
    for row in measure():
        print(row, flush=True)
        text += json.dumps(row) + "\n"
    for file in keep(text, HOST):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
