"""The lab's own proof: a real client of a real server, and the kernel facts that the design rests on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.faults import silent
from tests.lab.kit.mounts import BDI
from tests.lab.kit.server import ADDRESS, AZURE_2
from tests.lab.kit.shell import attempt, run, wait_for

if TYPE_CHECKING:
    from tests.lab.kit.journal import Journal
    from tests.lab.kit.mounts import Mounted, Mounts

VERSIONS = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")
pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]


def test_no_timer_ends_a_time_slice() -> None:
    """Before Linux 5.13 the file has another place, and the feature was off."""
    features = Path("/sys/kernel/debug/sched/features")
    assert not features.exists() or "NO_HRTICK" in features.read_text().split()


@pytest.mark.parametrize("options", VERSIONS)
def test_a_mount_gets_128_kib_from_the_kernel_and_carries_data(mount: Mounts, options: str) -> None:
    mounted = mount("a", options)
    assert mounted.read_ahead_kb == 128
    (mounted.point / "file").write_bytes(b"x" * 100_000)
    assert Path("/srv/a/file").read_bytes() == b"x" * 100_000


def test_the_name_is_azures_the_address_private_and_volumes_has_a_row(mount: Mounts) -> None:
    mounted = mount("a")
    assert mounted.source == "sa1.file.core.windows.net:/srv/a"
    assert mounted.options["addr"] == ADDRESS
    assert mounted.device in _devices_of_volumes()


def test_shares_are_separate_superblocks_and_the_same_share_again_or_bound_is_the_same_one(
    mount: Mounts,
) -> None:
    mounted = mount("a")
    assert mount("b").device != mounted.device
    assert mount("a").device == mounted.device
    assert mount.bind(mounted).device == mounted.device


def test_a_device_number_is_reused_at_once_and_its_bdi_is_another_inode(mount: Mounts) -> None:
    first = mount("a")
    inode = _inode(first)
    mount.umount(first)
    second = mount("b")
    assert second.device == first.device
    assert _inode(second) != inode


def test_the_bdi_keeps_its_inode_as_long_as_the_mount(mount: Mounts) -> None:
    mounted = mount("a")
    before = _inode(mounted)
    run("mount", "-o", "remount,ro", str(mounted.point))
    mount("b")
    assert _inode(mounted) == before


def test_the_first_mount_decides_nconnect_and_no_remount_changes_it(mount: Mounts) -> None:
    first = mount("a", "vers=4.1,nconnect=4")
    later = mount("b", "vers=4.1,nconnect=8", host=AZURE_2)
    assert (first.options["nconnect"], later.options["nconnect"]) == ("4", "4")
    rows = [row for row in Path("/run/mount/utab").read_text().splitlines() if f"TARGET={later.point}" in row]
    assert len(rows) == 1
    assert "ATTRS=vers=4.1,nconnect=8" in rows[0], "utab keeps the requested number"
    run("mount", "-o", "remount,nconnect=8", str(first.point))
    assert first.options["nconnect"] == "4"


def test_a_silent_server_blocks_and_comes_back(mount: Mounts) -> None:
    mounted = mount("a", "vers=4.2,timeo=20")
    ask = ("timeout", "--signal=KILL", "3", "stat", "--file-system", str(mounted.point))
    with silent(ADDRESS):
        assert attempt(*ask).returncode != 0
    wait_for("the server answers", lambda: attempt(*ask).returncode == 0, 60)


@pytest.mark.system
def test_the_journal_gives_entries_with_their_fields(journal: Journal) -> None:
    attempt("logger", "--journald", stdin="MESSAGE=a lab entry\nNFSTUNED_DEVICE=0:99\n")
    assert [entry["MESSAGE"] for entry in journal.entries("NFSTUNED_DEVICE=0:99")] == ["a lab entry"]
    journal.mark()
    assert journal.messages("NFSTUNED_DEVICE=0:99") == []


def _inode(mounted: Mounted) -> int:
    """The directory behind the link in /sys/class/bdi: a new device has a new one."""
    return (BDI / mounted.device).stat().st_ino


def _devices_of_volumes() -> set[str]:
    rows = Path("/proc/fs/nfsfs/volumes").read_text().splitlines()[1:]
    return {row.split()[3] for row in rows}
