"""The .deb in a system that runs: it starts the service; neither an upgrade nor a removal touches a mount.

All of a boot's scenarios run what this package has installed; it is installed again when this one ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.journal import Message
from tests.lab.kit.daemon import ETC, STATE, UNIT, nfstuned
from tests.lab.kit.expect import tuned
from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

INSTALL_S = 300.0
"""It compiles the libraries, in emulation."""
HOME = Path("/usr/lib/nfstuned")
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev"),
]


@pytest.fixture
def package(stopped_daemon: Daemon) -> Iterator[str]:
    """The package, which is installed; it is again after the test, whatever becomes of it there."""
    assert not stopped_daemon.active
    (file,) = Path("/lab/package").glob("nfstuned_*_amd64.deb")
    yield str(file)
    if attempt("dpkg", "--verify", "nfstuned").returncode:
        run("dpkg", "--install", str(file), timeout=INSTALL_S)


def line_of(mounted: Mounted) -> str:
    """Return the mount's line of mountinfo: its id, device and options are those of this very mount."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    (found,) = [line for line in lines if line.split()[4] == str(mounted.point)]
    return found


def test_an_upgrade_a_removal_and_an_installation_beside_a_mount(
    stopped_daemon: Daemon, package: str, mount: Mounts
) -> None:
    mounted = mount("a", "vers=4.1,nconnect=4")
    before = line_of(mounted)
    stopped_daemon.configure("[profile.azure-files]\nread_ahead_kb = 4096\nlower = true\n")
    stopped_daemon.start()
    tuned(4096, mounted, seconds=60)

    first = stopped_daemon.pid
    run("dpkg", "--install", package, timeout=INSTALL_S)
    assert stopped_daemon.active
    assert stopped_daemon.pid not in {0, first}
    assert nfstuned("status").returncode == 0
    assert line_of(mounted) == before

    run("dpkg", "--remove", "nfstuned", timeout=INSTALL_S)
    assert stopped_daemon.show("ActiveState") == "inactive"
    assert (line_of(mounted), mounted.read_ahead_kb) == (before, 4096)
    assert (ETC / "nfstuned.toml").exists()

    run("dpkg", "--purge", "nfstuned")
    assert [path for path in (ETC, STATE, HOME) if path.exists()] == []

    stopped_daemon.journal.mark()
    run("dpkg", "--install", package, timeout=INSTALL_S)
    tuned(15360, mounted)
    assert run("systemctl", "is-enabled", UNIT).strip() == "enabled"
    command = Path(f"/proc/{stopped_daemon.pid}/cmdline").read_bytes()
    assert b"\0/usr/lib/nfstuned/__main__.py\0daemon\0" in command
    assert stopped_daemon.rss_kb <= 30 * 1024
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id)
    assert entry["NFSTUNED_NEW_KB"] == "15360"


def test_a_start_compiles_nothing_and_the_command_takes_the_packages_libraries() -> None:
    """What a service in its sandbox and a user without rights run cannot be written."""
    before = sorted(HOME.rglob("*.pyc"))
    assert before
    for command in (("status",), ("check", "--offline"), ("config", "schema"), ("explain", "NFS101")):
        assert nfstuned(*command).returncode in {0, 1}
    assert sorted(HOME.rglob("*.pyc")) == before
    assert attempt("dpkg", "--verify", "nfstuned").stdout == ""
