"""The measurements of docs: guests leave lines, and the host makes tables and pictures of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tests.bench import crowds, faults, pictures, upgrade, workloads
from tests.bench.page import rows_of
from tests.lab import guest, runs
from tests.lab.kit.crowds import PARTS as CROWDS
from tests.lab.kit.upgrade import PARTS
from tests.lab.kit.workloads import RTTS_MS

COUNTED = guest.Limits(4 * 3600, first_s=900, quiet_s=3600, retries=2, counted=True)


def say(line: str) -> None:
    """Print a line for the person who waits."""
    print(f"lab: {line}", file=sys.stderr, flush=True)


def _pictures(release: str, _words: tuple[str, ...]) -> int:
    limits = guest.Limits(900, quiet_s=200, retries=2)
    files = _left(release, ("pictures",), "pictures", limits)
    return _shown(pictures.draw(files, runs.PROJECT / "docs/pictures")) if files else 1


def _workloads(release: str, _words: tuple[str, ...]) -> int:
    limits = guest.Limits(5400, quiet_s=600, retries=2, processors=2)
    rtts = tuple(str(rtt_ms) for rtt_ms in RTTS_MS)
    return _in_parts(release, ("workloads",), rtts, limits, _workload_pages)


def _workload_pages(text: str, release: str) -> list[Path]:
    """Make the tables once all round trips are measured: a few would take the place of all kept ones."""
    whole = {row["rtt_ms"] for row in rows_of(text)} >= set(RTTS_MS)
    return workloads.make(text, release) if whole else []


def _upgrade(release: str, _words: tuple[str, ...]) -> int:
    return _in_parts(release, ("upgrade",), tuple(PARTS), COUNTED, upgrade.make)


def _crowds(release: str, options: tuple[str, ...]) -> int:
    return _in_parts(release, ("crowds", *options), CROWDS, COUNTED, crowds.keep)


def _in_parts(
    release: str,
    words: tuple[str, ...],
    parts: Sequence[str],
    limits: guest.Limits,
    make: Callable[[str, str], Iterable[Path]],
) -> int:
    """Run a module of the kit in a boot for each part, and make pages of all lines so far.

    The lines of earlier parts stay where a later one fails: the next call goes on after them.
    """
    name, *options = words
    kept = runs.PROJECT / f"build/{name}-{release}"
    kept.mkdir(parents=True, exist_ok=True)
    text = ""
    for part in parts:
        lines = kept / part
        if lines.exists():
            say(f"{lines} is there already; remove it to measure it again")
        else:
            files = _left(release, (name, part, *options), f"{name}-{part}", limits)
            if not files:
                return 1
            lines.write_text((files / f"{name}.jsonl").read_text())
        text += lines.read_text()
        _shown(make(text, release))
    shutil.rmtree(kept)
    return 0


def _faults(release: str, names: tuple[str, ...]) -> int:
    """Measure the table of faults, or those of these names again."""
    limits = guest.Limits(5400, quiet_s=300, retries=2, processors=2)
    files = _left(release, ("faulttable", *names), "faults", limits)
    if not files:
        return 1
    text = (files / "faults.jsonl").read_text()
    _shown(faults.make(text, release, some=bool(names)))
    troubles = faults.troubles(rows_of(text))
    for line in troubles:
        say(line)
    return 1 if troubles else 0


def _left(release: str, words: tuple[str, ...], name: str, limits: guest.Limits) -> Path | None:
    """Run a module of the kit with its arguments; return the folder of its files, None where it failed."""
    module = (f"tests.lab.kit.{words[0]}", *words[1:])
    boot = runs.run_module(module, release, runs.folder() / f"{name}-{release}", guest.stdout_line, limits)
    say(boot.explain())
    return boot.files if boot.passed else None


def _shown(files: Iterable[Path]) -> int:
    for file in files:
        say(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


MEASURES: Mapping[str, Callable[[str, tuple[str, ...]], int]] = {
    "pictures": _pictures,
    "workloads": _workloads,
    "faults": _faults,
    "crowds": _crowds,
    "upgrade": _upgrade,
}
"""By the word of `dev/lab`: each takes a kernel's release and its own words, and returns the exit status."""
