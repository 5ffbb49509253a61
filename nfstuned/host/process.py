"""This process: the size of its pages in memory, and when Python collects cycles."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PR_SET_THP_DISABLE = 41


def without_huge_pages() -> None:
    """Ask the kernel for no huge pages; a kernel that cannot do without them gives them.

    A small heap that lives for minutes would get pages of 2 MiB, most of which nobody ever uses.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's collector of cycles while a block runs; where it is off it stays off.

    A look at thousands of mounts makes tens of thousands of values, none of which refers to itself, and the
    collector goes through all of them again and again while they are made.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
