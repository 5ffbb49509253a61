"""Print the cost of sampling next to Go's procfs in one run: python -m tests.bench.bench_mountstats [MOUNTS].

Two looks at a file of NFSv4.1 mounts, read from disk, to rates; Go's procfs reads and parses it once. Both
are measured in turn, and the best of each counts. Their ratio is of the time that passed, and of CPU time,
which includes Go's garbage collector. Without Go, or without its module proxy, nfstuned is measured alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nfstuned.core.samples.rates import make_look, rates
from nfstuned.host.process import collector_paused
from nfstuned.host.root import parts_of
from nfstuned.model.kernel import Mount, Options, Stanza
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.samples import Look, Sample
from nfstuned.parse.proc.mountstats import parse_stanzas
from tests.tree import put

DATA = Path(__file__).parent.parent / "parse" / "data" / "6.12"
ROUNDS, SECONDS = 12, 60
AT_ONCE = 3
"""Runs of either in each round; GO has the same number."""
OPTIONS = Options((("vers", "4.1"), ("proto", "tcp"), ("nconnect", "4"), ("addr", "10.10.10.10")))
MODULE = "github.com/prometheus/procfs@v0.23.0"
GO = Path(__file__).with_name("procfs.go")


def stanza() -> str:
    """A real mount of NFSv4.1 with nconnect=4 and no use."""
    text = (DATA / "mountstats").read_text()
    start = text.index("device sa1.")
    return text[start : text.index("\ndevice ", start) + 1]


def busy(text: str, operations: int) -> str:
    """The same mount a minute later, with so many operations used, reads and writes among them."""
    text = re.sub(r"\tage:\t(\d+)", lambda age: f"\tage:\t{int(age[1]) + SECONDS}", text)
    for name in ("READ", "WRITE", "GETATTR", "ACCESS", "LOOKUP", "OPEN", "CLOSE", "COMMIT")[:operations]:
        text = re.sub(rf"( {name}): .*", r"\1: 70000 70000 0 9394752 73400320 4433 91242 99679 0", text)
    if operations:
        text = text.replace("bytes:\t8388608 8388608", "bytes:\t98388608 98388608")
        text = re.sub(r"(xprt:\ttcp 0 0 2 0 0) \d+ \d+ 0 \d+", r"\1 140020 140020 0 280048", text)
    return text


def lease(text: str) -> str:
    """The same with the operation that renews the lease, which all mounts of a server show."""
    return re.sub(r"( SEQUENCE): .*", r"\1: 1 1 0 200 150 0 1 1 0", text)


def placed(stanzas: list[str]) -> str:
    """Return a file's text with each mount at a mount point of its own."""
    return "".join(text.replace(" on /mnt/2 ", f" on /mnt/{n} ", 1) for n, text in enumerate(stanzas))


def written(folder: Path, stanzas: list[str]) -> Path:
    file = folder / "proc/1/mountstats"
    put(file, placed(stanzas))
    return file


def snapshot(mounts: int) -> Snapshot:
    source = "sa1.file.core.windows.net:/a"
    return Snapshot(
        tuple(
            Superblock(f"0:{n}", n, 128, (Mount(n, 1, f"0:{n}", "/", f"/mnt/{n}", "nfs4", source, OPTIONS),))
            for n in range(mounts)
        )
    )


def sampled(host: Snapshot, earlier: Look, first: tuple[Stanza, ...], after: Path) -> tuple[Sample, ...]:
    """Read and parse the later file, and compute the rates, as the daemon does at each sample."""
    with collector_paused():
        return rates(earlier, make_look(host, cut(after, first), SECONDS, SECONDS))


def both_looks(host: Snapshot, before: Path, after: Path) -> tuple[Sample, ...]:
    with collector_paused():
        first = cut(before)
        earlier = make_look(host, first, 0.0, 0.0)
    return sampled(host, earlier, first, after)


