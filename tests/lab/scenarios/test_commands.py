"""The commands without the daemon: they print the kernel's own figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.view.status import STATUS_KEYS
from tests.lab.kit.daemon import nfstuned, nfstuned_json
from tests.lab.kit.mounts import BDI
from tests.lab.kit.shell import attempt

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounted, Mounts

OUTCOMES = ("kind", "target", "old", "new", "outcome", "reason")
pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]


def test_status_holds_what_the_kernel_has(mount: Mounts) -> None:
    # The first mount of a server decides: the second asks for 8 connections and gets the first one's 4.
    first = mount("a", "vers=4.1,nconnect=4")
    second = mount("b", "vers=4.1,nconnect=8")
    generic = mount("c", "vers=3,nolock", host="nas.lab.internal")
    document = nfstuned_json("status")
    assert document["schema"] == "nfstuned.status/1"
    rows = _rows(document)
    assert set(rows) == {str(mounted.point) for mounted in (first, second, generic)}
    assert all(set(row) == set(STATUS_KEYS) for row in rows.values())
    for mounted, asked in ((first, 4), (second, 8)):
        row = rows[str(mounted.point)]
        assert str(row.pop("nconnect_requested_by")).startswith("/run/mount/utab:")
        assert row == {
            "mount_point": str(mounted.point),
            "source": mounted.source,
            "fstype": "nfs4",
            "device": mounted.device,
            "provider": "azure-files",
            "profile": "azure-files",
            "read_ahead_kb": mounted.read_ahead_kb,
            "read_ahead_target_kb": 15360,
            "nconnect_requested": asked,
            "nconnect": 4,
            "nconnect_target": 4,
            "nconnect_depends": None,
            "connections": _transports(mounted),
            "stalled_s": None,  # the service does not run
            "recovering": False,
            "stalled_operations": [],
        }
        assert row["connections"] == 4
    row = rows[str(generic.point)]
    shown = (row["fstype"], row["provider"], row["profile"], row["read_ahead_target_kb"], row["connections"])
    assert shown == ("nfs", "generic", "generic", 1024, 1)


def test_every_user_gets_a_status_and_only_root_may_apply(mount: Mounts) -> None:
    mounted = mount("a", "vers=4.1,nconnect=4")
    done = attempt("runuser", "-u", "nobody", "--", "nfstuned", "status", "--format", "json")
    assert done.returncode == 0, done.stderr
    row = _rows(json.loads(done.stdout))[str(mounted.point)]
    found = (row["device"], row["read_ahead_kb"], row["read_ahead_target_kb"], row["nconnect"])
    assert found == (mounted.device, 128, 15360, 4)
    # Its own mountstats are readable: init's hidden ones are not needed.
    assert row["connections"] == 4, done.stderr
    refused = attempt("runuser", "-u", "nobody", "--", "nfstuned", "apply", "--format", "json")
    assert refused.returncode == 1, refused.stdout + refused.stderr
    (action,) = json.loads(refused.stdout)["actions"]
    assert action["outcome"] == "failed"
    assert "ermission denied" in action["reason"], action
    assert mounted.read_ahead_kb == 128


def test_apply_and_undo_do_what_they_say(mount: Mounts) -> None:
    mounted = mount("a")
    others = _others(mounted)
    planned = nfstuned_json("apply", "--dry-run")
    assert _actions(planned) == [("read-ahead", str(mounted.point), 128, 15360, "planned")]
    assert mounted.read_ahead_kb == 128
    assert _actions(nfstuned_json("apply")) == [("read-ahead", str(mounted.point), 128, 15360, "done")]
    assert mounted.read_ahead_kb == 15360
    again = nfstuned("apply")
    assert (again.returncode, again.stdout) == (0, "Nothing to do: 1 mount as the profiles ask.\n")
    assert _actions(nfstuned_json("undo")) == [("read-ahead", str(mounted.point), 15360, 128, "done")]
    assert mounted.read_ahead_kb == 128
    assert nfstuned("undo").stdout == "Nothing to put back.\n"
    assert _others(mounted) == others, "another device was changed"


def _rows(document: dict[str, object]) -> dict[str, dict[str, object]]:
    mounts = document["mounts"]
    assert isinstance(mounts, list)
    return {row["mount_point"]: row for row in mounts}


def _actions(document: dict[str, object]) -> list[tuple[object, ...]]:
    assert document["schema"] == "nfstuned.apply/1"
    actions = document["actions"]
    assert isinstance(actions, list)
    assert all(tuple(action) == OUTCOMES and action["reason"] for action in actions), actions
    return [tuple(action[key] for key in OUTCOMES[:-1]) for action in actions]


def _transports(mounted: Mounted) -> int:
    stanzas = Path("/proc/self/mountstats").read_text().split("device ")
    (mine,) = [stanza for stanza in stanzas if f" mounted on {mounted.point} " in stanza]
    return mine.count("\txprt:")


def _others(mounted: Mounted) -> dict[str, str]:
    return {
        folder.name: (folder / "read_ahead_kb").read_text()
        for folder in BDI.iterdir()
        if folder.name != mounted.device
    }
