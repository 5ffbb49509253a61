"""The subject of docs/pictures: three mounts in use for minutes, as `nfstuned top` and `report` show them.

Leaves `top.ansi`, `report.html` and `samples.txt` among the results. Nothing of them is changed afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lab.kit.daemon import Daemon, nfstuned
from tests.lab.kit.screen import PAGE, SCREEN, capture
from tests.lab.kit.server import AZURE, GENERIC, OTHER_ADDRESS, Server
from tests.lab.kit.shell import CommandError, run

RESULTS = Path("/results")
MIB = 1 << 20
READ_MIB = 48
MOUNTS = (
    ("/data", f"{AZURE}:/srv/a", "vers=4.1,nconnect=4"),
    ("/home", f"{AZURE}:/srv/b", "vers=4.1,nconnect=4"),
    ("/scratch", f"{GENERIC}:/srv/c", "vers=3,nolock"),
)
READING = "while :; do echo 3 >/proc/sys/vm/drop_caches; dd if=/data/file of=/dev/null bs=1M; sleep 1; done"
WRITING = "while :; do dd if=/dev/zero of=/home/out bs=1M count=8 conv=fsync; sleep 4; done"
SMALL = "while :; do ls -lR /scratch >/scratch/list; cat /scratch/small* >/dev/null; sleep 1; done"
PHASES = (
    (40, (READING,)),
    (40, (READING, WRITING)),
    (20, ()),
    (40, (SMALL, WRITING)),
    (50, (READING, WRITING, SMALL)),
)
"""Seconds, and the loads of them; the screen is captured in the last."""


def main() -> int:
    """Leave everything; return the exit status."""
    try:
        began = time.time()
        _prepare()
        daemon = Daemon()
        daemon.configure('[daemon]\nsample_interval = "5s"\n')
        daemon.start()
        for point, source, options in MOUNTS:
            Path(point).mkdir(exist_ok=True)
            run("mount", "-t", "nfs", "-o", options, source, point)
        for number, (seconds, loads) in enumerate(PHASES, start=1):
            print(f"lab: phase {number} of {len(PHASES)}", flush=True)
            with _running(loads):
                if number == len(PHASES):
                    (RESULTS / SCREEN).write_bytes(capture())
                time.sleep(seconds)
        _tell(f"@{began:.0f}")
    except (CommandError, AssertionError, SystemExit) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


def _prepare() -> None:
    """Start the server with files to read, the other one farther away than the first."""
    server = Server()
    server.start()
    (server.path("a") / "file").write_bytes(os.urandom(MIB) * READ_MIB)
    for number in range(50):
        (server.path("c") / f"small{number}").write_bytes(os.urandom(4096))
    print(f"lab: {AZURE} and {GENERIC}, {OTHER_ADDRESS}, serve", flush=True)


@contextmanager
def _running(loads: Sequence[str]) -> Iterator[None]:
    """Run shell loops meanwhile."""
    quiet = subprocess.DEVNULL
    jobs = [
        subprocess.Popen(["sh", "-c", load], stdout=quiet, stderr=quiet, start_new_session=True)
        for load in loads
    ]
    try:
        yield
    finally:
        for job in jobs:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def _tell(since: str) -> None:
    """Leave the output that a person gets."""
    output = nfstuned("samples", "--since", since, timeout=120)
    if output.returncode:
        raise CommandError(f"nfstuned samples: {output.stderr}")
    (RESULTS / "samples.txt").write_text(output.stdout)
    written = nfstuned("report", "--offline", "--since", since, "--output", str(RESULTS / PAGE), timeout=120)
    if not (RESULTS / PAGE).exists():
        raise CommandError(f"nfstuned report: status {written.returncode}\n{written.stderr}")


if __name__ == "__main__":
    sys.exit(main())