def cut(file: Path, before: tuple[Stanza, ...] = ()) -> tuple[Stanza, ...]:
    """Read a file of any size as the daemon reads the kernel's."""
    with file.open("rb", buffering=0) as opened:
        return parse_stanzas(parts_of(opened.fileno()), before)


def built(folder: Path) -> Path | None:
    """Build the program that lets Go's procfs parse the file; None where that cannot be."""
    folder.mkdir()
    shutil.copy(GO, folder / "main.go")
    for command in (["mod", "init", "bench"], ["get", MODULE], ["build", "-o", "bench", "."]):
        try:
            done = subprocess.run(["go", *command], cwd=folder, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            print("Go is not installed: nothing to compare with")
            return None
        if done.returncode:
            print(f"Go's procfs cannot be had: {done.stderr.strip().splitlines()[-1]}")
            return None
    return folder / "bench"


Times = tuple[float, float]
"""Seconds that passed, and of CPU time."""


def timed(work: Callable[[], object]) -> Times:
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def least(one: Times, other: Times) -> Times:
    return min(one[0], other[0]), min(one[1], other[1])


def compare(name: str, ours: Callable[[], object], go: Callable[[], Times] | None) -> None:
    """Measure both in turn, and print the best of each."""
    best = theirs = (float("inf"), float("inf"))
    for _ in range(ROUNDS):
        for _ in range(AT_ONCE):
            best = least(best, timed(ours))
        theirs = least(theirs, go()) if go else theirs
    ratio = f"{theirs[0] * 1e3:9.1f} ms {best[0] / theirs[0]:9.2f} {best[1] / theirs[1]:9.2f}" if go else ""
    print(f"{name:<58} {best[0] * 1e3:9.1f} ms {ratio}", flush=True)


def run_go(program: Path, tree: Path) -> Times:
    said = subprocess.run([program, tree], capture_output=True, text=True, check=True).stdout
    elapsed, cpu = map(float, said.split())
    return elapsed, cpu


def situations(mounts: int) -> dict[str, list[str]]:
    """Return the later stanzas of all mounts by the use of the host."""
    idle, tenth = lease(busy(stanza(), 0)), mounts // 10
    return {
        "no mount in use": [busy(stanza(), 0)] * mounts,
        "10 % in use, 8 operations each": [lease(busy(stanza(), 8))] * tenth + [idle] * (mounts - tenth),
        "all in use, 2 operations each": [lease(busy(stanza(), 2))] * mounts,
        "all in use, 8 operations each": [lease(busy(stanza(), 8))] * mounts,
    }


def compare_all(folder: Path, mounts: int) -> None:
    """Print two looks to rates next to one parse by Go, for hosts that are more and more in use."""
    program = built(folder / "go")
    before = written(folder / "before", [stanza()] * mounts)
    go = partial(run_go, program, folder / "before/proc") if program else None
    size = f"{before.stat().st_size / 1e6:.1f} MB"
    print(f"{mounts} NFSv4.1 mounts, nconnect=4, {size}, best of {ROUNDS * AT_ONCE}")
    columns = f"{'nfstuned':>12} {'procfs':>12} {'ratio':>9} {'of CPU':>9}"
    print(f"{'two looks to rates, and procfs parsing once':<58} {columns}")
    host, first = snapshot(mounts), cut(before)
    for number, (name, stanzas) in enumerate(situations(mounts).items()):
        after = written(folder / f"after{number}", stanzas)
        if len(both_looks(host, before, after)) != mounts:
            raise SystemExit("the bench does not measure its situation")
        compare(name, partial(both_looks, host, before, after), go)
        if number == 0:
            later = partial(sampled, host, make_look(host, first, 0.0, 0.0), first, after)
            compare(f"{name}, the second look alone", later, go)


def main() -> None:
    mounts = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        compare_all(Path(name), mounts)


if __name__ == "__main__":
    main()
