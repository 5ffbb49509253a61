"""Mounts whose requests are answered, however slowly, are never reported as stalled."""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.load import writing
from tests.lab.kit.server import GENERIC, GRACE_S
from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

INTERVAL_S = 10
FASTEST_S, STEADY_S = 120.0, 900.0
"""How long there is load as fast as the server takes it, and at a rate."""
STEADY_PER_S = 4
"""Reads and writes a second of each job then."""
WAIT_S = 40.0
"""Twice the time until a stall is reported."""
VERSIONS = ("vers=3,nolock", "vers=4.1", "vers=4.2")
pytestmark = [pytest.mark.release, pytest.mark.timeout(2700), pytest.mark.usefixtures("quiet_udev")]


@pytest.fixture
def sampling(stopped_daemon: Daemon) -> Iterator[Daemon]:
    stopped_daemon.configure(f'[daemon]\nsample_interval = "{INTERVAL_S}s"\n')
    stopped_daemon.start()
    yield stopped_daemon
    stopped_daemon.clean()


@contextlib.contextmanager
def slow() -> Iterator[None]:
    """Answer after 5 s: every packet of the guest to itself takes half of that."""
    run("tc", "qdisc", "replace", "dev", "lo", "root", "netem", "delay", "2500ms")
    try:
        yield
    finally:
        run("tc", "qdisc", "del", "dev", "lo", "root")


@contextlib.contextmanager
def rebooted(server: Server) -> Iterator[None]:
    """Let the server lose its state: for 90 s after that it only lets clients reclaim their state."""
    server.stop()
    server.start()
    yield


@contextlib.contextmanager
def loaded(mounts: Sequence[Mounted], *words: str) -> Iterator[None]:
    """Write and sync on all mounts at once; `words` are for fio."""
    with contextlib.ExitStack() as stack:
        for number, mounted in enumerate(mounts):
            command = [
                *("fio", f"--name=load{number}", f"--directory={mounted.point}", "--rw=randrw", "--bs=64k"),
                *("--size=8m", "--fsync=8", "--time_based", f"--runtime={2 * STEADY_S:.0f}", "--numjobs=2"),
                *("--thread", "--ioengine=psync", *words),  # as processes its jobs would outlive it
            ]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            stack.callback(process.kill)
        yield


def suspend() -> None:
    """Let the service miss 20 s, as it misses a suspension, while its mounts are in use before and after.

    An emulated machine does not wake from a suspension of its own.
    """
    run("systemctl", "freeze", "nfstuned.service")
    time.sleep(2 * INTERVAL_S)
    run("systemctl", "thaw", "nfstuned.service")


@pytest.fixture
def wait(capsys: pytest.CaptureFixture[str]) -> Callable[[float], None]:
    """Let time pass; a guest that prints nothing for minutes is taken for one that hangs."""

    def wait(seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 60.0))
            with capsys.disabled():
                print(".", flush=True)

    return wait


@pytest.fixture
def mounts(mount: Mounts) -> list[Mounted]:
    """Mounts to be used, with idle mounts next to them."""
    used = [mount(share, version) for share, version in zip("abc", VERSIONS, strict=True)]
    used.append(mount("d", "vers=3,nolock,nconnect=4", host=GENERIC))
    for version in VERSIONS:
        mount("d", version)
    return used


def demand_samples_and_no_stall(sampling: Daemon, mounts: Sequence[Mounted]) -> None:
    # The end of a stall has a message as well, and next to the load journalctl may take minutes.
    assert sampling.journal.messages(f"MESSAGE_ID={Message.STALLED.id}") == []
    assert len(sampling.journal.messages(f"MESSAGE_ID={Message.SAMPLE.id}")) > len(mounts)


@pytest.mark.parametrize("case", ["slow", "loaded", "rebooted", "suspended"])
def test_it_is_never_called_stalled_nor_is_an_idle_mount_beside_it(
    sampling: Daemon, server: Server, mounts: list[Mounted], wait: Callable[[float], None], case: str
) -> None:
    with contextlib.ExitStack() as stack:
        if case != "loaded":
            stack.enter_context(writing(mounts))
        cases = {"slow": slow(), "loaded": loaded(mounts), "rebooted": rebooted(server)}
        sampling.journal.mark()
        if case in cases:
            stack.enter_context(cases[case])
        if case == "suspended":
            suspend()
        wait({"rebooted": GRACE_S, "loaded": FASTEST_S}.get(case, WAIT_S))
    demand_samples_and_no_stall(sampling, mounts)


@pytest.mark.usefixtures("server")
def test_a_quarter_of_an_hour_of_load_has_no_stall(
    sampling: Daemon, mounts: list[Mounted], wait: Callable[[float], None]
) -> None:
    """At a rate that leaves the processors to other guests, whose tests it would make fail."""
    sampling.journal.mark()
    with loaded(mounts, f"--rate_iops={STEADY_PER_S}"):
        wait(STEADY_S)
    demand_samples_and_no_stall(sampling, mounts)
