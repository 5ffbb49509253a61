"""This process: its memory, its signals, and its messages to the service manager (sd_notify(3))."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from nfstuned.model.kernel import decimal

_PR_SET_THP_DISABLE = 41
_M_MMAP_THRESHOLD = -3


def keep_heap_small() -> None:
    """Ask the kernel for no transparent huge pages, and libc for large buffers outside of the heap.

    A small heap that lives for minutes would get pages of 2 MiB, and use a small part of them. glibc takes
    ever larger buffers from the heap (mallopt(3), M_MMAP_THRESHOLD): the texts of udev's rules leave holes
    there, and the heap grows for hours. A kernel or a libc that does not know the request ignores it.
    """
    libc = ctypes.CDLL(None)
    with suppress(OSError, AttributeError):
        libc.prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    with suppress(AttributeError):
        libc.mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


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


try:
    from systemd.daemon import notify as _library_notify
except ImportError:  # not installed; in a checkout the name "systemd" even exists, as our folder
    _library_notify = None


def notify(state: str) -> bool:
    """Send `state` (lines of NAME=value) to the service manager; return whether that was sent.

    Never raises: the daemon works on without a manager.
    """
    if _library_notify is None:
        return notify_by_socket(state)
    try:
        return bool(_library_notify(state))
    except (OSError, ValueError):
        return False


def notify_by_socket(state: str) -> bool:
    """Do the same without libsystemd: send a datagram to NOTIFY_SOCKET, where "@" means a NUL byte."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
            sock.sendto(state.encode(), address)
    except (OSError, ValueError):
        return False
    return True


def reloading() -> bool:
    """Announce a reload, and return whether that was sent.

    READY=1 must follow when the reload has ended, whether or not it succeeded.
    systemd 253 and later compares the time with the time of its own signal (Type=notify-reload).
    """
    return notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    """Return the seconds within which the manager wants WATCHDOG=1, or None when it does not watch `pid`."""
    text, owner = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
    micros = decimal(text)
    return micros / 1_000_000 if micros and owner == str(pid) else None
