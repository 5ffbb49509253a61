"""Faults of the guest that last while a block runs: injected calls, and states that a host can be in."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.lab.kit.daemon import UNIT
from tests.lab.kit.faultlist import CALLS, CYCLE, FILES, GROUPS, RELOAD, START, STATE, STOP, Call
from tests.lab.kit.mounts import Mounts
from tests.lab.kit.shell import attempt, becomes, program, run, wait_for
from tests.lab.kit.unit import process_status

FOLDER = Path("/run/lab")
"""For the traced service: its launcher, and the log of the calls that strace made fail."""
LAUNCHER, LOG = FOLDER / "launch", FOLDER / "calls"
STATE_KB = 512
DROP_IN = f"""[Service]
ExecStartPre=
ExecStopPost=
ExecStart=
ExecStart=/bin/sh {LAUNCHER}
ReadWritePaths={FOLDER}
SystemCallFilter=
TimeoutStartSec=90s
"""
"""A drop-in for faults at the start: the launcher decides about a fault at each of systemd's attempts."""


def sound_launcher() -> None:
    """Let the next start be without a fault."""
    LAUNCHER.write_text("exec /usr/bin/nfstuned daemon\n")


def faulty_launcher(call: Call, error: str) -> None:
    """Let each start be with a fault, until `release` ends its tracer: -I2 lets a signal end it."""
    words = ["/usr/bin/strace", "-D", "-f", "-I2", *_words(call, error, FILES[call.file])]
    LAUNCHER.write_text(f"exec {' '.join(words)} /usr/bin/nfstuned daemon\n")


def _words(call: Call, error: str, paths: tuple[str, ...]) -> list[str]:
    inject = f"inject={call.name}:error={error}:when={call.when}"
    limits = [word for path in paths for word in ("-P", path)]
    # Each attempt of a start has a tracer of its own, and adds to the log.
    return ["-qq", "-s0", "-A", "-o", str(LOG), "-e", f"trace={call.name}", "-e", inject, *limits]


def injected() -> int:
    """Return how many calls strace has made fail."""
    return LOG.read_text(errors="replace").count("(INJECTED)") if LOG.exists() else 0


def release(pid: int) -> None:
    """End the tracer of a service that started with a fault."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        tracer = int(process_status(pid)["TracerPid"])
        if tracer:
            os.kill(tracer, signal.SIGTERM)
            wait_for("the tracer's end", lambda: process_status(pid)["TracerPid"] == "0")


@contextlib.contextmanager
def failing(call: Call, error: str, pid: int) -> Iterator[None]:
    """Let calls of a running service fail while the block runs."""
    paths = FILES[call.file]
    if call.file in GROUPS:
        paths = (_netlink(pid, GROUPS[call.file]),)
    LOG.unlink(missing_ok=True)
    words = ["strace", *(["-f"] if call.children else []), *_words(call, error, paths), "-p", str(pid)]
    with program(*words, stderr=subprocess.DEVNULL) as strace:
        becomes(str(strace.pid), lambda: process_status(pid)["TracerPid"])
        try:
            yield
        finally:
            strace.terminate()
            strace.wait()


def open_files(pid: int) -> Iterator[str]:
    """Yield the name that /proc has for each open file of a process."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield str(link.readlink())


def _netlink(pid: int, group: int) -> str:
    """Return the name that /proc has for a process's netlink socket of a multicast group."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/netlink").read_text().splitlines()[1:]]
    links = {*open_files(pid)}
    names = (f"socket:[{row[9]}]" for row in rows if int(row[3], 16) == group)
    return next(name for name in names if name in links)


@contextlib.contextmanager
def no_descriptors(pid: int) -> Iterator[None]:
    """Let the process open no more files than it has open: the lowest free descriptor is beyond its limit."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(link.name) for link in Path(f"/proc/{pid}/fd").iterdir()}
    lowest = next(number for number in itertools.count() if number not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):  # it was stopped meanwhile
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def small_state() -> Iterator[None]:
    """Have the state folder on a small file system of its own; to be entered before the service starts."""
    run("mkdir", "-p", STATE)
    run("mount", "-t", "tmpfs", "-o", f"size={STATE_KB}k,mode=755", "state", STATE)
    try:
        yield
    finally:
        attempt("umount", "--lazy", STATE)


@contextlib.contextmanager
def full_disk(_pid: int = 0) -> Iterator[None]:
    """Fill the file system of the state."""
    filler = Path(STATE, "filler")
    attempt("dd", "if=/dev/zero", f"of={filler}", "bs=4k")
    try:
        yield
    finally:
        filler.unlink()


