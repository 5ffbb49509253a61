"""A dead server stops neither the daemon nor the commands, however long it stays dead."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.expect import becomes, tuned
from tests.lab.kit.network import silent
from tests.lab.kit.server import ADDRESS, GENERIC
from tests.lab.kit.unit import let_tick, override, process_status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

ANSWER_S = 5.0
SLOWER = 2.0
"""Beside another guest anything may take more than ANSWER_S: then what the dead server adds is judged."""
ROUNDS = 5
START_S = 30.0
WATCHDOG_S = 20
WATCHED = f"[Service]\nWatchdogSec={WATCHDOG_S}\n"
OFTEN = '[daemon]\nsample_interval = "2s"\n'
COMMANDS = ("status", "status --format json", "apply --dry-run", "top --interval 0.1 --count 1")
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("quiet_udev")]


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


def test_a_stopped_server_stops_nothing_else(watched_daemon: Daemon, server: Server, mount: Mounts) -> None:
    mounts = [mount("a", "vers=4.2,actimeo=0"), mount("b", "vers=3,nolock,actimeo=0")]
    tuned(15360, *mounts)
    pid, alive = watched_daemon.pid, _times(mounts)
    server.stop()
    with _hanging(mounts[0]), _hanging(mounts[1]):
        _answers(mounts, alive)
        _outlives_its_watchdog(watched_daemon, pid)
        _stops(watched_daemon)
        server.start()


def test_a_silent_server_stops_nothing_else(watched_daemon: Daemon, mount: Mounts) -> None:
    mounts = [mount("a", "vers=4.1,actimeo=0"), mount("b", "vers=3,nolock,actimeo=0")]
    tuned(15360, *mounts)
    pid, alive = watched_daemon.pid, _times(mounts)
    with silent(ADDRESS), _hanging(mounts[0]), _hanging(mounts[1]):
        _answers(mounts, alive)
        # NFSv3: over NFSv4 the client would find that both addresses are one server, and ask the silent one.
        other = mount("c", "vers=3,nolock", host=GENERIC)
        tuned(1024, other)
        _outlives_its_watchdog(watched_daemon, pid)
        _answers([*mounts, other], alive)
        _stops(watched_daemon)


def test_it_starts_beside_a_silent_server(stopped_daemon: Daemon, mount: Mounts) -> None:
    """Nothing that its sandbox is made of may ask the server."""
    mounts = [mount("a", "vers=4.1,actimeo=0"), mount("b", "vers=3,nolock,actimeo=0")]
    with silent(ADDRESS), _hanging(mounts[0]), _hanging(mounts[1]):
        started = time.monotonic()
        stopped_daemon.start()
        took = time.monotonic() - started
        assert took < START_S, f"READY after {took:.1f} s"
        assert [mounted.read_ahead_kb for mounted in mounts] == [15360, 15360]


def test_a_silent_server_of_the_sites_programs_stops_nothing_else(
    watched_daemon: Daemon, mount: Mounts
) -> None:
    """At /opt are AZNFS' lists of addresses, which a source by a private address asks for at each look."""
    mounts = [mount("a", "vers=4.1,actimeo=0", host=ADDRESS, point=Path("/opt"))]
    tuned(1024, *mounts)
    pid, alive = watched_daemon.pid, _times(mounts)
    with silent(ADDRESS), _hanging(mounts[0]):
        _answers(mounts, alive)
        _outlives_its_watchdog(watched_daemon, pid)
        watched_daemon.restart()
        other = mount("c", "vers=3,nolock", host=GENERIC)
        tuned(1024, other)
        _stops(watched_daemon)


@contextlib.contextmanager
def _hanging(mounted: Mounted) -> Iterator[None]:
    """A process that asks the dead server and waits; it is gone after the block."""
    with subprocess.Popen(["ls", "-l", str(mounted.point)], stdout=subprocess.DEVNULL) as process:
        try:
            becomes("D (disk sleep)", lambda: process_status(process.pid)["State"])
            yield
        finally:
            process.kill()


def _answers(mounts: list[Mounted], alive: dict[str, float]) -> None:
    """The commands answer in time, or in that which they took while the server lived.

    The slow ones are asked again: whoever waits for the server waits each time, and other guests seldom take
    every one.
    """
    slow = alive
    for _ in range(ROUNDS):
        times = _times(mounts, slow)
        slow = {line: took for line, took in times.items() if took >= max(ANSWER_S, SLOWER * alive[line])}
    assert slow == {}, f"alive: {alive}"


def _times(mounts: list[Mounted], commands: Iterable[str] = COMMANDS) -> dict[str, float]:
    """Run each command and return its seconds; each shows all mounts."""
    times = {}
    for command in commands:
        started = time.monotonic()
        done = nfstuned(*command.split())
        times[command] = time.monotonic() - started
        assert done.returncode == 0, done.stdout + done.stderr
        if "json" in command:
            rows = json.loads(done.stdout)["mounts"]
            assert {row["mount_point"] for row in rows} == {str(mounted.point) for mounted in mounts}
    return times


def _outlives_its_watchdog(daemon: Daemon, pid: int) -> None:
    """It samples, pings, and is the same process after a time in which the watchdog would have bitten."""
    end = time.monotonic() + WATCHDOG_S * 1.25
    while time.monotonic() < end:
        let_tick(daemon)
    assert (daemon.pid, daemon.show("NRestarts")) == (pid, "0")
    failed = [entry["MESSAGE"] for entry in daemon.entries(MESSAGE_ID=Message.CYCLE_FAILED.id)]
    assert failed == []


def _stops(daemon: Daemon) -> None:
    """It ends before systemd kills it, as systemd would if it waited for the server."""
    daemon.stop()
    assert daemon.show("Result") == "success"
