"""The daemon's changes can be taken back, after a crash, a restart, and with a number that is used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import STATE, nfstuned
from tests.lab.kit.mounts import BDI, set_read_ahead_kb
from tests.lab.kit.rivals import settle
from tests.lab.kit.shell import becomes, tuned, wait_for
from tests.lab.kit.unit import let_rest, let_tick, override

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

V3 = "vers=3,nolock"
RECORDS = STATE / "read-ahead"
OFTEN = '[daemon]\nsample_interval = "1s"\n'
RESTORING = "[daemon]\nrestore_on_stop = true\n"
DEAD = "[Service]\nRestart=no\n"
UNWATCHED = "[Service]\nWatchdogSec=0\n"
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


def test_undo_knows_the_values_after_kill_9_and_leaves_one_that_somebody_else_has_changed_since(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    with override(DEAD):
        stopped_daemon.start()
        mounts = [mount("a", "vers=4.1"), mount("b", V3), mount("c")]
        tuned(15360, *mounts)
        _kill(stopped_daemon)
        becomes("failed", lambda: stopped_daemon.show("ActiveState"))
        assert [mounted.read_ahead_kb for mounted in mounts] == [15360] * 3
        set_read_ahead_kb(mounts[2].device, 4096)
        done = nfstuned("undo")
    assert "4096" in done.stdout, f"the reason names no value: {done.stdout}"
    assert [mounted.read_ahead_kb for mounted in mounts] == [128, 128, 4096], done.stdout


def test_a_daemon_that_was_killed_respects_undo_until_apply(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure(OFTEN)
    stopped_daemon.start()
    mounted = mount("a")
    tuned(15360, mounted)
    _kill(stopped_daemon)
    wait_for("another daemon", lambda: stopped_daemon.active and stopped_daemon.pid != 0, 30)
    assert nfstuned("undo").returncode == 0
    assert mounted.read_ahead_kb == 128
    # It hears of the device again, it looks at all for the sake of another mount, and it ticks.
    (BDI / mounted.device / "uevent").write_text("change\n")
    (BDI / mounted.device / "uevent").write_text("add\n")
    settle()
    tuned(15360, mount("b"))
    stopped_daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id, NFSTUNED_SOURCE=_source("b"))
    let_tick(stopped_daemon)
    assert mounted.read_ahead_kb == 128, stopped_daemon.journal.messages()
    done = nfstuned("apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert mounted.read_ahead_kb == 15360, done.stdout
    let_tick(stopped_daemon)
    assert mounted.read_ahead_kb == 15360


def test_restore_on_stop_puts_the_values_back(stopped_daemon: Daemon, mount: Mounts) -> None:
    # A smaller value would be answered at once; a larger one is left, and is somebody else's at the end.
    stopped_daemon.configure(f'{RESTORING}sample_interval = "0"\n')
    with override(UNWATCHED):
        stopped_daemon.start()
        mounts, changed = [mount("a"), mount("b", V3)], mount("c")
        tuned(15360, *mounts, changed)
        let_rest(stopped_daemon)
        set_read_ahead_kb(changed.device, 16384)
        stopped_daemon.stop()
    assert [mounted.read_ahead_kb for mounted in (*mounts, changed)] == [128, 128, 16384]
    restored = stopped_daemon.entries(MESSAGE_ID=Message.READ_AHEAD_RESTORED.id)
    assert {entry["NFSTUNED_DEVICE"] for entry in restored} == {mounted.device for mounted in mounts}


@pytest.mark.release
def test_restore_on_stop_leaves_the_values_when_the_daemon_is_killed(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    stopped_daemon.configure(RESTORING)
    with override(DEAD):
        stopped_daemon.start()
        mounted = mount("a")
        tuned(15360, mounted)
        _kill(stopped_daemon)
        becomes("failed", lambda: stopped_daemon.show("ActiveState"))
        assert mounted.read_ahead_kb == 15360
    stopped_daemon.start()
    assert mounted.read_ahead_kb == 15360
    stopped_daemon.stop()
    assert mounted.read_ahead_kb == 128, "the value from before the crash is not known any more"


def test_another_mount_with_the_same_number_is_not_undone(stopped_daemon: Daemon, mount: Mounts) -> None:
    # Before the service starts: its own mount namespace takes the lowest numbers while it runs.
    first = mount("a", V3)
    stopped_daemon.start()
    tuned(15360, first)
    stopped_daemon.stop()
    mount.umount(first)
    second = mount("b", V3)
    assert second.device == first.device, "this test needs the number to be used again"
    # The very value that the record of the first one names: only the identity tells them apart.
    set_read_ahead_kb(second.device, 15360)
    record = (RECORDS / second.device).read_text()
    done = nfstuned("undo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert second.read_ahead_kb == 15360, done.stdout
    # And with the record back, at a start.
    (RECORDS / second.device).write_text(record)
    stopped_daemon.start()
    assert [file.name for file in RECORDS.iterdir()] == []
    nfstuned("undo")
    assert second.read_ahead_kb == 15360


def _kill(daemon: Daemon) -> None:
    pid = daemon.pid
    daemon.signal("KILL")
    wait_for(f"the end of {pid}", lambda: daemon.pid != pid)


def _source(share: str) -> str:
    return f"sa1.file.core.windows.net:/srv/{share}"
