"""Mounts that share a client, and the parsers on each kernel's files about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.observe import observe_host
from nfstuned.host.root import Root
from nfstuned.model.kernel import MountStats, NfsClient
from nfstuned.parse.proc.mounts import parse_clients
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, GENERIC
from tests.lab.kit.shell import CommandError, run

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounted, Mounts

pytestmark = [pytest.mark.kernel, pytest.mark.usefixtures("quiet_udev")]
V6 = "fd00::10"


def test_each_version_has_a_client_and_connections_of_its_own(mount: Mounts) -> None:
    three = mount("a", "vers=3,nolock")
    four = mount("a", "vers=4.1,nconnect=4")
    two = mount("a", "vers=4.2")
    assert len(_servers()) == 3
    assert [len(one.stats.transports) for one in (three, four, two)] == [1, 4, 1]


def test_a_client_keeps_the_name_of_its_first_mount(mount: Mounts) -> None:
    mount("a")
    mount("b", host=AZURE_2)
    assert [server.hostname for server in _servers()] == [AZURE]


def test_below_a_root_that_another_name_mounted_the_source_is_that_name(mount: Mounts) -> None:
    # Both addresses are one server to NFSv4.1 and later, whose root's superblock the second mount walks down.
    root = mount.new_point()
    run("mount", "-t", "nfs", "-o", "vers=4.2", f"{AZURE}:/", str(root))
    second = mount("b", host=GENERIC)
    shown = [one for one in observe_host(Root()).superblocks if one.device == second.device]
    assert [one.mounts[0].source for one in shown] == [f"{AZURE}:/srv/b"]
    assert second.options["addr"] == ADDRESS


def test_mounts_of_one_client_show_the_same_connections_and_of_one_superblock_the_same_bytes(
    mount: Mounts,
) -> None:
    first, again = mount("a", "vers=4.1,nconnect=4"), mount("a", "vers=4.1,nconnect=4")
    other = mount("b", "vers=4.1,nconnect=4")
    (first.point / "file").write_bytes(b"x" * 100_000)
    assert first.stats.transports == other.stats.transports
    assert sum(one.sends for one in first.stats.transports) > 0
    assert first.stats.bytes == again.stats.bytes
    assert _written(again) >= 100_000
    assert _written(other) == 0
    mount.umount(first)
    mount.umount(again)
    assert _written(mount("a", "vers=4.1,nconnect=4")) == 0, "a new superblock begins at zero"


def test_reads_are_counted_as_read_or_as_read_plus(mount: Mounts) -> None:
    Path("/srv/a/file").write_bytes(b"x" * 100_000)
    mounted = mount("a", "vers=4.2")
    (mounted.point / "file").read_bytes()
    ops = mounted.stats.ops
    assert sum(ops[name].ops for name in ("READ", "READ_PLUS") if name in ops) > 0, dict(ops)


def test_two_addresses_of_one_server_are_one_client_with_the_first_ones_name_and_address(
    mount: Mounts,
) -> None:
    mount("a", "vers=4.2")
    second = mount("b", "vers=4.2", host=GENERIC)
    (shown,) = [m for s in observe_host(Root()).superblocks for m in s.mounts if m.point == str(second.point)]
    # 5.10 also shows the first mount's name as the source; newer kernels show the one that was asked for.
    assert shown.source in {f"{AZURE}:/srv/b", f"{GENERIC}:/srv/b"}
    assert shown.options.get("addr") == ADDRESS
    assert [server.hostname for server in _servers()] == [AZURE]


def test_a_mount_by_ipv6_may_join_one_by_ipv4(mount: Mounts) -> None:
    run("ip", "address", "replace", f"{V6}/128", "dev", "lo")
    first = mount("a", "vers=4.2")
    second = mount("b", "vers=4.2", host=f"[{V6}]")
    (shown,) = [m for s in observe_host(Root()).superblocks for m in s.mounts if m.point == str(second.point)]
    trunked = shown.options.get("addr") == first.options["addr"]
    assert trunked or shown.options.get("addr") == V6, shown
    assert any(server.address == V6 for server in _servers()) is not trunked


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
def test_the_address_as_ipv6_and_another_host_name_give_connections_of_ones_own(
    mount: Mounts, version: str
) -> None:
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
    assert len(_servers()) == 1


def test_no_option_keeps_a_mount_out_of_a_group(mount: Mounts) -> None:
    for option in ("nosharetransport", "sharetransport=2"):
        with pytest.raises(CommandError):
            _second(mount, "4.1", f"{PLAIN},{option}", "another")


def test_the_parsers_understand_all_that_this_kernel_writes(mount: Mounts) -> None:
    run("ip", "address", "replace", f"{V6}/128", "dev", "lo")
    mounts = [mount("a", "vers=3,nolock"), mount("a", "vers=4.1,nconnect=4"), mount("b", "vers=4.2")]
    mounts += [mount("c", "vers=4.0"), mount("d", "vers=3,nolock", host=f"[{V6}]")]
    snapshot = observe_host(Root())
    assert snapshot.problems == ()
    assert {m.point for s in snapshot.superblocks for m in s.mounts} >= {str(m.point) for m in mounts}
    assert all(s.volume is not None and s.bdi is not None for s in snapshot.superblocks)
    assert {request.point for request in snapshot.requests} >= {str(m.point) for m in mounts}


def _servers() -> list[NfsClient]:
    rows = parse_clients(Path("/proc/fs/nfsfs/servers").read_text())
    assert not [row for row in rows if isinstance(row, ParseError)]
    return [row for row in rows if isinstance(row, NfsClient)]


def _written(mounted: Mounted) -> int:
    counted = mounted.stats.bytes
    assert counted is not None
    return counted.normal_written
