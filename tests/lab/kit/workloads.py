"""The worth of read-aheads to kinds of readers, near and far: fio in a guest, a line of JSON for each run.

The link is the limit, and not the emulated processors. Leaves `workloads.jsonl` among the results. The
settings of a case come by turns, every other turn in the other order.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nfstuned.host.bench.fio import arguments, parse_fio
from nfstuned.model.bench import Engine, Job, Pattern
from tests.lab.kit.clones import clone, shaped
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.server import AZURE, Server
from tests.lab.kit.shell import CommandError

if TYPE_CHECKING:
    from tests.lab.kit.clones import Clone

RESULTS = Path("/results/workloads.jsonl")
READ_AHEADS_KB = (128, 1024, 4096, 15360)
RTTS_MS = (1, 20)
READERS = (1, 8)
TURNS = 3
RUN_S = 3.0
HERE = "/run/clone"
MIB = 1 << 20
MBIT = 200
LARGE_BYTES, SMALL_BYTES = {1: 256 * MIB, 8: 48 * MIB}, 1 << 16
SMALL_FILES = {1: 512, 8: 64}
"""By the number of readers, for each; so are the bytes of a large file."""


class Way(NamedTuple):
    """How a program goes through its files."""

    engine: str
    pattern: str
    order: Pattern
    block_bytes: int
    skip_bytes: int = 0
    stretch_bytes: int = 0
    small: bool = False
    """Through many small files, one after the other, and not through a large one."""


_STRIDE = MIB - (1 << 16)
WAYS = (
    Way("read", "sequential", Pattern.READ, 1 << 16),
    Way("read", "strided", Pattern.READ, 1 << 16, skip_bytes=_STRIDE),
    Way("read", "random", Pattern.RANDOM_READ, 1 << 12),
    Way("read", "stretches", Pattern.RANDOM_READ, 1 << 13, stretch_bytes=1 << 16),
    Way("read", "small files", Pattern.READ, 1 << 16, small=True),
    Way("mmap", "sequential", Pattern.READ, 1 << 16),
    Way("mmap", "strided", Pattern.READ, 1 << 16, skip_bytes=_STRIDE),
    Way("mmap", "random", Pattern.RANDOM_READ, 1 << 12),
)
ENGINES = {"read": Engine.READ_WRITE, "mmap": Engine.MAPPED}
_MACHINE_ID = "0123456789abcdef0123456789abcdef"
_BYTES = re.compile(r"mounted on /run/clone with .*?\tbytes:\t([0-9 ]+)", re.DOTALL)
_SERVER_READ = 4
"""Which number of `bytes:` the server sent (fs/nfs/super.c, NFSIOS_SERVERREADBYTES)."""


class Case(NamedTuple):
    """A kind of reader at a distance from its server."""

    rtt_ms: int
    readers: int
    way: Way

    @property
    def job(self) -> Job:
        """The job of fio."""
        way = self.way
        return Job(
            "reader",
            way.order,
            way.block_bytes,
            ENGINES[way.engine],
            threads=self.readers,
            files=SMALL_FILES[self.readers] if way.small else 1,
            file_bytes=SMALL_BYTES if way.small else LARGE_BYTES[self.readers],
            # Behind the colon of fio's `rw` a random pattern has the number of blocks at each place.
            skip_bytes=way.skip_bytes or way.stretch_bytes // way.block_bytes,
            runtime_s=RUN_S,
        )

    @property
    def row(self) -> dict[str, Any]:
        """The beginning of each of its lines."""
        way = self.way
        return {
            "rtt_ms": self.rtt_ms,
            "mbit": MBIT,
            "readers": self.readers,
            "engine": way.engine,
            "pattern": way.pattern,
        }


def main() -> int:
    """Measure everything; return the exit status."""
    try:
        server = Server()
        server.start()
        with tempfile.TemporaryDirectory() as folder, clone(1, _MACHINE_ID, Path(folder)) as far:
            far.mount(f"{AZURE}:/srv/a", "vers=4.1,nconnect=4")
            device = far.enter("mountpoint", "--fs-devno", HERE).strip()
            for readers, way in itertools.product(READERS, WAYS):
                job = Case(0, readers, way).job
                far.enter("fio", *arguments(job, HERE), "--create_only=1", timeout=600)
            for rtt_ms in RTTS_MS:
                link = ("netem", "delay", f"{rtt_ms / 2}ms", "rate", f"{MBIT}mbit", "limit", "100000")
                with shaped(far, *link):
                    for readers, way in itertools.product(READERS, WAYS):
                        _measure(far, device, Case(rtt_ms, readers, way))
            far.umount()
    except (CommandError, AssertionError) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


def _measure(far: Clone, device: str, case: Case) -> None:
    """Run a case under each read-ahead by turns, and keep the results."""
    for turn in range(TURNS):
        for kb in READ_AHEADS_KB if turn % 2 else reversed(READ_AHEADS_KB):
            set_read_ahead_kb(device, kb)
            before = _server_read(far)
            output = far.enter("fio", *arguments(case.job, HERE), "--output-format=json", timeout=120)
            delivered = parse_fio(output, case.job.pattern)
            row = {
                **case.row,
                "kb": kb,
                "turn": turn,
                "bytes_per_s": delivered.bytes_per_s,
                "read_bytes": delivered.bytes_per_s * delivered.seconds,
                "sent_bytes": _server_read(far) - before,
            }
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(f"lab: {case.row}", flush=True)


def _server_read(far: Clone) -> int:
    match = _BYTES.search(far.enter("cat", "/proc/self/mountstats"))
    assert match is not None
    return int(match[1].split()[_SERVER_READ])


if __name__ == "__main__":
    sys.exit(main())
