"""Mounts that wait for a server are reported within two samples, and their wait's end; slow ones never."""

from __future__ import annotations

import contextlib
import platform
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import faults
from tests.lab.kit.daemon import Daemon, nfstuned_json
from tests.lab.kit.faults import client_ports, cut, shaped, silent
from tests.lab.kit.load import writing
from tests.lab.kit.mounts import DEBUGFS, Mounted, Mounts, requests_of
from tests.lab.kit.server import ADDRESS, GENERIC, GRACE_S, Server
from tests.lab.kit.shell import Say, program, restored, run, wait_for

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.newest,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev"),
]

INTERVAL_S = 20
VERSIONS = ("vers=3,nolock", "vers=4.1", "vers=4.2")
END_S = 300.0
"""TCP sends again after twice as long each time, and NFSv4 reclaims its state within the grace."""


class Lab(NamedTuple):
    """The server and mounts of a fault, and the way to print a line."""

    server: Server
    mount: Mounts
    say: Say


@pytest.fixture
def lab(server: Server, mount: Mounts, say: Say) -> Lab:
    return Lab(server, mount, say)


@pytest.fixture
def sampling(stopped_daemon: Daemon) -> Daemon:
    stopped_daemon.start(f'[daemon]\nsample_interval = "{INTERVAL_S}s"\n')
    return stopped_daemon


@pytest.fixture
def _locked_down() -> Iterator[None]:
    """No debugfs, as in a kernel that is locked down: only the connections' counters are left."""
    run("umount", str(DEBUGFS))
    yield
    run("mount", "-t", "debugfs", "debugfs", str(DEBUGFS))


def times(daemon: Daemon, message: Message) -> dict[str, list[float]]:
    """Return the times of a message about each superblock, in Unix seconds."""
    found: dict[str, list[float]] = {}
    for entry in daemon.entries(MESSAGE_ID=message.id):
        found.setdefault(entry["NFSTUNED_DEVICE"], []).append(int(entry["__REALTIME_TIMESTAMP"]) / 1e6)
    return found


def await_all(daemon: Daemon, message: Message, devices: set[str], seconds: float) -> dict[str, list[float]]:
    """Wait until each superblock has a message, or the time is over; return the times."""
    deadline = time.monotonic() + seconds
    while not (found := times(daemon, message)).keys() >= devices and time.monotonic() < deadline:
        time.sleep(1)
    return found


def under_way() -> str:
    """Return the requests of all clients and the connections, as the kernel shows them."""
    tasks = (DEBUGFS / "sunrpc/rpc_clnt").glob("*/tasks")
    shown = "".join(f"{file.parent.name}: {file.read_text()}" for file in tasks if file.read_text())
    return shown + "".join(re.findall(r"(?m)^\txprt:.*\n", Path("/proc/self/mountstats").read_text()))


@contextlib.contextmanager
def stopped(server: Server) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


def judge(
    daemon: Daemon,
    mounts: Sequence[Mounted],
    fault: contextlib.AbstractContextManager[None],
    say: Say,
) -> None:
    """Each mount is reported as stalled within two samples, once, and then as well again."""
    say(f"{len(mounts)} mounts in use")
    devices = {mounted.device for mounted in mounts}
    time.sleep(INTERVAL_S)  # A sample before the fault, as anywhere.
    daemon.journal.mark()
    began = time.time()
    with fault:
        made_s = time.time() - began
        found = await_all(daemon, Message.STALLED, devices, 2 * INTERVAL_S + 10)
        missing = [str(mounted) for mounted in mounts if mounted.device not in found]
        assert missing == [], f"{len(missing)} of {len(mounts)} not reported\n{under_way()}"
        waits = nfstuned_json("check", "--offline", "--select", "NFS411", timeout=180)["findings"]
        assert isinstance(waits, list)
        named = {one["subject"] for one in waits if "programs with files there: python3 (" in one["message"]}
        assert named & {str(mounted.point) for mounted in mounts}, waits
    assert await_all(daemon, Message.STALL_ENDED, devices, END_S).keys() == devices
    found = times(daemon, Message.STALLED)
    late = {device: round(seen[0] - began, 1) for device, seen in found.items()}
    say(f"made in {made_s:.1f} s, reported after {min(late.values())} to {max(late.values())} s")
    assert found.keys() == devices
    assert {device: after for device, after in late.items() if after > 2 * INTERVAL_S} == {}
    assert {device: len(seen) for device, seen in found.items() if len(seen) > 1} == {}


