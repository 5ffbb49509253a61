"""SMB mounts of a real server: what the kernel tells of their channels, and what a check says of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.parse.proc.cifs import parse_debug_data, parse_stats
from tests.lab.kit import smb
from tests.lab.kit.check import ids
from tests.lab.kit.expect import becomes
from tests.lab.kit.server import ADDRESS, AZURE
from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfstuned.model.facts import SmbOps, SmbSession
    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

DEBUG_DATA = Path("/proc/fs/cifs/DebugData")
STATS = Path("/proc/fs/cifs/Stats")
GOOD = "vers=3.1.1,actimeo=30"
CHANNELS = (1, 4, 8)
_SMB = ("--offline", "--select", "SMB6")
_PATIENCE_S = 60.0
_LATE_S = 5.0
"""Channels that come after mount(2) come within this."""
pytestmark = [pytest.mark.kernel]


@pytest.fixture(scope="module", autouse=True)
def _module(_server: Server) -> None:
    """The server's addresses and names are there, and the kernel has SMB."""
    _server.start()
    run("modprobe", "cifs")


@pytest.fixture
def samba() -> Iterator[None]:
    """A Samba server that offers any number of channels."""
    with smb.samba():
        yield


@pytest.mark.usefixtures("samba")
@pytest.mark.parametrize("number", CHANNELS)
def test_channels_are_counted_and_judged(number: int, mount: Mounts) -> None:
    mounted = smb.mount(mount.new_point(), f"{GOOD},{_channels(number)}")
    _has_channels(number)
    assert ids(*_SMB) == _about(mounted, *(["SMB602"] if number > 4 else []))
    mount.umount(mounted)


@pytest.mark.usefixtures("samba")
@pytest.mark.parametrize("host", [AZURE, ADDRESS])
def test_the_session_is_understood(host: str, mount: Mounts) -> None:
    mounted = smb.mount(mount.new_point(), GOOD, host=host)
    session = _session()
    assert (session.address, session.dialect, session.encrypted) == (ADDRESS, 0x311, False)
    assert session.server in {host, ADDRESS}
    assert rf"\\{host}\{smb.SHARE}" in session.shares
    mount.umount(mounted)


def test_channels_that_the_server_does_not_offer_are_missed(mount: Mounts) -> None:
    with smb.samba(rss=False):
        mounted = smb.mount(mount.new_point(), f"{GOOD},{_channels(4)}")
        assert mounted.options["max_channels"] == "4"
        _has_at_most(2)
        assert ids(*_SMB) == _about(mounted, "SMB604")
        mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_options_of_a_live_mount_are_judged_as_the_kernel_shows_them(mount: Mounts) -> None:
    mounted = smb.mount(mount.new_point(), "vers=3.0,seal,cache=none,noserverino,actimeo=1")
    found = ["SMB605", "SMB606", "SMB607", "SMB607", "SMB609"]
    assert sorted(ids(*_SMB)) == sorted(_about(mounted, *found))
    mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_another_vendors_server_is_not_held_to_azures_numbers(mount: Mounts) -> None:
    mounted = smb.mount(mount.new_point(), f"vers=3.0,actimeo=1,{_channels(8)}", host=ADDRESS)
    _has_channels(8)
    assert ids(*_SMB) == []
    mount.umount(mounted)


@pytest.mark.usefixtures("samba")
def test_requests_of_a_share_are_counted_by_what_they_are_for(mount: Mounts) -> None:
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
    """Wait until TCP and the kernel's file say so: some kernels add channels after mount(2) returned.

    One is connected a moment before it counts.
    """
    becomes((number, number), lambda: (_session().channels, smb.connections()), _PATIENCE_S)


def _has_at_most(number: int) -> None:
    """See for a while that there are no more: the first alone, or a second on Linux 6.1."""
    end = time.monotonic() + _LATE_S
    while time.monotonic() < end:
        assert max(_session().channels, smb.connections()) <= number
        time.sleep(0.1)


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
