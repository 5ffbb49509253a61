"""A terminal in full-screen mode, which is restored on every way out, and its signals."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import termios
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, final

from nfstuned.host.process import leave_to_wakeup

_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
"""The alternate screen, without a cursor and without line wrap (console_codes(4), xterm's ctlseqs)."""
_LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"
_MOST_BYTES = 1024
_LOCAL, _CONTROL = 3, 6
"""The indexes of the local modes and the control characters in the list of termios.tcgetattr."""
ENDS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
"""The signals that end the program; the terminal is given back first."""
SIGNALS = (*ENDS, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH)

_Handler = Callable[[int, FrameType | None], Any] | int | None


@final
class Tty:
    """The terminal behind two descriptors while the block runs. Raises termios.error without a terminal.

    Signals do not interrupt: `wait` returns their numbers.
    """

    def __init__(self, keyboard: int, display: int) -> None:
        self._keyboard = keyboard
        self._display = display
        self._modes: list[Any] = termios.tcgetattr(keyboard)
        self._handlers: dict[int, _Handler] = {}
        self._receiver, self._sender = socket.socketpair()
        self._wakeup = -1

    def __enter__(self) -> Tty:
        for end in (self._receiver, self._sender):
            end.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            self._handlers[number] = signal.signal(number, leave_to_wakeup)
        try:
            self.take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The terminal may be gone, which is a reason to be here.
        with suppress(OSError, termios.error):
            self.give_back()
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._receiver.close()
        self._sender.close()

    def take(self) -> None:
        """Enter full-screen mode, with each key at once; also after another program had the terminal.

        In the background the kernel stops the program here until it is in the foreground.
        """
        modes = [*self._modes[:_CONTROL], [*self._modes[_CONTROL]]]
        modes[_LOCAL] &= ~(termios.ECHO | termios.ICANON)
        modes[_CONTROL][termios.VMIN], modes[_CONTROL][termios.VTIME] = 1, 0
        self._set(modes)
        self._write(_ENTER)

    def give_back(self) -> None:
        """Leave the terminal as it was before.

        A shell that took it while this program stops has modes of its own by now, which stay.
        """
        try:
            self._write(_LEAVE)
        finally:
            if self._in_foreground():
                self._set(self._modes)

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._keyboard) == os.getpgrp()
        except OSError:  # not the controlling terminal
            return True

    def _set(self, modes: list[Any]) -> None:
        """Set the terminal's modes; a signal in the middle of it, such as SIGCONT, is no failure."""
        while not self._are_set(modes):
            pass

    def _are_set(self, modes: list[Any]) -> bool:
        try:
            termios.tcsetattr(self._keyboard, termios.TCSADRAIN, modes)
        except termios.error as error:
            if error.args[0] != errno.EINTR:
                raise
            return False
        return True

    def size(self) -> tuple[int, int]:
        """Return columns and rows; 80 and 24 where the terminal does not report them."""
        try:
            columns, rows = os.get_terminal_size(self._display)
        except OSError:
            columns, rows = 0, 0
        return columns or 80, rows or 24

    def draw(self, text: bytes) -> None:
        """Write from the upper left corner on; lines below the text are cleared."""
        self._write(b"\x1b[H" + text + b"\x1b[0m\x1b[J")

    def wait(self, seconds: float) -> tuple[bytes | None, tuple[int, ...]]:
        """Return the typed bytes and the signals that came, after `seconds` at the latest.

        None is typed when the terminal is gone. After SIGTSTP the terminal is given back, and the program has
        stood still, before this returns; after SIGCONT it is taken again.
        """
        ready, _, _ = select.select([self._keyboard, self._receiver.fileno()], [], [], max(0.0, seconds))
        typed: bytes | None = b""
        if self._keyboard in ready:
            try:
                typed = os.read(self._keyboard, _MOST_BYTES) or None
            except OSError:
                typed = None
        numbers = tuple(self._receiver.recv(64)) if self._receiver.fileno() in ready else ()
        if signal.SIGTSTP in numbers:
            self._stop()
        if signal.SIGCONT in numbers or signal.SIGTSTP in numbers:
            self.take()
        return typed, numbers

    def _stop(self) -> None:
        """Stop the process as SIGTSTP does by default; the shell has the terminal meanwhile."""
        self.give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, leave_to_wakeup)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._display, data) :]
