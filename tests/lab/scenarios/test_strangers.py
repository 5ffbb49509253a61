"""tmpfs, FUSE, btrfs and loop devices beside NFS mounts keep their read-ahead, byte for byte."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit import rivals
from tests.lab.kit.mounts import all_read_ahead_kb, device_of
from tests.lab.kit.server import SHARES
from tests.lab.kit.shell import run, tuned
from tests.lab.kit.strangers import strangers

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

AZURE_KB = 15360
VERSIONS = ("vers=3,nolock", "vers=4.1", "vers=4.2")
pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]


def test_every_other_device_keeps_its_value_through_the_daemons_whole_life(
    mount: Mounts, running_daemon: Daemon
) -> None:
    running_daemon.stop()
    with strangers():
        before = all_read_ahead_kb()
        running_daemon.start()
        mounted = [mount(share, options) for share in SHARES for options in VERSIONS]
        tuned(AZURE_KB, *mounted)
        running_daemon.reload()
        rivals.settle()
        running_daemon.stop()
        after = {name: value for name, value in all_read_ahead_kb().items() if name in before}
    assert after == before


@pytest.mark.release
def test_devices_that_appear_during_a_storm_keep_the_kernels_values(
    mount: Mounts, running_daemon: Daemon
) -> None:
    running_daemon.stop()
    with strangers() as without:
        kernels = without.values()
    running_daemon.start()
    with ThreadPoolExecutor(4) as pool:
        wanted = [(share, options) for share in SHARES for options in VERSIONS]
        storm = [pool.submit(mount, share, options) for share, options in wanted]
        with strangers() as beside:
            mounted = [one.result() for one in storm]
            tuned(AZURE_KB, *mounted)
            rivals.settle()
            assert beside.values() == kernels, f"of {beside.bdis}"


def test_a_fuse_mount_that_gets_an_nfs_mounts_number_keeps_the_kernels_value(
    mount: Mounts, running_daemon: Daemon
) -> None:
    shared = 0
    for _ in range(5):
        # Version 3 makes no pseudo-root, whose lower number would be the next mount's.
        mounted = mount("a", "vers=3,nolock")
        tuned(AZURE_KB, mounted)
        mount.umount(mounted)
        point = mount.new_point()
        run("bindfs", "/usr/share", str(point))
        rivals.settle()
        device = device_of(point)
        shared += device == mounted.device
        assert all_read_ahead_kb()[device] == "128\n", f"{device}, after NFS at {mounted.device}"
        run("umount", str(point))
    assert shared, "the FUSE mount never got the NFS mount's number"
    assert running_daemon.active
