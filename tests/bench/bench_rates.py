"""Print what two looks at 1,000 superblocks cost, from values to rates: python -m tests.bench.bench_rates."""

from __future__ import annotations

import statistics
import time
from types import MappingProxyType

from nfstuned.core.rates import look, rates
from nfstuned.model.kernel import ByteCounters, Mount, MountStats, OpCounters, Options, Transport
from nfstuned.model.work import Snapshot, Superblock

SUPERBLOCKS, OPERATIONS, CONNECTIONS, ROUNDS = 1000, 68, 4, 15
OPTIONS = Options((("vers", "4.1"), ("proto", "tcp"), ("nconnect", "4"), ("addr", "10.10.10.10")))


def stanza(number: int, step: int, busy: int) -> MountStats:
    """One NFSv4.1 stanza in which `busy` operations move with `step`; every value is an object of its own."""
    grown = step * 1000
    used, unused = 7000 + grown, 7000
    ops = {}
    for n in range(OPERATIONS):
        count = used if n < busy else unused
        ops[f"OP{n}"] = OpCounters(count, count, 0, count, count, count, count, count, 0)
    return MountStats(
        source=f"server:/share{number}",
        point=f"/mnt/share{number}",
        fstype="nfs4",
        statvers="1.1",
        age_s=5000 + 60 * step,
        bytes=ByteCounters(*(1 << 40 | grown for _ in range(8))),
        transports=tuple(Transport("tcp", 0, 1, 0, *(9000 + grown,) * 5) for _ in range(CONNECTIONS)),
        ops=MappingProxyType(ops),
    )


def snapshot(step: int, busy: int) -> Snapshot:
    """A host with the mounts that the stanzas tell of."""
    stats = tuple(stanza(number, step, busy) for number in range(SUPERBLOCKS))
    superblocks = tuple(
        Superblock(f"0:{n}", n, 128, (Mount(n, 1, f"0:{n}", "/", s.point, s.fstype, s.source, OPTIONS),))
        for n, s in enumerate(stats)
    )
    return Snapshot(superblocks=superblocks, stats=stats)


def main() -> None:
    """Measure an idle host, a usual one, and one where every operation is used."""
    for busy in (0, 8, OPERATIONS):
        before, after = snapshot(0, busy), snapshot(1, busy)
        earlier = look(before, before.stats, 0.0, 0.0)
        joins, differences = [], []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            later = look(after, after.stats, 60.0, 60.0)
            middle = time.perf_counter()
            samples = rates(earlier, later)
            differences.append(time.perf_counter() - middle)
            joins.append(middle - start)
        if len(samples) != SUPERBLOCKS or len(samples[0].ops) != busy:
            raise SystemExit("the bench measures something else than it says")
        joined, rated = (1000 * statistics.median(times) for times in (joins, differences))
        print(f"{SUPERBLOCKS} superblocks, {busy:2} of {OPERATIONS} operations used: ", end="")
        print(f"look {joined:.1f} ms, rates {rated:.1f} ms")


if __name__ == "__main__":
    main()
