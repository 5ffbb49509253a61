"""docs/reliability.md shows the lines about load that were measured; the daemon's loop runs on a tree."""

from __future__ import annotations

import pytest

from tests.bench.crowds import events, part
from tests.bench.page import RELIABILITY, filled
from tests.lab.kit.crowds import times
from tests.lab.kit.watch import NEVER

FEW, MANY = 250, 2000


def test_the_page_is_of_the_kept_lines() -> None:
    page = RELIABILITY.read_text()
    assert page == filled(page, "crowds", part())


@pytest.mark.slow
def test_an_events_cost_grows_less_than_the_superblocks() -> None:
    """Each run also shows that all superblocks have their value in the end."""
    (few,), (many,) = list(events(FEW, MANY)), list(events(MANY, MANY))
    assert few["events"] == many["events"] == MANY
    assert many["cpu_s"] < MANY / FEW * few["cpu_s"]


def test_the_worst_time_to_value_is_that_of_the_slowest_mount() -> None:
    taken = [n / 1000 for n in range(200, 0, -1)]
    assert times(taken) == {"mounts": 200, "never": 0, "p50_ms": 100, "p99_ms": 198, "worst_ms": 200}
    assert times([0.001, NEVER]) == {"mounts": 2, "never": 1, "p50_ms": 1, "p99_ms": None, "worst_ms": None}
