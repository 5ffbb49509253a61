"""`nfstuned top` over trees of kernel files: blocks of text, and a screen on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nfstuned.cli.top import Clock, TopOrder, show_top
from nfstuned.host.root import Root
from tests.cli.conftest import CASE, PROGRAM, REPOSITORY, Host, MakeHost

SETTLE_S = 60.0
"""Far more than it takes: other tests may have the machine."""


def read_more(tree: Path, megabytes: int = 80, seconds: int = 10) -> None:
    """Have /mnt/2 read, and its server send a tenth more than that, while time passes for all."""
    file = tree / "proc/1/mountstats"
    aged = re.sub(r"\tage:\t(\d+)", lambda age: f"\tage:\t{int(age[1]) + seconds}", file.read_text())
    head, mine, rest = re.split(
        r"(device \S+ mounted on /mnt/2 .*?bytes:\t)", aged, maxsplit=1, flags=re.DOTALL
    )
    normal, *others = rest.split(" ")
    others[3] = str(int(others[3]) + megabytes * 1_100_000)
    # Whoever reads meanwhile gets the one or the other, as from the kernel.
    new = file.with_suffix(".new")
    new.write_text(head + mine + " ".join([str(int(normal) + megabytes * 1_000_000), *others]))
    new.replace(file)


class TestBlocks:
    def test_there_is_one_for_each_interval(self, host: MakeHost) -> None:
        here, passed = host(CASE), list[float]()

        def sleep(seconds: float) -> None:
            passed.append(seconds)
            read_more(here.tree)

        clock = Clock(lambda: 1.785e9 + 10 * len(passed), lambda: 100.0 + 10 * len(passed), sleep)
        assert show_top(Root(str(here.tree)), TopOrder(10.0, "total", 3), clock) == 0
        out, err = here.capture.readouterr()
        blocks = [block.splitlines() for block in out.split("\n\n")]
        assert (err, passed, len(blocks)) == ("", [10.0, 10.0, 10.0], 3)
        for title, sums, header, used in blocks:
            assert ", 6 NFS superblocks, 1 in use, mean of 10 s, by total" in title
            assert sums == "read 8.0 MB/s (server 8.8 MB/s), write 0"
            assert header.split()[:3] == ["MOUNT", "READ", "WRITE"]
            assert used.split()[:7] == ["/mnt/2", "and", "1", "more", "8.0", "MB/s", "0"]


class TestCommand:
    def test_an_interrupt_ends_it_without_a_word(self, host: MakeHost) -> None:
        # A test run in the background hands down that SIGINT is ignored.
        script = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {PROGRAM}"
        command, pipe = top_of(host(CASE), script), subprocess.PIPE
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=pipe, stderr=pipe, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=SETTLE_S)[1] == ""
        assert process.returncode == 130


@dataclass
class Person:
    process: subprocess.Popen[bytes]
    end: int
    terminal: int
    modes: list[Any]
    """The terminal's, before the program began."""
    shown: bytes = b""

    def type(self, keys: bytes) -> None:
        """Press keys; what was shown before is forgotten."""
        self.shown = b""
        os.write(self.end, keys)

    def sees(self, text: str) -> None:
        """Wait until the text is on the screen."""
        until = time.monotonic() + SETTLE_S
        while text.encode() not in self.shown:
            assert time.monotonic() < until, self.shown.decode(errors="replace")[-3000:]
            self.looks()

    def ends(self) -> int:
        until = time.monotonic() + SETTLE_S
        while self.process.poll() is None:
            assert time.monotonic() < until
            self.looks()
        while self.looks():
            pass
        return self.process.returncode

    def looks(self) -> bool:
        """Read for a moment; return whether something was shown."""
        if not select.select([self.end], [], [], 0.05)[0]:
            return False
        self.shown += os.read(self.end, 1 << 16)
        return True


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def top_of(here: Host, script: str = PROGRAM) -> list[str]:
    return [sys.executable, "-c", script, str(here.tree), "top", "--interval", "0.2"]


