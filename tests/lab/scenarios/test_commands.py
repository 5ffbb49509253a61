"""Commands without the service: status, apply and undo, and the connections of the next mount."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from nfstuned.model.mounts import PodVolume
from nfstuned.view.status import STATUS_KEYS
from tests.lab.kit.daemon import Daemon, nfstuned, nfstuned_json, status_rows, unit_property
from tests.lab.kit.faults import silent
from tests.lab.kit.fstab import append
from tests.lab.kit.mounts import Mounted, Mounts, all_read_ahead_kb, options_at, stats_at, table_device
from tests.lab.kit.server import ADDRESS, AZURE, GENERIC, Server
from tests.lab.kit.shell import attempt, becomes, program, run, wait_for

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]

OUTCOMES = ("kind", "target", "old", "new", "outcome", "reason")


def test_status_shows_the_kernels_values(mount: Mounts) -> None:
    # The first mount of a server decides: the second asks for 8 connections and gets the first one's 4.
    first = mount("a", "vers=4.1,nconnect=4")
    second = mount("b", "vers=4.1,nconnect=8")
    generic = mount("c", "vers=3,nolock", host="nas.lab.internal")
    assert nfstuned_json("status")["schema"] == "nfstuned.status/1"
    rows = status_rows()
    assert set(rows) == {str(mounted.point) for mounted in (first, second, generic)}
    keys = {*STATUS_KEYS, *PodVolume._fields, "bdp_bytes", "read_ahead_change"}
    assert [set(row) ^ keys for row in rows.values()] == [set()] * len(rows)
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
            "adapted": False,
            "hold": None,
            "nconnect_requested": asked,
            "nconnect": 4,
            "nconnect_target": 4,
            "nconnect_depends": None,
            "connections": len(mounted.stats.transports),
            "stalled_s": None,  # the service does not run
            "recovering": False,
            "stalled_operations": [],
            "bdp_bytes": None,
            "read_ahead_change": None,
            **dict.fromkeys(PodVolume._fields),
        }
        assert row["connections"] == 4
    row = rows[str(generic.point)]
    shown = (row["fstype"], row["provider"], row["profile"], row["read_ahead_target_kb"], row["connections"])
    assert shown == ("nfs", "generic", "generic", None, 1)


def test_every_user_gets_a_status_and_only_root_may_apply(mount: Mounts) -> None:
    mounted = mount("a", "vers=4.1,nconnect=4")
    done = attempt("runuser", "-u", "nobody", "--", "nfstuned", "status", "--format", "json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["mounts"]
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


def test_apply_and_undo_make_the_changes_that_they_report(mount: Mounts) -> None:
    mounted = mount("a")
    others = all_read_ahead_kb() | {mounted.device: ""}
    planned = nfstuned_json("apply", "--dry-run")
    assert _actions(planned) == [("read-ahead", str(mounted.point), 128, 15360, "planned")]
    assert mounted.read_ahead_kb == 128
    assert _actions(nfstuned_json("apply")) == [("read-ahead", str(mounted.point), 128, 15360, "done")]
    assert mounted.read_ahead_kb == 15360
    again = nfstuned("apply")
    assert (again.returncode, again.stdout) == (0, "Nothing to do: 1 mount with the right read-ahead.\n")
    assert _actions(nfstuned_json("undo")) == [("read-ahead", str(mounted.point), 15360, 128, "done")]
    assert mounted.read_ahead_kb == 128
    assert nfstuned("undo").stdout == "Nothing to put back.\n"
    assert all_read_ahead_kb() | {mounted.device: ""} == others, "another device was changed"


def _actions(document: dict[str, object]) -> list[tuple[object, ...]]:
    assert document["schema"] == "nfstuned.apply/1"
    actions = document["actions"]
    assert isinstance(actions, list)
    assert all(tuple(action) == OUTCOMES and action["reason"] for action in actions), actions
    return [tuple(action[key] for key in OUTCOMES[:-1]) for action in actions]


DROP_IN = Path("/etc/nfsmount.conf.d/50-nfstuned.conf")
SECTION = f'\n[ Server "{AZURE}" ]\nnconnect=4\n'
REQUEST, PERSIST = Path("/run/nfstuned/persist"), "nfstuned-persist.service"
RUN_S = 60.0
_shown = functools.partial(unit_property, PERSIST)
BACKUP = Path("/etc/fstab.nfstuned-backup")


@pytest.fixture
def _no_drop_in(fstab: Path) -> Iterator[None]:
    """Have no drop-in of nfstuned's, also afterwards."""
    assert fstab.exists()
    DROP_IN.unlink(missing_ok=True)
    yield
    DROP_IN.unlink(missing_ok=True)


