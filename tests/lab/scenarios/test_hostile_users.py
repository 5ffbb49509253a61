"""Neither a user of the machine nor a server's names harm the service or another mount."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit.daemon import status_rows
from tests.lab.kit.hostile_server import HOST, PORT, named
from tests.lab.kit.load import sockets
from tests.lab.kit.metrics import TEXTFILE, series, total
from tests.lab.kit.namespaces import BYTES_A_BIND, OWN_NAMESPACES, hidden_mount, many_bind_mounts
from tests.lab.kit.server import AZURE
from tests.lab.kit.shell import tuned
from tests.lab.kit.unit import let_tick

if TYPE_CHECKING:
    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]
MOUNTINFO = 300_000_000
OFTEN = '[daemon]\nsample_interval = "2s"\n'
MOST_KB = 60_000
CONFIGURATION = f"""[daemon]
sample_interval = "1s"

[prometheus]
textfile = "{TEXTFILE}"
"""
END = b"',domain='d',date='0,0'\n"
NINES = b"9 9 9 9 9 9 9 9 "
MOST = 1024
"""Bytes that a client takes of each name (NFS4_OPAQUE_LIMIT)."""


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
    """So each mount there is a copy of another namespace's."""
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


def forged(victim: Mounted) -> bytes:
    """Return the rest of a mount, and the victim's as the server would have it."""
    return (
        b"\tcaps:\tcaps=0x1\n\tbytes:\t" + NINES + b"\n\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
        b"\tper-op statistics\n\t        READ: 9 9 9 9 9 9 9 9 9\n\n"
        + f"device {AZURE}:/srv/a mounted on {victim.point} with fstype nfs4 statvers=1.1\n".encode()
        + b"\topts:\trw\n\tage:\t9\n\timpl_id:\tname='n"
        + END
        + b"\tbytes:\t"
        + NINES
        + b"\n"
    )


@pytest.mark.release
def test_no_name_of_a_server_says_anything_of_another_mount(stopped_daemon: Daemon, mount: Mounts) -> None:
    stopped_daemon.configure(CONFIGURATION)
    stopped_daemon.start()
    victim = mount("a", "vers=4.1")
    (victim.point / "file").write_bytes(b"x" * 5000)
    tuned(15360, victim)
    let_tick(stopped_daemon)
    lie = forged(victim)
    hostile_names = (
        (b"n" + END + lie, b"d"),
        (b"n", b"d',date='0,0'\n" + lie),
        (b"n" + END + lie + b"\tper-op statistics\n\n", b""),
    )
    for name, domain in hostile_names:
        assert max(len(name), len(domain)) <= MOST
        with named(name, domain):
            hostile = mount("b", f"vers=4.1,port={PORT}", host=HOST)
            assert name in Path("/proc/self/mountstats").read_bytes(), "the kernel has changed it"
            for _ in range(2):  # the file of a sample is whole by the next
                let_tick(stopped_daemon)
            _is_honest(victim, hostile)
            mount.umount(hostile)
    assert sockets().number == 1, "the victim's, and none of a server that is gone"


def _is_honest(victim: Mounted, hostile: Mounted) -> None:
    """nfstuned reports none of the forged numbers, and no mount that does not exist."""
    counters = victim.stats.bytes
    assert counters is not None
    assert (counters.normal_written, counters.server_written, counters.server_read) == (5000, 5000, 0)
    assert hostile.stats.point == str(hostile.point)
    rows = status_rows()
    assert set(rows) == {str(victim.point), str(hostile.point)}
    assert rows[str(victim.point)]["profile"] == "azure-files"
    assert victim.read_ahead_kb == 15360
    found = series(TEXTFILE.read_text())
    written = total(found, "nfstuned_mount_server_written_bytes_total", mount_point=str(victim.point))
    assert written == 5000
