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
from itertools import accumulate
from pathlib import Path

from tests.bench.bench_check import cpu_s
from tests.bench.bench_merge import documents
from tests.bench.page import COUNTED, KEPT, RELIABILITY, Row, filled, rows_of
from tests.bench.test_growth import host_files
from tests.check import hosts
from tests.tree import put

HOST = "host"
PROBES, KEPT_MOUNTS = 100, 10
"""As tests/lab/kit/crowds.py has it, which runs in the guest."""
PRESENT = (10, 100, 500, 1000, 2000)
LONG, FEW_EVENTS, STAYING = 100_000, 4000, 50
FEW, MANY = 1000, 10_000
TIMES, SPENT, PROCESS = (
    "p50_ms p99_ms worst_ms never",
    "cpu_ms_a_mount waited_ms_a_mount",
    "rss_kb descriptors",
)
NAMES = {
    "present": "Present",
    "mounts": "Mounts",
    "events": "Events",
    "seconds": "wall in s",
    "p50_ms": "p50 in ms",
    "p99_ms": "p99 in ms",
    "worst_ms": "worst in ms",
    "never": "late",
    "wrong": "wrong",
    "cpu_ms_a_mount": "CPU in ms",
    "waited_ms_a_mount": "waited in ms",
    "cpu_ms_a_minute": "CPU in ms",
    "rss_kb": "RSS in MB",
    "descriptors": "descriptors",
    "ready_s": "ready after s",
    "right_s": "all right after s",
    "forgotten_s": "all forgotten after s",
    "traced_kb": "traced in MB",
    "event_ms": "CPU of an event in ms",
    "cpu_s": "CPU in s",
    "peak_kb": "peak memory in MB",
    "cpu": "times the CPU of 1,000",
    "peak": "times the memory of 1,000",
}
"""The columns' names, by the keys of lines."""
COMMAND = (
    "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
    "status = main(sys.argv[2:], Root(sys.argv[1])); "
    "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM')); "
    "print(peak.split()[1], file=sys.stderr); sys.exit(status)"
)
"""The program `nfstuned`, over a tree instead of /. The last line on stderr is its most memory in KiB."""


def kept(name: str) -> Path:
    """Return the file of the lines of a kernel's guest, or of HOST."""
    return KEPT / f"crowds-{name}.jsonl"


def keep(text: str, name: str) -> list[Path]:
    """Keep the lines that were measured, and write the page's part of all that are kept; return the files."""
    kept(name).write_text(text)
    RELIABILITY.write_text(filled(RELIABILITY.read_text(), "crowds", part()))
    return [kept(name), RELIABILITY]


def part() -> Iterator[str]:
    """Yield the lines of the page's part."""
    for file in sorted(set(KEPT.glob("crowds-*.jsonl")) - {kept(HOST)}):
        yield from guest_tables(rows_of(file.read_text()))
    if kept(HOST).exists():
        yield from host_tables(rows_of(kept(HOST).read_text()))


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def load() -> Row:
    """Return the line of this machine's load in the last 15 minutes: other work makes all times longer."""
    return {"part": "load", "load": round(os.getloadavg()[2], 1), "processors": os.cpu_count()}


def load_words(rows: Sequence[Row]) -> str:
    (row,) = _of(rows, "load")
    return f"The machine's load was {row['load']} on {row['processors']} processors."


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
    """Make a host with so many mounts, lines or sections."""
    tree = hosts.load("clean").build(folder / "tree")
    # No mount but these: a check takes 10,000 at most.
    for name, text in {"etc/fstab": "", **host_files(number)[kind]}.items():
        put(tree / name, text)
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
    yield load()


def _cell(row: Row, key: str) -> str:
    value = row.get(key)
    if value is None:
        return "-"
    return f"{value / 1024:.1f}" if key.endswith("_kb") else str(value)


def _table(rows: Sequence[Row], keys: str, **names: str) -> Iterator[str]:
    """Yield a table with these keys of the rows as its columns, by their names in NAMES or `names`."""
    columns = [names.get(key) or NAMES[key] for key in keys.split()]
    yield ""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_cell(row, key) for key in keys.split())} |"
    yield ""


def _of(rows: Sequence[Row], *parts: str) -> list[Row]:
    return [row for row in rows if row["part"] in parts]


