"""docs/workloads.md is what was measured."""

from __future__ import annotations

from tests.bench import workloads
from tests.bench.workloads import Run

KERNEL = "6.12.117+deb13-cloud-amd64"


def test_the_page_has_what_was_measured() -> None:
    old = workloads.PAGE.read_text()
    assert workloads.page(old, workloads.KEPT.read_text(), KERNEL) == old


def test_a_cell_has_medians_and_a_run_from_memory_says_nothing() -> None:
    assert workloads.cell([Run(9e6, 1.0), Run(9e6, 0.5), Run(9e6, 1.1)]) == "-"
    assert workloads.cell([Run(9e6, 1.01), Run(12e6, 1.02), Run(10e6, 0.99)]) == "10.0 MB/s, 1.0"
    assert workloads.cell([Run(4e3, 1766.2), Run(4e3, 3695.5), Run(4e3, 2672.9)]) == "4.0 kB/s, 2,673"
