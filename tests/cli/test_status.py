"""`nfstuned status`: its hints, unreadable files, names and terminals; sessions show the rest."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from typing import Any

import pytest

from nfstuned.app.change import Wish
from nfstuned.app.nconnect import FstabWay
from nfstuned.cli.nconnect import run_change
from nfstuned.host.root import Root
from nfstuned.model.system import Network, Reach, Reachable
from tests.check import hosts
from tests.cli.conftest import CASE, REPOSITORY, Host, MakeHost, Run
from tests.cli.remounting import existing
from tests.tree import put


@pytest.fixture
def here(host: MakeHost) -> Host:
    return host(CASE)


def mounts(run: Run) -> dict[str, dict[str, Any]]:
    return {row["mount_point"]: row for row in run.document["mounts"]}


UID = "5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6"
VOLUME = "pvc-46c357b2-333b-4c42-8a7f-2133023d6c48"
IN_POD = f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~csi/{VOLUME}/mount"
KEYS = ("namespace", "persistentvolumeclaim", "persistentvolume", "pod")


def test_a_kubelet_s_mount_has_its_names_and_with_verbose_its_path(host: MakeHost) -> None:
    here = host("aks-node-csi-live")
    rows = mounts(here.run("status", "--format", "json"))
    assert [rows[IN_POD][key] for key in KEYS] == ["shop", None, VOLUME, "web-0"]
    (staged,) = (row for point, row in rows.items() if point.endswith("/globalmount"))
    assert [staged[key] for key in KEYS] == [None] * 4
    assert f"\n{VOLUME}, pod shop/web-0: {IN_POD}\n" in here.run("status", "-v").out
    assert IN_POD not in here.run("status").out


def test_a_hostile_name_of_a_volume_moves_no_cursor(host: MakeHost) -> None:
    here = host("aks-node-csi-live")
    for file in ("mountinfo", "mountstats", "mounts"):
        path = here.tree / "proc/1" / file
        path.write_text(path.read_text().replace(VOLUME, "a\x1b[2J"))
    assert "\x1b" not in here.run("status", "-v").out
    assert "\x1b" not in here.run("status", "--format", "json").out


@pytest.mark.parametrize(
    ("group", "active"),
    [
        pytest.param({"nfstuned.service/cgroup.procs": "412\n"}, True, id="with a process"),
        pytest.param({"nfstuned.service/cgroup.procs": ""}, False, id="without one"),
        pytest.param({"ssh.service/cgroup.procs": "412\n"}, False, id="stopped"),
        pytest.param({}, None, id="no control groups"),
    ],
)
def test_an_installed_service_that_does_not_run_is_named(
    here: Host, group: dict[str, str], active: object
) -> None:
    put(here.tree / "usr/lib/systemd/system/nfstuned.service", "[Service]\n")
    for file, text in group.items():
        put(here.tree / "sys/fs/cgroup/system.slice" / file, text)
    assert here.run("status", "--format", "json").document["service_active"] is active
    line = "nfstuned.service does not run, and sets no new mount's read-ahead: systemctl status nfstuned\n"
    assert (line in here.run("status").out) == (active is False)


UNMOUNTS = "sudo nfstuned nconnect remount --all, which unmounts all mounts of the server for a moment"
HINTS = {
    "azure-scenario-1": f"below the profile's nconnect: sudo nfstuned nconnect fstab, then {UNMOUNTS}",
    "azure-scenario-2": "below the profile's nconnect: /mnt/three: sa2.file.core.windows.net is a public ",
    "efs-nconnect-live": f"above the profile's nconnect: sudo nfstuned nconnect fstab, then {UNMOUNTS}",
    "live-azure-by-hand-soft": f"below the profile's nconnect: {UNMOUNTS}",
    "live-map-lost-to-fstab": "without the nconnect that they asked for: automount(8) mounts /proj/vol2 ",
    "nconnect-16": f"above the profile's nconnect: sudo nfstuned nconnect fstab, then {UNMOUNTS}",
    "nconnect-first-mount-v41": f"without the nconnect that they asked for: {UNMOUNTS}",
    "nconnect-two-names": "without the nconnect that they asked for, as other mounts of the server decide\n",
    "tls-tunnel-full": "below the profile's nconnect: /mnt/share goes through a mount helper's tunnel",
}


@pytest.mark.parametrize("case", HINTS)
def test_each_hint_changes_something(case: str, host: MakeHost, capsys: pytest.CaptureFixture[str]) -> None:
    here, known = host(case), hosts.load(case)
    out = here.run("status").out
    assert f"1 mount {HINTS[case]}" in out
    remounting = existing(here.tree)
    if "nconnect remount" in out and "nconnect fstab" not in out:
        remounting.network = open_at_addresses(here)
        assert remounting.run(dry_run=True) == 0
        assert " planned " in capsys.readouterr().out
    if "nconnect fstab" in out:
        order = Wish(dry_run=True), lambda host: FstabWay(host, follow=False)
        assert run_change(Root(str(here.tree)), "text", *order, hosts.World(known.network)) == 0
        assert " planned " in capsys.readouterr().out


def open_at_addresses(here: Host) -> Network:
    """Return a network in which each mount's server answers at its address."""
    places = re.findall(r"\baddr=([^,\s]+)", (here.tree / "proc/1/mountinfo").read_text())
    return Network(reaches=tuple(Reach(place, 2049, Reachable.OPEN) for place in places))


