"""Many things at once that may never come to an end, and a time at which the answer is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

THREADS = 128
"""Names that never answer hold their threads until the deadline; the others must not wait for them."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def parallel(jobs: Mapping[Key, Callable[[], Value]], seconds: float) -> dict[Key, Value]:
    """Return what those jobs returned that came to an end within `seconds`. A job must not raise.

    The threads are daemons: one that still waits for the network does not keep the process alive.
    """
    end = time.monotonic() + seconds
    waiting: SimpleQueue[Key] = SimpleQueue()
    done: SimpleQueue[tuple[Key, Value]] = SimpleQueue()
    for key in jobs:
        waiting.put(key)

    def work() -> None:
        while time.monotonic() < end:
            try:
                key = waiting.get_nowait()
            except Empty:
                return
            done.put((key, jobs[key]()))

    for _ in range(min(len(jobs), THREADS)):
        Thread(target=work, daemon=True).start()
    found: dict[Key, Value] = {}
    while len(found) < len(jobs):
        try:
            key, value = done.get(timeout=max(end - time.monotonic(), 0))
        except Empty:
            break
        found[key] = value
    return found
