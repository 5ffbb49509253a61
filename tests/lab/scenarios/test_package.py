"""The .deb in a system that runs: it starts the service; neither an upgrade nor a removal touches a mount.

`sh dev/build` makes it first: the guest gets what is in dist/, and without it there is nothing to show.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.journal import Message
from nfstuned.model.files import FILES
from tests.lab.kit.daemon import ETC, STATE, nfstuned
from tests.lab.kit.expect import tuned
from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts

PACKAGES = sorted(Path("/lab/dist").glob("nfstuned_*_amd64.deb"))
INSTALL_S = 300.0
"""It compiles a thousand files, in emulation."""
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev"),
    pytest.mark.skipif(not PACKAGES, reason="dist/ has no package: sh dev/build makes it"),
]


@pytest.fixture
def package(stopped_daemon: Daemon, tmp_path: Path) -> Iterator[str]:
    """The package; what the lab itself has installed is there again after the test."""
    assert not stopped_daemon.active
    own = [f"usr/{place}" for place in FILES.values()]
    saved = tmp_path / "own.tar"
    there = [name for name in ("usr/bin/nfstuned", *own) if Path("/", name).exists()]
    run("tar", "-C", "/", "-cf", str(saved), *there)
    yield str(PACKAGES[-1])
    attempt("dpkg", "--purge", "nfstuned", timeout=INSTALL_S)
    run("tar", "-C", "/", "-xf", str(saved))
    run("systemctl", "daemon-reload")
    run("journalctl", "--update-catalog")


def line_of(mounted: Mounted) -> str:
    """Return the mount's line of mountinfo: its id, device and options are those of this very mount."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    (found,) = [line for line in lines if line.split()[4] == str(mounted.point)]
    return found


def test_the_package_starts_the_service_and_is_upgraded_and_removed_beside_a_mount(
    stopped_daemon: Daemon, package: str, mount: Mounts
) -> None:
    mounted = mount("a", "vers=4.1,nconnect=4")
    before = line_of(mounted)

    run("dpkg", "--install", package, timeout=INSTALL_S)
    tuned(15360, mounted)
    first = stopped_daemon.pid
    assert b"/usr/lib/nfstuned/__main__.py\0daemon\0" in Path(f"/proc/{first}/cmdline").read_bytes()
    assert stopped_daemon.rss_kb <= 30 * 1024
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id)
    assert entry["NFSTUNED_NEW_KB"] == "15360"
    # The child that checks a configuration finds the package's libraries, in the sandbox.
    stopped_daemon.configure("[profile.azure-files]\nread_ahead_kb = 4096\nlower = true\n")
    stopped_daemon.reload()
    tuned(4096, mounted, seconds=60)

    run("dpkg", "--install", package, timeout=INSTALL_S)
    assert stopped_daemon.active
    assert stopped_daemon.pid != first
    assert nfstuned("status").returncode == 0
    assert line_of(mounted) == before

    run("dpkg", "--remove", "nfstuned", timeout=INSTALL_S)
    assert stopped_daemon.show("ActiveState") == "inactive"
    assert (line_of(mounted), mounted.read_ahead_kb) == (before, 4096)
    assert (ETC / "nfstuned.toml").exists()

    run("dpkg", "--purge", "nfstuned")
    assert not ETC.exists()
    assert not STATE.exists()
    assert not Path("/usr/lib/nfstuned").exists()