@contextlib.contextmanager
def read_only_sys(_pid: int = 0) -> Iterator[None]:
    """Make sysfs read-only, as soon as nobody writes to a file there."""
    wait_for("a remount", lambda: attempt("mount", "-o", "remount,ro", "/sys").returncode == 0)
    try:
        yield
    finally:
        run("mount", "-o", "remount,rw", "/sys")


_UDEV = ("systemd-udevd.service", "systemd-udevd-kernel.socket", "systemd-udevd-control.socket")


@contextlib.contextmanager
def no_udev(_pid: int = 0) -> Iterator[None]:
    """Stop udev, with its control socket."""
    run("systemctl", "stop", *_UDEV)
    try:
        yield
    finally:
        run("systemctl", "start", *reversed(_UDEV))


@contextlib.contextmanager
def _property(name: str, value: str, before: str) -> Iterator[None]:
    run("systemctl", "set-property", "--runtime", UNIT, f"{name}={value}")
    try:
        yield
    finally:
        run("systemctl", "set-property", "--runtime", UNIT, f"{name}={before}")


def memory_high(_pid: int = 0) -> contextlib.AbstractContextManager[None]:
    """Let the kernel take memory from the service above a third of its need."""
    return _property("MemoryHigh", "8M", "infinity")


def memory_max(_pid: int = 0) -> contextlib.AbstractContextManager[None]:
    """Let the kernel kill the service where it cannot take enough from it."""
    return _property("MemoryMax", "8M", "256M")


@contextlib.contextmanager
def no_journal(_pid: int = 0) -> Iterator[None]:
    """Stop journald, with its sockets."""
    units = [f"systemd-journald{kind}" for kind in (".service", ".socket", "-dev-log.socket")]
    run("systemctl", "stop", *units)
    try:
        yield
    finally:
        run("systemctl", "start", *reversed(units))


def unload(mounts: Mounts) -> None:
    """Unmount all, and unload the client's modules. Raises CommandError where one is in use."""
    mounts.clean()
    loaded = {line.split()[0] for line in Path("/proc/modules").read_text().splitlines()}
    for name in ("nfsv3", "nfsv4", "nfs"):
        if name in loaded:
            run("rmmod", name)


STATES: dict[str, Callable[[int], contextlib.AbstractContextManager[None]]] = {
    "no descriptor is left (RLIMIT_NOFILE)": no_descriptors,
    "the disk of /run/nfstuned is full": full_disk,
    "/sys is read-only": read_only_sys,
    "udev is stopped": no_udev,
    "journald is stopped": no_journal,
    "MemoryHigh=8M": memory_high,
    "MemoryMax=8M": memory_max,
}
"""States that begin while the service runs."""
AT_RELOAD = tuple(name for name in STATES if not name.startswith("MemoryHigh"))
AT_STOP = tuple(name for name in STATES if not name.startswith("Memory"))
LIMITS: dict[str, tuple[str, Callable[[int], contextlib.AbstractContextManager[None]] | None]] = {
    "LimitNOFILE=12": ("LimitNOFILE=12\n", None),
    "MemoryMax=8M": ("MemoryMax=8M\n", None),
    "the disk of /run/nfstuned is full": ("", full_disk),
    "udev is stopped": ("", no_udev),
}
"""States at the start: a line of the unit, or a block."""


UNLOADED, READ_ONLY, ALONE, NOT_LOADED = OTHERS = (
    "the module nfs is unloaded, and loaded by a mount",
    "/sys is read-only",
    "without systemd and journald",
    "the module nfs is not loaded",
)
"""States that have a measurement of their own, the first in a cycle and the others at the start."""


def listed() -> list[tuple[str, str, str]]:
    """Return all faults: the phase, the name, and the error of a call."""
    calls = [(call.phase, f"{call.name}: {call.file}", error) for call in CALLS for error in call.errors]
    states = {CYCLE: (*STATES, UNLOADED), START: (*LIMITS, *OTHERS[1:]), RELOAD: AT_RELOAD, STOP: AT_STOP}
    return [*calls, *((phase, name, "") for phase, names in states.items() for name in names)]


def outside_systemd() -> list[str]:
    """Return a command that runs the daemon without systemd: no sockets of it, and none of its variables."""
    hide = "mount -t tmpfs none /run/systemd && exec env -i PATH=/usr/bin:/bin /usr/bin/nfstuned daemon"
    return ["unshare", "--mount", "sh", "-c", hide]


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process; 0 without it."""
    try:
        fields = re.sub(r"^.*\) ", "", Path(f"/proc/{pid}/stat").read_text()).split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
