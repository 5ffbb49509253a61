"""The distribution's udev rule is masked while the service runs, and as it was whenever it does not."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import rivals
from tests.lab.kit.daemon import nfstuned, nfstuned_json
from tests.lab.kit.expect import becomes, tuned
from tests.lab.kit.mounts import BDI, set_read_ahead_kb
from tests.lab.kit.shell import run, wait_for
from tests.lab.kit.udev import MASK, difference, view
from tests.lab.kit.unit import let_rest, process_io

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = pytest.mark.system
AZURE_KB = 15360
CONF = Path("/etc/nfs.conf.d/lab-mask.conf")
STOCK = rivals.SHIPPED_NFSRAHEAD


@pytest.fixture
def nfs_conf() -> Iterator[Path]:
    """A drop-in of nfs.conf, gone after the test."""
    CONF.parent.mkdir(exist_ok=True)
    yield CONF
    CONF.unlink(missing_ok=True)


def said(daemon: Daemon, message: Message, mounted: Mounted) -> list[str]:
    entries = daemon.entries(MESSAGE_ID=message.id, NFSTUNED_DEVICE=mounted.device)
    return [entry["MESSAGE"] for entry in entries]


def test_udev_is_as_it_was_after_a_stop_and_while_a_killed_service_waits_for_its_restart(
    stopped_daemon: Daemon,
) -> None:
    before = view()
    stopped_daemon.start()
    assert difference(before, view()) == [str(MASK.parent), str(MASK), "udevadm test"]
    assert f"Skipping overridden file '{STOCK}'" in view()["udevadm test"]
    stopped_daemon.signal("KILL")
    wait_for("the mask and its folder are gone", lambda: not MASK.parent.exists())
    assert difference(before, view()) == []
    wait_for("the service is back", lambda: stopped_daemon.active)
    assert MASK.exists()
    stopped_daemon.restart()
    assert MASK.exists()
    stopped_daemon.stop()
    assert difference(before, view()) == []


def test_install_files_remove_leaves_no_mask(daemon: Daemon) -> None:
    assert MASK.exists()
    assert nfstuned("install-files", "--remove").returncode == 0
    assert not MASK.exists()
    assert daemon.active


def test_status_and_check_know_who_writes(daemon: Daemon, mount: Mounts) -> None:
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    masked = {"file": str(STOCK), "masked_by": str(MASK)}
    assert nfstuned_json("status")["udev_rules"] == [masked]
    assert nfstuned("check", "--offline", "--select", "NFS1").returncode == 0
    daemon.stop()
    assert nfstuned_json("status")["udev_rules"] == [{"file": str(STOCK), "masked_by": None}]


@pytest.mark.parametrize(("value", "stays"), [(4096, AZURE_KB), (16384, 16384)])
def test_values_of_an_administrator_in_nfs_conf_are_told_or_obeyed(
    stopped_daemon: Daemon, mount: Mounts, nfs_conf: Path, value: int, stays: int
) -> None:
    nfs_conf.write_text(f"[nfsrahead]\ndefault={value}\n")
    stopped_daemon.start()
    assert not MASK.exists()
    mounted = mount("a")
    rivals.settle()
    time.sleep(1)
    assert mounted.read_ahead_kb == stays
    fights = said(stopped_daemon, Message.READ_AHEAD_CONTESTED, mounted)
    assert len(fights) <= 1, fights
    assert all("nfs.conf" in text for text in fights)


def test_a_reload_masks_by_what_nfs_conf_says_now(daemon: Daemon, nfs_conf: Path) -> None:
    assert MASK.exists()
    nfs_conf.write_text("[nfsrahead]\nnfs4=4096\n")
    daemon.reload()
    assert not MASK.exists()
    nfs_conf.unlink()
    daemon.reload()
    assert MASK.exists()


def test_a_changed_copy_in_etc_stays_in_force_and_is_answered(stopped_daemon: Daemon, mount: Mounts) -> None:
    copy = rivals.add_rule("99-nfs.rules", STOCK.read_text().replace('"%c"', '"256"'))
    try:
        stopped_daemon.start()
        assert not MASK.exists()
        mounted = mount("a")
        rivals.settle()
        tuned(AZURE_KB, mounted)
        fights = said(stopped_daemon, Message.READ_AHEAD_CONTESTED, mounted)
        assert len(fights) <= 1, fights
        assert all(str(copy) in text for text in fights)
    finally:
        copy.unlink()
        rivals.reload_rules()


def test_a_write_without_an_event_is_answered_at_once(daemon: Daemon, mount: Mounts) -> None:
    """As efs-utils writes, two seconds after the mount: no udev event tells of it.

    At once is sooner than a machine starts an interpreter; a look that no event asks for comes in a minute.
    """
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    starts, took = [], []
    for command in (f"echo 128 > {BDI}/{mounted.device}/read_ahead_kb",) * 3:
        began = time.monotonic()
        run("python3", "-c", "pass")
        starts.append(time.monotonic() - began)
        subprocess.run(["unshare", "--mount", "sh", "-c", command], check=True)
        written = time.monotonic()
        becomes(AZURE_KB, lambda: mounted.read_ahead_kb)
        took.append(time.monotonic() - written)
    becomes(3, lambda: len(said(daemon, Message.READ_AHEAD_CONTESTED, mounted)))
    assert median(took) < median(starts), (took, starts)


def test_a_tool_that_writes_again_and_again_is_answered_three_times_and_then_left(
    daemon: Daemon, mount: Mounts
) -> None:
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        set_read_ahead_kb(mounted.device, 128)
        time.sleep(0.05)
    assert mounted.read_ahead_kb == 128
    assert len(said(daemon, Message.READ_AHEAD_CONTESTED, mounted)) == 3
    assert len(said(daemon, Message.READ_AHEAD_LEFT, mounted)) == 1
    let_rest(daemon)
    before = _bytes_read(daemon)
    mount("b")
    let_rest(daemon)
    of_looks = _bytes_read(daemon) - before
    run("sh", "-c", f"for i in $(seq 1 50); do echo 128 > {BDI}/{mounted.device}/read_ahead_kb; done")
    let_rest(daemon)
    of_writes = _bytes_read(daemon) - before - of_looks
    # A mount leads to a look or two; fifty writes lead to none.
    assert of_writes < 10 * of_looks, (of_writes, of_looks)


def _bytes_read(daemon: Daemon) -> int:
    """Return what the service has read so far, from whatever files (proc_pid_io(5), rchar)."""
    return int(process_io(daemon.pid)["rchar"])