@pytest.mark.parametrize(
    ("fault", "nconnect", "many"),
    [
        ("stopped", 4, 1),
        pytest.param("dropped", 4, 20, marks=pytest.mark.release),
        pytest.param("hung disk", 1, 20, marks=pytest.mark.release),
    ],
)
def test_stall_and_end_are_reported(sampling: Daemon, lab: Lab, fault: str, nconnect: int, many: int) -> None:
    server, mount, say = lab
    with contextlib.ExitStack() as stack:
        if fault == "hung disk":
            shares: Sequence[str] = stack.enter_context(faults.exported(server, many))
        else:
            shares = [f"stall{number}" for number in range(many)]
            server.export(*shares)
        mounts = [mount(share, f"{version},nconnect={nconnect}") for version in VERSIONS for share in shares]
        stack.callback(mount.clean)
        stack.enter_context(writing(mounts))
        made = {"stopped": stopped(server), "dropped": silent(ADDRESS), "hung disk": faults.hanging()}
        judge(sampling, mounts, made[fault], say)


@pytest.mark.release
@pytest.mark.usefixtures("_locked_down")
def test_a_silent_server_is_reported_where_requests_cannot_be_seen(sampling: Daemon, lab: Lab) -> None:
    """With NFSv3: a connection of 4.1 is known by its lease alone, after 75 s."""
    mounts = [lab.mount("a", f"{VERSIONS[0]},nconnect=4"), lab.mount("b", f"{VERSIONS[0]},nconnect=4")]
    with writing(mounts):
        judge(sampling, mounts, silent(ADDRESS), lab.say)


@pytest.mark.release
def test_of_four_connections_one_is_enough(sampling: Daemon, lab: Lab) -> None:
    """The client avoids a connection with a longer queue: a request here and there waits."""
    mounts, made = [], []
    for version in VERSIONS:
        known = set(client_ports(ADDRESS))
        mounts.append(lab.mount("a", f"{version},nconnect=4"))
        made.append(set(client_ports(ADDRESS)) - known)
    with writing(mounts * 4):
        # Of those that a mount made on the way some are gone by now.
        ports = [min(group & set(client_ports(ADDRESS))) for group in made]
        judge(sampling, mounts, cut(ADDRESS, ports), lab.say)


SLOTS, FEW_SLOTS = Path("/sys/module/nfs/parameters/max_session_slots"), 4
KERNEL = tuple(int(number) for number in platform.release().split(".")[:2])
FIRST_UNLISTED = (6, 14)
"""From this kernel on a request without a slot is not in the list of its RPC client's requests."""


def listed(mounted: Mounted) -> int:
    """Return the number of requests that the kernel lists for a superblock."""
    return requests_of(mounted.device).count(" nfsv4 ")


