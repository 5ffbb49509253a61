"""`python -m tests.bench.compare OLD NEW`: whether two checkouts print the same on all host trees.

Each of the commands runs on each tree of tests/hosts, by the code of either checkout, without a network.
Commands that ask name servers and look again are left to the tests. Runs that differ are named, with their
first lines; the exit status is then 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.check import hosts

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("status", "--format", "json"),
    ("check", "--offline"),
    ("check", "--offline", "--format", "json"),
    ("check", "--offline", "--format", "junit"),
    ("check", "--offline", "--format", "sarif"),
    ("check", "--offline", "--format", "prometheus"),
    ("apply", "--dry-run"),
    ("apply", "--dry-run", "--format", "json"),
    ("config", "show"),
    ("config", "show", "--format", "json"),
    ("config", "check"),
    ("rules",),
    ("rules", "--format", "json"),
)
IMAGE: tuple[tuple[str, ...], ...] = (
    ("check", "--root", "{root}"),
    ("check", "--root", "{root}", "--format", "json"),
    ("bake", "--root", "{root}", "--dry-run"),
    ("bake", "--root", "{root}", "--daemonless", "--dry-run", "--format", "json"),
)
ONCE: tuple[tuple[str, ...], ...] = (
    ("--help",), ("--version",), ("check", "--help"), ("apply", "--help"), ("bake", "--help"),
    ("explain", "NFS101"), ("config", "schema"), ("completion", "bash"), ("completion", "zsh"),
    ("completion", "fish"),
)  # fmt: skip
RUNNER = """\
import contextlib, io, json, os, sys
checkout, jobs = sys.argv[1], json.load(sys.stdin)
sys.path.insert(0, checkout)
os.environ.update(NO_COLOR="1", COLUMNS="100", TERM="dumb")
from nfstuned.cli.app import main
from nfstuned.host.root import Root
results = []
for root, words in jobs:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words, Root(root))
        out.flush(), err.flush()
    results.append([status, *(stream.buffer.getvalue().decode("latin-1") for stream in (out, err))])
json.dump(results, sys.__stdout__)
"""
Job = tuple[str, tuple[str, ...]]


_TIMES = re.compile(r'timestamp="[^"]*"|"(?:time|startTimeUtc)": "[^"]*"|(?<=_timestamp_seconds )\S+')


def jobs(folder: Path) -> list[Job]:
    """Return every run: a root, and the words of a command; the trees are built in a folder."""
    found: list[Job] = [("/nowhere", words) for words in ONCE]
    for name in hosts.names():
        case = hosts.load(name)
        root = str(case.build(folder / name))
        commands = IMAGE if case.image else COMMANDS
        found.extend((root, tuple(word.format(root=root) for word in words)) for words in commands)
    return found


def run(checkout: Path, wanted: list[Job]) -> list[list[object]]:
    """Return the exit status and both streams of each run by a checkout's code."""
    command = [sys.executable, "-c", RUNNER, str(checkout.resolve())]
    done = subprocess.run(command, input=json.dumps(wanted), capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


def without_times(result: list[object]) -> list[str]:
    """Return a run's result without the time at which it was."""
    return [_TIMES.sub("", str(part)) for part in result]


def main(arguments: list[str]) -> int:
    """Compare, and name the runs that differ; return the exit status."""
    old, new = (Path(argument) for argument in arguments)
    with tempfile.TemporaryDirectory() as folder:
        wanted = jobs(Path(folder))
        before, after = run(old, wanted), run(new, wanted)
    different = 0
    for (root, words), first, second in zip(wanted, before, after, strict=True):
        if without_times(first) != without_times(second):
            different += 1
            print(f"{Path(root).name}: nfstuned {' '.join(words)}: {first[0]} and {second[0]}")
            for one, other in zip(map(str, first[1:]), map(str, second[1:]), strict=True):
                lines = zip(one.splitlines(), other.splitlines(), strict=False)
                print("".join(f"  - {a}\n  + {b}\n" for a, b in lines if a != b)[:400])
    print(f"{len(wanted)} runs by each of two checkouts: {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
