"""Print what the journal's entries of a sample cost: python -m tests.bench.bench_entries [MOUNTS] [CHECKOUT].

A sample of each of 1,000 busy mounts, of eight operations each, to the fields that the journal would get, and
to the lines of a file. The journal goes nowhere. With another checkout both are measured in turn, and the
best of each counts, so that their ratio means something also where the machine is busy. It is of CPU time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from nfstuned.core.samples.sample import one_line, to_fields, to_line
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.model.samples import OpRate, Sample
from tests.bench.bench_samples import day

HERE = Path(__file__).parents[2]
MOUNTS, ROUNDS, RUNS = 1000, 12, 3
WHAT = ("entries of the journal", "lines of a file")


def unlike(sample: Sample) -> Sample:
    """Return the sample with operations of which no two are alike."""
    ops = {
        name: OpRate._make([figure * number if figure else figure for figure in op])
        for number, (name, op) in enumerate(sample.ops.items(), 1)
    }
    return replace(sample, ops=MappingProxyType(ops))


def entries(samples: Iterable[Sample], journal: Journal) -> None:
    """Send the samples as the service does."""
    for sample in samples:
        journal.send(Message.SAMPLE, one_line(sample), Priority.INFO, sampling_ms=1.234, **to_fields(sample))


def lines(samples: Iterable[Sample]) -> None:
    """Make lines of the samples, as the service does."""
    for sample in samples:
        to_line(sample)


def seconds(work: Callable[[], None]) -> float:
    """Return the least CPU time of some runs."""

    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(RUNS))


def busy(mounts: int) -> tuple[Sample, ...]:
    """A sample of each of so many mounts."""
    return tuple(map(unlike, islice(day(mounts), mounts)))


def measure(mounts: int) -> None:
    """Print the seconds of either."""
    samples, journal = busy(mounts), Journal(lambda *_: None)
    print(seconds(partial(entries, samples, journal)), seconds(partial(lines, samples)))


def by(checkout: Path, mounts: int) -> list[float]:
    """Measure a checkout's code with these samples."""
    # Its package, and the bench of this checkout.
    script = "import sys; sys.path.insert(0, sys.argv[1]); import nfstuned; sys.path[0] = sys.argv[2]; "
    script += "from tests.bench.bench_entries import measure; measure(int(sys.argv[3]))"
    command = [sys.executable, "-P", "-c", script, str(checkout), str(HERE), str(mounts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(figure) for figure in done.stdout.split()]


def main(arguments: Sequence[str]) -> None:
    """Print the best of each checkout, and how they compare."""
    mounts = int(arguments[0]) if arguments else MOUNTS
    checkouts = [HERE, *(Path(other).resolve() for other in arguments[1:2])]
    best = {checkout: [float("inf")] * len(WHAT) for checkout in checkouts}
    for _ in range(ROUNDS):
        for checkout in checkouts:
            best[checkout] = list(map(min, best[checkout], by(checkout, mounts)))
    for number, what in enumerate(WHAT):
        ours, *theirs = (best[checkout][number] for checkout in checkouts)
        ratio = "".join(f"   {other * 1e3:9.1f} ms there, ratio {ours / other:.2f}" for other in theirs)
        print(f"{mounts} mounts, {what:<24} {ours * 1e3:9.1f} ms{ratio}")


if __name__ == "__main__":
    main(sys.argv[1:])
