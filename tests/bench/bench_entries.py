"""Print the cost of a sample's journal entries and lines: python -m tests.bench.bench_entries [MOUNTS].

A sample of each of 1,000 busy mounts, of eight operations each, becomes the fields for the journal and the
lines of a file, which go nowhere. The least CPU time of some runs counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from types import MappingProxyType

from nfstuned.core.samples.sample import one_line, to_fields, to_line
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.model.samples import OpRate, Sample
from tests.bench.bench_samples import day
from tests.bench.timing import cpu_s

MOUNTS, RUNS = 1000, 12


def unlike(sample: Sample) -> Sample:
    """Return the sample with operations that all differ."""
    ops = {
        name: OpRate._make([figure * number if figure else figure for figure in op])
        for number, (name, op) in enumerate(sample.ops.items(), 1)
    }
    return replace(sample, ops=MappingProxyType(ops))


def busy(mounts: int) -> tuple[Sample, ...]:
    """Return a sample of each mount."""
    return tuple(map(unlike, islice(day(mounts), mounts)))


def entries(samples: Iterable[Sample], journal: Journal) -> None:
    """Send the samples as the service does."""
    for sample in samples:
        journal.send(Message.SAMPLE, one_line(sample), Priority.INFO, sampling_ms=1.234, **to_fields(sample))


def lines(samples: Iterable[Sample]) -> None:
    """Make lines of the samples, as the service does."""
    for sample in samples:
        to_line(sample)


def main() -> None:
    """Print both times."""
    mounts = int(sys.argv[1]) if len(sys.argv) > 1 else MOUNTS
    samples = busy(mounts)
    for name, work in (
        ("entries of the journal", partial(entries, samples, Journal(lambda *_: None))),
        ("lines of a file", partial(lines, samples)),
    ):
        print(f"{mounts} mounts, {name:<24} {cpu_s(work, RUNS) * 1e3:9.1f} ms")


if __name__ == "__main__":
    main()
