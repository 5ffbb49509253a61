"""Print the cost of metrics: python -m tests.bench.bench_metrics.

The service counts each look, and a child of it makes the text; over files as the kernel prints them.
"""

from __future__ import annotations

import re
import statistics
import time

from nfstuned.core.mounts.status import status
from nfstuned.core.samples.rates import look
from nfstuned.core.samples.totals import count
from nfstuned.host.config import builtin_policy
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.totals import Service, Totals
from nfstuned.parse.proc.mountstats import parse_stanzas
from nfstuned.view.metrics import exposition, families
from tests.parse.conftest import DATA

ROUNDS = 9
SERVICE = Service("0", 0.0, 0.0, 60.0, 0.0, policy_valid=True)
OPTIONS = Options((("vers", "4.1"), ("proto", "tcp"), ("nconnect", "4"), ("addr", "10.10.10.10")))


def mountstats(mounts: int, step: int) -> bytes:
    """A real NFSv4.1 stanza that many times; bytes, WRITE, GETATTR and SEQUENCE move with `step`."""
    text = (DATA / "6.12" / "mountstats").read_text()
    found = next(part for part in re.split(r"(?<=\n)(?=device )", text) if "vers=4.1" in part)
    more = 1000 * step
    grown = re.sub(r"(bytes:\t)(\d+)", lambda m: f"{m[1]}{int(m[2]) + more}", found)
    for name in ("WRITE", "GETATTR", "SEQUENCE"):
        grown = re.sub(
            rf"( {name}: )(\d+) (\d+)", lambda m: f"{m[1]}{int(m[2]) + more} {int(m[3]) + more}", grown
        )
    grown = re.sub(r"(age:\t)(\d+)", lambda m: f"{m[1]}{int(m[2]) + 60 * step}", grown)
    return "".join(re.sub(r"mounted on \S+", f"mounted on /mnt/{n}", grown) for n in range(mounts)).encode()


def main() -> None:
    """Measure hosts of 200 and of 1,000 mounts of one server, each of them used."""
    policy = builtin_policy()
    for mounts in (200, 1000):
        first = parse_stanzas([mountstats(mounts, 0)])
        second = parse_stanzas([mountstats(mounts, 1)], first)
        host = Snapshot(
            tuple(
                Superblock(
                    f"0:{n}", n, 128, (Mount(n, 1, f"0:{n}", "/", s.point, "nfs4", s.source, OPTIONS),)
                )
                for n, s in enumerate(first)
            )
        )
        start = count(Totals(), look(host, first, 0.0, 0.0), {}, mounts)
        later = look(host, second, 60.0, 60.0)
        counted, written = [], []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            totals = count(start, later, {}, mounts)
            middle = time.perf_counter()
            text = exposition(families(totals, status(host, policy), SERVICE))
            counted.append(middle - began)
            written.append(time.perf_counter() - middle)
        series = sum(1 for row in text.splitlines() if not row.startswith("#"))
        count_ms, write_ms = (1e3 * statistics.median(t) for t in (counted, written))
        print(
            f"{mounts:4} mounts: count {count_ms:.1f} ms, text {write_ms:.1f} ms "
            f"({series} series, {len(text) / 1e6:.2f} MB)"
        )


if __name__ == "__main__":
    main()
