"""Boots for the host's side of the lab: each kernel once for all its scenarios."""

from __future__ import annotations

import functools
import os
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab import guest, image, installed, kept, quiet, results, selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.selection import Boot, Choice

MOST_ELSEWHERE = 0.03
"""The share of the machine that other programs may take from a boot that is alone, which then counts."""
AGAIN = 2
# These run in the guest; here they would test the host.
collect_ignore = ["scenarios", "kit"]


class Lab:
    """The boots of one session: those that are alone when they are asked for, then the others together.

    All of them begin with a disk that a first guest makes, and fail where it fails.
    A guest has one processor: with two, emulated ones wait for each other's locks, and all take longer. It
    uses that for six tenths of its time, and else waits for what a scenario waits for: so `guests` has a
    guest more than there are processors, and what waits for nearly all of its time runs beside them.
    While mounts race the daemon in a guest, or bench measures, it is alone.
    """

    def __init__(
        self,
        boots: tuple[Boot, ...],
        folder: Path,
        say: Callable[[str], None],
        guests: ThreadPoolExecutor,
        *,
        go_on: bool,
    ) -> None:
        self._folder = folder
        self._say = say
        self._guests = guests
        self._go_on = go_on
        self._waiting = ThreadPoolExecutor(1)
        self._temporary = tempfile.TemporaryDirectory(prefix="nfstuned-lab-", dir="/var/tmp")
        self._disk = Path(self._temporary.name) / "installed.img"
        self._boots = boots
        say_installed = functools.partial(self._tell, "installed")
        self._installed = guests.submit(installed.make, self._disk, folder / "installed", say_installed)
        self._runs: dict[Boot, Future[results.Run]] = {}
        self._told: set[Path] = set()

    def run(self, choice: Choice) -> results.Run:
        """Return the boot that carries this scenario, together with others of its kernel."""
        mine = next(boot for boot in self._boots if boot.carries(choice))
        if not mine.alone:
            self.start()
        elif mine not in self._runs:
            self._start(mine)
        return self._runs[mine].result()

    def start(self) -> None:
        """Start all boots that need not be alone."""
        for boot in self._boots:
            if not boot.alone and boot not in self._runs:
                self._start(boot)

    def close(self) -> None:
        """Start no more of them."""
        self._waiting.shutdown(cancel_futures=True)
        self._temporary.cleanup()

    def _tell(self, name: str, line: str) -> None:
        self._say(f"{name:>16} | {line}")

    def _start(self, boot: Boot) -> None:
        pool = self._waiting if boot.waits else self._guests
        self._runs[boot] = pool.submit(self._boot, boot)

    def explain(self, run: results.Run) -> str:
        """Return how the boot ended: in full when first asked, in its first line afterwards."""
        told = run.folder in self._told
        self._told.add(run.folder)
        text = run.boot.explain()
        return f"{text.partition(chr(10))[0]}; see {run.folder}" if told else f"{text}\nsee {run.folder}"

    def _boot(self, boot: Boot) -> results.Run:
        of = kept.fingerprint(boot)
        before = kept.recall(image.release(boot.kernel), of) if self._go_on and of else None
        if before:
            self._tell(boot.name, f"passed with the same files, see {before.folder}")
            return before
        run = self._booted(boot)
        if of:
            kept.keep(run, of)
        return run

    def _booted(self, boot: Boot) -> results.Run:
        self._installed.result()
        target = self._folder / boot.name
        self._say(f"booting {boot.kernel} for {', '.join(boot.scenarios)}: {target}")
        arguments = (
            *(["--full"] if boot.full else []),
            *(f"--deselect=tests/lab/scenarios/{test}" for test in boot.without),
            *results.arguments(boot.lengths, boot.scenarios),
        )
        limits = replace(results.LIMITS, processors=2 if boot.alone else 1)
        system = guest.System(image.release(boot.kernel), self._disk)

        def once(into: Path) -> results.Run:
            return results.run(system, arguments, into, lambda line: self._tell(boot.name, line), limits)

        return self._undisturbed(once, target) if boot.alone else once(target)

    def _undisturbed(self, once: Callable[[Path], results.Run], target: Path) -> results.Run:
        """Boot; again, and said so, where it failed while other programs had the processors."""
        for attempt in range(AGAIN):
            before = quiet.now()
            run = once(target)
            share = quiet.elsewhere(before, quiet.now())
            if run.boot.passed or share <= MOST_ELSEWHERE:
                return run
            self._say(f"lab: {share:.0%} of the machine went to other programs: booting again")
            target = target.with_name(f"{target.name}-again{attempt or ''}")
        return once(target)


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
    """Where this session's boots leave their results; the image is there when this returns."""
    image.ensure(say)
    return results.folder()


@pytest.fixture(scope="session")
def guests() -> Iterator[ThreadPoolExecutor]:
    """What boots as many guests at a time as this machine has the processors for."""
    pool = ThreadPoolExecutor((os.cpu_count() or 1) + 1)
    yield pool
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def lab(
    request: pytest.FixtureRequest,
    say: Callable[[str], None],
    lab_folder: Path,
    guests: ThreadPoolExecutor,
) -> Iterator[Lab]:
    chosen = [_choice(item) for item in request.session.items]
    wanted = tuple(choice for choice in chosen if choice is not None)
    boots = selection.boots(wanted, request.config.getoption("--lab"))
    lab = Lab(boots, lab_folder, say, guests, go_on=request.config.getoption("--go-on"))
    try:
        yield lab
    finally:
        lab.close()


def _choice(item: pytest.Item) -> selection.Choice | None:
    """What a scenario's item was made for; None for every other test."""
    parameters = getattr(item, "callspec", None)
    choice = parameters.params.get("choice") if parameters else None
    return choice if isinstance(choice, selection.Choice) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let what needs the machine for itself go first: then all other guests run beside each other.

    Those that end badly go while others run: they are mostly waited for.
    """

    def turn(item: pytest.Item) -> int:
        choice = _choice(item)
        if choice is not None:
            return 2 if choice.length in selection.ALONE else 5
        fixtures = getattr(item, "fixturenames", ())
        return 3 if "disk" in fixtures else 4 if "boots" in fixtures else 1

    mine = Path(__file__).parent
    places = [place for place, item in enumerate(items) if item.path.is_relative_to(mine)]
    for place, item in zip(places, sorted((items[place] for place in places), key=turn), strict=True):
        items[place] = item


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "disk" in metafunc.fixturenames:
        chosen = selection.disks(metafunc.config.getoption("--lab"))
        metafunc.parametrize("disk", chosen, ids=str, scope="module")
    if "choice" in metafunc.fixturenames:
        wanted = selection.choices(metafunc.config.getoption("--lab"))
        names = [f"{choice.kernel}-{choice.length.value}-{choice.scenario}" for choice in wanted]
        metafunc.parametrize("choice", wanted, ids=names)
