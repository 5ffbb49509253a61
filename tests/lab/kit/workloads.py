"""What read-aheads are worth to kinds of readers, near and far: fio in a guest, a line of JSON for each run.

Leaves `workloads.jsonl` among the results. The settings of a case come by turns, every other turn in the
other order.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nfstuned.host.bench.fio import arguments
from nfstuned.model.bench import Engine, Job, Pattern
from nfstuned.parse.fio import parse_fio
from tests.lab.kit.clones import clone
from tests.lab.kit.link import shaped
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.server import AZURE, Server
from tests.lab.kit.shell import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.clones import Clone

RESULTS = Path("/results/workloads.jsonl")
READ_AHEADS_KB = (128, 1024, 4096, 15360)
RTTS_MS = (1, 20)
READERS = (1, 8)
TURNS = 3
RUN_S = 3.0
HERE = "/run/clone"
MIB = 1 << 20
FILE_BYTES = {1: 256 * MIB, 8: 48 * MIB}
"""By the number of readers, for each."""
PATTERNS = {
    "sequential": (Pattern.READ, 1 << 16, 0),
    "strided": (Pattern.READ, 1 << 16, MIB - (1 << 16)),
    "random": (Pattern.RANDOM_READ, 1 << 12, 0),
}
"""By name: fio's pattern, the block, and what is left out after each block."""
ENGINES = {"read": Engine.READ_WRITE, "mmap": Engine.MAPPED}
_MACHINE_ID = "0123456789abcdef0123456789abcdef"
_BYTES = re.compile(r"mounted on /run/clone with .*?\tbytes:\t([0-9 ]+)", re.DOTALL)
_SERVER_READ = 4
"""Which number of `bytes:` the server sent (fs/nfs/super.c, NFSIOS_SERVERREADBYTES)."""


@dataclass(frozen=True)
class Case:
    """A kind of reader at a distance from its server."""

    rtt_ms: int
    readers: int
    engine: str
    pattern: str

    @property
    def job(self) -> Job:
        rw, block, skip = PATTERNS[self.pattern]
        return Job(
            f"{self.engine}-{self.pattern}",
            rw,
            block,
            ENGINES[self.engine],
            threads=self.readers,
            file_bytes=FILE_BYTES[self.readers],
            skip_bytes=skip,
            runtime_s=RUN_S,
        )


def cases(rtt_ms: int) -> Iterator[Case]:
    """Yield what is measured at a distance."""
    for readers, engine, pattern in itertools.product(READERS, ENGINES, PATTERNS):
        yield Case(rtt_ms, readers, engine, pattern)


def main() -> int:
    """Measure everything; return the exit status."""
    try:
        server = Server()
        server.start()
        with tempfile.TemporaryDirectory() as folder, clone(1, _MACHINE_ID, Path(folder)) as far:
            far.mount(f"{AZURE}:/srv/a", "vers=4.1,nconnect=4")
            device = far.enter("mountpoint", "--fs-devno", HERE).strip()
            for readers in READERS:
                job = Case(0, readers, "read", "sequential").job
                far.enter("fio", *arguments(job, HERE), "--create_only=1", timeout=600)
            for rtt_ms in RTTS_MS:
                with shaped(far, "netem", "delay", f"{rtt_ms / 2}ms", "limit", "100000"):
                    for case in cases(rtt_ms):
                        _measure(far, device, case)
            far.umount()
    except (CommandError, AssertionError) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


def _measure(far: Clone, device: str, case: Case) -> None:
    """Run a case under each read-ahead by turns, and keep what came of it."""
    for turn in range(TURNS):
        for kb in READ_AHEADS_KB if turn % 2 else reversed(READ_AHEADS_KB):
            set_read_ahead_kb(device, kb)
            before = _server_read(far)
            said = far.enter("fio", *arguments(case.job, HERE), "--output-format=json", timeout=120)
            delivered = parse_fio(said, case.job.pattern)
            row = {
                **asdict(case),
                "kb": kb,
                "turn": turn,
                "bytes_per_s": delivered.bytes_per_s,
                "read_bytes": delivered.bytes_per_s * delivered.seconds,
                "sent_bytes": _server_read(far) - before,
            }
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(f"lab: {case}", flush=True)


def _server_read(far: Clone) -> int:
    match = _BYTES.search(far.enter("cat", "/proc/self/mountstats"))
    assert match is not None
    return int(match[1].split()[_SERVER_READ])


if __name__ == "__main__":
    sys.exit(main())
