"""`nfstuned apply --fstab` edits /etc/fstab, and what is mounted from it afterwards has the connections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.mounts import options_at
from tests.lab.kit.server import AZURE, GENERIC
from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounts

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev", "stopped_daemon")]

BACKUP = Path("/etc/fstab.nfstuned-backup")


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
