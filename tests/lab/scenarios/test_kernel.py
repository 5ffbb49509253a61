"""The kernel's facts without the daemon: superblocks, read-ahead, events, and clients that mounts share."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nfstuned.host.events import KernelEvents, MountTable, Writes
from nfstuned.host.observe import observe_host, observe_servers, observe_volumes
from nfstuned.host.root import Root
from nfstuned.model.kernel import MountStats, NfsClient, Uevent, Volume
from nfstuned.parse.proc.mounts import find_volume
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.mounts import BDI, Mounted, Mounts, nfs_clients, set_read_ahead_kb
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, GENERIC
from tests.lab.kit.shell import CommandError, becomes, run

pytestmark = [pytest.mark.kernel, pytest.mark.newest, pytest.mark.usefixtures("quiet_udev")]

VERSIONS = ("vers=3,nolock", "vers=4.1,nconnect=4", "vers=4.2")


def test_no_timer_ends_a_time_slice() -> None:
    """Before Linux 5.13 the file has another place, and the feature was off."""
    features = Path("/sys/kernel/debug/sched/features")
    assert not features.exists() or "NO_HRTICK" in features.read_text().split()


@pytest.mark.parametrize("options", VERSIONS)
def test_a_mount_gets_128_kib_from_the_kernel_and_carries_data(mount: Mounts, options: str) -> None:
    mounted = mount("a", options)
    assert mounted.read_ahead_kb == 128
    (mounted.point / "file").write_bytes(b"x" * 100_000)
    assert Path("/srv/a/file").read_bytes() == b"x" * 100_000


@pytest.mark.parametrize("version", ["vers=3,nolock", "vers=4.1"])
def test_mount_2_without_mount_nfs_needs_an_address_and_refuses_options_of_mount_8(
    mount: Mounts, version: str
) -> None:
    """As Docker mounts its volumes."""
    call = ctypes.CDLL(None, use_errno=True).mount

    def mounted(options: str) -> int:
        point = mount.new_point()
        if call(f"{AZURE}:/srv/a".encode(), bytes(point), b"nfs", 0, f"{version}{options}".encode()):
            return ctypes.get_errno()
        run("umount", str(point))
        return 0

    assert mounted(f",addr={ADDRESS}") == 0
    others = ("_netdev", "auto", "noauto", "nofail", "user", "users", "comment=a", "x-systemd.automount")
    refused = {option: mounted(f",addr={ADDRESS},{option}") for option in others}
    assert mounted("") == errno.EINVAL
    assert refused == dict.fromkeys(others, errno.EINVAL)


def test_shares_are_separate_superblocks_and_a_share_again_or_bound_is_the_same_one(mount: Mounts) -> None:
    mounted = mount("a")
    assert mount("b").device != mounted.device
    assert mount("a").device == mounted.device
    assert mount.bind(mounted).device == mounted.device


def test_a_device_number_is_reused_at_once_and_its_bdi_is_another_inode(mount: Mounts) -> None:
    first = mount("a")
    inode = _inode(first)
    mount.umount(first)
    second = mount("b")
    assert second.device == first.device
    assert _inode(second) != inode


def test_the_first_mount_decides_nconnect_and_no_remount_changes_it(mount: Mounts) -> None:
    first = mount("a", "vers=4.1,nconnect=4")
    later = mount("b", "vers=4.1,nconnect=8", host=AZURE_2)
    assert (first.options["nconnect"], later.options["nconnect"]) == ("4", "4")
    rows = [row for row in Path("/run/mount/utab").read_text().splitlines() if f"TARGET={later.point}" in row]
    assert len(rows) == 1
    assert "ATTRS=vers=4.1,nconnect=8" in rows[0], "utab keeps the requested number"
    run("mount", "-o", "remount,nconnect=8", str(first.point))
    assert first.options["nconnect"] == "4"


def _inode(mounted: Mounted) -> int:
    """The directory behind the link in /sys/class/bdi: a new device has a new one."""
    return (BDI / mounted.device).stat().st_ino


FILE_BYTES = 8 << 20
CHUNK = 4096


def test_the_kernel_keeps_whole_pages_has_no_upper_bound_and_refuses_other_texts(mount: Mounts) -> None:
    mounted = mount("a")
    for written, kept in ((1, 0), (5, 4), (1023, 1020), (4294967296, 4294967296)):
        set_read_ahead_kb(mounted.device, written)
        assert mounted.read_ahead_kb == kept
    for text in ("-1", "abc", "0x10", " 8"):
        with pytest.raises(OSError, match="Invalid argument") as caught:
            (BDI / mounted.device / "read_ahead_kb").write_text(text)
        assert caught.value.errno == errno.EINVAL
    assert mounted.read_ahead_kb == kept


def test_a_remount_keeps_the_value_and_the_bdis_inode(mount: Mounts) -> None:
    mounted = mount("a")
    before = _inode(mounted)
    set_read_ahead_kb(mounted.device, 15360)
    run("mount", "-o", "remount,ro,noatime", str(mounted.point))
    mount("b")
    assert (mounted.read_ahead_kb, _inode(mounted)) == (15360, before)


def test_an_open_file_keeps_the_value_that_it_was_opened_with(mount: Mounts) -> None:
    Path("/srv/a/large").write_bytes(os.urandom(FILE_BYTES))
    mounted = mount("a", "vers=3,nolock,rsize=1048576")
    set_read_ahead_kb(mounted.device, 16)
    before = (mounted.point / "large").open("rb", buffering=0)
    set_read_ahead_kb(mounted.device, 4096)
    with before, (mounted.point / "large").open("rb", buffering=0) as after:
        old, new = _reads(mounted, before.fileno()), _reads(mounted, after.fileno())
    assert old > 4 * new, f"{old} READs through the old descriptor, {new} through the new one"


def test_an_open_bdi_of_a_superblock_that_is_gone_answers_enodev(mount: Mounts) -> None:
    first = mount("a")
    fd = os.open(BDI / first.device / "read_ahead_kb", os.O_RDWR)
    try:
        mount.umount(first)
        second = mount("b")
        assert second.device == first.device
        for use in (lambda: os.pread(fd, 64, 0), lambda: os.pwrite(fd, b"512", 0)):
            with pytest.raises(OSError, match="No such device"):
                use()
        assert second.read_ahead_kb == 128
    finally:
        os.close(fd)


@pytest.mark.parametrize("options", ["vers=3,nolock", "vers=4.2"])
def test_a_write_by_anybody_is_an_inotify_event(mount: Mounts, options: str) -> None:
    mounted = mount("a", options)
    path = f"/sys/devices/virtual/bdi/{mounted.device}/read_ahead_kb"
    writes = Writes(Root())
    try:
        writes.watch(mounted.device, Path(path).stat().st_ino)
        assert writes.drain() == set()
        for command in (
            ["sh", "-c", f"echo 512 >{path}"],
            ["unshare", "--mount", "sh", "-c", f"echo 640 >{path}"],
            ["sh", "-c", f"echo 3 >/proc/sys/vm/drop_caches; echo 768 >{path}"],
        ):
            run(*command)
            becomes({mounted.device}, writes.drain, 5)
        (BDI / mounted.device / "read_ahead_kb").read_text()
        assert writes.drain() == set()
        mount.umount(mounted)
        writes.forget(mounted.device, None)
        again = mount("a", options)
        set_read_ahead_kb(again.device, 512)
        assert writes.drain() == set(), "a forgotten device is still reported"
    finally:
        writes.close()


def _reads(mounted: Mounted, fd: int) -> int:
    """Read the whole file in small steps and return how many READs that took."""
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    before = mounted.reads
    while os.read(fd, CHUNK):
        pass
    return mounted.reads - before


@dataclass
class Witness:
    """The kernel's events about bdis, and nfsfs as it is when one of them arrives."""

    events: list[Uevent] = field(default_factory=list)
    volumes: dict[str, Volume | None] = field(default_factory=dict)
    servers: dict[str, tuple[NfsClient, ...]] = field(default_factory=dict)

    def of(self, action: str) -> list[str]:
        """Return the devices with an event; a bdi of SMB, which the kernel may remove late, is no device."""
        return [event.name for event in self.events if event.action == action and event.name[:2] == "0:"]

    def listen(self, source: KernelEvents, over: threading.Event) -> None:
        root = Root()
        while not over.is_set():
            select.select([source], [], [], 0.1)
            while (event := source.next()) is not None:
                if event.action == "add":
                    self.volumes[event.name] = find_volume(observe_volumes(root), event.name)
                    self.servers[event.name] = observe_servers(root)
                self.events.append(event)


