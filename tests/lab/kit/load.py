"""Load on mounts: fio, programs that write without end, and other counts of its bytes."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from typing import NamedTuple

from nfstuned.core.samples.rates import make_look
from nfstuned.host.observe import observe_major_faults, observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.samples import Look
from tests.lab.kit.mounts import Mounted
from tests.lab.kit.shell import program, run, wait_for

_NFSD = Path("/proc/net/rpc/nfsd")
_READS = (("proc3", 6), ("proc4ops", 25), ("proc4ops", 68))
_WRITES = (("proc3", 7), ("proc4ops", 38))
"""RFC 1813 numbers the procedures, RFC 8881 and RFC 7862 (READ_PLUS) the operations."""


@dataclass(frozen=True)
class Job:
    """One way to read or write: fio's rw, block size and direct."""

    rw: str
    block: str
    direct: bool
    size: str

    def __str__(self) -> str:
        return f"{self.rw} {self.block} {'direct' if self.direct else 'buffered'}"


class Moved(NamedTuple):
    """Bytes and requests, counted by a program or the server."""

    read_bytes: int
    write_bytes: int
    reads: int = 0
    writes: int = 0

    def __sub__(self, other: Moved) -> Moved:
        return Moved(*map(sub, self, other))


def fio(mounted: Mounted, job: Job) -> Moved:
    """Run a job on the file "load" of a mount; return fio's count of the bytes that it read and wrote.

    The file must be there in its full size, or fio writes it first.
    """
    output = run(
        "fio", "--name=load", f"--filename={mounted.point}/load", f"--rw={job.rw}", f"--bs={job.block}",
        f"--size={job.size}", f"--direct={int(job.direct)}", "--ioengine=psync", "--thread",
        "--fallocate=none", "--overwrite=1", "--end_fsync=1", "--output-format=json",
    )  # fmt: skip
    (done,) = json.loads(output[output.index("{") :])["jobs"]
    return Moved(*(done[way][count] for count in ("io_bytes", "total_ios") for way in ("read", "write")))


def nfsd() -> Moved:
    """Return the server's counters since it was loaded (nfsd's /proc/net/rpc/nfsd)."""
    lines = [
        line for line in _NFSD.read_text().splitlines() if line.startswith(("io ", "proc3 ", "proc4ops "))
    ]
    rows = {name: [int(word) for word in words] for name, *words in map(str.split, lines)}
    # A row begins with the number of its counters; an older kernel has none of a newer operation.
    reads, writes = (sum(sum(rows[row][at + 1 : at + 2]) for row, at in of) for of in (_READS, _WRITES))
    return Moved(rows["io"][0], rows["io"][1], reads, writes)


class Sockets(NamedTuple):
    """The client's TCP connections to the server, and the payload that they carried."""

    number: int
    sent: int
    received: int

    def __sub__(self, other: Sockets) -> Sockets:
        return Sockets(*map(sub, self, other))


def sockets() -> Sockets:
    """Return the figures of ss(8) about them."""
    output = run("ss", "--tcp", "--info", "--no-header", "--oneline", "state", "established", "dport = :2049")
    lines = [line for line in output.splitlines() if line.strip()]
    sent, received = (
        sum(map(int, re.findall(rf"\b{name}:(\d+)", output))) for name in ("bytes_acked", "bytes_received")
    )
    return Sockets(len(lines), sent, received)


def look() -> Look:
    """Return the counters of all superblocks, as the daemon sees them."""
    root = Root()
    superblocks, stanzas = observe_superblocks(root, deep=False), observe_stanzas(root) or ()
    return make_look(superblocks, stanzas, time.time(), time.monotonic(), observe_major_faults(root))


_PROGRAM = """
import os, sys, threading, time

def write(number, folder):
    there = os.open(folder, os.O_RDONLY)
    turn = 0
    while True:
        turn += 1
        fd = os.open(f"written{turn % 3}", os.O_RDWR | os.O_CREAT, dir_fd=there)
        os.write(fd, b"x" * 4096)
        os.fsync(fd)
        os.close(fd)
        with open(f"/run/lab-writer-{number}", "w") as file:
            file.write(str(turn))
        time.sleep(float(sys.argv[1]))

for number, folder in enumerate(sys.argv[2:]):
    threading.Thread(target=write, args=(number, folder)).start()
"""


@contextlib.contextmanager
def writing(mounts: Sequence[Mounted], pause_s: float = 0.5) -> Iterator[None]:
    """Write a page to each mount, sync it and close its file, again and again, while the block runs.

    The program holds each mount's folder open, as a shell holds the folder that it is in.
    """
    turns = [Path(f"/run/lab-writer-{number}") for number in range(len(mounts))]
    for turn in turns:
        turn.unlink(missing_ok=True)
    points = [str(mounted.point) for mounted in mounts]
    with program(sys.executable, "-c", _PROGRAM, str(pause_s), *points):
        wait_for("a first turn of each writer", lambda: all(turn.exists() for turn in turns), 120)
        yield
