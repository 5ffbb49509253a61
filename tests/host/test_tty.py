"""A terminal is given back as it was found: a real pseudo-terminal, and real signals."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from nfstuned.host.tty import SIGNALS, Tty

FOUND = (signal.SIGINT, signal.SIGTSTP, signal.SIGWINCH)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A person's end and a program's end."""
    person, program = pty.openpty()
    yield person, program
    os.close(program)
    with suppress(OSError):  # a test may have closed it
        os.close(person)


def seen(person: int, last: bytes = b"") -> bytes:
    """Return the program's output, `last` too: on a busy machine it comes a moment later."""
    os.set_blocking(person, False)
    text, end = b"", time.monotonic() + 10
    while True:
        with suppress(BlockingIOError):
            text += os.read(person, 1 << 16)
        if last in text or time.monotonic() > end:
            return text
        select.select([person], [], [], 0.1)


def modes(program: int) -> list[Any]:
    return termios.tcgetattr(program)


def test_the_screen_is_taken_and_given_back(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = modes(program)
    handlers = [signal.getsignal(number) for number in FOUND]
    with Tty(program, program) as screen:
        assert modes(program) != before
        assert b"\x1b[?1049h" in seen(person, b"\x1b[?1049h")
        screen.draw(b"here")
        assert b"here" in seen(person, b"here")
    assert modes(program) == before
    assert seen(person, b"\x1b[?1049l").endswith(b"\x1b[?1049l")
    assert [signal.getsignal(number) for number in FOUND] == handlers


def test_an_exception_gives_it_back(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before = modes(program)
    with pytest.raises(RuntimeError), Tty(program, program):
        raise RuntimeError
    assert modes(program) == before
    assert seen(person, b"\x1b[?1049l").endswith(b"\x1b[?1049l")


def test_anything_but_a_terminal_is_refused_and_changes_nothing() -> None:
    handlers = [signal.getsignal(number) for number in FOUND]
    receiving, sending = os.pipe()
    with pytest.raises(termios.error), Tty(receiving, sending):
        pytest.fail("a pipe is no terminal")
    assert [signal.getsignal(number) for number in FOUND] == handlers
    os.close(receiving)
    os.close(sending)


def test_keys_come_one_by_one_and_unseen(terminal: tuple[int, int]) -> None:
    person, program = terminal
    with Tty(program, program) as screen:
        seen(person, b"\x1b[2J")
        os.write(person, b"j")
        assert screen.wait(10.0) == (b"j", ())
        assert seen(person) == b""
        assert screen.wait(0.0) == (b"", ())


@pytest.mark.parametrize("number", [n for n in SIGNALS if n not in {signal.SIGTSTP, signal.SIGCONT}])
def test_a_signal_is_reported_and_interrupts_nothing(number: int, terminal: tuple[int, int]) -> None:
    _, program = terminal
    with Tty(program, program) as screen:
        os.kill(os.getpid(), number)
        assert screen.wait(10.0) == (b"", (number,))


def test_after_a_stop_the_screen_is_taken_again(terminal: tuple[int, int]) -> None:
    person, program = terminal
    with Tty(program, program) as screen:
        raw = modes(program)
        termios.tcsetattr(program, termios.TCSANOW, _cooked(program))
        seen(person, b"\x1b[2J")
        os.kill(os.getpid(), signal.SIGCONT)
        assert screen.wait(10.0) == (b"", (signal.SIGCONT,))
        assert modes(program) == raw
        assert b"\x1b[?1049h" in seen(person, b"\x1b[?1049h")


def _cooked(program: int) -> list[Any]:
    found = modes(program)
    found[3] |= termios.ECHO | termios.ICANON
    return found


def test_a_terminal_that_is_gone_is_reported(terminal: tuple[int, int]) -> None:
    person, program = terminal
    before: Callable[..., object] = signal.getsignal(signal.SIGHUP)  # type: ignore[assignment]
    with Tty(program, program) as screen:
        os.close(person)
        assert screen.wait(10.0)[0] is None
    assert signal.getsignal(signal.SIGHUP) == before


def test_its_size_is_asked_for_each_time(terminal: tuple[int, int]) -> None:
    _, program = terminal
    with Tty(program, program) as screen:
        assert screen.size() == (80, 24)
        fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        assert screen.size() == (100, 30)
