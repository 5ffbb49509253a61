"""A dead server stops neither the daemon nor the commands, however long it stays dead."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kit.daemon import Daemon, nfstuned
from tests.lab.kit.faults import silent
from tests.lab.kit.mounts import Mounted, Mounts
from tests.lab.kit.server import ADDRESS, GENERIC, GENERIC_KB, GENERIC_NUMBER, Server
from tests.lab.kit.shell import becomes, program, tuned
from tests.lab.kit.unit import let_tick, override, process_status

WAIT_S = 5.0
"""So long a command may wait for anything but a processor, or as long as it has one."""
ROUNDS = 3
START_S = 30.0
WATCHDOG_S = 20
WATCHED = f"[Service]\nWatchdogSec={WATCHDOG_S}\n"
OFTEN = f'[daemon]\nsample_interval = "2s"\n{GENERIC_NUMBER}'
COMMANDS = ("status", "status --format json", "apply --dry-run", "top --interval 0.1 --count 1")
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


@pytest.fixture
def watched_daemon(stopped_daemon: Daemon) -> Iterator[Daemon]:
    """The service with samples each two seconds and a watchdog that bites within the length of a test."""
    stopped_daemon.configure(OFTEN)
    # The first run is the emulator's: it translates all code, and reads it from the disk.
    nfstuned("status")
    with override(WATCHED):
        stopped_daemon.start()
        yield stopped_daemon
        stopped_daemon.clean()


@pytest.mark.parametrize(
    "case",
    [
        "stopped",
        pytest.param("silent", marks=pytest.mark.release),
        pytest.param("silent at /opt", marks=pytest.mark.release),
    ],
)
def test_a_dead_server_stops_nothing_else(
    watched_daemon: Daemon, server: Server, mount: Mounts, case: str
) -> None:
    """At /opt are AZNFS' lists of addresses, which a source by a private address asks for at each look."""
    if case == "silent at /opt":
        kb, mounts = GENERIC_KB, [mount("a", "vers=4.1,actimeo=0", host=ADDRESS, point=Path("/opt"))]
    else:
        newer = "vers=4.2,actimeo=0" if case == "stopped" else "vers=4.1,actimeo=0"
        kb, mounts = 15360, [mount("a", newer), mount("b", "vers=3,nolock,actimeo=0")]
    tuned(kb, *mounts)
    pid = watched_daemon.pid
    with contextlib.ExitStack() as stack:
        if case == "stopped":
            server.stop()
            stack.callback(server.start)
        else:
            stack.enter_context(silent(ADDRESS))
        for mounted in mounts:
            stack.enter_context(_hanging(mounted))
        _answers(mounts)
        _outlives_its_watchdog(watched_daemon, pid)
        if case == "silent at /opt":
            watched_daemon.restart()
        if case != "stopped":
            # NFSv3: over NFSv4 the client would find that both addresses are one server, and ask the first.
            other = mount("c", "vers=3,nolock", host=GENERIC)
            tuned(GENERIC_KB, other)
            _answers([*mounts, other])
        watched_daemon.stop()
        # It ends before systemd kills it, as systemd would if it waited for the server.
        assert watched_daemon.show("Result") == "success"


@pytest.mark.release
def test_it_starts_next_to_a_silent_server(stopped_daemon: Daemon, mount: Mounts) -> None:
    """Nothing that its sandbox is made of may ask the server."""
    mounts = [mount("a", "vers=4.1,actimeo=0"), mount("b", "vers=3,nolock,actimeo=0")]
    with silent(ADDRESS), _hanging(mounts[0]), _hanging(mounts[1]):
        started = time.monotonic()
        stopped_daemon.start()
        took = time.monotonic() - started
        assert took < START_S, f"READY after {took:.1f} s"
        assert [mounted.read_ahead_kb for mounted in mounts] == [15360, 15360]


@contextlib.contextmanager
def _hanging(mounted: Mounted) -> Iterator[None]:
    """A process that asks the dead server and waits; it is gone after the block."""
    with program("ls", "-l", str(mounted.point)) as process:
        becomes("D (disk sleep)", lambda: process_status(process.pid)["State"])
        yield


def _answers(mounts: list[Mounted]) -> None:
    """The commands answer and show all mounts, and wait for no server.

    The slow ones are asked again: a command that waits for the server waits each time.
    """
    slow: dict[str, tuple[float, float]] = dict.fromkeys(COMMANDS, (0.0, 0.0))
    for _ in range(ROUNDS):
        asked = {command: _asked(command, mounts) for command in slow}
        slow = {
            line: (waited, worked) for line, (waited, worked) in asked.items() if waited > max(WAIT_S, worked)
        }
    assert slow == {}, "by command: seconds that it waited, and had a processor"


def _asked(command: str, mounts: list[Mounted]) -> tuple[float, float]:
    """Run a command, which shows all mounts; return the seconds that it waited, and had a processor."""
    started, before = time.monotonic(), os.times()
    done = nfstuned(*command.split())
    took, after = time.monotonic() - started, os.times()
    assert done.returncode == 0, done.stdout + done.stderr
    if "json" in command:
        rows = json.loads(done.stdout)["mounts"]
        assert {row["mount_point"] for row in rows} == {str(mounted.point) for mounted in mounts}
    worked = after.children_user + after.children_system - before.children_user - before.children_system
    return took - worked, worked


def _outlives_its_watchdog(daemon: Daemon, pid: int) -> None:
    """It samples, pings, and is the same process after a time in which the watchdog would have bitten."""
    end = time.monotonic() + WATCHDOG_S * 1.25
    while time.monotonic() < end:
        let_tick(daemon)
    assert (daemon.pid, daemon.show("NRestarts")) == (pid, "0")
    assert daemon.failed_cycles == []
