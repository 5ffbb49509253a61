"""Print how long a check of 2,000 manifests takes: python -m tests.bench.bench_files [PROGRAM [ARGUMENT]…].

The manifests are those of the corpus, each case in a folder of its own, again and again. A program, such as
`kubernetes-validate --strict`, reads all of them too, by turns with nfstuned.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.check.test_corpus import CASES
from tests.tree import put

FILES, ROUNDS = 2000, 3
NFSTUNED = [sys.executable, "-m", "nfstuned", "check", "--offline", "--statistics"]


def manifests(folder: Path) -> list[str]:
    """Write the manifests, and return their names within the folder."""
    cases = [case for case in CASES if all("apiVersion:" in text for text in case.files.values())]
    files: list[str] = []
    numbers = itertools.count()
    while len(files) < FILES:
        number = next(numbers)
        for name, text in cases[number % len(cases)].files.items():
            files.append(f"{number}/{name}")
            put(folder / files[-1], text)
    return files


def seconds(command: list[str], folder: str) -> float:
    """Return how long a program takes in a folder; a program may find mistakes."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode > 1 or "Traceback" in done.stderr:
        raise SystemExit(f"{command[0]}: {done.stderr[-2000:]}")
    return time.perf_counter() - start


def main() -> None:
    """Measure nfstuned, and the program of the arguments."""
    with tempfile.TemporaryDirectory() as folder:
        files = manifests(Path(folder))
        commands = {"nfstuned check": [*NFSTUNED, "."]}
        if sys.argv[1:]:
            commands[" ".join(sys.argv[1:])] = [*sys.argv[1:], *files]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for name in list(commands) * ROUNDS:
            times[name].append(seconds(commands[name], folder))
    for name, took in times.items():
        wall = f"median {statistics.median(took):6.1f} s, best {min(took):6.1f} s"
        print(f"{name:40} {len(files)} files: {wall}")


if __name__ == "__main__":
    main()
