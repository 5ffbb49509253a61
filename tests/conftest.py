"""Options and order of the whole suite."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lab",
        choices=("none", "short", "ci", "all"),
        default=os.environ.get("NFSTUNED_LAB", "none"),
        help="how much to run on real kernels: nothing (default), the short scenarios, what CI runs, or all",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes a moment comes before what boots kernels."""
    items.sort(key=lambda item: item.get_closest_marker("lab") is not None)