@pytest.mark.usefixtures("_no_drop_in")
def test_the_next_mount_has_it_and_a_line_that_asks_for_another_number_gets_that(mount: Mounts) -> None:
    first = mount("a", "vers=4.1")
    assert nfstuned("nconnect", "persist").returncode == 0
    assert DROP_IN.read_text().endswith(SECTION)
    assert "nconnect" not in first.options
    mount.umount(first)

    again = mount("a", "vers=4.1")
    assert again.options["nconnect"] == "4"
    assert _carrying(again) == 4
    (row,) = status_rows().values()
    assert (row["nconnect_requested"], row["nconnect"], row["connections"]) == (4, 4, 4)
    assert str(row["nconnect_requested_by"]).startswith(f"{DROP_IN}:")
    mount.umount(again)

    point = mount.new_point()
    append(f"{AZURE}:/srv/b {point} nfs vers=4.1,nconnect=8,noauto 0 0\n")
    run("mount", str(point))
    assert options_at(point)["nconnect"] == "8"
    assert len(stats_at(point).transports) == 8
    done = nfstuned("nconnect", "persist")
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "Nothing to do"), done.stdout + done.stderr


@pytest.mark.release
@pytest.mark.usefixtures("_no_drop_in")
def test_an_automount_has_it_again_after_it_expired(mount: Mounts) -> None:
    point = mount.new_point()
    unit = f"mnt-lab-{point.name}"
    append(f"{AZURE}:/srv/c {point} nfs vers=4.1,noauto,x-systemd.automount,x-systemd.idle-timeout=2s 0 0\n")
    done = nfstuned("nconnect", "persist")
    assert (done.returncode, DROP_IN.read_text().endswith(SECTION)) == (0, True), done.stdout + done.stderr
    run("systemctl", "start", f"{unit}.automount")
    try:
        for _ in range(2):
            list(point.iterdir())
            assert options_at(point)["nconnect"] == "4"
            assert len(stats_at(point).transports) == 4
            becomes("inactive", lambda: unit_property(f"{unit}.mount", "ActiveState"), RUN_S)
    finally:
        attempt("systemctl", "stop", f"{unit}.automount")


