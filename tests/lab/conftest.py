"""Boots for the host's side of the lab: each kernel once for all its scenarios."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.lab import image, quiet, results, selection
from tests.lab.selection import Length

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.selection import Choice

    Key = tuple[str, Length]

MOST_ELSEWHERE = 0.03
"""The share of the machine that other programs may take from a race, which then counts all the same."""
AGAIN = 2
# These run in the guest; here they would test the host.
collect_ignore = ["scenarios", "kit"]


class Lab:
    """The boots of one session, made when first asked for.

    A guest has one processor: with two, emulated ones wait for each other's locks, and all take longer. It
    uses that for six tenths of its time, and else waits for what a scenario waits for: so there is a guest
    more than there are processors. While mounts race the daemon in one, it is alone.
    """

    def __init__(
        self, wanted: tuple[Choice, ...], folder: Path, say: Callable[[str], None], *, full: bool
    ) -> None:
        self._wanted = wanted
        self._long = {choice.kernel for choice in wanted if choice.length is Length.LONG}
        self._full = full
        self._folder = folder
        self._say = say
        self._pool = ThreadPoolExecutor((os.cpu_count() or 1) + 1)
        self._runs: dict[Key, Future[results.Run]] = {}
        self._told: set[Path] = set()

    def run(self, choice: Choice) -> results.Run:
        """Return the boot that carries this scenario, together with all others of its kernel and length."""
        mine = self._key(choice)
        if mine not in self._runs:
            together = [mine] if choice.length is Length.RACE else self._others()
            self._runs |= {key: self._pool.submit(self._boot, key) for key in together}
        return self._runs[mine].result()

    def explain(self, run: results.Run) -> str:
        """Return how the boot ended: in full when first asked, in its first line afterwards."""
        told = run.folder in self._told
        self._told.add(run.folder)
        text = run.boot.explain()
        return f"{text.partition(chr(10))[0]}; see {run.folder}" if told else f"{text}\nsee {run.folder}"

    def _others(self) -> list[Key]:
        """Return every boot that need not be alone, short ones last: they fit in beside the others."""
        keys = dict.fromkeys(self._key(choice) for choice in self._wanted)
        others = [key for key in keys if key[1] is not Length.RACE and key not in self._runs]
        return sorted(others, key=lambda key: key[1] is Length.SHORT)

    def _key(self, choice: Choice) -> Key:
        """Return the boot of a scenario: short ones go along where their kernel has a long boot."""
        goes_along = choice.length is Length.SHORT and choice.kernel in self._long
        return choice.kernel, Length.LONG if goes_along else choice.length

    def _boot(self, key: Key) -> results.Run:
        kernel, length = key
        chosen = [choice for choice in self._wanted if self._key(choice) == key]
        together = tuple(dict.fromkeys(choice.scenario for choice in chosen))
        target = self._folder / f"{kernel}-{length.value}"
        self._say(f"booting {kernel} for {len(together)} files of {length.value} scenarios: {target}")
        lengths = {choice.length for choice in chosen}
        arguments = (*(["--full"] if self._full else []), *results.arguments(lengths, together))
        name = f"{kernel} {length.value}"
        race = length is Length.RACE
        limits = replace(results.LIMITS, processors=2 if race else 1)

        def once(into: Path) -> results.Run:
            return results.run(
                kernel, arguments, into, lambda line: self._say(f"{name:>12} | {line}"), limits
            )

        return self._undisturbed(once, target) if race else once(target)

    def _undisturbed(self, once: Callable[[Path], results.Run], target: Path) -> results.Run:
        """Race; again, and said so, where it was lost while other programs had the processors."""
        for attempt in range(AGAIN):
            before = quiet.now()
            run = once(target)
            share = quiet.elsewhere(before, quiet.now())
            if run.boot.passed or share <= MOST_ELSEWHERE:
                return run
            self._say(f"lab: {share:.0%} of the machine went to other programs: racing again")
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
def lab(request: pytest.FixtureRequest, say: Callable[[str], None], lab_folder: Path) -> Lab:
    chosen = [_choice(item) for item in request.session.items]
    wanted = tuple(choice for choice in chosen if choice is not None)
    return Lab(wanted, lab_folder, say, full=request.config.getoption("--lab") == "full")


def _choice(item: pytest.Item) -> selection.Choice | None:
    """What a scenario's item was made for; None for every other test."""
    parameters = getattr(item, "callspec", None)
    choice = parameters.params.get("choice") if parameters else None
    return choice if isinstance(choice, selection.Choice) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "disk" in metafunc.fixturenames:
        chosen = selection.disks(metafunc.config.getoption("--lab"))
        metafunc.parametrize("disk", chosen, ids=str, scope="module")
    if "choice" in metafunc.fixturenames:
        wanted = selection.choices(metafunc.config.getoption("--lab"))
        names = [f"{choice.kernel}-{choice.length.value}-{choice.scenario}" for choice in wanted]
        metafunc.parametrize("choice", wanted, ids=names)
