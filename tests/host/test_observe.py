from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.observe import AZURE_TAG, observe_host, observe_superblocks, other_views
from nfstuned.host.system import observe_image
from tests.tree import Tree

HEADER = "NV SERVER   PORT DEV          FSID  FSC\n"


class Host(Tree):
    """A host as files: init and, where asked for, a process of another namespace."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.process("1", 24)

    def process(self, pid: str, first: int, mounts: str = "", volumes: str = "", net: str = "ours") -> None:
        self.write(f"{net}/volumes", HEADER + volumes)
        self.write(
            f"{net}/servers",
            "NV SERVER   PORT USE HOSTNAME\nv4 0a0a0a0a  801   2 sa1.file.core.windows.net\n",
        )
        self.write(f"proc/{pid}/mountinfo", f"{first} 1 254:0 / / rw - ext4 /dev/vda rw\n{mounts}")
        self.link(f"proc/{pid}/net/nfsfs", self.folder / net)

    def bdi(self, device: str, value: str = "128\n") -> None:
        self.write(f"sys/class/bdi/{device}/read_ahead_kb", value)

    def own(self, mounts: str, volumes: str = "") -> None:
        self.write("proc/1/mountinfo", f"24 1 254:0 / / rw - ext4 /dev/vda rw\n{mounts}")
        self.write("ours/volumes", HEADER + volumes)


@pytest.fixture
def tree(tmp_path: Path) -> Host:
    return Host(tmp_path)


def mount(number: int, device: str, point: str, source: str = "sa1.file.core.windows.net:/a") -> str:
    return f"{number} 24 {device} / {point} rw - nfs4 {source} rw,vers=4.1,addr=10.10.10.10\n"


def volume(device: str) -> str:
    return f"v4 0a0a0a0a  801 {device:<12} 0:0                               no \n"


def test_mounts_of_one_device_are_one_superblock(tree: Host) -> None:
    tree.bdi("0:43", "15360\n")
    without_bdi = volume("0:44")
    tree.own(mount(60, "0:43", "/mnt/a") + mount(61, "0:43", "/mnt/bind"), volume("0:43") + without_bdi)
    (superblock,) = observe_superblocks(tree.root, deep=True).superblocks
    assert [m.point for m in superblock.mounts] == ["/mnt/a", "/mnt/bind"]
    assert superblock.read_ahead_kb == 15360
    assert superblock.volume is not None
    assert [server.hostname for server in superblock.servers] == ["sa1.file.core.windows.net"]


def test_a_private_mount_is_found_through_its_process_and_no_copy_is_counted(tree: Host) -> None:
    tree.bdi("0:43")
    tree.bdi("0:44")
    tree.own(mount(60, "0:43", "/mnt/a"), volume("0:43") + volume("0:44"))
    for pid, first in (("200", 90), ("201", 190)):
        copies = mount(first + 1, "0:43", "/mnt/a") + mount(first + 2, "0:44", "/private")
        tree.process(pid, first, copies, volume("0:43") + volume("0:44"))
    for deep, private in ((False, []), (True, ["/private"])):
        superblocks = observe_superblocks(tree.root, deep=deep).superblocks
        assert [[m.point for m in s.mounts] for s in superblocks] == [["/mnt/a"], private]


def test_a_mount_of_another_network_namespace_comes_with_its_own_servers(tree: Host) -> None:
    tree.bdi("0:50")
    tree.process("300", 90, mount(95, "0:50", "/data"), volume("0:50"), net="theirs")
    tree.write("theirs/servers", "NV SERVER   PORT USE HOSTNAME\nv4 0a0a0a0a  801   2 nas\n")
    (superblock,) = observe_superblocks(tree.root, deep=True).superblocks
    assert superblock.volume is not None
    assert [server.hostname for server in superblock.servers] == ["nas"]


def test_a_bad_line_costs_only_itself(tree: Host) -> None:
    tree.bdi("0:43")
    tree.bdi("0:44", "many\n")
    tree.own("x" + mount(60, "0:42", "/bad") + mount(61, "0:43", "/a") + mount(62, "0:44", "/b"))
    snapshot = observe_superblocks(tree.root, deep=False)
    assert [s.read_ahead_kb for s in snapshot.superblocks] == [128, None]
    assert [str(problem) for problem in snapshot.problems] == [
        "/proc/1/mountinfo:2: mount id is not a number: 'x60'",
        "/sys/class/bdi/0:44/read_ahead_kb:1: read-ahead is not a number: 'many'",
    ]


@pytest.mark.parametrize("package", ["aznfs", "azfiles-nfs"])
def test_what_aznfs_puts_in_the_place_of_a_server_is_read_for_each_package(tree: Host, package: str) -> None:
    data, stunnels = f"opt/microsoft/{package}/data", f"etc/stunnel/microsoft/{package}/nfsv4_fileShare"
    tree.write(f"{data}/mountmapv4notls", "sa1.file.core.windows.net 10.161.100.100 52.239.1.2 1a2b\n\nx y\n")
    tree.write(f"{stunnels}/stunnel_1.conf", "[s]\naccept = 127.0.0.1:20049\nconnect = 10.0.0.4:2049\n")
    tree.write(f"{stunnels}/logs.txt", "[x]\naccept = 127.0.0.1:20050\nconnect = 10.0.0.5:2049\n")
    root = tree.root
    tree.own(mount(60, "0:43", "/mnt/a", "nas:/sa1/share"))
    assert observe_superblocks(root, deep=False).tunnels == ()
    tree.own(mount(60, "0:43", "/mnt/a", "10.161.100.100:/sa1/share"))
    seen = observe_superblocks(root, deep=False)
    (proxy,) = seen.tunnels
    assert proxy.host == "sa1.file.core.windows.net"
    assert (proxy.stands_in, proxy.address) == ("10.161.100.100", "52.239.1.2")
    assert [(problem.file, problem.line) for problem in seen.problems] == [(f"/{data}/mountmapv4notls", 3)]
    tree.own(mount(60, "0:43", "/mnt/a", "127.0.0.1:/sa1/share"))
    (tunnel,) = observe_superblocks(root, deep=False).tunnels
    assert (tunnel.port, tunnel.host, tunnel.provider) == (20049, "10.0.0.4", "azure-files")


def test_whose_mount_aznfs_is_installed_is_seen(tree: Host) -> None:
    tree.write("proc/sys/kernel/osrelease", "6.12.0\n")
    root = tree.root
    tree.write("opt/microsoft/aznfs/common.sh", "")
    assert (observe_host(root).azfiles, observe_image(root).azfiles) == (False, False)
    tree.write("opt/microsoft/azfiles-nfs/common.sh", "")
    assert (observe_host(root).azfiles, observe_image(root).azfiles) == (True, True)


def test_a_list_of_aznfs_that_cannot_be_read_is_told_and_nothing_is_decided(tree: Host) -> None:
    (tree.folder / "opt/microsoft/aznfs/data/mountmap").mkdir(parents=True)
    tree.own(mount(60, "0:43", "/mnt/a", "10.161.100.100:/sa1/c"))
    seen = observe_superblocks(tree.root, deep=False)
    assert [fault.file for fault in seen.faults] == ["/opt/microsoft/aznfs/data/mountmap"]


def test_an_azure_vm_is_known_by_its_chassis_and_shows_what_servers_call_themselves(tree: Host) -> None:
    tree.bdi("0:43")
    tree.own(mount(60, "0:43", "/mnt/a", "10.0.0.4:/vol"))
    stanza = "device 10.0.0.4:/vol mounted on /mnt/a with fstype nfs4 statvers=1.1\n\tage:\t4\n"
    tree.write("proc/1/mountstats", stanza)
    root = tree.root
    assert not observe_superblocks(root, deep=False).stats
    tree.write("sys/class/dmi/id/chassis_asset_tag", AZURE_TAG + "\n")
    snapshot = observe_superblocks(root, deep=False)
    assert snapshot.azure
    assert len(snapshot.stats) == 1


def test_each_pair_of_namespaces_is_seen_through_one_process(tree: Host) -> None:
    for pid, mount_id in (("10", 24), ("11", 90), ("12", 90)):
        tree.process(pid, mount_id)
    for pid, mount_id in (("13", 24), ("14", 77)):
        tree.process(pid, mount_id, net="other")
    tree.write("proc/meminfo")
    (tree.folder / "proc/20").mkdir()
    tree.write("proc/22/mountinfo")
    views = list(other_views(tree.root, lambda: None))
    assert [view.folder for view in views] == ["proc/11", "proc/13", "proc/14"]


def test_where_init_shows_nothing_no_process_is_looked_at(tree: Host) -> None:
    (tree.folder / "proc/1/net/nfsfs").unlink()
    tree.write("proc/21/mountinfo", "24 1 254:0 / / rw - ext4 /dev/vda rw\n")
    assert list(other_views(tree.root, lambda: None)) == []


def test_namespaces_of_other_users_are_left_alone(tree: Host) -> None:
    """Whoever makes a user namespace may make any number of bind mounts in it."""
    host = "0 0 4294967295\n"
    for pid, mount_id, users in (("1", 24, host), ("10", 91, "0 1000 1\n"), ("11", 91, host), ("12", 92, "")):
        if pid != "1":
            tree.process(pid, mount_id)
        tree.write(f"proc/{pid}/uid_map", users)
    assert [view.folder for view in other_views(tree.root, lambda: None)] == ["proc/11"]


def test_a_snapshot_has_the_actual_requests_first_and_the_problems_of_every_file(tree: Host) -> None:
    tree.own(mount(60, "0:43", "/mnt/a"))
    tree.write("proc/sys/kernel/osrelease", "6.12.107+deb13-cloud-amd64\n")
    tree.write("etc/fstab", "sa1:/a /mnt/a nfs4 nconnect=4 0 0\nnas:/b /mnt/b\n")
    tree.write(
        "run/mount/utab",
        "SRC=sa1:/a TARGET=/mnt/a ROOT=/ ATTRS=vers=4.1,nconnect=8\nSRC=sa1:/b ATTRS=vers=4.1\n",
    )
    tree.write("proc/1/mountstats", "device nas:/a mounted on /a with fstype nfs4 statvers=1.1\n\tage:\tx\n")
    snapshot = observe_host(tree.root)
    assert snapshot.kernel is not None
    assert [request.file for request in snapshot.requests] == ["/run/mount/utab", "/etc/fstab"]
    files = ["/proc/1/mountstats", "/run/mount/utab", "/etc/fstab"]
    assert [problem.file for problem in snapshot.problems] == files
