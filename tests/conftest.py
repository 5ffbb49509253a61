"""Options and order of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.users import NOBODY, rights_of

TIERS = ("none", "short", "ci", "all")


# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("nfstuned", deadline=None)
hypothesis.settings.load_profile("nfstuned")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lab",
        choices=TIERS,
        default=os.environ.get("NFSTUNED_LAB", "none"),
        help="what to run on real kernels: none (default), the short scenarios, what ci runs, or all",
    )
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected output of commands anew instead of comparing with it; review the difference",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes a moment comes before what boots kernels, and nothing boots unasked."""
    boots = [item for item in items if item.get_closest_marker("lab")]
    quick = [item for item in items if not item.get_closest_marker("lab")]
    if config.getoption("--lab") == "none":
        config.hook.pytest_deselected(items=boots)
        boots = []
    items[:] = quick + boots


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file, or write the file anew."""

    def compare(file: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            file.write_text(text)
        assert text == file.read_text(), f"{file} differs; if that is right: pytest --update-golden"

    return compare


@pytest.fixture
def as_user() -> Iterator[None]:
    """Run the test without root's rights."""
    with rights_of(NOBODY):
        yield
