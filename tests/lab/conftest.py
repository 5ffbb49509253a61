"""Boots for the host's side of the lab: each kernel once for all its scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab import image, results, selection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.selection import Choice, Length

# These run in the guest; here they would test the host.
collect_ignore = ["scenarios", "kit"]


class Lab:
    """The boots of one session, made when first asked for."""

    def __init__(self, wanted: tuple[Choice, ...], folder: Path, say: Callable[[str], None]) -> None:
        self._wanted = wanted
        self._folder = folder
        self._say = say
        self._runs: dict[tuple[str, Length], results.Run] = {}
        self._told: set[Path] = set()

    def run(self, choice: Choice) -> results.Run:
        """Return the boot that carries this scenario, together with all others of its kernel and length."""
        key = (choice.kernel, choice.length)
        if key not in self._runs:
            together = tuple(c.scenario for c in self._wanted if (c.kernel, c.length) == key)
            target = self._folder / f"{choice.kernel}-{choice.length.value}"
            self._say(
                f"booting {choice.kernel} for {len(together)} {choice.length.value} scenarios: {target}"
            )
            arguments = results.arguments(choice.length, together)
            self._runs[key] = results.run(
                choice.kernel, arguments, target, lambda line: self._say(f"{choice.kernel:>6} | {line}")
            )
        return self._runs[key]

    def explain(self, run: results.Run) -> str:
        """Return how the boot ended: in full when first asked, in its first line afterwards."""
        told = run.folder in self._told
        self._told.add(run.folder)
        text = run.boot.explain()
        return f"{text.partition(chr(10))[0]}; see {run.folder}" if told else f"{text}\nsee {run.folder}"


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print a line at once, past pytest's capture: a boot takes minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
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
    return Lab(tuple(choice for choice in chosen if choice is not None), lab_folder, say)


def _choice(item: pytest.Item) -> selection.Choice | None:
    """What a scenario's item was made for; None for every other test."""
    parameters = getattr(item, "callspec", None)
    choice = parameters.params.get("choice") if parameters else None
    return choice if isinstance(choice, selection.Choice) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "choice" in metafunc.fixturenames:
        wanted = selection.choices(metafunc.config.getoption("--lab"))
        names = [f"{choice.kernel}-{choice.length.value}-{choice.scenario}" for choice in wanted]
        metafunc.parametrize("choice", wanted, ids=names)
