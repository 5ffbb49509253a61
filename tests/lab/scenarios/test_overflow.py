"""More events than the queue holds: nothing is missed, and the loss is reported."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import STATE, Daemon
from tests.lab.kit.mounts import Mounts, announce, set_read_ahead_kb
from tests.lab.kit.rivals import settle
from tests.lab.kit.shell import becomes, restored, tuned

EVENTS = 300
V3 = "vers=3,nolock"
_RMEM_MAX = Path("/proc/sys/net/core/rmem_max")
_SMALL = "32768\n"
"""A limit with which 300 events overflow the queue, as thousands do with the kernel's own: udev takes minutes
for those. The test fails where nothing was lost, because it demands the message about it."""
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


@pytest.fixture(autouse=True)
def _small_queue(stopped_daemon: Daemon) -> Iterator[None]:
    """A service that starts now gets a queue that a few hundred events overflow."""
    assert not stopped_daemon.active
    with restored(_RMEM_MAX, _SMALL):
        yield
    # udev is still at it, and the next mount may have the number of the announced one.
    settle()


def test_nothing_is_missed_when_the_queue_overflows(stopped_daemon: Daemon, mount: Mounts) -> None:
    # Before the service starts: its own mount namespace takes numbers, and this number is used again at once.
    daemon, going = stopped_daemon, mount("b", V3)
    daemon.start()
    kept = mount("a")
    tuned(15360, kept, going)
    daemon.signal("STOP")
    try:
        # The queue is full by the time of those that must not be missed.
        announce(EVENTS, kept.device)
        mount.umount(going)
        coming = [mount("c", V3), mount("d", "vers=4.1"), mount("b")]
        for share, options in itertools.product("cd", ("vers=4.2,ro", "vers=3,nolock,ro")):
            mount.umount(mount(share, options))
        assert going.device in [mounted.device for mounted in coming], "no number was used again"
        assert [mounted.read_ahead_kb for mounted in coming] == [128] * 3, "the daemon is not stopped"
    finally:
        daemon.signal("CONT")
    tuned(15360, kept, *coming, seconds=30)
    entry = daemon.wait_for_entry(MESSAGE_ID=Message.EVENTS_LOST.id)
    assert "lost" in entry["MESSAGE"]
    settle()
    devices = sorted(mounted.device for mounted in (kept, *coming))
    becomes(devices, lambda: sorted(file.name for file in (STATE / "read-ahead").iterdir()))
    assert daemon.active
    assert daemon.failed_cycles == []
    # It still hears udev, after a full queue there, too.
    set_read_ahead_kb(kept.device, 256)
    announce(1, kept.device)
    tuned(15360, kept)
