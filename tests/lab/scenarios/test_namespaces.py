"""Mounts of other mount and network namespaces, and those that were there before: each ends right."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.mounts import Mounted, table_device
from tests.lab.kit.namespaces import hidden_mount, network
from tests.lab.kit.server import AZURE, GENERIC
from tests.lab.kit.shell import run, tuned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

AZURE_KB, GENERIC_KB = 15360, 1024
SOURCE = f"{AZURE}:/srv/a"
pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A network namespace that reaches the server. It must outlive its mounts: ask for it before `mount`."""
    with network() as name:
        yield name


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("running_daemon")
def test_a_mount_in_a_private_mount_namespace_is_tuned(mount: Mounts, options: str) -> None:
    with hidden_mount(SOURCE, mount.new_point(), options) as hidden:
        assert table_device(hidden.point) is None, "it is visible here: not private"
        tuned(AZURE_KB, hidden)


POLICY = """
[[policy]]
match = { mount_point = "/mnt/lab/*" }
profile = "by-point"
[profile.by-point]
read_ahead_kb = 32768
"""


def test_a_policy_by_mount_point_reaches_into_a_private_mount_namespace_and_stays_while_others_come_and_go(
    mount: Mounts, running_daemon: Daemon
) -> None:
    """Each of the others has the daemon look, mostly without the other namespaces."""
    drop_in = running_daemon.configure(POLICY, "by-point")
    running_daemon.reload()
    try:
        with hidden_mount(SOURCE, mount.new_point(), "vers=4.2") as hidden:
            tuned(32768, hidden)
            values = set()
            for _ in range(4):
                other = mount("b", host=GENERIC)
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    values.add(hidden.read_ahead_kb)
                mount.umount(other)
            assert values == {32768}
    finally:
        drop_in.unlink()
        running_daemon.reload()


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("running_daemon")
def test_a_mount_in_another_network_namespace_is_tuned(elsewhere: str, mount: Mounts, options: str) -> None:
    enter = ("ip", "netns", "exec", elsewhere)
    with hidden_mount(SOURCE, mount.new_point(), options, prefix=enter) as hidden:
        assert hidden.device not in _volumes(), "its row is visible here: not another network namespace"
        tuned(AZURE_KB, hidden)


@pytest.mark.usefixtures("running_daemon")
def test_a_visible_mount_over_another_network_namespace_is_tuned(elsewhere: str, mount: Mounts) -> None:
    point = mount.new_point()
    run(
        "nsenter", f"--net=/run/netns/{elsewhere}", "mount", "-t", "nfs", "-o", "vers=4.2", SOURCE, str(point)
    )
    device = table_device(point)
    assert device is not None
    assert device not in _volumes(), "its row is visible here: not another network namespace"
    tuned(AZURE_KB, Mounted(SOURCE, point, device))


def test_visible_and_hidden_mounts_that_are_there_before_the_daemon_are_right_once_it_is_ready(
    elsewhere: str, mount: Mounts, running_daemon: Daemon
) -> None:
    running_daemon.stop()
    versions = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")
    before = [mount("a", options) for options in versions]
    other = mount("b", host=GENERIC)
    enter = ("ip", "netns", "exec", elsewhere)
    with hidden_mount(SOURCE, mount.new_point(), "vers=4.2", prefix=enter) as hidden:
        assert {one.read_ahead_kb for one in (*before, other, hidden)} == {128}
        running_daemon.start()
        values = [one.read_ahead_kb for one in (*before, other, hidden)]
        assert values == [AZURE_KB, AZURE_KB, AZURE_KB, GENERIC_KB, AZURE_KB], f"at READY: {values}"


def _volumes() -> set[str]:
    rows = Path("/proc/fs/nfsfs/volumes").read_text().splitlines()[1:]
    return {row.split()[3] for row in rows}
