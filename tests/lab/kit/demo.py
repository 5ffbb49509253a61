"""The guest's half of dev/demo: one share, without the service and with it.

Each line begins with its kind, for the host to print: `@heading`, `@text`, `@command`, `@output`, `@failed`.
The demonstration is also a test: a broken promise ends it with status 1.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import mounts, rivals
from tests.lab.kit.daemon import Daemon, Entry
from tests.lab.kit.faults import shaped
from tests.lab.kit.server import ADDRESS, AZURE, Server
from tests.lab.kit.shell import CommandError, run
from tests.lab.kit.watch import WATCH_S, Watched, mount_and_look

KERNELS_KB, AZURES_KB = 128, 15360
RSS_LIMIT_KB = 30_000
SOURCE = f"{AZURE}:/srv/a"
POINT = Path("/data")
OPTIONS = "vers=4.1,sec=sys,nconnect=4"
FILE_MIB = 64
ROUND_TRIP_MS = 20
SAMPLE_INTERVAL_S = 2
CONFIGURATION = f'[daemon]\nsample_interval = "{SAMPLE_INTERVAL_S}s"\n'
SAMPLE_S = 20.0
WIDTH = 80
DISTANCE = ("netem", "delay", f"{ROUND_TRIP_MS // 2}ms", "limit", "100000")
"""The server is as far away as another region: each packet of the loopback waits half a round trip."""


class BrokenPromiseError(Exception):
    """Something that the demonstration is about did not happen; the message has the observation."""


@dataclass(frozen=True)
class Mounting:
    """One mount(8): its start by time(2), its duration, the values after it, and the share's file, open."""

    wall: float
    took_s: float
    watched: Watched
    opened: int


def main() -> int:
    try:
        _demonstrate()
    except (BrokenPromiseError, CommandError, AssertionError) as error:
        _say("failed", str(error))
        return 1
    return 0


def _demonstrate() -> None:
    server, daemon = Server(), Daemon()
    _fill(server.path("a"))
    server.start()
    POINT.mkdir(exist_ok=True)
    slow = _without()
    _start(daemon)
    mounting = _with()
    _say("command", "nfstuned status")
    shown = _on_terminal("nfstuned", "status")
    _say("output", shown)
    _promise(f"{AZURES_KB}/{AZURES_KB} ok" in shown, "status does not call the read-ahead ok")
    _journal(daemon, mounting)
    fast = _sample(daemon, mounting, slow)
    _say("heading", "The cost of the service")
    rss = daemon.rss_kb
    _say("text", f"{rss / 1000:.1f} MB of memory (RSS); it says: {daemon.status_text}")
    _promise(rss <= RSS_LIMIT_KB, f"the daemon's RSS is {rss} kB, above {RSS_LIMIT_KB}")
    _say("heading", "In short")
    ((first, kb),) = mounting.watched.values
    after = f"at the first look, {_time(first)} after mount(8) returned, and for good"
    _say("text", f"read-ahead {KERNELS_KB} -> {kb} KiB, {after}")
    _say("text", f"a sequential read {slow:.0f} -> {fast:.0f} MB/s, {ROUND_TRIP_MS} ms away from the server")


def _fill(share: Path) -> None:
    """Put the file into the server's memory: a disk would be slower than the network."""
    share.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", str(share))
    (share / "file").write_bytes(os.urandom(1 << 20) * FILE_MIB)


def _without() -> float:
    """Mount without the service, read once, unmount; return the speed in MB/s."""
    _say("heading", "Before: Debian and its kernel alone")
    mounting = _mount()
    os.close(mounting.opened)
    rivals.settle()
    _say("text", f"{AZURE} is {ADDRESS}, an address of this guest")
    now = mounts.read_ahead_kb(mounting.watched.device)
    _show_value(mounting)
    _promise(now == KERNELS_KB, f"without the service the read-ahead is {now} KiB, not {KERNELS_KB}")
    with shaped(*DISTANCE):
        speed = _read()
    _say("text", f"reading {FILE_MIB} MiB with a round trip of {ROUND_TRIP_MS} ms: {speed:.1f} MB/s")
    run("umount", str(POINT))
    return speed


def _start(daemon: Daemon) -> None:
    _say("heading", "The service")
    file = daemon.configure(CONFIGURATION)
    _say("command", f"cat {file}")
    _say("output", CONFIGURATION)
    _say("command", "systemctl start nfstuned")
    started = time.monotonic()
    daemon.start()
    _promise(daemon.active, "nfstuned.service is not active")
    _say("text", f"ready after {time.monotonic() - started:.1f} s, in emulation")


def _with() -> Mounting:
    _say("heading", "After: the same mount")
    mounting = _mount()
    _show_value(mounting)
    values = mounting.watched.values
    seen = ", ".join(f"{_time(after)} after mount(8) returned: {kb} KiB" for after, kb in values)
    _promise([kb for _, kb in values] == [AZURES_KB], f"not {AZURES_KB} KiB at once and for good: {seen}")
    _say("text", f"{seen}\nwithout this value for 0.0 ms of its first {WATCH_S:.0f} s")
    with shaped(*DISTANCE):
        speed = _read_opened(mounting.opened)
    _say("text", f"a file that was opened at once, read {ROUND_TRIP_MS} ms away: {speed:.1f} MB/s")
    return mounting


