"""docs/workloads.md is what was measured."""

from __future__ import annotations

from tests.bench import workloads

KERNEL = "6.12.117+deb13-cloud-amd64"


def test_the_page_has_what_was_measured() -> None:
    old = workloads.PAGE.read_text()
    assert workloads.page(old, workloads.KEPT.read_text(), KERNEL) == old


def test_a_run_from_memory_says_nothing() -> None:
    assert workloads.shown([1.0, 0.5, 1.1]) == "-"
    assert workloads.shown([1.01, 1.02, 0.99]) == "1.0"
    assert workloads.shown([1766.2, 3695.5, 2672.9]) == "2,673 (1,766 to 3,696)"
