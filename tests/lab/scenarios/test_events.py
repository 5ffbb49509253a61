"""The order of the kernel's news of a mount, on which the daemon's short way to a superblock rests."""

from __future__ import annotations

import select
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.events import KernelEvents, MountTable
from nfstuned.host.observe import observe_servers, observe_volumes
from nfstuned.host.root import Root
from nfstuned.parse.proc.mounts import find_volume
from tests.lab.kit.server import ADDRESS, AZURE

if TYPE_CHECKING:
    from typing_extensions import Self

    from nfstuned.model.kernel import NfsClient, Uevent, Volume
    from tests.lab.kit.mounts import Mounts

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]


@dataclass
class Witness:
    """Hears the kernel's events about bdis, and looks at nfsfs at once when one comes."""

    events: list[Uevent] = field(default_factory=list)
    volumes: dict[str, Volume | None] = field(default_factory=dict)
    servers: dict[str, tuple[NfsClient, ...]] = field(default_factory=dict)
    _ended: bool = False

    def __enter__(self) -> Self:
        self._root = Root()
        self._source = KernelEvents()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(0.5)
        self._ended = True
        self._thread.join()
        self._source.close()

    def of(self, action: str) -> list[str]:
        """Return the devices with an event; a bdi of SMB, which the kernel may remove late, is no device."""
        return [event.name for event in self.events if event.action == action and event.name[:2] == "0:"]

    def _listen(self) -> None:
        while not self._ended:
            select.select([self._source], [], [], 0.1)
            while (event := self._source.next()) is not None:
                if event.action == "add":
                    self.volumes[event.name] = find_volume(observe_volumes(self._root), event.name)
                    self.servers[event.name] = observe_servers(self._root)
                self.events.append(event)


# /srv/a is two folders down in the server's pseudo file system, and each one on the way is a superblock.
@pytest.mark.parametrize(("options", "throwaways"), [("vers=3,nolock", 0), ("vers=4.1", 2)])
def test_nfsfs_knows_a_superblock_when_its_bdi_is_announced(
    mount: Mounts, options: str, throwaways: int
) -> None:
    with Witness() as witness:
        Path("/sys/class/net/lo/uevent").write_text("change")
        mounted = mount("a", options)
    assert {event.subsystem for event in witness.events} == {"bdi"}
    assert witness.of("add")[-1] == mounted.device
    assert len(witness.of("add")) == 1 + throwaways, (
        "NFSv4 makes superblocks on the way to the export and drops them"
    )
    assert len(witness.of("remove")) == throwaways
    volume = witness.volumes[mounted.device]
    assert volume is not None
    assert (volume.address, volume.port, volume.device) == (ADDRESS, 2049, mounted.device)
    (server,) = witness.servers[mounted.device]
    assert server.hostname == AZURE
    assert 1 <= server.users <= 1 + throwaways, "each superblock on the way holds the client"


def test_the_same_export_again_is_not_announced_and_an_unmount_is(mount: Mounts) -> None:
    first = mount("a")
    with Witness() as witness:
        second = mount("a")
        assert second.device == first.device
    assert first.device not in witness.of("add")
    mount.umount(second)
    with Witness() as witness:
        mount.umount(first)
    assert first.device in witness.of("remove")


def test_the_mount_table_announces_each_change_once(mount: Mounts) -> None:
    table = MountTable(Root())
    poll = select.epoll()
    poll.register(table, select.EPOLLPRI)
    try:
        assert poll.poll(0) == []
        mounted = mount("a")
        assert poll.poll(5) != []
        assert poll.poll(0) == [], "it is reported once, and need not be read"
        mount.umount(mounted)
        assert poll.poll(5) != []
    finally:
        poll.close()
        table.close()
