"""`nfstuned apply --live`: connections are added where that is safe, and no other mount is touched."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nfstuned.model.kernel import MountStats
from nfstuned.parse.proc.machine import parse_release
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.server import SHARES
from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

# `insecure` comes before `mount`, so that everything is unmounted before the server is strict again.
pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev", "stopped_daemon", "insecure")]

COMMAND_S = 200.0
OTHER = "sa3.file.core.windows.net"
RAISED = "nconnect=2,noresvport"
GROUP = "4242"
"""The group of the command's own sockets; the kernel's are root's."""
FIXED = parse_release(os.uname().release).version >= (7, 1, 13)


@dataclass(frozen=True)
class Ended:
    """What the command did: its status, and its actions by mount point."""

    status: int
    actions: dict[str, dict[str, Any]]

    def outcome(self, mounted: Mounted) -> tuple[str, int, int]:
        one = self.actions[str(mounted.point)]
        assert one["kind"] == "live"
        return one["outcome"], one["old"], one["new"]

    def reason(self, mounted: Mounted) -> str:
        return str(self.actions[str(mounted.point)]["reason"])


@pytest.fixture
def insecure(server: Server) -> Iterator[None]:
    """Let the server take requests from ports above 1023, as Azure Files does."""
    server.export(*SHARES, options="insecure")
    yield
    server.export(*SHARES)


def test_connections_are_added_where_that_is_safe_and_nowhere_else(mount: Mounts) -> None:
    single = mount("a", "vers=4.1,noresvport")
    reserved = mount("b", "vers=3,nolock,nconnect=2")
    right = mount("c", f"vers=4.2,{RAISED}")
    three = mount("d", f"vers=3,nolock,{RAISED}", host=OTHER)
    for mounted in (single, reserved, right, three):
        (mounted.point / "before").write_text("before")
    table, before = _table(), {one.point: len(_sends(one)) for one in (single, reserved, right, three)}
    assert list(before.values()) == [1, 2, 2, 2]

    done = _live()
    assert _table() == table
    assert done.status == 1
    refused = [single, reserved] if FIXED else [single, reserved, right, three]
    for mounted in refused:
        assert done.outcome(mounted) == ("failed", before[mounted.point], 4)
        assert len(_sends(mounted)) == before[mounted.point]
        assert (mounted.point / "before").read_text() == "before"
        if not FIXED:
            assert "cannot do it safely" in done.reason(mounted)
    if not FIXED:
        return
    assert "made without nconnect" in done.reason(single)
    assert "made without noresvport" in done.reason(reserved)
    for mounted in (right, three):
        assert done.outcome(mounted) == ("done", 2, 4), done
        _all_carry(mounted, 4)
        assert mounted.options["nconnect"] == "2", "it never shows more"
    assert _live().actions.keys() == {str(single.point), str(reserved.point)}


@pytest.mark.skipif(not FIXED, reason="nothing is added before Linux 7.1.13")
def test_a_connection_that_carries_nothing_is_taken_back(mount: Mounts) -> None:
    mounted = mount("a", f"vers=4.2,{RAISED}")
    table = _table()
    with _no_new_connections():
        # The server answers this command, as a member of another group, and not the kernel.
        done = _live(str(mounted.point), front=("setpriv", "--regid", GROUP, "--clear-groups"))
        assert done.status == 1
        assert done.outcome(mounted) == ("failed", 2, 4)
        assert "connection 3: " in done.reason(mounted), done
        assert "2 connections carry requests as before" in done.reason(mounted), done
        assert "stays listed, switched off" in done.reason(mounted), done
        _all_carry(mounted, 2)
    assert _table() == table


def _live(*where: str, front: tuple[str, ...] = ()) -> Ended:
    argv = (*front, "nfstuned", "apply", "--live", *where, "--yes", "--format", "json")
    done = attempt(*argv, timeout=COMMAND_S)
    assert done.stdout, done.stderr
    return Ended(done.returncode, {one["target"]: one for one in json.loads(done.stdout)["actions"]})


def _all_carry(mounted: Mounted, count: int) -> None:
    """Write, and see that each of so many connections was used for it."""
    before = _sends(mounted)
    run("dd", "if=/dev/zero", f"of={mounted.point}/file", "bs=1M", "count=24", "conv=fsync")
    grown = [after - old for after, old in zip(_sends(mounted), before, strict=True)]
    assert len(grown) == count
    assert min(grown) > 0, grown


@contextlib.contextmanager
def _no_new_connections() -> Iterator[None]:
    """Drop what would open a connection to an NFS server, where a socket of root's group sends it."""
    run("nft", "add", "table", "inet", "lab")
    try:
        run("nft", "add chain inet lab out { type filter hook output priority 0 ; }")
        opening = "tcp dport 2049 tcp flags & (syn | ack) == syn"
        run("nft", f"add rule inet lab out {opening} meta skgid 0 counter drop")
        yield
        dropped = run("nft", "list", "chain", "inet", "lab", "out")
        assert "packets 0 " not in dropped, dropped
    finally:
        run("nft", "delete", "table", "inet", "lab")


def _table() -> list[str]:
    """Return the lines of the NFS mounts, with their mount ids."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - nfs" in line]


def _sends(mounted: Mounted) -> list[int]:
    """Return what each connection of a mount has sent so far."""
    stanzas = parse_mountstats(Path("/proc/self/mountstats").read_text())
    (mine,) = [s for s in stanzas if isinstance(s, MountStats) and s.point == str(mounted.point)]
    return [one.sends for one in mine.transports]
