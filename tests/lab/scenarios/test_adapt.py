"""A mount's own reads move its read-ahead: down where they waste it, and back; status says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import Daemon, nfstuned, status_rows
from tests.lab.kit.faults import shaped
from tests.lab.kit.mounts import Mounted, Mounts, set_read_ahead_kb
from tests.lab.kit.reading import MAPPED_RANDOM, SEQUENTIAL, Way, lay_out, read
from tests.lab.kit.server import GENERIC, Server
from tests.lab.kit.shell import Say, becomes, tuned

pytestmark = [pytest.mark.kernel, pytest.mark.newest, pytest.mark.usefixtures("quiet_udev")]

SAMPLE_S = 5
CONFIGURATION = '[daemon]\nsample_interval = "2s"\n'
ON = f'[daemon]\nsample_interval = "{SAMPLE_S}s"\n[profile.azure-files]\nadapt = "on"\n'
VENDORS_KB, KERNELS_KB = 15360, 128
PATIENCE_S = 240.0
ROUND_S = 3.0
NEAR = ("netem", "delay", "0.5ms", "rate", "400mbit", "limit", "100000")
FAR = ("netem", "delay", "10ms", "rate", "200mbit", "limit", "100000")


def test_page_faults_here_and_there_end_with_the_kernels_value_and_reads_in_order_bring_it_back(
    mount: Mounts, server: Server, stopped_daemon: Daemon, say: Say
) -> None:
    lay_out(server.path("a"), 1, SEQUENTIAL)
    stopped_daemon.start(CONFIGURATION)
    mounted = mount("a", "vers=4.1")
    tuned(VENDORS_KB, mounted)
    say(read_until(mounted, MAPPED_RANDOM, lambda: mounted.read_ahead_kb == KERNELS_KB))
    row = status_rows()[str(mounted.point)]
    assert (row["read_ahead_kb"], row["read_ahead_target_kb"], row["adapted"]) == (128, 128, True)
    assert nfstuned("wait", str(mounted.point), "--timeout", "1").returncode == 0
    stopped_daemon.restart()
    assert mounted.read_ahead_kb == KERNELS_KB
    say(read_until(mounted, SEQUENTIAL, lambda: mounted.read_ahead_kb >= 256))
    texts = [entry["MESSAGE"] for entry in stopped_daemon.about(Message.READ_AHEAD_ADAPTED, mounted)]
    say("\n  ".join(texts))
    assert texts[0].startswith(
        f"{mounted.point}: read-ahead 15360 -> 512 KiB, of at most 15360, as the server"
    )
    assert texts[0].endswith("page faults of mapped files")
    assert texts[-1].endswith("as its reads use all of it")


def read_until(mounted: Mounted, way: Way, holds: Callable[[], bool]) -> list[int]:
    """Read again and again until the value is right; return the value after each turn."""
    values: list[int] = []
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S, values
        read(way, 1, mounted.point, ROUND_S)
        values.append(mounted.read_ahead_kb)
    return values


@pytest.mark.release
@pytest.mark.timeout(1200)
def test_eight_readers_of_mapped_files_get_the_kernels_speed_and_one_in_order_then_the_vendors(
    mount: Mounts, server: Server, stopped_daemon: Daemon, say: Say
) -> None:
    lay_out(server.path("a"), 8, MAPPED_RANDOM)
    lay_out(server.path("a"), 1, SEQUENTIAL)
    stopped_daemon.start(ON)
    # Both names lead to one server: without the option the mounts would share a superblock.
    options = "vers=4.1,nconnect=4,nosharecache"
    fixed = mount("a", options, host=GENERIC)
    with shaped(*NEAR):
        usual = median(read(MAPPED_RANDOM, 8, fixed.point, ROUND_S).bytes_per_s for _ in range(3))
        mounted = mount("a", options)
        # Two names of one server: only mountinfo shows which of them the mount has.
        becomes(VENDORS_KB, lambda: mounted.read_ahead_kb)
        assert fixed.read_ahead_kb == KERNELS_KB
        began = time.monotonic()
        while time.monotonic() - began < 5 * SAMPLE_S:
            read(MAPPED_RANDOM, 8, mounted.point, ROUND_S)
        kb = mounted.read_ahead_kb
        adapted = median(read(MAPPED_RANDOM, 8, mounted.point, ROUND_S).bytes_per_s for _ in range(3))
    say(f"here and there: {usual / 1e3:.0f} kB/s with 128 KiB, {adapted / 1e3:.0f} with {kb}")
    assert adapted >= 0.9 * usual
    with shaped(*FAR):
        set_read_ahead_kb(fixed.device, VENDORS_KB)
        vendors = median(read(SEQUENTIAL, 1, fixed.point, ROUND_S).bytes_per_s for _ in range(3))
        began, last = time.monotonic(), 0.0
        values: list[str] = []
        while last < 0.9 * vendors:
            assert time.monotonic() - began < 3 * PATIENCE_S, values
            last = read(SEQUENTIAL, 1, mounted.point, ROUND_S).bytes_per_s
            values.append(f"{last / 1e6:.1f} MB/s with {mounted.read_ahead_kb}")
    say(f"in order: {vendors / 1e6:.1f} MB/s with 15360; {values}")