@pytest.mark.release
@pytest.mark.usefixtures("_no_drop_in")
def test_the_service_has_it_written_for_a_server_that_it_sees(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.start('[nconnect]\nmode = "persist"\n')
    # Without a server there is nothing to write; the unit ran all the same, and took the request away.
    wait_for("the first run of the unit", lambda: not REQUEST.exists() and _ended(), RUN_S)
    assert not DROP_IN.exists()
    first = mount("a", "vers=4.1")
    wait_for("the drop-in", DROP_IN.exists, RUN_S)
    wait_for("the end of the unit", _ended, RUN_S)
    assert DROP_IN.read_text().endswith(SECTION)
    inode = DROP_IN.stat().st_ino
    mount.umount(first)
    again = mount("a", "vers=4.1")
    assert again.options["nconnect"] == "4"
    # A server that it has reported is reported no more, and a reload finds the file as it should be.
    assert not REQUEST.exists()
    before = _shown("InvocationID")
    stopped_daemon.reload()
    wait_for("the run after the reload", lambda: _shown("InvocationID") != before and _ended(), RUN_S)
    assert DROP_IN.stat().st_ino == inode
    # The sandbox lets it replace the file, too.
    append(f"{GENERIC}:/srv/c {mount.new_point()} nfs vers=3,noauto 0 0\n")
    stopped_daemon.configure(
        f'[nconnect]\nmode = "persist"\n[[policy]]\nmatch = {{ server = "{GENERIC}" }}\nprofile = "two"\n'
        "[profile.two]\nnconnect = 2\n"
    )
    stopped_daemon.reload()
    wait_for("a section for a server of fstab", lambda: f'"{GENERIC}"' in DROP_IN.read_text(), RUN_S)
    wait_for("the end of the unit", _ended, RUN_S)
    assert _shown("Result") == "success"
    assert [path.name for path in DROP_IN.parent.glob("*nfstuned*")] == [DROP_IN.name]


def _ended() -> bool:
    return _shown("ActiveState") in {"inactive", "failed"}


def _carrying(mounted: Mounted) -> int:
    """Return the number of connections that carry requests of a load."""
    before = mounted.stats.transports
    for number in range(40):
        (mounted.point / f"load-{number}").write_bytes(b"x" * 4096)
    after = mounted.stats.transports
    return sum(now.sends > then.sends for then, now in zip(before, after, strict=True))


def test_mounts_of_the_edited_fstab_have_the_connections_of_their_profile(mount: Mounts, fstab: Path) -> None:
    points = [mount.new_point() for _ in range(3)]
    before = fstab.read_text() + (
        "# shares\n"
        f"{AZURE}:/srv/a\t{points[0]}\tnfs\tvers=4,minorversion=1,sec=sys\t0 0\n"
        f"{AZURE}:/srv/b {points[1]} nfs vers=4.1,nconnect=2,nofail 0 0\n"
        f"{GENERIC}:/srv/c {points[2]} nfs vers=3,nolock 0 0\n"
    )
    fstab.write_text(before)
    done = nfstuned("nconnect", "fstab", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    edited = before.replace("sec=sys\t", "sec=sys,nconnect=4\t").replace("nconnect=2", "nconnect=4")
    assert (fstab.read_text(), BACKUP.read_text()) == (edited, before)
    for point in points:
        run("mount", str(point))
    assert [options_at(point).get("nconnect") for point in points] == ["4", "4", None]
    assert nfstuned("nconnect", "fstab").stdout.startswith("Nothing to do")
    BACKUP.unlink()


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
    with program("tail", "-f", str(held)) as tail:
        wait_for("an open file", lambda: _opened(tail.pid, held))
        assert _refused(second) == {f"in use: tail ({tail.pid}) has {held} open"}
    copy = ("unshare", "--mount", "--propagation", "private", "sleep", "1000")
    with program(*copy) as sleep:
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


@pytest.mark.release
def test_a_stopping_server_leaves_a_finishing_command(mount: Mounts, server: Server, tmp_path: Path) -> None:
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


@pytest.mark.release
@pytest.mark.usefixtures("fstab")
def test_units_and_automounts_are_systemds_and_their_dependents_run_on(mount: Mounts) -> None:
    plain, watched = mount.new_point(), mount.new_point()
    units = [f"mnt-lab-{name}" for name in (f"{plain.name}.mount", f"{watched.name}.mount")]
    units.append(f"mnt-lab-{watched.name}.automount")
    lines = (
        f"{AZURE}:/srv/a {plain} nfs vers=4.1,nofail 0 0\n"
        f"{AZURE}:/srv/b {watched} nfs vers=4.1,nconnect=4,nofail,noauto,x-systemd.automount 0 0\n"
    )
    append(lines)
    with contextlib.ExitStack() as stack:
        # In this order: an automount that stops takes its mount away lazily.
        for unit in (*reversed(units), "lab-needs.service"):
            stack.callback(attempt, "systemctl", "stop", unit, timeout=COMMAND_S)
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
    """Run the command with --yes; `path` is a folder with programs that come before the guest's."""
    front = f"{path}:" if path else ""
    argv = ("env", f"PATH={front}{os.environ['PATH']}", "nfstuned", "nconnect", "remount", mounts, "--yes")
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
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - nfs" in line]


def _namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/mnt")


def _opened(pid: int, file: Path) -> bool:
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/{pid}/fd/{number}") == str(file):
                return True
    return False
