"""Print the time and the memory of `nfstuned merge`: python -m tests.bench.bench_merge [HOSTS].

The documents are those of checks of tests/hosts, several in each, so that a host has about 20 findings.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nfstuned.core.rules.catalogue import RULES, run_rules
from nfstuned.model.facts import Report
from nfstuned.view.check import check_document
from nfstuned.view.words import to_json
from tests.bench.bench_check import cpu_s
from tests.check import hosts

HOSTS, FINDINGS = 5000, 20
COMMAND = (
    "import sys; from nfstuned.cli.app import main; status = main(['merge', *sys.argv[1:]]); "
    "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))); sys.exit(status)"
)
"""Its most memory is on stdout: as a child's it would be that of this process before the exec."""
TIME = "2026-11-20T13:00:00Z"


def document(name: str, folder: Path) -> dict[str, Any]:
    """Return the document of a check of a host of tests/hosts, as the host itself would write it."""
    facts = hosts.facts_of(hosts.load(name), folder / name)
    report = Report("/", facts, RULES, run_rules(facts, RULES), host=name)
    made: dict[str, Any] = json.loads(to_json(check_document(report)))
    return made | {"time": TIME}


def documents(number: int, names: Sequence[str], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a document for each of so many hosts: the findings and mounts of several of the named ones.

    Hosts that were not judged as a whole are left out: the merge would exit with 2.
    """
    known = [made for name in names if (made := document(name, folder))["exit_code"] < 2]
    at = 0
    for host in range(number):
        made = known[at % len(known)] | {"host": f"host-{host:05}"}
        while len(made["findings"]) < FINDINGS:
            at += 1
            other = known[at % len(known)]
            made |= {key: made[key] + other[key] for key in ("findings", "mounts")}
        yield made
        at += 1


def main() -> None:
    """Write the documents, merge them in a process of its own, and print its figures."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS
    names = [name for name in hosts.names() if not hosts.load(name).image and hosts.load(name).findings]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "documents"
        place.mkdir()
        findings = size = 0
        for made in documents(number, names, Path(folder) / "hosts"):
            text = json.dumps(made)
            findings, size = findings + len(made["findings"]), size + len(text)
            (place / f"{made['host']}.json").write_text(text)
        print(f"{number} hosts, {findings} findings, {size / 1e6:.0f} MB")
        for form in ("text", "json", "sarif", "html"):
            start, before = time.perf_counter(), cpu_s()
            command = [sys.executable, "-c", COMMAND, str(place), "--format", form]
            done = subprocess.run(
                [*command, "--output", f"{folder}/x"], check=False, capture_output=True, text=True
            )
            passed, output = time.perf_counter() - start, Path(folder, "x").stat().st_size / 1e3
            kib = int(done.stdout.split()[1])
            used = f"{passed:5.1f} s, processor {cpu_s() - before:.1f} s, {kib / 1024:.0f} MB"
            print(f"{form:5} {used}, {output:.0f} kB of output")
            if done.returncode > 1:
                raise SystemExit(done.stderr)


if __name__ == "__main__":
    main()
