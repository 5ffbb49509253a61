"""This process: the size of its pages in memory, when Python collects cycles, and signals."""

from __future__ import annotations

import ctypes
import gc
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_PR_SET_THP_DISABLE = 41


def without_huge_pages() -> None:
    """Ask the kernel for no huge pages; a kernel that cannot do without them gives them.

    A small heap that lives for minutes would get pages of 2 MiB, and use a small part of them.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)


def catch_signals(*numbers: signal.Signals) -> tuple[socket.socket, socket.socket]:
    """Return a socket that becomes readable at a signal, and holds its number, and the other end of it."""
    receiver, sender = socket.socketpair()
    receiver.setblocking(False)
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, leave_to_wakeup)
    return receiver, sender


def leave_to_wakeup(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal by doing nothing: the wakeup descriptor reports it, and nothing is interrupted."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's collector of cycles while a block runs; where it is off it stays off.

    A look at thousands of mounts makes tens of thousands of values without a cycle, and the collector
    would go through all of them several times meanwhile.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
