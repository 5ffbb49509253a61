"""The daemon sleeps between events, its memory does not grow with them, and is small with many mounts."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import pyudev

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import Daemon
from tests.lab.kit.mounts import Mounted, Mounts, announce
from tests.lab.kit.rivals import settle
from tests.lab.kit.server import Server
from tests.lab.kit.shell import Say, becomes, program, tuned, wait_for
from tests.lab.kit.unit import let_tick, process_status

pytestmark = [pytest.mark.release, pytest.mark.timeout(900), pytest.mark.usefixtures("quiet_udev")]
EVENTS = 2000
CYCLES = 100
MOST_GROWTH_KB = 1024
MOST_KB = 30 * 1024
MOUNTS = 50
MANY = 200
READ_BYTES = 1 << 17
OFTEN_S = 2.0
OFTEN = f'[daemon]\nsample_interval = "{OFTEN_S:.0f}s"\n'
WINDOW_S = 30.0
SWITCHES = "voluntary_ctxt_switches"
# The calls of an event of the kernel that is not the daemon's, such as a connection that lockd gives up late.
CALLS_OF_EVENT = 4


def test_thousands_of_events_add_little(stopped_daemon: Daemon, mount: Mounts, say: Say) -> None:
    stopped_daemon.start(OFTEN)
    tuned(15360, kept := mount("a"))
    let_tick(stopped_daemon)
    before = stopped_daemon.rss_kb
    for _ in range(CYCLES):
        mount.umount(mount("d", "vers=4.2"))
    say(f"{stopped_daemon.rss_kb} KiB after {CYCLES} NFSv4 mounts and unmounts")
    # Each cycle is four events: the superblock and the pseudo-root come and go. Half of the others announce a
    # new superblock, which takes the longest way through the daemon.
    synthetic = EVENTS - 4 * CYCLES
    for action in ("add", "change"):
        announce(synthetic // 2, kept.device, action)
        settle()
        say(f"{synthetic // 2} synthetic events, {action}")
    let_tick(stopped_daemon)
    after = stopped_daemon.rss_kb
    output = f"{before} KiB before, {after} KiB after the synthetic events"
    say(output)
    assert after - before < MOST_GROWTH_KB, output
    assert kept.read_ahead_kb == 15360
    assert stopped_daemon.failed_cycles == []


def test_50_mounts_fit_30_mb(stopped_daemon: Daemon, server: Server, mount: Mounts, say: Say) -> None:
    shares = [f"m{number}" for number in range(MOUNTS)]
    server.export(*shares)
    stopped_daemon.start(OFTEN)
    mounts = [mount(share, "vers=4.1,nconnect=4") for share in shares]
    tuned(15360, *mounts)

    def sampled() -> bool:
        # A mount that is used before the daemon's first look has no rate yet, and needs another use.
        for mounted in mounts:
            (mounted.point / "file").write_bytes(b"x" * 10_000)
        samples = stopped_daemon.entries(MESSAGE_ID=Message.SAMPLE.id)
        return {entry["NFSTUNED_DEVICE"] for entry in samples} >= {mounted.device for mounted in mounts}

    wait_for("a sample of each", sampled, 60)
    let_tick(stopped_daemon)
    say(f"{stopped_daemon.rss_kb} KiB with {MOUNTS} mounts")
    assert stopped_daemon.rss_kb <= MOST_KB


def test_the_loop_costs_200_mounts_in_use_little(
    stopped_daemon: Daemon, server: Server, mount: Mounts, say: Say, tmp_path: Path
) -> None:
    """Without and with the loop, in one run: system calls, processor time and memory of samples of all."""
    shares = [f"m{number}" for number in range(MANY)]
    server.export(*shares)
    for share in shares:
        (server.path(share) / "file").write_bytes(b"x" * READ_BYTES)
    mounts = [mount(share, "vers=4.2") for share in shares]
    costs: dict[str, Cost] = {}
    for adapt in ("off", "down"):
        stopped_daemon.configure(f'{OFTEN}[profile.azure-files]\nadapt = "{adapt}"\n')
        stopped_daemon.restart()
        tuned(15360, *mounts)
        costs[adapt] = cost(stopped_daemon, mounts, tmp_path / adapt)
        say(f"{MANY} mounts, adapt = {adapt!r}, a sample: {costs[adapt]}")
    without, loop = costs["off"], costs["down"]
    assert loop.calls <= 1.1 * without.calls
    assert loop.cpu_ms <= 1.5 * without.cpu_ms
    assert loop.rss_kb <= without.rss_kb + 1024


class Cost(NamedTuple):
    """The mean cost of a sample, and the memory."""

    calls: float
    cpu_ms: float
    rss_kb: int


def cost(daemon: Daemon, mounts: Sequence[Mounted], trace: Path) -> Cost:
    read_all(mounts)
    before = cpu_ms(daemon.pid)
    samples = read_all(mounts)
    used, rss = cpu_ms(daemon.pid) - before, daemon.rss_kb
    with program("strace", "-f", "-o", str(trace), "-p", str(daemon.pid)) as strace:
        becomes(str(strace.pid), lambda: process_status(daemon.pid)["TracerPid"])
        traced = read_all(mounts)
    calls = sum(1 for line in trace.read_text().splitlines() if "resumed>" not in line)
    return Cost(round(calls / traced), round(used / samples, 1), rss)


def read_all(mounts: Sequence[Mounted]) -> float:
    """Read a file of every mount from the server again and again; return the number of samples meanwhile."""
    began = time.monotonic()
    while time.monotonic() - began < WINDOW_S:
        Path("/proc/sys/vm/drop_caches").write_text("1")
        for mounted in mounts:
            (mounted.point / "file").read_bytes()
    return (time.monotonic() - began) / OFTEN_S


def cpu_ms(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6


def test_it_rests_for_30_s_without_huge_pages(stopped_daemon: Daemon, mount: Mounts, tmp_path: Path) -> None:
    # It pings the watchdog at half of 180 s: the window lies between two pings.
    stopped_daemon.start('[daemon]\nsample_interval = "10m"\n')
    started = time.monotonic()
    tuned(15360, mount("a", "vers=3,nolock"), mount("b", "vers=4.1"), mount("c", "vers=4.2"))
    settle()
    time.sleep(5)
    pid, trace = stopped_daemon.pid, tmp_path / "trace"
    # Huge pages come after minutes, by the heap's age and not by the daemon's doing: 4 MiB at once on 6.18.
    assert process_status(pid)["THP_enabled"] == "0"
    with subprocess.Popen(["strace", "-f", "-ttt", "-o", str(trace), "-p", str(pid)]) as strace:
        becomes(str(strace.pid), lambda: process_status(pid)["TracerPid"])
        # Attaching ends the call in which the process sleeps, and it goes to sleep again.
        time.sleep(2)
        kernel = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        kernel.start()
        begin, before = time.time(), process_status(pid)[SWITCHES]
        time.sleep(WINDOW_S)
        end, after = time.time(), process_status(pid)[SWITCHES]
        strace.terminate()
    calls = 0
    while kernel.poll(0) is not None:
        calls += CALLS_OF_EVENT
    assert time.monotonic() - started < 85, "the window is too late: the watchdog's ping may lie in it"
    rows = [line for line in trace.read_text().splitlines() if begin <= float(line.split()[1]) <= end]
    assert len(rows) <= calls, f"{len(rows)} lines in {WINDOW_S} s: {rows}"
    assert calls or after == before, "it woke"
