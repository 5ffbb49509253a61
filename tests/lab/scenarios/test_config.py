"""The service's configuration: a broken file changes nothing, a mended one reaches the mounts."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import ETC
from tests.lab.kit.shell import becomes, tuned

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.journal import Entry
    from tests.lab.kit.mounts import Mounts

MAIN = ETC / "nfstuned.toml"
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


def test_a_broken_file_tunes_nothing_at_the_start_and_changes_nothing_at_a_reload(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    daemon = stopped_daemon
    daemon.configure("[profile.azure-files]\nread_ahed_kb = 4096\n")
    daemon.start()
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