@contextlib.contextmanager
def witness() -> Iterator[Witness]:
    """Listen in a thread while the block runs, and half a second longer."""
    found, source, over = Witness(), KernelEvents(), threading.Event()
    thread = threading.Thread(target=found.listen, args=(source, over))
    thread.start()
    try:
        yield found
        time.sleep(0.5)
    finally:
        over.set()
        thread.join()
        source.close()


# /srv/a is two folders down in the server's pseudo file system, and each one on the way is a superblock.
@pytest.mark.parametrize(("options", "throwaways"), [("vers=3,nolock", 0), ("vers=4.1", 2)])
def test_nfsfs_has_a_superblock_as_its_bdi_is_announced(mount: Mounts, options: str, throwaways: int) -> None:
    with witness() as seen:
        Path("/sys/class/net/lo/uevent").write_text("change")
        mounted = mount("a", options)
    assert {event.subsystem for event in seen.events} == {"bdi"}
    assert seen.of("add")[-1] == mounted.device
    assert len(seen.of("add")) == 1 + throwaways, (
        "NFSv4 makes superblocks on the way to the export and drops them"
    )
    assert len(seen.of("remove")) == throwaways
    volume = seen.volumes[mounted.device]
    assert volume is not None
    assert (volume.address, volume.port, volume.device) == (ADDRESS, 2049, mounted.device)
    (server,) = seen.servers[mounted.device]
    assert server.hostname == AZURE
    assert 1 <= server.users <= 1 + throwaways, "each superblock on the way holds the client"