@pytest.mark.release
@pytest.mark.skipif(KERNEL < (6, 5), reason="the kernel does not say whose a request is")
def test_who_has_no_slot_waits_as_well_where_the_kernel_lists_him(sampling: Daemon, lab: Lab) -> None:
    """Two mounts share a session, and the first has all of its slots when the server falls silent."""
    run("modprobe", "nfs")
    with contextlib.ExitStack() as stack:
        stack.enter_context(restored(SLOTS, str(FEW_SLOTS)))
        full, slotless = lab.mount("a", "vers=4.1"), lab.mount("b", "vers=4.1")
        stack.callback(lab.mount.clean)
        time.sleep(INTERVAL_S)
        stack.enter_context(silent(ADDRESS))
        for number in range(FEW_SLOTS):
            stack.enter_context(program("touch", f"{full.point}/{number}"))
        wait_for("a full session", lambda: listed(full) >= FEW_SLOTS)
        stack.enter_context(program("touch", f"{slotless.point}/new"))
        expected = {full.device, slotless.device} if KERNEL < FIRST_UNLISTED else {full.device}
        found = await_all(sampling, Message.STALLED, expected, 2 * INTERVAL_S + 10)
        assert (listed(full), listed(slotless)) == (FEW_SLOTS, len(expected) - 1)
        assert found.keys() == expected, under_way()


SHORT_S = 10
"""Between two samples next to a load."""
FASTEST_S, STEADY_S = 120.0, 900.0
"""Of load as fast as the server takes it, and at a rate: half an hour on a release's two kernels together."""
STEADY_PER_S = 4
"""Reads and writes a second of each job then."""
WAIT_S = 40.0
"""Twice the time until a stall is reported."""
FIVE_SECONDS = ("netem", "delay", "2500ms")
"""Until an answer: every packet of the guest to itself takes half of that."""


@contextlib.contextmanager
def rebooted(server: Server) -> Iterator[None]:
    """Let the server lose its state: for 90 s after that it only lets clients reclaim their state."""
    server.stop(grace_s=GRACE_S)
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
            stack.enter_context(program(*command))
        yield


def suspend() -> None:
    """Let the service miss 20 s, as it misses a suspension, while its mounts are in use before and after.

    An emulated machine does not wake from a suspension of its own.
    """
    run("systemctl", "freeze", "nfstuned.service")
    time.sleep(2 * SHORT_S)
    run("systemctl", "thaw", "nfstuned.service")


def wait(seconds: float, say: Say) -> None:
    """Let time pass, with a line each minute."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        say(f"{left:.0f} s left")
        time.sleep(min(left, 60.0))


@pytest.fixture
def mounts(mount: Mounts) -> list[Mounted]:
    """Mounts to be used, with idle mounts next to them."""
    used = [mount(share, version) for share, version in zip("abc", VERSIONS, strict=True)]
    used.append(mount("d", "vers=3,nolock,nconnect=4", host=GENERIC))
    for version in VERSIONS:
        mount("d", version)
    return used


@pytest.mark.release
@pytest.mark.timeout(2700)
@pytest.mark.parametrize("case", ["slow", "loaded", "loaded for long", "rebooted", "suspended"])
def test_neither_it_nor_an_idle_mount_is_ever_called_stalled(
    stopped_daemon: Daemon, server: Server, mounts: list[Mounted], say: Say, case: str
) -> None:
    stopped_daemon.start(f'[daemon]\nsample_interval = "{SHORT_S}s"\n')
    with contextlib.ExitStack() as stack:
        if not case.startswith("loaded"):
            stack.enter_context(writing(mounts))
        cases = {
            "slow": shaped(*FIVE_SECONDS),
            "loaded": loaded(mounts),
            "loaded for long": loaded(mounts, f"--rate_iops={STEADY_PER_S}"),
            "rebooted": rebooted(server),
        }
        stopped_daemon.journal.mark()
        if case in cases:
            stack.enter_context(cases[case])
        if case == "suspended":
            suspend()
        wait({"rebooted": GRACE_S, "loaded": FASTEST_S, "loaded for long": STEADY_S}.get(case, WAIT_S), say)
    # The end of a stall has a message as well, and next to the load journalctl may take minutes.
    assert stopped_daemon.journal.messages(f"MESSAGE_ID={Message.STALLED.id}") == []
    assert len(stopped_daemon.journal.messages(f"MESSAGE_ID={Message.SAMPLE.id}")) > len(mounts)
