"""What a person at a terminal is told while a command waits for the world."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nfstuned.host.outside import Outside, Questions
from nfstuned.model.facts import Network

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

    timer = Timer(_SOON_S, _say, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        _say("")


def _say(text: str) -> None:
    sys.stderr.write(_CLEAR + text)
    sys.stderr.flush()
