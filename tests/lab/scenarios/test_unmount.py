"""Unmounting: lazily with a file open, and so that the next mount gets the same device number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.daemon import STATE
from tests.lab.kit.mounts import BDI, table_device
from tests.lab.kit.server import AZURE, GENERIC
from tests.lab.kit.shell import becomes, tuned

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

AZURE_KB, GENERIC_KB = 15360, 1024
MESSAGE_CYCLE_FAILED = "4e73fad58dcc543bb45d3c7816196295"
pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]


def test_a_lazily_unmounted_superblock_keeps_its_value_while_a_file_is_open(
    mount: Mounts, running_daemon: Daemon
) -> None:
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    with (mounted.point / "open").open("w"):
        mount.umount(mounted, lazy=True)
        other = mount("b", host=GENERIC)
        tuned(GENERIC_KB, other)
        assert table_device(mounted.point) is None
        assert mounted.device in _volumes()
        assert mounted.read_ahead_kb == AZURE_KB
    becomes(expected=False, seen=(BDI / mounted.device).exists)
    becomes(expected=False, seen=_record(mounted).exists)
    assert running_daemon.active
    assert running_daemon.entries(MESSAGE_ID=MESSAGE_CYCLE_FAILED) == []


def test_a_lazily_unmounted_superblock_is_tuned_when_the_daemon_starts_later(
    mount: Mounts, running_daemon: Daemon
) -> None:
    running_daemon.stop()
    mounted = mount("a")
    with (mounted.point / "open").open("w"):
        mount.umount(mounted, lazy=True)
        running_daemon.start()
        tuned(AZURE_KB, mounted)
    becomes(expected=False, seen=(BDI / mounted.device).exists)


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
@pytest.mark.usefixtures("running_daemon")
def test_a_device_number_reused_at_once_by_a_mount_with_another_policy_is_right_20_times(
    mount: Mounts, options: str
) -> None:
    """A mistake would stay: nfstuned never lowers a value that it does not know as its own."""
    devices, seen = [], []
    for turn in range(20):
        host, kb = ((AZURE, AZURE_KB), (GENERIC, GENERIC_KB))[turn % 2]
        mounted = mount("a", options, host=host)
        devices.append(mounted.device)
        tuned(kb, mounted)
        seen.append((mounted.read_ahead_kb, kb))
        mount.umount(mounted)
    assert [value for value, _ in seen] == [kb for _, kb in seen]
    assert len(set(devices)) <= 2, f"the number was hardly ever reused: {devices}"


def _record(mounted: Mounted) -> Path:
    return STATE / "read-ahead" / mounted.device


def _volumes() -> set[str]:
    rows = Path("/proc/fs/nfsfs/volumes").read_text().splitlines()[1:]
    return {row.split()[3] for row in rows}