def test_the_same_export_again_is_not_announced_and_an_unmount_is(mount: Mounts) -> None:
    first = mount("a")
    with witness() as seen:
        second = mount("a")
        assert second.device == first.device
    assert first.device not in seen.of("add")
    mount.umount(second)
    with witness() as seen:
        mount.umount(first)
    assert first.device in seen.of("remove")


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


V6 = "fd00::10"


def test_each_version_has_a_client_and_connections_of_its_own(mount: Mounts) -> None:
    three = mount("a", "vers=3,nolock")
    four = mount("a", "vers=4.1,nconnect=4")
    two = mount("a", "vers=4.2")
    assert len(nfs_clients()) == 3
    assert [len(one.stats.transports) for one in (three, four, two)] == [1, 4, 1]


def test_a_client_keeps_the_name_of_its_first_mount(mount: Mounts) -> None:
    mount("a")
    mount("b", host=AZURE_2)
    assert [server.hostname for server in nfs_clients()] == [AZURE]


def test_below_a_root_that_another_name_mounted_the_source_is_that_name(mount: Mounts) -> None:
    # Both addresses are one server to NFSv4.1 and later: the second mount walks down the root's superblock.
    root = mount.new_point()
    run("mount", "-t", "nfs", "-o", "vers=4.2", f"{AZURE}:/", str(root))
    second = mount("b", host=GENERIC)
    shown = [one for one in observe_host(Root()).superblocks if one.device == second.device]
    assert [one.mounts[0].source for one in shown] == [f"{AZURE}:/srv/b"]
    assert second.options["addr"] == ADDRESS


def test_mounts_of_a_client_show_the_same_connections_and_of_a_superblock_equal_bytes(mount: Mounts) -> None:
    first, again = mount("a", "vers=4.1,nconnect=4"), mount("a", "vers=4.1,nconnect=4")
    other = mount("b", "vers=4.1,nconnect=4")
    (first.point / "file").write_bytes(b"x" * 100_000)
    # The client may send a request of its own between two looks.
    looks = [[one.sends for one in each.stats.transports] for each in (first, other, first)]
    assert all(least <= sent <= most for least, sent, most in zip(*looks, strict=True))
    assert sum(looks[0]) > 0
    assert first.stats.bytes == again.stats.bytes
    assert _written(again) >= 100_000
    assert _written(other) == 0
    mount.umount(first)
    mount.umount(again)
    assert _written(mount("a", "vers=4.1,nconnect=4")) == 0, "a new superblock begins at zero"