@contextmanager
def at_terminal(command: list[str], *, session: bool = True) -> Iterator[Person]:
    """Run it at a terminal of 80 columns, in a session of its own unless it makes one."""
    end, terminal = pty.openpty()
    resize(terminal, 80, 24)
    modes = termios.tcgetattr(terminal)
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=session,
    )
    try:
        yield Person(process, end, terminal, modes)
    finally:
        process.kill()
        process.wait()
        os.close(end)
        os.close(terminal)


@pytest.fixture
def person(host: MakeHost) -> Iterator[Person]:
    """A person at a terminal, on a host with mounts that nobody uses yet."""
    with at_terminal(top_of(host(CASE))) as someone:
        yield someone


class TestScreen:
    def test_it_is_shown_at_once_opened_resized_and_left(self, person: Person) -> None:
        person.sees("rates follow after the first interval")
        assert b"\x1b[?1049h" in person.shown
        person.sees("6 NFS superblocks, 0 in use, mean of 0.")
        person.type(b"h")
        person.sees("Any key closes this help.")
        person.type(b"x")
        person.sees("MOUNT")
        person.type(b"<")
        person.sees("*MOUNT")
        person.type(b"\x1b[B\r")
        person.sees("sa1.file.core.windows.net:/a  0:46  read-ahead 128 KiB")
        person.sees("v4.1 tcp 10.10.10.10:2049: 4 connections")
        resize(person.terminal, 120, 30)
        person.process.send_signal(signal.SIGWINCH)
        person.sees("RETR/s")
        person.type(b"p")
        person.sees("PAUSED")
        person.type(b"q")
        assert person.ends() == 0
        assert person.shown.endswith(b"\x1b[?1049l")

    def test_what_a_mount_reads_is_on_the_screen(self, host: MakeHost) -> None:
        here = host(CASE)
        with at_terminal(top_of(here)) as person:
            person.sees("0 in use, mean of")
            read_more(here.tree, seconds=0)
            person.sees("1 in use, mean of")
            person.sees("/mnt/2 and 1 more")

    @pytest.mark.parametrize(
        ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
    )
    def test_a_signal_gives_the_terminal_back(self, person: Person, number: int, status: int) -> None:
        person.sees("rates follow")
        assert termios.tcgetattr(person.terminal) != person.modes
        person.process.send_signal(number)
        assert person.ends() == status
        assert person.shown.endswith(b"\x1b[?1049l")
        assert termios.tcgetattr(person.terminal) == person.modes

    def test_a_shell_that_stops_it_has_the_terminal_and_fg_gives_it_back(self, host: MakeHost) -> None:
        """Job control as a person has it: the shell's own session, and a group in the foreground."""
        top = " ".join(map(shlex.quote, top_of(host(CASE))))
        script = f"set -m; {top}; stty -a | grep -ow -- '-*icanon'; fg >/dev/null; echo ended $?"
        with at_terminal(["setsid", "--ctty", "bash", "-c", script], session=False) as person:
            person.sees("rates follow")
            person.type(b"\x1a")
            person.sees("\x1b[?1049h")
            assert b"\r\nicanon\r\n" in person.shown.partition(b"\x1b[?1049l")[2]
            person.sees("6 NFS superblocks")
            person.type(b"q")
            person.sees("ended 0")

    def test_a_mistake_of_its_own_gives_it_back(self, host: MakeHost) -> None:
        confused = f"import nfstuned.cli.top; nfstuned.cli.top.press = None; {PROGRAM}"
        with at_terminal(top_of(host(CASE), confused)) as person:
            person.sees("rates follow")
            person.type(b"x")
            person.sees("\x1b[?1049l")
            assert person.ends() == 2
            assert b"\x1b[?1049l" in person.shown
            assert b"nfstuned: TypeError: " in person.shown.partition(b"\x1b[?1049l")[2]
            assert termios.tcgetattr(person.terminal) == person.modes
