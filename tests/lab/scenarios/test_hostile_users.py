"""No user of the machine holds up the service, whatever he mounts in a namespace of his own."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.namespaces import BYTES_A_BIND, OWN_NAMESPACES, hidden_mount, many_bind_mounts
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import tuned
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]
MOUNTINFO = 300_000_000
OFTEN = '[daemon]\nsample_interval = "2s"\n'
MOST_KB = 60_000


@pytest.mark.release
def test_a_mountinfo_of_300_mb_costs_the_service_nothing(stopped_daemon: Daemon, mount: Mounts) -> None:
    daemon = stopped_daemon
    daemon.configure(OFTEN)
    daemon.start()
    pid, before = daemon.pid, daemon.rss_kb
    with many_bind_mounts(MOUNTINFO // BYTES_A_BIND) as user:
        start = Path(f"/proc/{user}/mountinfo").open("rb")  # noqa: SIM115 - only so much of it
        with start:
            assert b"\\040" * 250 in start.read(4_000_000)
        mounted = mount("a")
        tuned(15360, mounted)
        # A superblock that no mount explains sends it to the namespaces of all processes.
        with hidden_mount(f"{AZURE}:/srv/b", mount.new_point(), "vers=4.2") as hidden:
            tuned(15360, hidden)
            let_tick(daemon)
        print(f"RSS {before} KiB before, {daemon.rss_kb} KiB after")
        assert daemon.rss_kb < MOST_KB
    assert daemon.pid == pid
    assert daemon.show("NRestarts") == "0"


def test_nobody_mounts_nfs_in_a_user_namespace_of_his_own(mount: Mounts) -> None:
    """So whatever is mounted there is a copy of what another namespace shows."""
    argv = [
        *OWN_NAMESPACES,
        "mount",
        "-t",
        "nfs",
        "-o",
        "vers=4.2",
        f"{AZURE}:/srv/a",
        str(mount.new_point()),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "permi" in done.stderr.lower(), done.stderr
