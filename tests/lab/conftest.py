"""Boots for the host's side of the lab: each kernel once for all its scenarios."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab import image, runs
from tests.lab.runs import Boot

# These run in the guest; here they would test the host.
collect_ignore = ["scenarios", "kit"]


class Lab:
    """The boots of one session: those that must be alone when they are asked for, then the others together.

    All of them begin with a disk that a first guest makes, and fail where it fails. A guest has one
    processor: with two, emulated ones wait for each other's locks, and all take longer. It uses that for six
    tenths of its time, so `guests` has one guest more than there are processors.
    """

    def __init__(
        self, boots: tuple[Boot, ...], folder: Path, say: Callable[[str], None], guests: ThreadPoolExecutor
    ) -> None:
        self._boots = boots
        self._folder = folder
        self._say = say
        self._guests = guests
        self.temporary = tempfile.TemporaryDirectory(prefix="nfstuned-lab-", dir="/var/tmp")
        self._disk = Path(self.temporary.name) / "installed.img"
        self._installed = guests.submit(
            runs.install, self._disk, folder / "installed", self._teller("install")
        )
        self._runs: dict[Boot, Future[runs.Run]] = {}

    def run(self, boot: Boot) -> runs.Run:
        """Return the run of a boot; all that may share the machine with it have been started then."""
        if boot.alone:
            self._start(boot)
        else:
            self.start()
        return self._runs[boot].result()

    def start(self) -> None:
        """Start all boots that need not be alone."""
        for boot in self._boots:
            if not boot.alone:
                self._start(boot)

    def _start(self, boot: Boot) -> None:
        if boot not in self._runs:
            self._runs[boot] = self._guests.submit(self._boot, boot)

    def _boot(self, boot: Boot) -> runs.Run:
        self._installed.result()
        target = self._folder / str(boot)
        self._say(f"booting {boot}: {target}")
        return runs.run_boot(boot, self._disk, target, self._teller(str(boot)))

    def _teller(self, name: str) -> Callable[[str], None]:
        return lambda line: self._say(f"{name:>14} | {line}")


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print a line at once, past pytest's capture: a boot takes minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    turn = threading.Lock()

    def say(line: str) -> None:
        with turn, capture.global_and_fixture_disabled():
            print(f"\r{line}", flush=True)

    return say


@pytest.fixture(scope="session")
def lab_folder(say: Callable[[str], None]) -> Path:
    """The folder of this session's results; the image is there when this returns."""
    image.ensure(say)
    return runs.folder()


@pytest.fixture(scope="session")
def guests() -> Iterator[ThreadPoolExecutor]:
    """The pool that boots guests: one more at a time than this machine has processors."""
    pool = ThreadPoolExecutor((os.cpu_count() or 1) + 1)
    yield pool
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def lab(
    request: pytest.FixtureRequest, say: Callable[[str], None], lab_folder: Path, guests: ThreadPoolExecutor
) -> Iterator[Lab]:
    boots = tuple(filter(None, map(_boot, request.session.items)))
    lab = Lab(boots, lab_folder, say, guests)
    yield lab
    lab.temporary.cleanup()


@pytest.fixture
def started_lab(lab: Lab) -> Lab:
    """The lab with all boots under way that may share the machine."""
    lab.start()
    return lab


def _boot(item: pytest.Item) -> Boot | None:
    """Return the boot that an item is made for; None for every other test."""
    parameters = getattr(item, "callspec", None)
    boot = parameters.params.get("boot") if parameters else None
    return boot if isinstance(boot, Boot) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let boots that must be alone go first; tests without a guest follow while guests run."""

    def turn(item: pytest.Item) -> int:
        if (boot := _boot(item)) is not None:
            return 2 if boot.alone else 5
        fixtures = getattr(item, "fixturenames", ())
        if not {"disk", "started_lab"}.isdisjoint(fixtures):
            return 3
        return 1 if "lab" in fixtures else 4

    labs = [place for place, item in enumerate(items) if item.get_closest_marker("lab")]
    for place, item in zip(labs, sorted((items[place] for place in labs), key=turn), strict=True):
        items[place] = item


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "boot" in metafunc.fixturenames:
        metafunc.parametrize("boot", runs.boots(metafunc.config.getoption("--lab")), ids=str)
