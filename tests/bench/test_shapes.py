"""docs/performance.md holds what bench proposes to the sweep that was measured."""

from __future__ import annotations

import pytest

from tests.bench import shapes
from tests.bench.part import filled

KERNEL = "6.12.117+deb13-cloud-amd64"


def test_the_page_has_what_was_measured() -> None:
    old = shapes.PAGE.read_text()
    assert shapes.page(old, shapes.KEPT.read_text(), KERNEL) == old


def test_a_page_without_its_marks_is_no_page() -> None:
    assert filled("a\n<b>\nold\n<e>\nz\n", "<b>\n", "<e>\n", ["new"]) == "a\n<b>\nnew\n<e>\nz\n"
    with pytest.raises(ValueError, match="the page has no <b> with <e>"):
        filled("a\n<b>\n", "<b>\n", "<e>\n", [])
