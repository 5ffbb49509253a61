"""The .deb in a system that runs: it starts the service; none of its changes touches a mount that exists.

All of a boot's scenarios run this package's program; it is installed again when this one ends.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import ETC, STATE, UNIT, Daemon, nfstuned, status_rows
from tests.lab.kit.mounts import Mounts, line_of
from tests.lab.kit.rivals import MASK, difference, view
from tests.lab.kit.shell import attempt, run, tuned
from tests.lab.kit.unit import HOME, compiled

INSTALL_S = 600.0
"""An upgrade compiles the libraries, in emulation."""
pytestmark = [pytest.mark.release, pytest.mark.timeout(1200)]


@pytest.fixture
def files(stopped_daemon: Daemon) -> Iterator[dict[Path, bytes]]:
    """The compiled files of the installation; the package is there again after the test."""
    assert not stopped_daemon.active
    found = {path: path.read_bytes() for path in compiled()}
    yield found
    if attempt("dpkg", "--verify", "nfstuned").returncode:
        install_again(found)


def deb(folder: str = "package") -> str:
    (file,) = Path("/lab", folder).glob("nfstuned_*_amd64.deb")
    return str(file)


def install_again(files: dict[Path, bytes]) -> None:
    """Install the package with the files compiled before: compiling would take a minute."""
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    run("dpkg", "--install", deb(), timeout=INSTALL_S)


def test_packages_leave_mounts_alone(stopped_daemon: Daemon, files: dict[Path, bytes], mount: Mounts) -> None:
    mounted = mount("a", "vers=4.1,nconnect=4")
    before, rules = line_of(mounted), view()
    stopped_daemon.start("[profile.azure-files]\nread_ahead_kb = 4096\nlower = true\n")
    tuned(4096, mounted, seconds=60)
    assert MASK.exists()

    first = stopped_daemon.pid
    run("dpkg", "--install", deb(), timeout=INSTALL_S)
    assert stopped_daemon.active
    assert stopped_daemon.pid not in {0, first}
    assert nfstuned("status").returncode == 0
    assert line_of(mounted) == before
    assert compiled() == list(files)
    assert MASK.exists()

    run("dpkg", "--remove", "nfstuned", timeout=INSTALL_S)
    assert stopped_daemon.show("ActiveState") == "inactive"
    assert (line_of(mounted), mounted.read_ahead_kb) == (before, 4096)
    assert (ETC / "nfstuned.toml").exists()
    assert difference(rules, view()) == []

    run("dpkg", "--purge", "nfstuned", timeout=INSTALL_S)
    assert [path for path in (ETC, STATE, HOME) if path.exists()] == []
    assert difference(rules, view()) == []

    existing = [mounted, mount("b", "vers=3,nolock"), mount("c", "vers=4.2")]
    values = [each.read_ahead_kb for each in existing]
    stopped_daemon.journal.mark()
    install_again(files)
    new = mount("d")
    tuned(15360, new)
    assert [each.read_ahead_kb for each in existing] == values
    held = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_HELD.id)
    assert set(held["NFSTUNED_MOUNTS"].split()) == {str(each.point) for each in existing}
    assert {row["hold"] for point, row in status_rows().items() if point != str(new.point)} == {"existing"}
    assert run("systemctl", "is-enabled", UNIT).strip() == "enabled"
    command = Path(f"/proc/{stopped_daemon.pid}/cmdline").read_bytes()
    assert b"\0/usr/lib/nfstuned/__main__.py\0daemon\0" in command
    assert stopped_daemon.rss_kb <= 30 * 1024
    entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.READ_AHEAD_SET.id)
    assert entry["NFSTUNED_NEW_KB"] == "15360"

    # A boot begins with an empty /run.
    stopped_daemon.stop()
    shutil.rmtree("/run/nfstuned")
    stopped_daemon.start()
    tuned(15360, *existing)


CONFIGURATION = "[profile.azure-files]\nread_ahead_kb = 4096\n"


def test_from_the_first_release_and_back_with_mounts_in_use(
    stopped_daemon: Daemon, files: dict[Path, bytes], mount: Mounts
) -> None:
    assert files
    run("dpkg", "--purge", "nfstuned", timeout=INSTALL_S)
    run("dpkg", "--install", deb("first"), timeout=INSTALL_S)
    assert nfstuned("--version").stdout.strip().endswith("0.1.0")
    # The service of 0.1.0 reads the configuration, and so does each later one.
    stopped_daemon.configure(CONFIGURATION)
    run("systemctl", "restart", UNIT)
    used = [mount("a", "vers=4.1,nconnect=4"), mount("b", "vers=3,nolock")]
    tuned(4096, *used, seconds=60)
    lines = {mounted: line_of(mounted) for mounted in used}
    with (used[0].point / "open").open("wb", buffering=0) as file:
        for version, share in (("package", "c"), ("first", "d")):
            pid = stopped_daemon.pid
            run("dpkg", "--install", deb(version), timeout=INSTALL_S)
            assert stopped_daemon.pid not in {0, pid}
            used.append(mount(share))
            tuned(4096, *used, seconds=60)
            assert {mounted: line_of(mounted) for mounted in lines} == lines
            file.write(b"x")
        # The first release reads the records of both versions, and the next version reads its holds.
        assert nfstuned("undo").returncode == 0
        assert [mounted.read_ahead_kb for mounted in used] == [128] * 4
        run("dpkg", "--install", deb("package"), timeout=INSTALL_S)
        assert {mounted: line_of(mounted) for mounted in lines} == lines
        file.write(b"x")
    assert (used[0].point / "open").read_bytes() == b"xxx"
    assert [mounted.read_ahead_kb for mounted in used] == [128] * 4
    assert nfstuned("apply").returncode == 0
    tuned(4096, *used)
    assert nfstuned("undo").returncode == 0
    assert [mounted.read_ahead_kb for mounted in used] == [128] * 4
