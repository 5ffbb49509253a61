"""The service's configuration, its journal, and its changes, which can be taken back after a crash."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import ETC, STATE, Daemon, Entry, nfstuned
from tests.lab.kit.mounts import BDI, Mounts, set_read_ahead_kb
from tests.lab.kit.reading import MAPPED_RANDOM, lay_out, read
from tests.lab.kit.rivals import settle
from tests.lab.kit.server import Server
from tests.lab.kit.shell import Say, becomes, program, run, tuned, wait_for
from tests.lab.kit.unit import let_rest, let_tick, override, process_status

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]

MAIN = ETC / "nfstuned.toml"
WRITES = "trace=write,writev,pwrite64,pwritev"


def test_a_broken_file_changes_nothing_at_start_or_reload(stopped_daemon: Daemon, mount: Mounts) -> None:
    daemon = stopped_daemon
    daemon.start("[profile.azure-files]\nread_ahed_kb = 4096\n")
    entry = daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_INVALID.id)
    assert "no mount is tuned" in entry["MESSAGE"], entry["MESSAGE"]
    mounted, pid = mount("a"), daemon.pid
    assert daemon.status_text.endswith("configuration invalid, tuning nothing")
    assert mounted.read_ahead_kb == 128

    daemon.configure(_azure(4096))
    daemon.reload()
    tuned(4096, mounted)
    becomes("1 NFS superblock, 1 tuned", lambda: daemon.status_text)
    daemon.configure(_azure(8192))
    daemon.reload()
    tuned(8192, mounted)
    daemon.configure(_azure(2048))
    daemon.reload()
    tuned(2048, mounted)

    daemon.configure(_azure(99999))
    entry = _refused(daemon)
    words = (str(MAIN), "profile.azure-files.read_ahead_kb", "99999", "65536", "last good")
    assert [word for word in words if word not in entry["MESSAGE"]] == [], entry["MESSAGE"]
    becomes("active", lambda: daemon.show("ActiveState"))
    after = mount("b")
    tuned(2048, mounted, after)

    # Root without capabilities reads only its own files, and those that all may read.
    file = daemon.configure(_azure(4096))
    shutil.chown(file, "nobody")
    file.chmod(0o600)
    assert "cannot be read: Permission denied" in _refused(daemon)["MESSAGE"]
    tuned(2048, mounted, after)
    assert daemon.pid == pid


def _refused(daemon: Daemon) -> Entry:
    """Reload, and return the entry about the main file."""
    daemon.journal.mark()
    daemon.reload()
    entry = daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_INVALID.id)
    assert entry["NFSTUNED_FILE"] == str(MAIN)
    return entry


def _azure(kb: int) -> str:
    return f"[profile.azure-files]\nread_ahead_kb = {kb}\n"


OFTEN = '[daemon]\nsample_interval = "1s"\n'
AWKWARD = b"/mnt/lab/two words\tand \xff"


@pytest.fixture
def awkward() -> Iterator[Path]:
    """A mount point with a space, a tab and a byte that is not UTF-8; it is unmounted after the test."""
    point = Path(os.fsdecode(AWKWARD))
    point.mkdir(parents=True, exist_ok=True)
    yield point
    run("umount", str(point))


def test_every_message_has_id_fields_and_explanation(daemon: Daemon, mount: Mounts, awkward: Path) -> None:
    mounted = mount("a")
    tuned(15360, mounted)
    entry = daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id)
    expected = {
        "NFSTUNED_DEVICE": mounted.device,
        "NFSTUNED_MOUNT_POINT": str(mounted.point),
        "NFSTUNED_SOURCE": mounted.source,
        "NFSTUNED_PROVIDER": "azure-files",
        "NFSTUNED_PROFILE": "azure-files",
        "NFSTUNED_OLD_KB": "128",
        "NFSTUNED_NEW_KB": "15360",
        "SYSLOG_IDENTIFIER": "nfstuned",
        "PRIORITY": "6",
    }
    assert {name: entry.get(name) for name in expected} == expected
    assert entry["NFSTUNED_REASON"] in entry["MESSAGE"]
    assert f"{mounted.point}: read-ahead 128 -> 15360 KiB" in entry["MESSAGE"]
    explained = run(
        "journalctl", "-x", "--after-cursor", daemon.journal.cursor, f"MESSAGE_ID={entry['MESSAGE_ID']}"
    )
    assert f"Subject: The read-ahead of {mounted.source} is now 15360 KiB" in explained, explained
    assert "@NFSTUNED" not in explained
    strange = mount("b", point=awkward)
    tuned(15360, strange)
    entry = daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id, NFSTUNED_DEVICE=strange.device)
    assert bytes(json.loads(entry["NFSTUNED_MOUNT_POINT"])) == AWKWARD, entry
    daemon.configure("[daemon]\nsample_interval = 1\n")
    daemon.reload()
    daemon.wait_for_entry(MESSAGE_ID=Message.CONFIG_INVALID.id)
    daemon.stop()
    known = {message.id: message for message in Message}
    own = [entry for entry in daemon.entries() if entry.get("SYSLOG_IDENTIFIER") == "nfstuned"]
    assert all(entry.get("MESSAGE_ID") in known for entry in own), [entry["MESSAGE"] for entry in own]
    messages = [known[entry["MESSAGE_ID"]] for entry in own]
    order = (
        # The rule is masked in /etc already, as an administrator does it.
        Message.RULE_LEFT,
        Message.STARTED,
        Message.CONFIG_LOADED,
        Message.READ_AHEAD_SET,
        Message.READ_AHEAD_SET,
        Message.RULE_LEFT,
        Message.CONFIG_INVALID,
        Message.STOPPED,
    )
    assert tuple(messages) == order, [message.name for message in messages]
    assert [_lacking(entry, message) for entry, message in zip(own, messages, strict=True)] == [[]] * len(own)


@pytest.mark.release
def test_the_pseudo_roots_of_nfsv4_are_not_reported(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.start(OFTEN)
    mounts = [mount(share, options) for share in "abc" for options in ("vers=4.1", "vers=4.2,nosharecache")]
    tuned(15360, *mounts)
    let_tick(stopped_daemon)
    entries = stopped_daemon.entries(MESSAGE_ID=Message.READ_AHEAD_SET.id)
    points = sorted(entry["NFSTUNED_MOUNT_POINT"] for entry in entries)
    assert points == sorted(str(mounted.point) for mounted in mounts)


def _lacking(entry: Entry, message: Message) -> list[str]:
    names = [f"NFSTUNED_{field.upper()}" for field in message.fields]
    return [name for name in names if entry.get(name, "unknown") == "unknown"]


V3 = "vers=3,nolock"
RECORDS = STATE / "read-ahead"
RESTORING = "[daemon]\nrestore_on_stop = true\n"
DEAD = "[Service]\nRestart=no\n"
UNWATCHED = "[Service]\nWatchdogSec=0\n"


def test_undo_works_after_kill_9_and_leaves_others_values(stopped_daemon: Daemon, mount: Mounts) -> None:
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


@pytest.mark.release
def test_a_daemon_that_was_killed_respects_undo_until_apply(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.start(OFTEN)
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
    other = mount("b")
    tuned(15360, other)
    stopped_daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id, NFSTUNED_SOURCE=other.source)
    let_tick(stopped_daemon)
    assert mounted.read_ahead_kb == 128, stopped_daemon.journal.messages()
    done = nfstuned("apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert mounted.read_ahead_kb == 15360, done.stdout
    let_tick(stopped_daemon)
    assert mounted.read_ahead_kb == 15360


def test_an_observing_service_writes_no_sysfs(stopped_daemon: Daemon, mount: Mounts, tmp_path: Path) -> None:
    stopped_daemon.start('[daemon]\nmode = "observe"\n')
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-e", WRITES, "-o", str(trace)]
    with program(*command, "-p", str(stopped_daemon.pid)) as strace:
        becomes(str(strace.pid), lambda: process_status(stopped_daemon.pid)["TracerPid"])
        mounts = [mount("a"), mount("b", V3), mount("c", "vers=4.2")]
        for mounted in mounts:
            stopped_daemon.wait_for_entry(
                MESSAGE_ID=Message.READ_AHEAD_WANTED.id, NFSTUNED_DEVICE=mounted.device
            )
        mount.umount(mounts.pop())
        let_rest(stopped_daemon)
        assert [mounted.read_ahead_kb for mounted in mounts] == [128, 128]
        assert "</sys/" not in trace.read_text()
        # The trace sees the writes of a service that tunes.
        stopped_daemon.configure('[daemon]\nmode = "tune"\n')
        stopped_daemon.reload()
        tuned(15360, *mounts)
        becomes(len(mounts), lambda: trace.read_text().count("read_ahead_kb>"))


HOUR = 60
PAUSE_S = 0.0
"""Between two of the mounts. With 58 s the scenario lasts an hour."""


@pytest.mark.release
@pytest.mark.timeout(5400)
def test_an_hour_of_mounts_is_observed_without_a_write(
    stopped_daemon: Daemon, server: Server, mount: Mounts, say: Say, tmp_path: Path
) -> None:
    lay_out(server.path("a"), 1, MAPPED_RANDOM)
    stopped_daemon.start('[daemon]\nmode = "observe"\nsample_interval = "2s"\n')
    trace = tmp_path / "trace"
    with program(
        "strace", "-f", "-y", "-e", WRITES, "-o", str(trace), "-p", str(stopped_daemon.pid)
    ) as strace:
        becomes(str(strace.pid), lambda: process_status(stopped_daemon.pid)["TracerPid"])
        kept = mount("a")
        # Its reads waste most of what the server sends: a service that tunes would move the value.
        set_read_ahead_kb(kept.device, 1024)
        for number in range(HOUR):
            brief = mount("b", ("vers=4.2", V3)[number % 2])
            read(MAPPED_RANDOM, 1, kept.point, 2.0)
            mount.umount(brief)
            time.sleep(PAUSE_S)
            say(f"mount {number + 1} of {HOUR}")
        let_rest(stopped_daemon)
        assert kept.read_ahead_kb == 1024
    assert "</sys/" not in trace.read_text()
    wanted = stopped_daemon.entries(MESSAGE_ID=Message.READ_AHEAD_WANTED.id)
    assert len(wanted) > HOUR / 2, len(wanted)


@pytest.mark.release
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
def test_restore_on_stop_leaves_values_when_the_daemon_dies(stopped_daemon: Daemon, mount: Mounts) -> None:
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


@pytest.mark.release
def test_another_mount_with_the_same_number_is_not_undone(stopped_daemon: Daemon, mount: Mounts) -> None:
    # Before the service starts: its own mount namespace takes the lowest numbers while it runs.
    first = mount("a", V3)
    stopped_daemon.start()
    tuned(15360, first)
    stopped_daemon.stop()
    mount.umount(first)
    second = mount("b", V3)
    assert second.device == first.device, "this test needs the number to be used again"
    # The very value that the record of the first one names: only the identity differs.
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
