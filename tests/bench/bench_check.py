"""Print how long a check takes, from the shell to the verdict: python -m tests.bench.bench_check [ROUNDS]."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.test_growth import host_files
from tests.check import hosts
from tests.tree import put

MOUNTS = 500
COMMAND = (
    "import sys; from nfstuned.cli.app import main; from nfstuned.host.root import Root; "
    "sys.exit(main(['check', '--offline'], Root(sys.argv[1])))"
)
"""The program `nfstuned`, over a tree instead of /."""


def report(name: str, program: str, folder: str, rounds: int) -> None:
    """Print a program's times: median, best, and CPU, which a busy machine changes least."""
    times, used = [], []
    command: Sequence[str] = (sys.executable, "-c", program, folder)
    for _ in range(rounds):
        start, before = time.perf_counter(), cpu_s()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        times.append(1000 * (time.perf_counter() - start))
        used.append(1000 * (cpu_s() - before))
        if done.returncode > 1 or "Traceback" in done.stderr:
            raise SystemExit(f"{name}: {done.stderr}")
    wall = f"median {statistics.median(times):5.0f} ms, best {min(times):5.0f} ms"
    print(f"{name:42} {wall}, processor {min(used):5.0f} ms")


def cpu_s() -> float:
    """Return the CPU time of all children that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure a check of an ordinary host, with a configuration, with many mounts, and Python itself."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        ordinary = hosts.load("clean").build(Path(folder) / "ordinary")
        configured = hosts.load("clean").build(Path(folder) / "configured")
        put(configured / "etc/nfstuned/nfstuned.toml", '[daemon]\nsample_interval = "5m"\n')
        large = hosts.load("clean").build(Path(folder) / "large")
        for kind in ("mounts", "Azure"):
            for name, text in host_files(MOUNTS)[kind].items():
                put(large / name, text)
        report("check: an ordinary host", COMMAND, str(ordinary), rounds)
        report("check: with a configuration to validate", COMMAND, str(configured), rounds)
        report(f"check: {MOUNTS} mounts, {MOUNTS} fstab entries", COMMAND, str(large), rounds)
        report("python -c pass", "pass", folder, rounds)


if __name__ == "__main__":
    main()
