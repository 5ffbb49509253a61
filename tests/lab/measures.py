"""The measurements of docs: guests leave lines, and the host makes tables and pictures of them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tests.bench import crowds, faults, pictures, upgrade, workloads
from tests.bench.page import rows_of
from tests.lab import guest, runs
from tests.lab.kit.upgrade import PARTS
from tests.lab.kit.workloads import RTTS_MS


def say(line: str) -> None:
    """Print a line for the person who waits."""
    print(f"lab: {line}", file=sys.stderr, flush=True)


def _pictures(release: str, _words: tuple[str, ...]) -> int:
    limits = guest.Limits(900, quiet_s=200, retries=2)
    files = _left(release, ("pictures",), "pictures", limits)
    return _shown(pictures.draw(files, runs.PROJECT / "docs/pictures")) if files else 1


def _workloads(release: str, _words: tuple[str, ...]) -> int:
    """Boot a guest for each round trip. The lines of those before stay where a later one fails."""
    limits = guest.Limits(5400, quiet_s=600, retries=2, processors=2)
    lines = runs.PROJECT / f"build/workloads-{release}.jsonl"
    text = lines.read_text() if lines.exists() else ""
    measured = {row["rtt_ms"] for row in rows_of(text)}
    for rtt_ms in RTTS_MS:
        if rtt_ms in measured:
            say(f"{rtt_ms} ms is in {lines} already; remove the file to measure it again")
            continue
        files = _left(release, ("workloads", str(rtt_ms)), f"{rtt_ms}-ms", limits)
        if not files:
            return 1
        text += (files / "workloads.jsonl").read_text()
        lines.write_text(text)
    _shown(workloads.make(text, release))
    lines.unlink()
    return 0


def _upgrade(release: str, _words: tuple[str, ...]) -> int:
    """Boot a guest for each part, as `_workloads` does for each round trip."""
    limits = guest.Limits(5400, quiet_s=600, retries=2, processors=2)
    kept = runs.PROJECT / f"build/upgrade-{release}"
    kept.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (kept / part).exists():
            say(f"{kept / part} is there already; remove it to try its kills again")
            continue
        files = _left(release, ("upgrade", part), f"upgrade-{part}", limits)
        if not files:
            return 1
        (kept / part).write_text((files / "upgrade.jsonl").read_text())
        there = [kept / part for part in PARTS if (kept / part).exists()]
        _shown(upgrade.make("".join(path.read_text() for path in there), release))
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


def _crowds(release: str, options: tuple[str, ...]) -> int:
    limits = guest.Limits(4 * 3600, quiet_s=1500, retries=2)
    files = _left(release, ("crowds", *options), "crowds", limits)
    if not files:
        return 1
    text = (files / "crowds.jsonl").read_text() + json.dumps(crowds.load()) + "\n"
    return _shown(crowds.keep(text, release))


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
