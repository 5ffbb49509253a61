"""The installed service starts, tunes a mount, survives a reload and stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.shell import wait_for

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


def test_the_service_is_ready_and_small(daemon: Daemon) -> None:
    assert daemon.active
    assert daemon.pid > 0
    assert daemon.rss_kb <= 30 * 1024


def test_a_mount_is_tuned(daemon: Daemon, mount: Mounts) -> None:
    assert daemon.active
    mounted = mount("a", "vers=4.1,nconnect=4")
    wait_for("15360 KiB", lambda: mounted.read_ahead_kb == 15360)


def test_a_configured_value_is_used_after_a_reload(daemon: Daemon, mount: Mounts) -> None:
    daemon.configure("[profile.azure-files]\nread_ahead_kb = 4096\n")
    daemon.reload()
    mounted = mount("a")
    wait_for("4096 KiB", lambda: mounted.read_ahead_kb == 4096)


def test_the_service_comes_back_after_a_kill(daemon: Daemon) -> None:
    before = daemon.pid
    daemon.signal("KILL")
    wait_for("another process", lambda: daemon.pid not in {0, before} and daemon.active, 60)


def test_a_stopped_service_is_gone(daemon: Daemon) -> None:
    daemon.stop()
    assert not daemon.active
    assert daemon.pid == 0


@pytest.mark.usefixtures("stopped_daemon")
def test_the_command_answers_without_the_service(mount: Mounts) -> None:
    mounted = mount("a")
    done = nfstuned("status", timeout=30)
    assert done.returncode == 0, done.stderr
    assert str(mounted.point) in done.stdout