def test_a_hint_begins_with_a_drop_in_that_mount_nfs_reads(here: Host) -> None:
    here.install(b"2.8.3")
    assert f"4 mounts below the profile's nconnect: sudo nfstuned nconnect persist, then {UNMOUNTS}\n" in (
        here.run("status").out
    )
    here.configure("[")
    assert "nconnect" not in here.run("status").out.partition("CONN")[2]


def test_another_writer_is_no_reason_for_a_command(host: MakeHost) -> None:
    out = host("anf-eda-nocto-v3").run("status").out
    assert out.endswith("udev: /etc/udev/rules.d/99-nfs.rules writes read-aheads of NFS mounts, too\n")


def test_names_keep_their_bytes_and_cannot_play_with_the_terminal(here: Host) -> None:
    here.edit("proc/1/mountinfo", " /mnt/1 ", " /mnt/\\033[31m\\012x\udcff[bold] ")
    run = here.run("status")
    assert "/mnt/\\x1b[31m\\nx\\xff[bold] " in run.out
    assert "\x1b" not in run.out
    points = [os.fsencode(point) for point in mounts(here.run("status", "--format", "json"))]
    assert b"/mnt/\x1b[31m\nx\xff[bold]" in points


@pytest.mark.usefixtures("as_user")
def test_a_file_that_a_user_may_not_read_is_named_once(here: Host) -> None:
    (here.tree / "proc/1/mountstats").chmod(0)
    run = here.run("status", "--format", "json")
    assert (run.status, run.err) == (0, "/proc/1/mountstats: permission denied; root can read it\n")
    assert mounts(run)["/mnt/2"]["read_ahead_kb"] == 128


def on_a_terminal(here: Host, **environment: str) -> str:
    """Return the output on a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}
    command = here.command("status")
    subprocess.run(command, stdout=theirs, env=environ | environment, cwd=REPOSITORY, check=True)
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:  # the other side is closed and all is read
        pass
    os.close(ours)
    return text.decode()


def test_a_terminal_gets_colour_or_the_same_words_without_and_eighty_columns_are_enough(here: Host) -> None:
    coloured, plain = on_a_terminal(here), on_a_terminal(here, NO_COLOR="1")
    assert "\x1b[33mlow\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    table = plain.split("\r\n")[:10]
    assert max(map(len, table)) <= 80
    assert "sa1.fil....net:/a" in "".join(table)


def test_wait_ends_with_the_read_ahead(here: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter((128, 128, 15360))
    monkeypatch.setattr("time.sleep", lambda _: here.set_read_ahead("0:46", next(values)))
    assert here.run("wait", "/mnt/2").status == 0
    assert list(values) == []


def test_wait_looks_at_the_mount_that_is_on_top_of_the_others(here: Host) -> None:
    here.set_read_ahead("0:46", 15360)
    assert here.run("wait", "/mnt/2", "--timeout", "0").status == 0
    table = here.tree / "proc/1/mountinfo"
    table.write_text(f"{table.read_text()}9999 1 0:99 / /mnt/2 rw - tmpfs tmpfs rw\n")
    waited = here.run("wait", "/mnt/2", "--timeout", "0")
    assert (waited.status, waited.err.strip()) == (1, "/mnt/2: no NFS mount is there")
