"""Load of known size, and who else counted it: fio, the server's own counters, and the sockets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounted

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


@dataclass(frozen=True)
class Moved:
    """Bytes and requests that somebody counted."""

    read_bytes: int
    write_bytes: int
    reads: int = 0
    writes: int = 0

    def __sub__(self, other: Moved) -> Moved:
        return Moved(
            self.read_bytes - other.read_bytes,
            self.write_bytes - other.write_bytes,
            self.reads - other.reads,
            self.writes - other.writes,
        )


def fio(mounted: Mounted, job: Job) -> Moved:
    """Run a job on the file "load" of a mount; return what fio says that it read and wrote.

    The file must be there in its full size, or fio writes it first.
    """
    said = run(
        "fio", "--name=load", f"--filename={mounted.point}/load", f"--rw={job.rw}", f"--bs={job.block}",
        f"--size={job.size}", f"--direct={int(job.direct)}", "--ioengine=psync", "--thread",
        "--fallocate=none", "--overwrite=1", "--end_fsync=1", "--output-format=json",
    )  # fmt: skip
    (done,) = json.loads(said[said.index("{") :])["jobs"]
    return Moved(*(done[way][what] for what in ("io_bytes", "total_ios") for way in ("read", "write")))


def nfsd() -> Moved:
    """Return what the server counted since it was loaded (nfsd's /proc/net/rpc/nfsd)."""
    rows = {name: [int(word) for word in words] for name, *words in map(str.split, _rows())}
    reads, writes = (sum(_count(rows, *place) for place in places) for places in (_READS, _WRITES))
    return Moved(rows["io"][0], rows["io"][1], reads, writes)


def _rows() -> list[str]:
    return [row for row in _NFSD.read_text().splitlines() if row.startswith(("io ", "proc3 ", "proc4ops "))]


def _count(rows: dict[str, list[int]], row: str, number: int) -> int:
    """Return how often the server served a procedure; the row begins with how many it counts."""
    counts = rows[row][1:]
    return counts[number] if number < len(counts) else 0


@dataclass(frozen=True)
class Sockets:
    """The client's TCP connections to the server, and the payload that they carried."""

    number: int
    sent: int
    received: int

    def __sub__(self, other: Sockets) -> Sockets:
        return Sockets(self.number - other.number, self.sent - other.sent, self.received - other.received)


def sockets() -> Sockets:
    """Return what ss(8) says of them."""
    said = run("ss", "--tcp", "--info", "--no-header", "--oneline", "state", "established", "dport = :2049")
    lines = [line for line in said.splitlines() if line.strip()]
    sent, received = (
        sum(map(int, re.findall(rf"\b{name}:(\d+)", said))) for name in ("bytes_acked", "bytes_received")
    )
    return Sockets(len(lines), sent, received)
