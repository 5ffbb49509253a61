"""All that commands say to a person at a terminal, and ask: notes, progress, questions."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nfstuned.errors import ParseError
from nfstuned.host.root import Root, WitnessRoot
from nfstuned.view.words import printable

if TYPE_CHECKING:
    from nfstuned.host.network.ask import Outside, Questions
    from nfstuned.model.facts import Network


def terminal_width() -> int:
    """Return the columns of the terminal behind stdout, or what COLUMNS says; 80 where neither tells."""
    from shutil import get_terminal_size  # noqa: PLC0415 - it loads three compression libraries

    return get_terminal_size().columns


def note(line: str) -> None:
    """Print a line for people."""
    print(printable(line), file=sys.stderr)  # noqa: T201 - stderr is where the command talks


def unreadable_lines(problems: Iterable[ParseError]) -> None:
    """Name each line of a kernel file that was not understood; the same one only once."""
    for line in dict.fromkeys(str(problem) for problem in problems):
        note(line)


def denied(root: Root, *, harmless: Container[str] = ()) -> None:
    """Name the files that this user may not read; `harmless` are those that were not missed."""
    if isinstance(root, WitnessRoot):
        unreadable_lines(root.missed(harmless))


_SOON_S = 2.0
_CLEAR = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class Patient:
    """The world beyond files; on a terminal it says what it waits for when that takes longer than 2 s."""

    outside: Outside

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Ask as Outside does."""
        with _told(f"asking about {len(questions.names)} names and {len(questions.servers)} servers ..."):
            return self.outside.ask(questions, offline=offline)

    def pause(self, seconds: float) -> None:
        """Let time pass between two looks."""
        with _told(f"looking again {seconds:.0f} s after the first look ..."):
            self.outside.pause(seconds)


@contextmanager
def _told(text: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    from threading import Timer  # noqa: PLC0415 - most checks have nobody to talk to

    said: list[str] = []
    timer = Timer(_SOON_S, _say, (text, said))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if said:
            _say(_CLEAR, said)


def _say(text: str, said: list[str]) -> None:
    said.append(text)
    sys.stderr.write(text)
    sys.stderr.flush()


def live_outside(root: Root) -> Outside:
    """Return the world beyond files."""
    from nfstuned.host.network.answers import LiveOutside  # noqa: PLC0415 - only what asks names or servers needs it

    return LiveOutside(root)
