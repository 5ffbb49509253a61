"""Waiting for a value, with the value that was there instead in the message."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from tests.lab.kit.shell import PATIENCE_S, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.kit.mounts import Mounted

T = TypeVar("T")


def becomes(expected: T, seen: Callable[[], T], seconds: float = PATIENCE_S) -> None:
    """Wait until `seen()` returns what is expected; say the last value if it never does."""
    asked = time.monotonic()
    end = asked + seconds
    while (last := seen()) != expected:
        assert time.monotonic() < end, f"after {seconds} s it is {last!r} and not {expected!r}"
        pause(asked)
        asked = time.monotonic()


def tuned(kb: int, *mounts: Mounted, seconds: float = PATIENCE_S) -> None:
    """Wait until each of the mounts has this read-ahead."""
    becomes([kb] * len(mounts), lambda: [mounted.read_ahead_kb for mounted in mounts], seconds)