def guest_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the tables of the guests that were measured so far."""
    guest, end, churn = _of(rows, "guest")[0], _of(rows, "end"), _of(rows, "churn")
    yield f"### Superblocks of Linux {guest['release']}"
    yield ""
    yield (
        f"On {guest['date']}, {COUNTED} Each mount is a superblock with a bdi of its own. Its time to "
        "value begins with the return of mount(2), and ends with the first look that shows the value; a "
        f"mount without its value for {guest['patience_s']} s counts as late. Per mount, *CPU* is the "
        "daemon's, and *waited* its time in the queue for the processor, which it shares with the server, "
        "the kernel's threads, udev, systemd and the measurement."
    )
    yield ""
    yield f"{PROBES} mounts, each unmounted when it has its value, with other superblocks present:"
    yield from _table(_of(rows, "turns"), f"present {TIMES} {SPENT}")
    yield "Mounts by four threads, as fast as the guest makes them, until so many are present:"
    yield from _table(
        _of(rows, "grow", "at once"), f"present mounts seconds {TIMES} wrong {SPENT}", seconds="in s"
    )
    yield "The daemon in a minute without a mount, and its start with all superblocks at the kernel's value:"
    starts = {row["present"]: {key: row[key] for key in ("ready_s", "right_s")} for row in _of(rows, "start")}
    rests = [row | starts.get(row["present"], {}) for row in _of(rows, "empty", "rest")]
    yield from _table(rests, f"present cpu_ms_a_minute {PROCESS} ready_s right_s")
    yield "Unmounts of all at once:"
    yield from _table(_of(rows, "vanish"), f"mounts seconds forgotten_s {PROCESS} {SPENT}", seconds="in s")
    if churn:
        number, seconds = (sum(row[key] for row in churn) for key in ("mounts", "seconds"))
        rate = number / seconds
        yield f"{number} mounts and unmounts in turns, {rate:.1f} a second, while {KEPT_MOUNTS} stay:"
        totals = accumulate(row["mounts"] for row in churn)
        churn = [row | {"mounts": total} for row, total in zip(churn, totals, strict=True)]
        yield from _table(churn, f"mounts {TIMES} wrong {PROCESS} {SPENT}", mounts="After")
    yield (
        f"Cycles of the daemon that failed: {sum(row['failed_cycles'] for row in end)}. The read-aheads of a "
        "FUSE mount, a btrfs and a loop device were the same at the end: "
        f"{'yes' if all(row['strangers_kept'] for row in end) else 'no'}."
    )
    yield ""


def host_tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines about synthetic events and the commands."""
    (host,), traced = _of(rows, "host"), _of(rows, "traced")
    yield "### Synthetic events, and commands with 10,000 entries"
    yield ""
    yield (
        f"On {host['date']}, Linux {host['kernel']}, Python {host['python']}. Superblocks come and go in a "
        f"tree of files, while {STAYING} stay. The loop, its looks, records and watches of writes are the "
        f"daemon's. *Traced* is the memory of Python's objects, from a run of its own. {load_words(rows)}"
    )
    both = zip(_of(rows, "events"), traced, strict=True)
    long = [row | {"traced_kb": other["traced_kb"]} for row, other in both]
    yield from _table(_each(long, long[0]["events"]), f"events {PROCESS} traced_kb event_ms")
    yield "With more superblocks that stay:"
    present = [row for each in _of(rows, "present") for row in _each([each], each["events"])]
    yield from _table(present, f"present {PROCESS} event_ms")
    yield "`check --offline` of a host with 10,000 lines, mounts or sections:"
    yield from _table(_ratios(_of(rows, "check")), "name seconds cpu_s peak_kb cpu peak", name="Host")
    yield "`merge` of the documents of 10,000 hosts:"
    yield from _table(_ratios(_of(rows, "merge")), "name seconds cpu_s peak_kb cpu peak", name="Format")


def _each(rows: Sequence[Row], events: int) -> list[Row]:
    """Return the rows with the CPU time of an event."""
    return [row | {"event_ms": round(row["cpu_s"] * 1000 / events, 2)} for row in rows]


def _ratios(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of MANY entries, with their ratios to those of FEW."""
    few = {row["name"]: row for row in rows if row["number"] == FEW}
    return [
        row
        | {key.partition("_")[0]: round(row[key] / few[row["name"]][key], 1) for key in ("cpu_s", "peak_kb")}
        for row in rows
        if row["number"] == MANY
    ]


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