def _journal(daemon: Daemon, mounting: Mounting) -> None:
    """List the daemon's entries among the two ends of mount(8)."""
    _say("heading", "The journal, in times from the start of mount(8)")
    _say("command", "journalctl -u nfstuned")
    # The unit's masks of udev's rules print those without an id.
    entries = [entry for entry in daemon.entries() if entry.get("MESSAGE_ID") != Message.SAMPLE.id]
    events = [(_wall(entry) - mounting.wall, entry["MESSAGE"]) for entry in entries]
    events += [(0.0, "(mount starts)"), (mounting.took_s, "(mount returns)")]
    for after, text in sorted(events):
        _say("output", f"{_time(after, signed=True):>9}  {text}")
    set_entries = [entry for entry in entries if entry.get("MESSAGE_ID") == Message.READ_AHEAD_SET.id]
    values = [entry["NFSTUNED_NEW_KB"] for entry in set_entries]
    _promise(str(AZURES_KB) in values, "the journal does not report the change")


def _sample(daemon: Daemon, mounting: Mounting, slow: float) -> float:
    """Read until the daemon has sampled it; return the speed of the first read in MB/s."""
    _say("heading", "One sample of throughput that the service took while the file was read")
    daemon.journal.mark()
    began, started = time.time(), time.monotonic()
    speeds, entry = [], None
    with shaped(*DISTANCE):
        # No sample is whole before two intervals are over, and looking takes time from the work.
        while entry is None and (spent := time.monotonic() - started) < SAMPLE_S:
            speeds.append(_read())
            if spent > 2 * SAMPLE_INTERVAL_S:
                entry = _sampled(daemon, mounting.watched.device, began)
    if entry is None:
        raise BrokenPromiseError(f"no sample of {POINT} within {SAMPLE_S:.0f} s of reading")
    _say("output", entry["MESSAGE"])
    _say("text", f"the average of {float(entry['NFSTUNED_INTERVAL_S']):.1f} s of reading again and again")
    _say("text", f"reading {FILE_MIB} MiB with a round trip of {ROUND_TRIP_MS} ms: {speeds[0]:.1f} MB/s")
    _promise(speeds[0] > slow, f"reading is no faster: {speeds[0]:.1f} MB/s after {slow:.1f} before")
    return speeds[0]


def _sampled(daemon: Daemon, device: str, began: float) -> Entry | None:
    """Return a sample of an interval that was spent with reading from its start to its end."""
    found = daemon.entries(MESSAGE_ID=Message.SAMPLE.id, NFSTUNED_DEVICE=device)
    whole = (one for one in found if _wall(one) - float(one["NFSTUNED_INTERVAL_S"]) > began)
    return next((one for one in whole if float(one["NFSTUNED_READ_BYTES_PER_S"]) > 0), None)


def _mount() -> Mounting:
    """Mount the share and watch its value for a while."""
    _say("command", f"mount -t nfs -o {OPTIONS} {SOURCE} {POINT}")
    wall, started = time.time(), time.perf_counter()
    watched = mount_and_look(OPTIONS, SOURCE, POINT)
    opened = os.open(POINT / "file", os.O_RDONLY)
    while watched.look() < WATCH_S:
        time.sleep(0.0005)
    return Mounting(wall, watched.returned - started, watched, opened)


def _read() -> float:
    """Open the file and read it; return MB/s."""
    return _read_opened(os.open(POINT / "file", os.O_RDONLY))


def _read_opened(file: int) -> float:
    """Read an open file to its end, without a cache of it, and close it; return MB/s."""
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    started = time.monotonic()
    try:
        while os.read(file, 1 << 17):
            pass
    finally:
        os.close(file)
    return FILE_MIB * 1.048576 / (time.monotonic() - started)


def _on_terminal(*argv: str) -> str:
    """Return a command's output on a terminal of the usual width."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    try:
        subprocess.run(argv, check=True, stdout=follower, env=environment)
        return os.read(leader, 65536).decode().replace("\r", "")
    finally:
        os.close(follower)
        os.close(leader)


def _wall(entry: Entry) -> float:
    """Return when an entry was sent, by time(2)."""
    return int(entry.get("_SOURCE_REALTIME_TIMESTAMP", entry["__REALTIME_TIMESTAMP"])) / 1e6


def _show_value(mounting: Mounting) -> None:
    _say("command", f"cat /sys/class/bdi/{mounting.watched.device}/read_ahead_kb")
    _say("output", str(mounts.read_ahead_kb(mounting.watched.device)))


def _time(seconds: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if abs(seconds) < 1:
        digits = 1 if abs(seconds) < 0.01 else 0
        return f"{seconds * 1000:{sign}.{digits}f} ms"
    return f"{seconds:{sign}.1f} s"


def _promise(kept: object, otherwise: str) -> None:
    if not kept:
        raise BrokenPromiseError(otherwise)


def _say(kind: str, text: str) -> None:
    for line in text.splitlines():
        print(f"@{kind} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
