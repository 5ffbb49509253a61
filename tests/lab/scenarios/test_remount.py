"""`nfstuned apply --remount`: mounts in the wrong order get the requested connections, or stay."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.kit.daemon import status_rows
from tests.lab.kit.faults import silent
from tests.lab.kit.fstab import append
from tests.lab.kit.mounts import options_at, table_device
from tests.lab.kit.server import ADDRESS, AZURE, GENERIC
from tests.lab.kit.shell import attempt, run, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]

COMMAND_S = 300.0
"""A mount in emulation may wait for a server's lease (kit/mounts.py)."""
STOP = "systemctl stop --job-mode=ignore-dependencies --"


@dataclass(frozen=True)
class Ended:
    """The command's status, its actions by mount point, and its words on stderr."""

    status: int
    actions: dict[str, dict[str, Any]]
    dialog: str

    @property
    def outcomes(self) -> dict[str, tuple[str, bool]]:
        """Outcome and whether it is mounted now, by mount point."""
        return {point: (one["outcome"], one["mounted"]) for point, one in self.actions.items()}

    @property
    def reasons(self) -> set[str]:
        return {one["reason"] for one in self.actions.values()}


def test_shares_mounted_in_the_wrong_order_end_with_the_requested_connections(mount: Mounts) -> None:
    # The version as Microsoft's page has it, which mount.nfs records in a form that it does not take.
    first, second = mount("a", "vers=4,minorversion=1,noatime"), mount("b", "vers=4.1,nconnect=4")
    assert _status() == {str(first.point): (None, 1, 4), str(second.point): (4, 1, 4)}
    before = _table()
    held = first.point / "held"
    held.touch()
    with _process("tail", "-f", str(held)) as tail:
        wait_for("an open file", lambda: _opened(tail.pid, held))
        assert _refused(second) == {f"in use: tail ({tail.pid}) has {held} open"}
    copy = ("unshare", "--mount", "--propagation", "private", "sleep", "1000")
    with _process(*copy) as sleep:
        wait_for("a mount namespace", lambda: _namespace(sleep.pid) != _namespace(os.getpid()))
        (reason,) = _refused(second)
        assert f"sleep ({sleep.pid}) has {first.point} in a mount namespace of its own" in reason
    with silent(ADDRESS):
        (reason,) = _refused(second)
        assert "does not answer" in reason
    assert _table() == before

    done = _remount(str(second.point))
    assert (done.status, set(done.outcomes.values())) == (0, {("done", True)}), done
    assert [mounted.options.get("nconnect") for mounted in (first, second)] == ["4", "4"]
    assert ["noatime" in mounted.options for mounted in (first, second)] == [True, False]
    run("dd", "if=/dev/zero", f"of={first.point}/file", "bs=1M", "count=24", "conv=fsync")
    sends = [transport.sends for transport in first.stats.transports]
    assert len(sends) == 4
    assert min(sends) > 0, sends
    assert held.exists()


def test_a_server_that_stops_in_the_middle_leaves_the_command_that_finishes(
    mount: Mounts, server: Server, tmp_path: Path
) -> None:
    stays = mount("a", "vers=3,nolock", host=GENERIC)
    goes = mount("b", "vers=3,nolock,nconnect=4", host=GENERIC)
    done = _remount("--all", _after_umount(tmp_path, "systemctl stop nfs-server"))
    assert done.status == 1
    assert done.outcomes == {str(stays.point): ("failed", True), str(goes.point): ("failed", False)}, done
    assert table_device(stays.point) is not None
    assert table_device(goes.point) is None
    assert "port 2049" in done.actions[str(goes.point)]["reason"]
    server.start()
    run("sh", "-c", done.actions[str(goes.point)]["command"], timeout=COMMAND_S)
    assert table_device(goes.point) is not None


@pytest.mark.usefixtures("fstab")
def test_units_and_automounts_are_systemds_and_their_dependents_run_on(mount: Mounts) -> None:
    plain, watched = mount.new_point(), mount.new_point()
    units = [_unit(plain, "mount"), _unit(watched, "mount"), _unit(watched, "automount")]
    lines = (
        f"{AZURE}:/srv/a {plain} nfs vers=4.1,nofail 0 0\n"
        f"{AZURE}:/srv/b {watched} nfs vers=4.1,nconnect=4,nofail,noauto,x-systemd.automount 0 0\n"
    )
    append(lines)
    with _stopped_afterwards("lab-needs.service", *units):
        run("systemctl", "start", units[0], timeout=COMMAND_S)
        needs = (f"--property=Requires={units[0]}", f"--property=After={units[0]}")
        run("systemd-run", "--quiet", "--unit=lab-needs", *needs, "sleep", "1000")
        run("systemctl", "start", units[2])
        run("ls", str(watched), timeout=COMMAND_S)
        assert [options_at(point).get("nconnect") for point in (plain, watched)] == [None, None]
        done = _remount("--all")
        assert (done.status, set(done.outcomes.values())) == (0, {("done", True)}), done
        assert [line.strip() for line in done.dialog.splitlines()[-4:]] == [
            f"{STOP} {units[1]}",
            f"{STOP} {units[0]}",
            f"systemctl start -- {units[1]}",
            f"systemctl start -- {units[0]}",
        ]
        assert [options_at(point).get("nconnect") for point in (plain, watched)] == ["4", "4"]
        active = attempt("systemctl", "is-active", *units, "lab-needs.service")
        assert active.stdout.split() == ["active"] * 4


def _remount(mounts: str, path: Path | None = None) -> Ended:
    """Run the command with --yes; `path` is a folder whose programs come before those of the guest."""
    front = f"{path}:" if path else ""
    argv = ("env", f"PATH={front}{os.environ['PATH']}", "nfstuned", "apply", "--remount", mounts, "--yes")
    done = attempt(*argv, "--format", "json", timeout=COMMAND_S)
    assert done.stdout, done.stderr
    actions = {one["target"]: one for one in json.loads(done.stdout)["actions"]}
    return Ended(done.returncode, actions, done.stderr)


def _refused(mounted: Mounted) -> set[str]:
    """Return why the mounts of a server are left as they are; the command must say that they are."""
    done = _remount(str(mounted.point))
    assert (done.status, set(done.outcomes.values())) == (1, {("failed", True)}), done
    return done.reasons


def _after_umount(folder: Path, then: str) -> Path:
    """Return a folder with a umount(8) that unmounts, and then lets something else happen on the host."""
    script = folder / "umount"
    script.write_text(f'#!/bin/sh\n{shutil.which("umount")} "$@"\nstatus=$?\n{then} >&2\nexit $status\n')
    script.chmod(0o755)
    return folder


def _status() -> dict[str, tuple[int | None, int, int | None]]:
    """Return nconnect as it was requested, is in effect, and should be, by mount point."""
    return {
        point: (row["nconnect_requested"], row["nconnect"], row["nconnect_target"])
        for point, row in status_rows().items()
    }


def _table() -> list[str]:
    """Return the lines of the NFS mounts, with their mount ids."""
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - nfs" in line]


def _namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/mnt")


def _unit(point: Path, kind: str) -> str:
    return run("systemd-escape", "--path", f"--suffix={kind}", str(point)).strip()


@contextlib.contextmanager
def _process(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def _opened(pid: int, file: Path) -> bool:
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{number}") == str(file):
                return True
    return False


@contextlib.contextmanager
def _stopped_afterwards(*units: str) -> Iterator[None]:
    """Stop units in this order afterwards: an automount that stops takes its mount away lazily."""
    try:
        yield
    finally:
        for unit in units:
            attempt("systemctl", "stop", unit, timeout=COMMAND_S)
