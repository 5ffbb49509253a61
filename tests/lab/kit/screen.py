"""Outputs of commands on a terminal, a screen of `nfstuned top` among them, and the pictures' files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence

SCREEN, STATUS, PAGE = "top.ansi", "status.ansi", "report.html"
TOP = ("nfstuned", "top", "--interval", "4")
COLUMNS, ROWS = 100, 24
WATCH_S = 60.0
FRAME = b"\x1b[H"
IN_USE = re.compile(rb"[1-9]\d* in use, mean of ")
OPENED = re.compile(rb"OPERATION")


def capture(command: Sequence[str] = TOP) -> bytes:
    """Run top on a terminal, open its first line when there are rates, and return the screen after that.

    SystemExit where no mount is in use.
    """
    end, terminal = _terminal()
    with subprocess.Popen(
        command, env=_environ(), stdin=terminal, stdout=terminal, start_new_session=True
    ) as process:
        try:
            _frame_with(end, IN_USE)
            os.write(end, b"\r")
            return _frame_with(end, OPENED)
        finally:
            process.terminate()
            process.wait()
            os.close(terminal)
            os.close(end)


def output(command: Sequence[str]) -> bytes:
    """Return all that a command prints on a terminal, as it prints it there."""
    end, terminal = _terminal()
    text = b""
    with subprocess.Popen(command, env=_environ(), stdin=terminal, stdout=terminal) as process:
        os.close(terminal)
        with contextlib.suppress(OSError):  # EIO, when the command has ended
            while part := os.read(end, 1 << 16):
                text += part
        os.close(end)
    if process.returncode:
        raise SystemExit(f"pictures: {' '.join(command)}: status {process.returncode}")
    return text


def _terminal() -> tuple[int, int]:
    """Return the two ends of a terminal of the pictures' size."""
    end, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return end, terminal


def _environ() -> dict[str, str]:
    return {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}


def _frame_with(end: int, text: re.Pattern[bytes]) -> bytes:
    """Return the first whole frame that has it; SystemExit without one in time."""
    seen, until = b"", time.monotonic() + WATCH_S
    while time.monotonic() < until:
        if select.select([end], [], [], 0.1)[0]:
            seen += os.read(end, 1 << 16)
        for frame in seen.split(FRAME)[1:-1]:
            if text.search(frame):
                return frame
    raise SystemExit(f"pictures: top showed no {text.pattern!r} within {WATCH_S:.0f} s: is a mount in use?")
