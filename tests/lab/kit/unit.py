"""Drop-ins of the installed unit, and what only systemd and /proc know of the running service."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kit.daemon import UNIT
from tests.lab.kit.rivals import settle
from tests.lab.kit.shell import run, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon

_DROP_IN = Path("/run/systemd/system", f"{UNIT}.d", "lab.conf")


@contextlib.contextmanager
def override(text: str) -> Iterator[None]:
    """Give the unit a drop-in while the block runs; it counts from the next start."""
    _DROP_IN.parent.mkdir(parents=True, exist_ok=True)
    _DROP_IN.write_text(text)
    run("systemctl", "daemon-reload")
    try:
        yield
    finally:
        _DROP_IN.unlink()
        run("systemctl", "daemon-reload")


def process_status(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/status."""
    return _fields(Path(f"/proc/{pid}/status"))


def process_io(pid: int) -> dict[str, str]:
    """Return the fields of /proc/PID/io."""
    return _fields(Path(f"/proc/{pid}/io"))


def _fields(file: Path) -> dict[str, str]:
    lines = file.read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def let_rest(daemon: Daemon) -> None:
    """Wait until udev is done and the daemon has slept for a second: it has looked at all there was."""
    settle()

    def sleeps() -> bool:
        before = process_status(daemon.pid)["voluntary_ctxt_switches"]
        time.sleep(1)
        return process_status(daemon.pid)["voluntary_ctxt_switches"] == before

    wait_for("a second of the daemon's sleep", sleeps, 30)


def let_tick(daemon: Daemon) -> None:
    """Wait until the daemon has pinged the watchdog twice: at least one whole tick lies in between."""
    for _ in range(2):
        _let_ping(daemon, _pinged(daemon))


def _let_ping(daemon: Daemon, before: str) -> None:
    wait_for(f"a ping of the watchdog after {before}", lambda: _pinged(daemon) != before, 100)


def _pinged(daemon: Daemon) -> str:
    return daemon.show("WatchdogTimestampMonotonic")
