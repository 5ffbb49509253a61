"""The proof of docs/reliability.md under load: thousands of superblocks at once, and mounts in turns.

Leaves `crowds.jsonl` among the results. mount(2) makes each mount: thousands of processes of mount(8) would
take most of the time in emulation. Each mount is a superblock of version 3 with a bdi of its own
(`nosharecache`). A mount's time to value begins with the return of mount(2), and ends with the first look
that shows the value: it includes the time of that look.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from queue import SimpleQueue

from tests.lab.kit.daemon import STATE, UNIT, Daemon
from tests.lab.kit.mounts import Mounts, all_read_ahead_kb, device_of, set_read_ahead_kb
from tests.lab.kit.rivals import settle
from tests.lab.kit.server import ADDRESS, AZURE, Server
from tests.lab.kit.shell import CommandError, run, wait_for
from tests.lab.kit.strangers import strangers
from tests.lab.kit.watch import NEVER, STEP_S, Watched

RESULTS = Path("/results/crowds.jsonl")
GROWING = "levels"
PARTS = (GROWING, "turns")
"""Of a boot each."""
LEVELS = (10, 100, 500, 1000, 2000)
STARTS = (100, 500)
TURNS, A_SECOND = 20_000, 5.6
"""In turns: 20,000 mounts in an hour."""
A_ROW = 1000
PROBES = 100
"""Mounts that are timed one after the other, with so many superblocks present."""
WORKERS = 4
"""Threads that mount at once."""
TRIES = 3
"""An overloaded rpc.mountd may refuse a mount."""
KB, KERNELS_KB = 15360, 128
KEPT = 10
REST_S = 60.0
"""Without a mount: a sample and a look are due in it."""
MOST_S = 60.0
LONG_S = 1200.0
TODAY = datetime.now(timezone.utc).date().isoformat()
_SOURCE = f"{AZURE}:/srv/a".encode()
# A few hundred mounts in a minute would use up the reserved ports. mount.nfs adds the addresses: the kernel
# resolves no names.
_OPTIONS = f"vers=3,nolock,nosharecache,noresvport,addr={ADDRESS},mountaddr={ADDRESS}".encode()
_LIBC = ctypes.CDLL(None, use_errno=True)


def mount_at(point: Path, tries: int = TRIES) -> Watched:
    """Mount the share by mount(2), and look at the value as soon as it has returned. Raises OSError."""
    failed = _LIBC.mount(_SOURCE, bytes(point), b"nfs", 0, _OPTIONS)
    returned = time.perf_counter()
    if failed and tries > 1:
        time.sleep(1)
        return mount_at(point, tries - 1)
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(point))
    return Watched(point, device_of(point), returned)


def unmount(point: Path) -> None:
    """Unmount by umount(2). Raises OSError."""
    if _LIBC.umount2(bytes(point), 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(point))


def look_until_right(watched: Watched) -> float:
    """Look until the value is right; return the seconds, NEVER after MOST_S."""
    while watched.values[-1][1] != KB and watched.look() < MOST_S:
        time.sleep(STEP_S)
    watched.close()
    return watched.right_after_s(KB)


def times(taken_s: Sequence[float]) -> dict[str, object]:
    """Return the times to value of mounts: their number, those that never had it, p50, p99 and the worst."""
    ordered = sorted(taken_s)
    found: dict[str, object] = {"mounts": len(ordered), "never": ordered.count(NEVER)}
    for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("worst_ms", 1.0)):
        taken = ordered[max(0, -(-int(share * 100 * len(ordered)) // 100) - 1)]
        found[name] = None if taken == NEVER else round(taken * 1000, 1)
    return found


@dataclass
class Crowd:
    """The mounts that are present, and the daemon's process."""

    daemon: Daemon
    mount: Mounts
    present: dict[Path, str] = field(default_factory=dict)
    """The device numbers, by mount point."""
    pid: int = 0

    def start(self) -> float:
        """Start the daemon; return the seconds until it is ready."""
        began = time.perf_counter()
        run("systemctl", "start", UNIT, timeout=LONG_S)
        took = time.perf_counter() - began
        self.pid = self.daemon.pid
        return took

    def used_ms(self) -> tuple[float, float]:
        """Return the daemon's CPU time, and how long it waited for a processor."""
        ran, waited, _ = Path(f"/proc/{self.pid}/schedstat").read_text().split()
        return int(ran) / 1e6, int(waited) / 1e6

    def spent(self, before_ms: tuple[float, float], mounts: int) -> dict[str, object]:
        """Return the CPU time and the wait for a processor since then, for each mount."""
        names = ("cpu_ms_a_mount", "waited_ms_a_mount")
        both = zip(names, self.used_ms(), before_ms, strict=True)
        return {name: round((now - before) / mounts, 1) for name, now, before in both}

    def process(self) -> dict[str, object]:
        """Return the daemon's memory and descriptors."""
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        rss = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        return {"rss_kb": rss, "descriptors": len(os.listdir(f"/proc/{self.pid}/fd"))}

    def wrong(self) -> int:
        """Return the number of present superblocks without their value."""
        values = all_read_ahead_kb()
        return sum(values.get(device) != f"{KB}\n" for device in self.present.values())

    def records(self) -> int:
        """Return how many superblocks the daemon has a record of."""
        return len(os.listdir(STATE / "read-ahead"))

    def grow(self, number: int) -> dict[str, object]:
        """Mount by several threads, as fast as it goes, until so many are present; return the times."""
        points = [self.mount.new_point() for _ in range(number - len(self.present))]
        made: SimpleQueue[Watched] = SimpleQueue()
        began, before = time.perf_counter(), self.used_ms()
        taken: list[float] = []
        pending: list[Watched] = []
        with ThreadPoolExecutor(WORKERS) as pool:
            jobs = pool.map(lambda point: made.put(mount_at(point)), points)
            while len(taken) < len(points) and time.perf_counter() - began < LONG_S:
                asked = time.perf_counter()
                while not made.empty():
                    pending.append(made.get())
                    self.present[pending[-1].point] = pending[-1].device
                for watched in pending:
                    if watched.values[-1][1] != KB:
                        watched.look()
                right = [watched for watched in pending if watched.values[-1][1] == KB]
                for watched in right:
                    pending.remove(watched)
                    watched.close()
                    taken.append(watched.right_after_s(KB))
                # The looks at hundreds of mounts must not take the processors.
                time.sleep(max(STEP_S, 3 * (time.perf_counter() - asked)))
            took = time.perf_counter() - began
            list(jobs)
        taken += [NEVER] * (len(points) - len(taken))
        return {"seconds": round(took, 1)} | self.spent(before, len(points)) | times(taken)

    def take_turns(self, number: int, gap_s: float = 0.0) -> dict[str, object]:
        """Mount and unmount so many, one after the other, each when it is due; return the times."""
        began, before = time.perf_counter(), self.used_ms()
        point = self.mount.new_point()
        taken: list[float] = []
        for turn in range(number):
            time.sleep(max(0.0, began + turn * gap_s - time.perf_counter()))
            taken.append(look_until_right(mount_at(point)))
            unmount(point)
        took = time.perf_counter() - began
        return {"seconds": round(took, 1)} | self.spent(before, number) | times(taken)

    def rest(self) -> dict[str, object]:
        """Return the daemon's CPU time of a minute without a mount or unmount, and its memory."""
        settle()
        time.sleep(REST_S / 6)
        before = self.used_ms()[0]
        time.sleep(REST_S)
        return {"cpu_ms_a_minute": round((self.used_ms()[0] - before) * 60 / REST_S)} | self.process()

    def begin_again(self) -> dict[str, object]:
        """Start the daemon with all superblocks present and at the kernel's value; return its times."""
        self.daemon.stop()
        for record in (STATE / "read-ahead").iterdir():
            record.unlink()
        for device in self.present.values():
            set_read_ahead_kb(device, KERNELS_KB)
        settle()
        began = time.perf_counter()
        ready_s = self.start()
        wait_for("all values", lambda: not self.wrong(), LONG_S)
        took = time.perf_counter() - began
        return {"ready_s": round(ready_s, 1), "right_s": round(took, 1), "cpu_ms": round(self.used_ms()[0])}

    def vanish(self) -> dict[str, object]:
        """Unmount all at once; return the seconds of that, and until the daemon has no record of them."""
        number, began, before = len(self.present), time.perf_counter(), self.used_ms()
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(unmount, self.present))
        took = time.perf_counter() - began
        self.present.clear()
        wait_for("no record", lambda: self.records() == 0, LONG_S)
        forgotten = time.perf_counter() - began
        figures = {"mounts": number, "seconds": round(took, 1), "forgotten_s": round(forgotten, 1)}
        return figures | self.spent(before, number)


