"""Python's garbage collector, kept from looking through what it cannot free."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
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
