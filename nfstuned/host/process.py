"""This process: its memory as the kernel lets it be asked for, and Python's collector of cycles."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PR_SET_THP_DISABLE = 41


def without_huge_pages() -> None:
    """Have no huge pages, where the kernel can do without.

    It would give a small heap that lives for minutes pages of 2 MiB, most of which nobody ever uses.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let the collector of cycles wait meanwhile; where it is off it stays off.

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
