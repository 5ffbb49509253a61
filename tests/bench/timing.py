"""The CPU time of a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_s(work: Callable[[], object], runs: int = 1) -> float:
    """Return the least CPU time of some runs, which a busy machine changes least."""

    def once() -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(once() for _ in range(runs))
