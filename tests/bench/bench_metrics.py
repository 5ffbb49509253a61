"""Print the cost of metrics: python -m tests.bench.bench_metrics.

The service counts each look, and a child of it makes the text; over files as the kernel prints them.
"""

from __future__ import annotations

import statistics
import time

from nfstuned.core.mounts.status import status
from nfstuned.core.samples.rates import make_look
from nfstuned.core.samples.totals import add_look
from nfstuned.host.config import builtin_policy
from nfstuned.model.samples import Service, Totals
from nfstuned.parse.proc.mountstats import parse_stanzas
from nfstuned.view.metrics import exposition, families
from tests.bench.bench_mountstats import SECONDS, busy, placed, snapshot, stanza

ROUNDS, OPERATIONS = 9, 3
SERVICE = Service("0", 0.0, 0.0, 60.0, 0.0, policy_valid=True)


def main() -> None:
    """Measure hosts of 200 and of 1,000 mounts of one server, each of them used."""
    policy = builtin_policy()
    for mounts in (200, 1000):
        first = parse_stanzas([placed([stanza()] * mounts).encode()])
        second = parse_stanzas([placed([busy(stanza(), OPERATIONS)] * mounts).encode()], first)
        host = snapshot(mounts)
        start = add_look(Totals(), make_look(host, first, 0.0, 0.0), {}, mounts)
        later = make_look(host, second, SECONDS, SECONDS)
        counted, written = [], []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            totals = add_look(start, later, {}, mounts)
            middle = time.perf_counter()
            text = exposition(families(totals, status(host, policy), SERVICE))
            counted.append(middle - began)
            written.append(time.perf_counter() - middle)
        series = sum(1 for row in text.splitlines() if not row.startswith("#"))
        count_ms, write_ms = (1e3 * statistics.median(t) for t in (counted, written))
        size = f"{series} series, {len(text) / 1e6:.2f} MB"
        print(f"{mounts:4} mounts: count {count_ms:.1f} ms, text {write_ms:.1f} ms ({size})")


if __name__ == "__main__":
    main()
