"""The pages that scripts fill have the results that were measured."""

from __future__ import annotations

import pytest

from tests.bench import shapes, workloads
from tests.bench.part import Part, filled
from tests.bench.workloads import Run

KERNEL = "6.12.117+deb13-cloud-amd64"


@pytest.mark.parametrize("part", [shapes.PART, workloads.PART], ids=["shapes", "workloads"])
def test_a_page_has_the_results_that_were_measured(part: Part) -> None:
    page = part.page.read_text()
    assert part.filled(page, part.kept.read_text(), KERNEL) == page


def test_a_page_without_its_marks_is_an_error() -> None:
    assert filled("a\n<b>\nold\n<e>\nz\n", "<b>\n", "<e>\n", ["new"]) == "a\n<b>\nnew\n<e>\nz\n"
    with pytest.raises(ValueError, match="the page has no <b> with <e>"):
        filled("a\n<b>\n", "<b>\n", "<e>\n", [])


def test_a_cell_has_medians_and_a_run_from_memory_has_none() -> None:
    assert workloads.cell([Run(9e6, 1.0), Run(9e6, 0.5), Run(9e6, 1.1)]) == "-"
    assert workloads.cell([Run(9e6, 1.01), Run(12e6, 1.02), Run(10e6, 0.99)]) == "10.0 MB/s, 1.0"
    assert workloads.cell([Run(4e3, 1766.2), Run(4e3, 3695.5), Run(4e3, 2672.9)]) == "4.0 kB/s, 2,673"
