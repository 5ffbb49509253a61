"""The daemon sleeps between events, its memory does not grow with them, and is small with many mounts."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import Daemon
from tests.lab.kit.mounts import Mounts, announce, cycle
from tests.lab.kit.rivals import settle
from tests.lab.kit.server import Server
from tests.lab.kit.shell import becomes, tuned
from tests.lab.kit.unit import let_tick, process_status

pytestmark = [pytest.mark.release, pytest.mark.timeout(900), pytest.mark.usefixtures("quiet_udev")]
EVENTS = 2000
CYCLES = 100
MOST_GROWTH_KB = 1024
MOST_KB = 30 * 1024
MOUNTS = 50
OFTEN = '[daemon]\nsample_interval = "2s"\n'
WINDOW_S = 30.0
# Attaching ends the call in which the process sleeps, and it goes to sleep again.
ATTACHING_S = 2.0
SWITCHES = "voluntary_ctxt_switches"


def test_the_kernel_gives_it_no_huge_pages(daemon: Daemon) -> None:
    # They come after minutes, by the heap's age and not by the daemon's doing: 4 MiB at once on 6.18.
    assert process_status(daemon.pid)["THP_enabled"] == "0"


def test_thousands_of_events_add_next_to_nothing(
    stopped_daemon: Daemon, mount: Mounts, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped_daemon.configure(OFTEN)
    stopped_daemon.start()
    kept = mount("a")
    tuned(15360, kept)
    let_tick(stopped_daemon)
    before = stopped_daemon.rss_kb
    real = cycle(mount, CYCLES)
    between = stopped_daemon.rss_kb
    _say(capsys, f"{real} events of {CYCLES} NFSv4 mounts and unmounts")
    # Half of the others announce a new superblock, which takes the longest way through the daemon.
    synthetic = EVENTS - real
    for action in ("add", "change"):
        announce(synthetic // 2, kept.device, action)
        settle()
        _say(capsys, f"{synthetic // 2} synthetic events, {action}")
    let_tick(stopped_daemon)
    after = stopped_daemon.rss_kb
    grown = after - before
    output = (
        f"{before} KiB, {between} KiB after {real} events of {CYCLES} NFSv4 mounts and unmounts, "
        f"{after} KiB after {synthetic} synthetic ones: {grown:+} KiB"
    )
    _say(capsys, output)
    assert grown < MOST_GROWTH_KB, output
    assert kept.read_ahead_kb == 15360
    failed = [entry["MESSAGE"] for entry in stopped_daemon.entries(MESSAGE_ID=Message.CYCLE_FAILED.id)]
    assert failed == []


def test_50_mounts_take_at_most_30_mb(
    stopped_daemon: Daemon, server: Server, mount: Mounts, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = [f"m{number}" for number in range(MOUNTS)]
    server.export(*shares)
    stopped_daemon.configure(OFTEN)
    stopped_daemon.start()
    mounts = [mount(share, "vers=4.1,nconnect=4") for share in shares]
    tuned(15360, *mounts)
    # A mount that is used before the daemon's first look has no rate yet.
    let_tick(stopped_daemon)
    for mounted in mounts:
        (mounted.point / "file").write_bytes(b"x" * 10_000)
    # Each of them is sampled, and reported.
    devices = {mounted.device for mounted in mounts}
    becomes(devices, lambda: devices & _sampled(stopped_daemon), 60)
    let_tick(stopped_daemon)
    resident = stopped_daemon.rss_kb
    output = f"{resident} KiB with {MOUNTS} mounts"
    _say(capsys, output)
    assert resident <= MOST_KB, output


def _sampled(daemon: Daemon) -> set[str]:
    return {entry["NFSTUNED_DEVICE"] for entry in daemon.entries(MESSAGE_ID=Message.SAMPLE.id)}


def _say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Into the boot's output, also when all is well."""
    with capsys.disabled():
        print(f"\n{text}")


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
