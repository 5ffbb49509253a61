"""Options and order of the whole suite."""

from __future__ import annotations

import os

import pytest

TIERS = ("none", "short", "ci", "all")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lab",
        choices=TIERS,
        default=os.environ.get("NFSTUNED_LAB", "none"),
        help="what to run on real kernels: none (default), the short scenarios, what ci runs, or all",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes a moment comes before what boots kernels, and nothing boots unasked."""
    boots = [item for item in items if item.get_closest_marker("lab")]
    quick = [item for item in items if not item.get_closest_marker("lab")]
    if config.getoption("--lab") == "none":
        config.hook.pytest_deselected(items=boots)
        boots = []
    items[:] = quick + boots
