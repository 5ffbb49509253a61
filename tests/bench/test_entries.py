from __future__ import annotations

import json
from functools import partial

import pytest

from nfstuned.core.samples.sample import sample_to_json
from nfstuned.host.telemetry.journal import Journal
from tests.bench.bench_entries import busy, entries
from tests.bench.timing import cpu_s

MOUNTS = 100
TIMES = 2.4
"""Between 1.9 and 2.9, which it was when each operation became a dictionary and each kind was made twice."""


@pytest.mark.slow
def test_an_entry_of_the_journal_costs_little_more_than_to_print_its_figures() -> None:
    """CPU time is compared with the json library's for the operations and their kinds."""
    samples = busy(MOUNTS)
    documents = [(document["ops"], document["kinds"]) for document in map(sample_to_json, samples)]

    def printed() -> None:
        for ops, kinds in documents:
            json.dumps(ops)
            json.dumps(kinds)

    written = partial(entries, samples, Journal(lambda *_: None))
    assert min(cpu_s(written, 3) / cpu_s(printed, 3) for _ in range(5)) < TIMES