def test_two_addresses_of_a_server_are_one_client_with_the_first_name_and_address(mount: Mounts) -> None:
    mount("a", "vers=4.2")
    second = mount("b", "vers=4.2", host=GENERIC)
    (shown,) = [m for s in observe_host(Root()).superblocks for m in s.mounts if m.point == str(second.point)]
    # 5.10 also shows the first mount's name as the source; newer kernels show the one that was asked for.
    assert shown.source in {f"{AZURE}:/srv/b", f"{GENERIC}:/srv/b"}
    assert shown.options.get("addr") == ADDRESS
    assert [server.hostname for server in nfs_clients()] == [AZURE]


def test_a_mount_by_ipv6_may_join_one_by_ipv4(mount: Mounts) -> None:
    run("ip", "address", "replace", f"{V6}/128", "dev", "lo")
    first = mount("a", "vers=4.2")
    second = mount("b", "vers=4.2", host=f"[{V6}]")
    (shown,) = [m for s in observe_host(Root()).superblocks for m in s.mounts if m.point == str(second.point)]
    trunked = shown.options.get("addr") == first.options["addr"]
    assert trunked or shown.options.get("addr") == V6, shown
    assert any(server.address == V6 for server in nfs_clients()) is not trunked


MAPPED = f"proto=tcp6,addr=::ffff:{ADDRESS}"
PLAIN = f"proto=tcp,addr={ADDRESS}"
_SECOND = """
hostname "$1" && mount -i -t "$2" -o "$3" "$4" "$5" && stat --file-system "$5" >/dev/null &&
grep -A 1000 " $5 with fstype" /proc/self/mountstats && umount "$5"
"""


def _second(mount: Mounts, version: str, way: str, name: str) -> int:
    """Return the connections of a second mount with nconnect=1, made past mount.nfs and under a host name."""
    fstype, more = ("nfs", "nolock,mountproto=tcp,") if version == "3" else ("nfs4", "")
    options = f"vers={version},{more}sec=sys,nconnect=1,{way}"
    if way == MAPPED and version == "3":
        options += f",mountaddr={ADDRESS}"
    argv = ["unshare", "--mount", "--uts", "--propagation", "slave", "sh", "-c", _SECOND, "sh", name, fstype]
    text = run(*argv, options, f"{AZURE}:/srv/b", str(mount.new_point()), timeout=150)
    (stats,) = [one for one in parse_mountstats(text) if isinstance(one, MountStats)]
    return len(stats.transports)


@pytest.mark.parametrize(
    "version",
    [
        "3",
        "4.1",
        pytest.param("4.0", marks=pytest.mark.release),
        pytest.param("4.2", marks=pytest.mark.release),
    ],
)
def test_ipv6_and_another_host_name_give_connections_of_their_own(mount: Mounts, version: str) -> None:
    first = mount("a", f"vers={version},nconnect=4" + (",nolock" if version == "3" else ""))
    counts = {
        "both": _second(mount, version, MAPPED, "another"),
        "the address": _second(mount, version, MAPPED, os.uname().nodename),
        "the name": _second(mount, version, PLAIN, "another"),
    }
    print(f"\n  v{version}: {counts}")
    assert counts["both"] == 1
    assert counts["the name"] == 4
    if version in {"4.1", "4.2"}:
        # The server knows the client by its name, and the kernel joins the group that it is of.
        assert counts["the address"] == 4
    assert len(first.stats.transports) == 4
    assert len(nfs_clients()) == 1


def test_no_option_keeps_a_mount_out_of_a_group(mount: Mounts) -> None:
    for option in ("nosharetransport", "sharetransport=2"):
        with pytest.raises(CommandError):
            _second(mount, "4.1", f"{PLAIN},{option}", "another")


def _written(mounted: Mounted) -> int:
    counted = mounted.stats.bytes
    assert counted is not None
    return counted.normal_written
