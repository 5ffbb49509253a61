"""The installed unit: drop-ins, its process in /proc, its system calls, and the package's compiled files."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.daemon import UNIT, Daemon
from tests.lab.kit.rivals import settle
from tests.lab.kit.shell import run, wait_for

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
        with contextlib.suppress(OSError):
            _DROP_IN.parent.rmdir()
        run("systemctl", "daemon-reload")


def process_status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
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
        _let_ping(daemon)


def _let_ping(daemon: Daemon) -> None:
    before = daemon.show("WatchdogTimestampMonotonic")
    wait_for("a ping of the watchdog", lambda: daemon.show("WatchdogTimestampMonotonic") != before, 100)


HOME = Path("/usr/lib/nfstuned")


def compiled() -> list[Path]:
    """Return all that Python has compiled of the program and its libraries."""
    return sorted(HOME.rglob("*.pyc"))


TRACED = """[Service]
ExecStart=
ExecStart=/usr/bin/strace -D -f --seccomp-bpf -qq -s 0 -o {file} -e trace=!{passed} /usr/bin/nfstuned daemon
ReadWritePaths={folder}
SystemCallFilter=
TimeoutStartSec=300s
WatchdogSec=0
"""
"""A drop-in: nothing is forbidden, so that each call is made; the tracer is not the main process."""
_CALL = re.compile(r"^\d+ +([a-z_0-9]+)\(", re.MULTILINE)


def drop_in(file: Path, passed: frozenset[str]) -> str:
    """Return a drop-in with which the service leaves its system calls in a file, but for these names."""
    names = ",".join(f"?{name}" for name in sorted(passed))
    return TRACED.format(file=file, folder=file.parent, passed=names)


def made(file: Path) -> frozenset[str]:
    """Return the names of the calls in a file of strace's."""
    return frozenset(_CALL.findall(file.read_text(errors="replace")))


def allowed(unit: Path) -> frozenset[str]:
    """Return the names of the calls that the filter of a unit lets through, by this systemd's own groups."""
    found = _members("@default")
    for value in re.findall(r"^SystemCallFilter=(.+)$", unit.read_text(), re.MULTILINE):
        names = frozenset().union(*(_members(word) for word in value.lstrip("~").split()))
        found = found - names if value.startswith("~") else found | names
    return found


def _members(word: str) -> frozenset[str]:
    """Return the calls of a group, with those of its groups; a call is a group of itself."""
    if not word.startswith("@"):
        return frozenset({word})
    lines = [line.strip() for line in run("systemd-analyze", "syscall-filter", word).splitlines()[1:]]
    return frozenset().union(*(_members(line) for line in lines if line and not line.startswith("#")))