Measured = tuple[str, int, dict[str, object]]


def levels(crowd: Crowd, most: int) -> Iterator[Measured]:
    """Yield the part, the number of superblocks present, and the figures: more and more, and all at once."""
    crowd.start()
    yield "empty", 0, crowd.rest()
    for level in (*(level for level in LEVELS if level < most), most):
        yield "grow", level, crowd.grow(level) | {"wrong": crowd.wrong()}
        yield "turns", level, crowd.take_turns(PROBES)
        yield "rest", level, crowd.rest()
        if level in STARTS or level == most:
            yield "start", level, crowd.begin_again() | crowd.process()
    yield "vanish", most, crowd.vanish() | crowd.process()
    yield "at once", most, crowd.grow(most) | {"wrong": crowd.wrong()}
    yield "vanish", most, crowd.vanish() | crowd.process()


def churn(crowd: Crowd, turns: int) -> Iterator[Measured]:
    """Yield the same of many mounts and unmounts in turns, while a few stay."""
    crowd.start()
    crowd.grow(KEPT)
    for done in range(0, turns, A_ROW):
        figures = crowd.take_turns(min(A_ROW, turns - done), 1 / A_SECOND)
        yield "churn", KEPT, figures | crowd.process() | {"wrong": crowd.wrong()}


def main(arguments: Sequence[str]) -> int:
    """Measure all; return the exit status."""
    parser = argparse.ArgumentParser("sh dev/lab KERNEL crowds")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--superblocks", type=int, default=LEVELS[-1])
    parser.add_argument("--mounts", type=int, default=TURNS, help="mounts in turns")
    wanted = parser.parse_args(arguments)
    # Each mount that waits for its value has an open file.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd = Crowd(Daemon(), Mounts())
    try:
        server = Server()
        server.start()
        server.export("a", options="insecure")
        guest: dict[str, object] = {"part": "guest", "release": os.uname().release, "date": TODAY}
        guest |= {"patience_s": MOST_S}
        _keep(guest)
        with strangers() as others:
            before = others.values()
            growing = wanted.part == GROWING
            measured = levels(crowd, wanted.superblocks) if growing else churn(crowd, wanted.mounts)
            for part, present, figures in measured:
                _keep({"part": part, "present": present} | figures)
            failed = len(crowd.daemon.failed_cycles)
            _keep({"part": "end", "failed_cycles": failed, "strangers_kept": others.values() == before})
    except (CommandError, AssertionError, OSError) as error:
        print(f"@failed {error!r}", flush=True)
        return 1
    return 0


def _keep(row: dict[str, object]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(f"lab: {row}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
