"""SMB mounts of a real server: the kernel's figures of their channels, and the findings about them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.model.system import SmbOps, SmbSession
from nfstuned.parse.proc.cifs import parse_debug_data, parse_stats
from tests.lab.kit.check import ids
from tests.lab.kit.mounts import Mounted, Mounts, table_device
from tests.lab.kit.server import ADDRESS, AZURE, Server
from tests.lab.kit.shell import CommandError, attempt, becomes, run, wait_for

pytestmark = [pytest.mark.kernel, pytest.mark.newest]
SHARE = "share"
PORT = 445
_PATH = Path("/srv/smb")
# A guest's session has no key, and without one the kernel cannot bind further channels to it.
_USER, _PASSWORD = "root", "lab"  # of a server in a guest that is thrown away
_ESTABLISHED, _LISTENING = "01", "0A"
_FOLDERS = {
    **{part: f"{part} directory" for part in ("lock", "state", "cache", "pid")},
    **{part: f"{part} dir" for part in ("private", "ncalrpc")},
}
_CONFIGURATION = f"""[global]
server role = standalone server
workgroup = LAB
netbios name = LAB
disable netbios = yes
smb ports = 445
load printers = no
printcap name = /dev/null
disable spoolss = yes
passdb backend = tdbsam
server min protocol = SMB2_10
server multi channel support = yes
bind interfaces only = yes
interfaces = "{ADDRESS};speed=1000000000,capability=RSS"
log file = /dev/null
"""
_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def samba() -> Iterator[None]:
    """Serve /srv/smb at ADDRESS, with any number of channels.

    The kernel opens several channels to one interface only where the server announces that it spreads them
    over processors (RSS). The loopback device does not, so that the configuration does.
    """
    _PATH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lab-samba-") as name:
        folder, configuration = Path(name), Path(name, "smb.conf")
        folder.chmod(0o755)
        for part in _FOLDERS:
            (folder / part).mkdir()
        own = "".join(f"{setting} = {folder / part}\n" for part, setting in _FOLDERS.items())
        configuration.write_text(f"{_CONFIGURATION}{own}[{SHARE}]\npath = {_PATH}\nread only = no\n")
        user = ("smbpasswd", "-c", str(configuration), "-s", "-a", _USER)
        done = attempt(*user, stdin=f"{_PASSWORD}\n{_PASSWORD}\n")
        assert done.returncode == 0, done.stdout + done.stderr
        argv = ["smbd", "--foreground", "--no-process-group", f"--configfile={configuration}"]
        # A session of its own, so that the processes of its clients end with it; smbd must not want another.
        # In the foreground it ends with a standard input that is a pipe.
        null = subprocess.DEVNULL
        with subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True) as process:
            try:
                wait_for("smbd listens", lambda: _count(_LISTENING, "local") > 0, _PATIENCE_S)
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
        wait_for("smbd is gone", lambda: _count(_LISTENING, "local") == 0, _PATIENCE_S)


def smb_mount(point: Path, options: str = "", *, host: str = AZURE) -> Mounted:
    """Mount the share with mount(8); raise CommandError with the kernel's words when it is refused."""
    source = f"//{host}/{SHARE}"
    login = f"username={_USER},password={_PASSWORD}"
    argv = ["mount", "-t", "cifs", "-o", ",".join(filter(None, (login, options))), source, str(point)]
    try:
        run(*argv)
    except CommandError as error:
        raise CommandError(f"{error}\n{attempt('dmesg').stdout[-2000:]}") from None
    device = table_device(point)
    assert device is not None, f"{point} is not in mountinfo"
    return Mounted(source, point, device)


def _count(state: str, side: str) -> int:
    """Return how many sockets of the state have SMB's port at one side (/proc/net/tcp)."""
    column = {"local": 1, "remote": 2}[side]
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == state and int(row[column].partition(":")[2], 16) == PORT for row in rows)


DEBUG_DATA = Path("/proc/fs/cifs/DebugData")
STATS = Path("/proc/fs/cifs/Stats")
GOOD = "vers=3.1.1,actimeo=30"
_SMB = ("--offline", "--select", "SMB6")


@pytest.fixture(scope="module", autouse=True)
def _module(_server: Server) -> None:
    """The server's addresses and names are there, and the kernel has SMB."""
    _server.start()
    run("modprobe", "cifs")


@pytest.mark.usefixtures("samba")
def test_a_session_is_understood_its_channels_are_counted_and_too_many_of_them_found(mount: Mounts) -> None:
    for number in (4, 8):
        # Kernels before 5.14 need both options.
        mounted = smb_mount(mount.new_point(), f"{GOOD},multichannel,max_channels={number}")
        _has_channels(number)
        session = _session()
        assert (session.address, session.dialect, session.encrypted) == (ADDRESS, 0x311, False)
        assert session.server in {AZURE, ADDRESS}
        assert rf"\\{AZURE}\{SHARE}" in session.shares
        assert ids(*_SMB) == _about(mounted, *(["SMB602"] if number > 4 else []))
        mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_options_of_a_live_mount_are_judged_as_the_kernel_shows_them(mount: Mounts) -> None:
    mounted = smb_mount(mount.new_point(), "vers=3.0,seal,cache=none,noserverino,actimeo=1")
    found = ["SMB605", "SMB606", "SMB607", "SMB607", "SMB609"]
    assert sorted(ids(*_SMB)) == sorted(_about(mounted, *found))
    mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_requests_of_a_share_are_counted_by_their_kinds(mount: Mounts) -> None:
    mounted = smb_mount(mount.new_point(), f"{GOOD},cache=none")
    before = _operations()
    (mounted.point / "file").write_bytes(b"x" * 100_000)
    assert (mounted.point / "file").read_bytes() == b"x" * 100_000
    data = _operations()
    assert data.data > before.data
    for number in range(20):
        (mounted.point / f"new-{number}").mkdir()
    later = _operations()
    assert later.metadata >= data.metadata + 20
    assert later.data == data.data
    for number in range(20):
        (mounted.point / f"new-{number}").rmdir()
    mount.umount(mounted)


def _has_channels(number: int) -> None:
    """Wait until TCP and the kernel's file agree: some kernels add channels after mount(2) returned.

    One is connected a moment before it counts.
    """
    becomes((number, number), lambda: (_session().channels, _count(_ESTABLISHED, "remote")), _PATIENCE_S)


def _session() -> SmbSession:
    (found,) = [s for s in parse_debug_data(DEBUG_DATA.read_text()) if str(s.shares).count(SHARE)]
    return found


def _operations() -> SmbOps:
    (found,) = [one for one in parse_stats(STATS.read_text()) if one.share.endswith(SHARE)]
    return found


def _about(mounted: Mounted, *rules: str) -> list[str]:
    return [f"{rule} {mounted.point}" for rule in rules]
