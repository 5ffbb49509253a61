"""The journal: every message has its id, its fields, and an explanation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.shell import run, tuned
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.journal import Entry
    from tests.lab.kit.mounts import Mounts

OFTEN = '[daemon]\nsample_interval = "1s"\n'
AWKWARD = b"/mnt/lab/two words\tand \xff"
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]


@pytest.fixture
def awkward() -> Iterator[Path]:
    """A mount point with a space, a tab and a byte that is not UTF-8; it is unmounted after the test."""
    point = Path(os.fsdecode(AWKWARD))
    point.mkdir(parents=True, exist_ok=True)
    yield point
    run("umount", str(point))


def test_every_message_has_its_id_its_fields_and_an_explanation(
    daemon: Daemon, mount: Mounts, awkward: Path
) -> None:
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


def test_the_pseudo_roots_of_nfsv4_are_not_reported(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure(OFTEN)
    stopped_daemon.start()
    mounts = [mount(share, options) for share in "abc" for options in ("vers=4.1", "vers=4.2,nosharecache")]
    tuned(15360, *mounts)
    let_tick(stopped_daemon)
    entries = stopped_daemon.entries(MESSAGE_ID=Message.READ_AHEAD_SET.id)
    points = sorted(entry["NFSTUNED_MOUNT_POINT"] for entry in entries)
    assert points == sorted(str(mounted.point) for mounted in mounts)


def _lacking(entry: Entry, message: Message) -> list[str]:
    names = [f"NFSTUNED_{field.upper()}" for field in message.fields]
    return [name for name in names if entry.get(name, "unknown") == "unknown"]
