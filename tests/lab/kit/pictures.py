"""The subject of docs/pictures: three mounts in use for minutes, by `nfstuned status`, `top` and `report`.

Leaves `status.ansi`, `top.ansi` and `report.html` among the results. Nothing of them is changed afterwards.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.lab.kit.daemon import Daemon, nfstuned
from tests.lab.kit.screen import PAGE, SCREEN, STATUS, capture, output
from tests.lab.kit.server import AZURE, GENERIC, Server
from tests.lab.kit.shell import CommandError, program, run

RESULTS = Path("/results")
FILE = os.urandom(1 << 20) * 48
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
        Daemon().start('[daemon]\nsample_interval = "5s"\n')
        for point, source, options in MOUNTS:
            Path(point).mkdir(exist_ok=True)
            run("mount", "-t", "nfs", "-o", options, source, point)
        for number, (seconds, loads) in enumerate(PHASES, start=1):
            print(f"lab: phase {number} of {len(PHASES)}", flush=True)
            with contextlib.ExitStack() as stack:
                for load in loads:
                    stack.enter_context(program("sh", "-c", load, stderr=subprocess.DEVNULL))
                if number == len(PHASES):
                    (RESULTS / STATUS).write_bytes(output(("nfstuned", "status")))
                    (RESULTS / SCREEN).write_bytes(capture())
                time.sleep(seconds)
        _leave(f"@{began:.0f}")
    except (CommandError, AssertionError, SystemExit) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


def _prepare() -> None:
    """Start the server with files to read."""
    server = Server()
    server.start()
    (server.path("a") / "file").write_bytes(FILE)
    for number in range(50):
        (server.path("c") / f"small{number}").write_bytes(os.urandom(4096))


def _leave(since: str) -> None:
    """Leave the report among the results."""
    written = nfstuned("report", "--offline", "--since", since, "--output", str(RESULTS / PAGE), timeout=120)
    if not (RESULTS / PAGE).exists():
        raise CommandError(f"nfstuned report: status {written.returncode}\n{written.stderr}")


if __name__ == "__main__":
    sys.exit(main())
