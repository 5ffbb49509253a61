"""The proof of docs/workloads.md: ways of reading with the kernel's, the vendor's and the service's values.

The argument is the round trip to the server in ms, one of `RTTS_MS`. Leaves `workloads.jsonl` among the
results, a line for each case. The link is the limit, and not the emulated processors. The two fixed values
are measured on a mount that the service leaves alone, before and after the third; the mount that it serves
is made afresh for each case, and read until its value stays.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from statistics import median

from tests.lab.kit.daemon import Daemon
from tests.lab.kit.faults import shaped
from tests.lab.kit.mounts import Mounted, Mounts, set_read_ahead_kb
from tests.lab.kit.reading import WAYS, Way, lay_out, read
from tests.lab.kit.server import GENERIC, Server
from tests.lab.kit.shell import CommandError, becomes

RESULTS = Path("/results/workloads.jsonl")
FIXED_KB = (128, 15360)
RTTS_MS = (0.5, 1, 5, 20)
READERS = (1, 8)
MBIT = 200
SAMPLE_S = 5
ROUND_S = 3.0
QUIET_S = 0.2
MOST_ROUNDS, STEADY_ROUNDS = 24, 4
LEAST_ROUNDS = {"psync": 5, "mmap": 8}
"""By fio's engine: so many turns have the windows of a first verdict, 32 of 15 MiB where files are mapped."""
OPTIONS = "vers=4.1,nconnect=4"
FIXED, SERVED = FOLDERS = ("fixed", "served")
"""Each mount has small files of its own, so that neither meets the delegations that the other one holds."""


def main(rtt_ms: float) -> int:
    """Measure every way of reading at a round trip; return the exit status."""
    try:
        server, mount, daemon = Server(), Mounts(), Daemon()
        server.start()
        for readers, name in itertools.product(READERS, FOLDERS):
            server.path("a").joinpath(name).mkdir(exist_ok=True)
            lay_out(server.path("a"), readers, *(way for way in WAYS if not way.small))
            lay_out(server.path("a") / name, readers, *(way for way in WAYS if way.small))
        daemon.start(f'[daemon]\nsample_interval = "{SAMPLE_S}s"\n')
        # Both names lead to one server: without the option the mounts would share a superblock.
        fixed = mount("a", f"{OPTIONS},nosharecache", host=GENERIC)
        for readers, way in itertools.product(READERS, WAYS):
            with shaped("netem", "delay", f"{rtt_ms / 2}ms", "rate", f"{MBIT}mbit", "limit", "100000"):
                case = {"rtt_ms": rtt_ms, "mbit": MBIT, "readers": readers, "way": way.name}
                case |= _measure(fixed, mount, way, readers)
            with RESULTS.open("a") as file:
                file.write(json.dumps(case) + "\n")
            print(f"lab: {case}", flush=True)
        mount.clean()
    except (CommandError, AssertionError) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


def _measure(fixed: Mounted, mount: Mounts, way: Way, readers: int) -> dict[str, object]:
    runs: dict[int, list[tuple[float, float]]] = {kb: [] for kb in FIXED_KB}
    _fix(fixed, way, readers, runs)
    served = mount("a", f"{OPTIONS},nosharecache")
    becomes(FIXED_KB[1], lambda: served.read_ahead_kb)
    began, wasted, values = time.monotonic(), 0, [served.read_ahead_kb]
    moved_s = 0.0
    settled: list[tuple[float, float]] = []
    while len(values) <= LEAST_ROUNDS[way.engine] or len(set(values[-STEADY_ROUNDS:])) > 1:
        rate, sent, asked = _round(served, SERVED, way, readers)
        settled.append((rate, sent / max(1, asked)))
        wasted += max(0, sent - asked)
        values.append(served.read_ahead_kb)
        if values[-1] != values[-2]:
            moved_s = time.monotonic() - began
        if len(values) > MOST_ROUNDS:
            break
    _fix(fixed, way, readers, runs)
    mount.umount(served)
    return {
        "fixed": {
            str(kb): [median(column) for column in zip(*of_kb, strict=True)] for kb, of_kb in runs.items()
        },
        "adapted": [median(column) for column in zip(*settled[1 - STEADY_ROUNDS :], strict=True)],
        "values": [kb for kb, _ in itertools.groupby(values)],
        "samples": round(moved_s / SAMPLE_S),
        "wasted_bytes": wasted,
    }


def _fix(fixed: Mounted, way: Way, readers: int, runs: dict[int, list[tuple[float, float]]]) -> None:
    for kb in FIXED_KB if len(runs[FIXED_KB[0]]) % 2 else reversed(FIXED_KB):
        set_read_ahead_kb(fixed.device, kb)
        rate, sent, asked = _round(fixed, FIXED, way, readers)
        runs[kb].append((rate, sent / max(1, asked)))


def _round(mounted: Mounted, name: str, way: Way, readers: int) -> tuple[float, int, int]:
    """Return bytes a second, the bytes that the server sent, and those that programs read."""
    # The windows that nobody waited for are still under way when their reader has ended.
    before = -1
    while before != (before := _sent(mounted)):
        time.sleep(QUIET_S)
    delivered = read(way, readers, mounted.point / name if way.small else mounted.point, ROUND_S)
    return delivered.bytes_per_s, _sent(mounted) - before, delivered.read_bytes


def _sent(mounted: Mounted) -> int:
    counted = mounted.stats.bytes
    assert counted is not None
    return counted.server_read


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
