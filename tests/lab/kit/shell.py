"""Run the guest's tools, and wait for what does not happen at once."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND_S = 60.0
_STEP_S = 0.02


class CommandError(Exception):
    """A tool of the guest failed; the message holds what it said."""


def run(*argv: str, timeout: float = COMMAND_S) -> str:
    """Run a tool and return its standard output; raise CommandError with both streams when it fails."""
    done = attempt(*argv, timeout=timeout)
    if done.returncode:
        raise CommandError(f"{' '.join(argv)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def attempt(*argv: str, timeout: float = COMMAND_S, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool and return however it ended; raise subprocess.TimeoutExpired when it does not."""
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=timeout, input=stdin)


def wait_for(what: str, holds: Callable[[], bool], seconds: float = 10.0) -> float:
    """Return after how many seconds `holds()` did; raise AssertionError naming `what` if it never does."""
    started = time.monotonic()
    while not holds():
        if time.monotonic() - started > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(_STEP_S)
    return time.monotonic() - started
