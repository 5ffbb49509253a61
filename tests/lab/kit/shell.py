"""The guest's tools, and waiting for their effects."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounted

Say = Callable[[object], None]
COMMAND_S = 150.0
"""More than the service's own limits for its stop and its start together, 110 s."""
PATIENCE_S = 60.0
"""For work of a moment on a real machine: in emulation a daemon's child starts in 5 to 30 s."""
_STEP_S = 0.02


class CommandError(Exception):
    """A tool of the guest failed; the message holds its output."""


def run(*argv: str, timeout: float = COMMAND_S) -> str:
    """Run a tool and return its standard output; raise CommandError with both streams when it fails."""
    done = attempt(*argv, timeout=timeout)
    if done.returncode:
        raise CommandError(f"{' '.join(argv)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def attempt(*argv: str, timeout: float = COMMAND_S, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool and return however it ended; raise subprocess.TimeoutExpired when it does not."""
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=timeout, input=stdin)


@contextlib.contextmanager
def program(
    *argv: str, stdout: int = subprocess.DEVNULL, stderr: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program while the block runs; kill it at the end."""
    with subprocess.Popen(argv, stdout=stdout, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def restored(path: Path, text: str | None = None) -> Iterator[Path]:
    """Put a file back as it was when the block ends, or remove it; it has this text until then."""
    before = path.read_bytes() if path.exists() else None
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    try:
        yield path
    finally:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)


def wait_for(condition: str, holds: Callable[[], bool], seconds: float = PATIENCE_S) -> float:
    """Wait until `holds()`; return the seconds, or raise AssertionError that names the condition."""
    started = asked = time.monotonic()
    while not holds():
        if time.monotonic() - started > seconds:
            raise AssertionError(f"not within {seconds} s: {condition}")
        pause(asked)
        asked = time.monotonic()
    return time.monotonic() - started


def pause(asked: float) -> None:
    """Sleep before asking again: twice as long as asking took, which takes the processor from the work."""
    time.sleep(max(_STEP_S, 2 * (time.monotonic() - asked)))


T = TypeVar("T")


def becomes(expected: T, seen: Callable[[], T], seconds: float = PATIENCE_S) -> None:
    """Wait until `seen()` returns the expected value; name the last one if it never does."""
    asked = time.monotonic()
    end = asked + seconds
    while (last := seen()) != expected:
        assert time.monotonic() < end, f"after {seconds} s it is {last!r} and not {expected!r}"
        pause(asked)
        asked = time.monotonic()


def tuned(kb: int, *mounts: Mounted, seconds: float = PATIENCE_S) -> None:
    """Wait until each of the mounts has this read-ahead."""
    becomes([kb] * len(mounts), lambda: [mounted.read_ahead_kb for mounted in mounts], seconds)
