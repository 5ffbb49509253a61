"""The part `faults` of docs/reliability.md, from the lines that a guest has measured.

`sh dev/lab KERNEL faults` measures (tests/lab/kit/faulttable.py). The lines are kept in tests/data, by
kernel; a test holds the page to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.bench.page import KEPT, RELIABILITY, Row, filled, rows_of
from tests.lab.kit.faultlist import PHASES
from tests.lab.kit.faultstates import listed

PART = "faults"
TITLES = {
    "start": "At the start",
    "cycle": "In a cycle: a mount is made and another goes during the fault",
    "reload": "At a reload that changes the number of a mount",
    "stop": "At the stop, with `restore_on_stop`",
}
_PROMISES = (
    "The daemon does not end, except for a refused start, which systemd repeats, and where the kernel kills "
    "it at its memory limit. It writes no wrong value, needs no person afterwards, and reports the work that "
    "it did not do in at most three lines. Where many files fail, each kind of work may have a line: a "
    "value, reading, samples, metrics, and state. At a memory limit, and without a descriptor at the start, "
    "it may say nothing."
)
_COLUMNS = (
    "*Recovery* is the time from the fault's end until a new mount and the older ones have their value. It "
    "includes the new mount(8), and after a stop the next start, in emulation. *Lines* is the largest number "
    "of lines in the journal about a fault; for a refused start, those of each attempt. The service samples "
    "each 2 s here. In a cycle a fault lasts for six samples, and each row of a cycle and of a reload has a "
    "service of its own, because a service reports a fault once an hour. With LimitNOFILE=12 the "
    "service cannot report that it is ready, and systemd ends it after 90 s."
)
_EARLIER = "two samples long, with a service that may have reported the fault before."


def kept(release: str) -> Path:
    """Return the file of a kernel's lines."""
    return KEPT / f"faults-{release}.jsonl"


def troubles(rows: Iterable[Row]) -> list[str]:
    """Return the rows in which the daemon broke a promise."""
    return [
        f"{row['phase']} {row['fault']} {row['error']}: {row['trouble']}" for row in rows if row["trouble"]
    ]


def part(release: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the page's part."""
    bad = troubles(rows)
    days = sorted({row["day"] for row in rows})
    head = f"Linux {release}, {' to '.join(dict.fromkeys((days[0], days[-1])))}: {len(rows)} faults"
    yield f"{head}, {len(bad)} broken promises. {_PROMISES}"
    yield ""
    older = sum(not row.get("fresh") for row in rows if row["phase"] in {"cycle", "reload"})
    yield _COLUMNS + (f" {older} rows are of an earlier run: {_EARLIER}" if older else "")
    for phase in PHASES:
        of_phase = [row for row in rows if row["phase"] == phase]
        if of_phase:
            yield ""
            yield f"{TITLES[phase]}:"
            yield ""
            yield "| Fault | Outcome | Recovery (s) | Lines |"
            yield "|---|---|---|---|"
            yield from _merged(of_phase)
    measured = {(row["phase"], row["fault"], row["error"]) for row in rows}
    missing = [fault for fault in listed() if fault not in measured]
    if missing:
        yield ""
        yield f"Not measured yet ({len(missing)}):"
        yield ""
        names = dict.fromkeys((phase, fault) for phase, fault, _ in missing)
        for phase in PHASES:
            if chosen := [fault for each, fault in names if each == phase]:
                yield f"- {phase}: {', '.join(_named(fault) if ': ' in fault else fault for fault in chosen)}"
    if bad:
        yield ""
        yield "Broken promises:"
        yield ""
        yield from (f"- {line}" for line in bad)


def _merged(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for the errors of a call with the same outcome."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["fault"], row["outcome"]), []).append(row)
    for (fault, outcome), group in groups.items():
        errors = ", ".join(row["error"] for row in group if row["error"])
        times = [row["recovery_s"] for row in group if row["recovery_s"] is not None]
        name = f"{_named(fault)}: {errors}" if errors else fault
        yield f"| {name} | {outcome} | {_most(times)} | {max(row['lines'] for row in group)} |"


def _named(fault: str) -> str:
    call, _, file = fault.partition(": ")
    place = file.removeprefix("any file")
    return (
        f"`{call.replace(',', '`, `')}`{place}"
        if place != file
        else f"`{call.replace(',', '`, `')}` of {file}"
    )


def _most(times: Sequence[float]) -> str:
    return f"{max(times):.1f}" if times else ""


def joined(old: str, new: str) -> str:
    """Return the old lines, with those that were measured again, in the order of the list.

    A fault that the list no longer has is left out.
    """
    lines = {(row["phase"], row["fault"], row["error"]): row for row in (*rows_of(old), *rows_of(new))}
    return "".join(f"{json.dumps(lines[fault])}\n" for fault in listed() if fault in lines)


def make(text: str, release: str, *, some: bool = False) -> list[Path]:
    """Keep the lines that a guest has left, and make the page's part; return the files.

    `some`: only some faults were measured again.
    """
    file = kept(release)
    text = joined(file.read_text() if some and file.exists() else "", text)
    file.write_text(text)
    RELIABILITY.write_text(filled(RELIABILITY.read_text(), PART, part(release, rows_of(text))))
    return [file, RELIABILITY]
