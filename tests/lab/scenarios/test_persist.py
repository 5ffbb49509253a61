"""`nfstuned apply --persist` and `--fstab`: the next mount has the connections, and each carries requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.daemon import nfstuned, status_rows
from tests.lab.kit.fstab import append
from tests.lab.kit.mounts import options_at, stats_at
from tests.lab.kit.server import AZURE, GENERIC
from tests.lab.kit.shell import run, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]
DROP_IN = Path("/etc/nfsmount.conf.d/50-nfstuned.conf")
SECTION = f'\n[ Server "{AZURE}" ]\nnconnect=4\n'
REQUEST, PERSIST = Path("/run/nfstuned/persist"), "nfstuned-persist.service"
RUN_S = 60.0
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
    assert nfstuned("apply", "--persist").returncode == 0
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
    done = nfstuned("apply", "--persist")
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "Nothing to do"), done.stdout + done.stderr


@pytest.mark.release
@pytest.mark.usefixtures("_no_drop_in")
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
    """Whether the unit does not run now."""
    return _shown("ActiveState") in {"inactive", "failed"}


def _shown(name: str) -> str:
    return run("systemctl", "show", f"--property={name}", "--value", PERSIST).strip()


def _carrying(mounted: Mounted) -> int:
    """Return the number of connections that carry requests of a load."""
    before = mounted.stats.transports
    for number in range(40):
        (mounted.point / f"load-{number}").write_bytes(b"x" * 4096)
    after = mounted.stats.transports
    return sum(now.sends > then.sends for then, now in zip(before, after, strict=True))


def test_mounts_of_the_edited_fstab_have_what_their_profile_asks_for(mount: Mounts, fstab: Path) -> None:
    points = [mount.new_point() for _ in range(3)]
    before = fstab.read_text() + (
        "# shares\n"
        f"{AZURE}:/srv/a\t{points[0]}\tnfs\tvers=4,minorversion=1,sec=sys\t0 0\n"
        f"{AZURE}:/srv/b {points[1]} nfs vers=4.1,nconnect=2,nofail 0 0\n"
        f"{GENERIC}:/srv/c {points[2]} nfs vers=3,nolock 0 0\n"
    )
    fstab.write_text(before)
    done = nfstuned("apply", "--fstab", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    edited = before.replace("sec=sys\t", "sec=sys,nconnect=4\t").replace("nconnect=2", "nconnect=4")
    assert (fstab.read_text(), BACKUP.read_text()) == (edited, before)
    for point in points:
        run("mount", str(point))
    assert [options_at(point).get("nconnect") for point in points] == ["4", "4", None]
    assert nfstuned("apply", "--fstab").stdout.startswith("Nothing to do")
    BACKUP.unlink()
