"""SMB mounts of a real server: the kernel's figures of their channels, and the findings about them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.model.system import SmbOps, SmbSession
from nfstuned.parse.proc.cifs import parse_debug_data, parse_stats
from tests.lab.kit import smb
from tests.lab.kit.check import ids
from tests.lab.kit.mounts import Mounted, Mounts
from tests.lab.kit.server import ADDRESS, AZURE, Server
from tests.lab.kit.shell import becomes, run

DEBUG_DATA = Path("/proc/fs/cifs/DebugData")
STATS = Path("/proc/fs/cifs/Stats")
GOOD = "vers=3.1.1,actimeo=30"
_SMB = ("--offline", "--select", "SMB6")
_PATIENCE_S = 60.0
pytestmark = [pytest.mark.kernel]


@pytest.fixture(scope="module", autouse=True)
def _module(_server: Server) -> None:
    """The server's addresses and names are there, and the kernel has SMB."""
    _server.start()
    run("modprobe", "cifs")


@pytest.fixture(scope="module")
def samba() -> Iterator[None]:
    """A Samba server that offers any number of channels."""
    with smb.samba():
        yield


@pytest.mark.usefixtures("samba")
def test_a_session_is_understood_its_channels_are_counted_and_too_many_of_them_found(mount: Mounts) -> None:
    for number in (4, 8):
        mounted = smb.mount(mount.new_point(), f"{GOOD},{_channels(number)}")
        _has_channels(number)
        session = _session()
        assert (session.address, session.dialect, session.encrypted) == (ADDRESS, 0x311, False)
        assert session.server in {AZURE, ADDRESS}
        assert rf"\\{AZURE}\{smb.SHARE}" in session.shares
        assert ids(*_SMB) == _about(mounted, *(["SMB602"] if number > 4 else []))
        mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_options_of_a_live_mount_are_judged_as_the_kernel_shows_them(mount: Mounts) -> None:
    mounted = smb.mount(mount.new_point(), "vers=3.0,seal,cache=none,noserverino,actimeo=1")
    found = ["SMB605", "SMB606", "SMB607", "SMB607", "SMB609"]
    assert sorted(ids(*_SMB)) == sorted(_about(mounted, *found))
    mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_requests_of_a_share_are_counted_by_their_kinds(mount: Mounts) -> None:
    mounted = smb.mount(mount.new_point(), f"{GOOD},cache=none")
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


def _channels(number: int) -> str:
    """Return the options for so many; kernels before 5.14 need both."""
    return f"multichannel,max_channels={number}" if number > 1 else "max_channels=1"


def _has_channels(number: int) -> None:
    """Wait until TCP and the kernel's file agree: some kernels add channels after mount(2) returned.

    One is connected a moment before it counts.
    """
    becomes((number, number), lambda: (_session().channels, smb.connections()), _PATIENCE_S)


def _session() -> SmbSession:
    """Return the one session with the share, from the kernel's file."""
    text = DEBUG_DATA.read_text()
    found = [s for s in parse_debug_data(text) if any(name.endswith(smb.SHARE) for name in s.shares)]
    assert len(found) == 1, text
    return found[0]


def _operations() -> SmbOps:
    text = STATS.read_text()
    found = [one for one in parse_stats(text) if one.share.endswith(smb.SHARE)]
    assert len(found) == 1, text
    return found[0]


def _about(mounted: Mounted, *rules: str) -> list[str]:
    return [f"{rule} {mounted.point}" for rule in rules]
