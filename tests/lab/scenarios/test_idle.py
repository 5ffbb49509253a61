"""Between events and samples the daemon sleeps: no system call at all."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.rivals import settle
from tests.lab.kit.shell import becomes, tuned
from tests.lab.kit.unit import process_status

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

WINDOW_S = 30.0
# Attaching ends the call in which the process sleeps, and it goes to sleep again.
ATTACHING_S = 2.0
SWITCHES = "voluntary_ctxt_switches"
pytestmark = [pytest.mark.release, pytest.mark.usefixtures("quiet_udev")]


def test_it_makes_no_system_call_for_30_s(stopped_daemon: Daemon, mount: Mounts, tmp_path: Path) -> None:
    # It pings the watchdog at half of 180 s: the window lies between two pings.
    stopped_daemon.configure('[daemon]\nsample_interval = "10m"\n')
    stopped_daemon.start()
    started = time.monotonic()
    tuned(15360, mount("a", "vers=3,nolock"), mount("b", "vers=4.1"), mount("c", "vers=4.2"))
    settle()
    time.sleep(5)
    pid, trace = stopped_daemon.pid, tmp_path / "trace"
    with subprocess.Popen(["strace", "-f", "-ttt", "-o", str(trace), "-p", str(pid)]) as strace:
        becomes(True, lambda: _tracer(pid) == strace.pid)
        time.sleep(ATTACHING_S)
        begin, before = time.time(), _switches(pid)
        time.sleep(WINDOW_S)
        end, after = time.time(), _switches(pid)
        strace.terminate()
    assert time.monotonic() - started < 85, "the window is too late: the watchdog's ping may lie in it"
    rows = [line for line in trace.read_text().splitlines() if begin <= float(line.split()[1]) <= end]
    assert rows == [], f"{len(rows)} lines in {WINDOW_S} s"
    assert after - before == 0, f"it woke {after - before} times"


def _tracer(pid: int) -> int:
    return int(process_status(pid)["TracerPid"])


def _switches(pid: int) -> int:
    return int(process_status(pid)[SWITCHES])
