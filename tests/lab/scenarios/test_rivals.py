"""Other writers of the read-ahead, events sent by hand and files taken away leave no mount wrong."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit import rivals
from tests.lab.kit.daemon import ETC, STATE, Daemon, nfstuned
from tests.lab.kit.mounts import Mounted, Mounts, announce, set_read_ahead_kb
from tests.lab.kit.rivals import settle
from tests.lab.kit.server import Server
from tests.lab.kit.shell import becomes, run, tuned
from tests.lab.kit.unit import let_tick

pytestmark = pytest.mark.system
AZURE_KB = 15360
VERSIONS = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")
OFTEN = '[daemon]\nsample_interval = "1s"\n'


@pytest.fixture
def rival() -> Iterator[Path]:
    """A rule of somebody else's that sets 128 at every change of an anonymous bdi."""
    text = 'SUBSYSTEM=="bdi", ACTION=="change", KERNEL=="0:*", ATTR{read_ahead_kb}="128"\n'
    with rivals.rule("99-zz-rival.rules", text) as path:
        yield path


def change(mounted: Mounted) -> None:
    """Make udev handle a change of a mount's bdi."""
    run("udevadm", "trigger", "--action=change", "--subsystem-match=bdi", f"--sysname-match={mounted.device}")
    rivals.settle()


def test_nfs_utils_rule_at_its_default_is_outdone_and_named(mount: Mounts, running_daemon: Daemon) -> None:
    mounted = mount("a")
    rivals.settle()
    tuned(AZURE_KB, mounted)
    time.sleep(1)
    assert mounted.read_ahead_kb == AZURE_KB
    fights = running_daemon.about(Message.READ_AHEAD_CONTESTED, mounted)
    assert len(fights) <= 1, fights
    # Where the rule lost the race with mount(2), it wrote nothing.
    assert {one["NFSTUNED_WRITER"] for one in fights} <= {str(rivals.SHIPPED_NFSRAHEAD)}, fights


@pytest.mark.usefixtures("quiet_udev")
def test_after_three_times_a_rival_is_left_alone(mount: Mounts, running_daemon: Daemon, rival: Path) -> None:
    """Before the tests with late rules: for a minute each of those allows a device number another change."""
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    for _ in range(3):
        change(mounted)
        tuned(AZURE_KB, mounted)
    for _ in range(3):
        change(mounted)
        time.sleep(0.5)
        assert mounted.read_ahead_kb == 128
    becomes(1, lambda: len(running_daemon.about(Message.READ_AHEAD_LEFT, mounted)))
    fights, left = (
        running_daemon.about(message, mounted)
        for message in (Message.READ_AHEAD_CONTESTED, Message.READ_AHEAD_LEFT)
    )
    assert [one["NFSTUNED_WRITER"] for one in fights] == [str(rival)] * 3, fights
    assert [one["NFSTUNED_WRITER"] for one in left] == [str(rival)], left
    assert all(str(rival) in one["MESSAGE"] for one in (*fights, *left))


@pytest.mark.release
@pytest.mark.usefixtures("running_daemon")
def test_rules_that_udev_runs_late_for_earlier_superblocks_are_no_fight(mount: Mounts) -> None:
    """Device numbers are reused at once: udev's work for a superblock that is gone hits the next one."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(rivals.rule("99-nfs.rules", rivals.SHIPPED_NFSRAHEAD.read_text()))
        run("udevadm", "control", "--stop-exec-queue")
        stack.callback(run, "udevadm", "control", "--start-exec-queue")
        earlier: Counter[str] = Counter()
        # A service that starts meanwhile may have a file system of its own, with a number in between.
        while earlier[(mounted := mount("a", "vers=3,nolock")).device] < 6:
            earlier[mounted.device] += 1
            tuned(AZURE_KB, mounted)
            mount.umount(mounted)
        run("udevadm", "control", "--start-exec-queue")
        rivals.settle()
        tuned(AZURE_KB, mounted)
        time.sleep(1)
        assert mounted.read_ahead_kb == AZURE_KB


@pytest.mark.release
@pytest.mark.usefixtures("running_daemon")
def test_30_mounts_keep_their_values_where_nfs_utils_rule_writes_later(mount: Mounts, server: Server) -> None:
    """The service masks the distribution's file alone: a copy of it in /etc writes 128 at each mount."""
    wanted = [(f"many{number}", version) for number in range(10) for version in VERSIONS]
    server.export(*dict.fromkeys(share for share, _ in wanted))
    with rivals.rule("99-nfs.rules", rivals.SHIPPED_NFSRAHEAD.read_text()):
        mounted = [mount(share, version) for share, version in wanted]
        rivals.settle()
        tuned(AZURE_KB, *mounted)
        time.sleep(3)
        assert [one.read_ahead_kb for one in mounted] == [AZURE_KB] * len(wanted)


@pytest.mark.release
@pytest.mark.usefixtures("quiet_udev")
def test_a_rival_that_sets_more_is_left_alone(mount: Mounts, running_daemon: Daemon) -> None:
    mounted = mount("a")
    tuned(AZURE_KB, mounted)
    set_read_ahead_kb(mounted.device, 16384)
    change(mounted)
    mount("b")
    time.sleep(1)
    assert mounted.read_ahead_kb == 16384
    assert running_daemon.about(Message.READ_AHEAD_CONTESTED, mounted) == []


@pytest.fixture
def ticking_daemon(running_daemon: Daemon) -> Daemon:
    """The service, which looks at everything each second."""
    if "nfstuned.toml" not in {path.name for path in ETC.glob("*")}:
        running_daemon.configure(OFTEN)
        running_daemon.reload()
    return running_daemon


@pytest.mark.release
@pytest.mark.usefixtures("quiet_udev")
def test_a_removal_that_is_none_loses_no_original_value(ticking_daemon: Daemon, mount: Mounts) -> None:
    mounted = mount("a")
    tuned(15360, mounted)
    announce(3, mounted.device, "remove")
    settle()
    let_tick(ticking_daemon)
    assert nfstuned("undo").returncode == 0
    assert mounted.read_ahead_kb == 128


@pytest.mark.release
@pytest.mark.usefixtures("quiet_udev")
def test_a_trigger_of_all_devices_changes_nothing(ticking_daemon: Daemon, mount: Mounts) -> None:
    mounted, left = mount("a"), mount("b")
    tuned(15360, mounted, left)
    assert nfstuned("undo").returncode == 0
    assert nfstuned("apply").returncode == 0
    ticking_daemon.journal.mark()
    for action in ("add", "change"):
        run("udevadm", "trigger", f"--action={action}", "--subsystem-match=bdi", "--settle")
    let_tick(ticking_daemon)
    assert [m.read_ahead_kb for m in (mounted, left)] == [15360, 15360]
    changes = [entry["MESSAGE"] for entry in ticking_daemon.entries() if "NFSTUNED_NEW_KB" in entry]
    assert changes == []


@pytest.mark.release
@pytest.mark.usefixtures("quiet_udev")
def test_it_goes_on_without_its_records(ticking_daemon: Daemon, mount: Mounts) -> None:
    """Somebody cleans up /run: the earlier records are lost, nothing else is."""
    before = mount("a")
    tuned(15360, before)
    for file in (STATE / "read-ahead").iterdir():
        file.unlink(missing_ok=True)  # the service itself drops the record of a pseudo-root
    let_tick(ticking_daemon)
    after = mount("b")
    tuned(15360, before, after)
    shutil.rmtree(STATE / "read-ahead")
    last = mount("c")
    assert (nfstuned("wait", str(last.point)).returncode, last.read_ahead_kb) == (0, 15360)
