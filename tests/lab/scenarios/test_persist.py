"""`nfstuned apply --persist`: the next mount has the connections, and each of them carries requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.model.kernel import MountStats
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.daemon import nfstuned, nfstuned_json
from tests.lab.kit.server import AZURE, GENERIC
from tests.lab.kit.shell import attempt, run, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

pytestmark = [
    pytest.mark.system,
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon"),
]

FSTAB, DROP_IN = Path("/etc/fstab"), Path("/etc/nfsmount.conf.d/50-nfstuned.conf")
SECTION = f'\n[ Server "{AZURE}" ]\nnconnect=4\n'
REQUEST, PERSIST = Path("/run/nfstuned/persist"), "nfstuned-persist.service"
RUN_S = 60.0
EXPIRY_S = 60.0
"""systemd looks every second; the rest is for a slow guest."""


@pytest.fixture
def _files() -> Iterator[None]:
    """Have no drop-in of nfstuned's; afterwards the guest's files are as they were."""
    before = FSTAB.read_bytes()
    DROP_IN.unlink(missing_ok=True)
    yield
    FSTAB.write_bytes(before)
    DROP_IN.unlink(missing_ok=True)
    run("systemctl", "daemon-reload")


@pytest.mark.usefixtures("_files")
def test_the_next_mount_has_it_and_a_line_that_asks_for_another_number_gets_that(mount: Mounts) -> None:
    first = mount("a", "vers=4.1")
    assert nfstuned("apply", "--persist").returncode == 0
    assert DROP_IN.read_text().endswith(SECTION)
    assert "nconnect" not in first.options
    mount.umount(first)

    again = mount("a", "vers=4.1")
    assert again.options["nconnect"] == "4"
    assert _carrying(again.point) == 4
    (row,) = _rows()
    assert (row["nconnect_requested"], row["nconnect"], row["connections"]) == (4, 4, 4)
    assert str(row["nconnect_requested_by"]).startswith(f"{DROP_IN}:")
    mount.umount(again)

    point = mount.new_point()
    with FSTAB.open("a") as file:
        file.write(f"{AZURE}:/srv/b {point} nfs vers=4.1,nconnect=8,noauto 0 0\n")
    run("mount", str(point))
    assert "nconnect=8" in _options(point)
    assert len(_sends(point)) == 8
    done = nfstuned("apply", "--persist")
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "Nothing to do"), done.stdout + done.stderr


@pytest.mark.release
@pytest.mark.usefixtures("_files")
def test_an_automount_has_it_again_after_it_expired(mount: Mounts) -> None:
    point = mount.new_point()
    unit = f"mnt-lab-{point.name}"
    with FSTAB.open("a") as file:
        options = "vers=4.1,noauto,x-systemd.automount,x-systemd.idle-timeout=2s"
        file.write(f"{AZURE}:/srv/c {point} nfs {options} 0 0\n")
    done = nfstuned("apply", "--persist")
    assert (done.returncode, DROP_IN.read_text().endswith(SECTION)) == (0, True), done.stdout + done.stderr
    run("systemctl", "daemon-reload")
    run("systemctl", "start", f"{unit}.automount")
    try:
        for _ in range(2):
            list(point.iterdir())
            assert "nconnect=4" in _options(point)
            assert len(_sends(point)) == 4
            wait_for("the expiry of the automount", lambda: not _options(point), EXPIRY_S)
    finally:
        attempt("systemctl", "stop", f"{unit}.automount")
        attempt("systemctl", "stop", f"{unit}.mount")


@pytest.mark.release
@pytest.mark.usefixtures("_files")
def test_the_service_has_it_written_for_a_server_that_it_sees(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure('[nconnect]\nmode = "persist"\n')
    stopped_daemon.start()
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
    # A server of which it has told before is told no more, and a reload finds the file as it should be.
    assert not REQUEST.exists()
    before = _shown("InvocationID")
    stopped_daemon.reload()
    wait_for("the run after the reload", lambda: _shown("InvocationID") != before and _ended(), RUN_S)
    assert DROP_IN.stat().st_ino == inode
    # The sandbox lets it replace the file, too.
    with FSTAB.open("a") as file:
        file.write(f"{GENERIC}:/srv/c {mount.new_point()} nfs vers=3,noauto 0 0\n")
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
    """Whether the unit does not run now."""
    return _shown("ActiveState") in {"inactive", "failed"}


def _shown(name: str) -> str:
    return run("systemctl", "show", f"--property={name}", "--value", PERSIST).strip()


def _rows() -> list[dict[str, object]]:
    rows = nfstuned_json("status")["mounts"]
    assert isinstance(rows, list)
    return rows


def _options(point: Path) -> list[str]:
    """Return the options of the NFS mount at a point, none where there is only an automount's trap."""
    rows = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((row[3].split(",") for row in rows if row[1] == str(point) and row[2] == "nfs4"), [])


def _sends(point: Path) -> list[int]:
    """Return how many requests each connection of a mount has sent."""
    stanzas = parse_mountstats(Path("/proc/self/mountstats").read_text())
    (mine,) = [one for one in stanzas if isinstance(one, MountStats) and one.point == str(point)]
    return [transport.sends for transport in mine.transports]


def _carrying(point: Path) -> int:
    """Return how many connections carry requests of a load."""
    before = _sends(point)
    for number in range(40):
        (point / f"load-{number}").write_bytes(b"x" * 4096)
    return sum(after > was for was, after in zip(before, _sends(point), strict=True))
