"""The service manager's side of the daemon: sd_notify(3) and sd_watchdog_enabled(3)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

from nfstuned.model.kernel import decimal

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
    except OSError:
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
    except OSError:
        return False
    return True


def reloading() -> bool:
    """Announce a reload; READY=1 must follow when it has ended, whether or not it succeeded.

    systemd 253 and later compares the time with the time of its own signal (Type=notify-reload).
    """
    return notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def watchdog_s(environ: Mapping[str, str], pid: int) -> float | None:
    """Return the seconds within which the manager wants WATCHDOG=1, or None when it does not watch `pid`."""
    text, owner = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", str(pid))
    micros = decimal(text)
    return micros / 1_000_000 if micros and owner == str(pid) else None
