"""Whether the read-ahead that bench proposes is as good as the best of all, over ten links and readers.

For each kind `nfstuned bench --suite read-ahead` searches first; then every value that the search may try
is measured, by turns. Leaves `shapes.jsonl` among the results: a line of JSON for each kind, with the
proposal and the runs under each value.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nfstuned.core.bench.plan import ROUND_TRIPS, candidates, with_long_runs
from nfstuned.host.bench.fio import arguments, parse_fio
from nfstuned.host.bench.suites import suite
from nfstuned.model.bench import Job, Pattern
from tests.lab.kit.clones import clone, shaped
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.server import AZURE, Server
from tests.lab.kit.shell import CommandError

if TYPE_CHECKING:
    from tests.lab.kit.clones import Clone

RESULTS = Path("/results/shapes.jsonl")
HERE = "/run/clone"
TARGET_KB = 15360
SUITE = "read-ahead"
TURNS = 3
RUN_S = 2.0
"""How long a run is over a short link. Over a long link it is as long as bench has it by itself."""
MIB = 1 << 20
READERS = {"one-reader": 1, "four-readers": 4}
"""By the name of the suite's job."""
_MACHINE_ID = "0123456789abcdef0123456789abcdef"


class Shape(NamedTuple):
    """A link, and who reads over it."""

    rtt_ms: int
    mbit: int
    job: str

    @property
    def words(self) -> tuple[str, ...]:
        """The link in the words of tc(8), for each direction."""
        return ("netem", "delay", f"{self.rtt_ms / 2}ms", "rate", f"{self.mbit}mbit", "limit", "100000")

    @property
    def is_long(self) -> bool:
        """Whether the short run is too short for it."""
        return ROUND_TRIPS * self.rtt_ms > RUN_S * 1000

    @property
    def runtime_s(self) -> float:
        """How long a run is."""
        return (
            with_long_runs(suite(SUITE, full=False), self.rtt_ms).jobs[0].runtime_s if self.is_long else RUN_S
        )


SHAPES = (
    Shape(1, 50, "one-reader"),
    Shape(1, 200, "one-reader"),
    Shape(5, 200, "one-reader"),
    Shape(5, 100, "four-readers"),
    Shape(20, 200, "one-reader"),
    Shape(20, 200, "four-readers"),
    Shape(20, 50, "four-readers"),
    Shape(50, 100, "one-reader"),
    Shape(50, 100, "four-readers"),
    Shape(100, 100, "one-reader"),
)


def main() -> int:
    """Measure every kind; return the exit status."""
    try:
        Server().start()
        with tempfile.TemporaryDirectory() as folder, clone(1, _MACHINE_ID, Path(folder)) as far:
            for shape in SHAPES:
                job = _job(shape)
                with shaped(far, *shape.words):
                    device = _mounted(far)
                    proposal = _proposed(far, shape)
                    runs = _swept(far, device, job)
                    far.umount()
                _keep({**shape._asdict(), "proposed_kb": proposal, "bytes_per_s": runs})
    except (CommandError, AssertionError) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


def _mounted(far: Clone) -> str:
    """Mount again, so that bench knows the round trip of this link; return the device number."""
    far.mount(f"{AZURE}:/srv/a", "vers=4.1,nconnect=4")
    return far.enter("mountpoint", "--fs-devno", HERE).strip()


def _job(shape: Shape) -> Job:
    readers = READERS[shape.job]
    each, seconds = 64 * MIB // readers, shape.runtime_s
    return Job("reader", Pattern.READ, 1 << 16, threads=readers, file_bytes=each, runtime_s=seconds)


def _proposed(far: Clone, shape: Shape) -> int:
    runtime = () if shape.is_long else ("--runtime", f"{RUN_S:g}")
    words = ("--suite", SUITE, "--job", shape.job, *runtime, "--size", "64M")
    kb: int = _bench(far, *words)["proposed_read_ahead_kb"]
    return kb


def _bench(far: Clone, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        far.enter("nfstuned", "bench", HERE, "--yes", "--format", "json", *words, timeout=1200)
    )
    assert document["ended"] == ""
    return document


def _swept(far: Clone, device: str, job: Job) -> dict[int, list[float]]:
    """Return the throughputs under each value that a search may try; nothing but this is in the link."""
    values = candidates(TARGET_KB, None)
    runs: dict[int, list[float]] = {kb: [] for kb in values}
    try:
        far.enter("fio", *arguments(job, HERE), "--create_only=1", timeout=600)
        for turn in range(TURNS):
            for kb in values if turn % 2 else reversed(values):
                set_read_ahead_kb(device, kb)
                output = far.enter("fio", *arguments(job, HERE), "--output-format=json", timeout=120)
                runs[kb].append(parse_fio(output, job.pattern).bytes_per_s)
    finally:
        far.enter("sh", "-c", f"rm -f {HERE}/*-1-{job.file_bytes}.*")
    return runs


def _keep(row: dict[str, Any]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"lab: {json.dumps(row)[:200]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
