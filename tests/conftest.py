"""Options and order of the whole suite."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.tree import Tree
from tests.users import NOBODY, rights_of

LINTERS = Path(__file__).with_name("test_linters.py")
TIERS = ("none", "ci", "all")


# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("full", deadline=None)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.register_profile("long", deadline=None, max_examples=5000, database=None)
hypothesis.settings.load_profile("full")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lab",
        choices=TIERS,
        default=os.environ.get("NFSTUNED_LAB", "none"),
        help="the boots of real kernels: none (default), those of CI, or all, as before a release",
    )
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out the tests marked slow, and try 20 examples of a property instead of 100",
    )
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the expected output of commands instead of comparing with it; review the difference",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        # Before any test's own settings are made: they are made of the profile that counts then.
        hypothesis.settings.load_profile("quick")
    if config.getoption("--lab") != "none" and config.getoption("numprocesses", None):
        raise pytest.UsageError("--lab: the boots of a session share the processors in one process; use -n 0")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put linters first and boots of kernels last; boot nothing unasked."""
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (chosen if _is_wanted(config, item) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(chosen, key=_turn)


def _is_wanted(config: pytest.Config, item: pytest.Item) -> bool:
    if item.get_closest_marker("lab"):
        return bool(config.getoption("--lab") != "none")
    return not (config.getoption("--quick") and item.get_closest_marker("slow"))


def _turn(item: pytest.Item) -> int:
    """Return a test's turn: slow tests come early, or the other processors wait for their end."""
    if item.get_closest_marker("lab"):
        return 3
    early = item.path == LINTERS or item.get_closest_marker("slow")
    return 1 if early else 2


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file, or write the file."""

    def compare(file: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            file.write_text(text)
        assert text == file.read_text(), f"{file} differs; if that is right: pytest --update-golden"

    return compare


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder that every user may look into, which tmp_path is not."""
    folder = Path(tempfile.mkdtemp(prefix="nfstuned-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def umask_077() -> Iterator[None]:
    """Let only the owner read new files, as the service's unit and many administrators have it."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def as_user() -> Iterator[None]:
    with rights_of(NOBODY):
        yield


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)
