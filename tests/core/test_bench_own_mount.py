"""A second mount with connections of its own: which mounts can have it, and how it is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.bench.connections import compared_connections, own_mount, own_mount_obstacle
from nfstuned.model.kernel import Mount
from nfstuned.parse.proc.mountinfo import parse_mountinfo

V41 = (
    "36 27 0:46 / /data rw,noatime shared:9 - nfs4 sa1.file.core.windows.net:/sa1/share rw,vers=4.1,"
    "rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp,nconnect=4,timeo=600,retrans=2,"
    "sec=sys,clientaddr=10.0.0.5,local_lock=none,addr=10.0.0.4\n"
)
V3 = (
    "37 27 0:47 / /data rw shared:9 - nfs anf:/vol1 rw,sync,vers=3,rsize=262144,wsize=262144,namlen=255,hard,"
    "nocto,proto=tcp,port=2050,timeo=600,retrans=2,sec=sys,mountaddr=10.1.2.4,mountvers=3,mountport=635,"
    "mountproto=udp,fsc,local_lock=all,addr=10.1.2.4\n"
)


def mount(line: str) -> Mount:
    (parsed,) = parse_mountinfo(line)
    assert isinstance(parsed, Mount)
    return parsed


def changed(old: str, new: str) -> Mount:
    assert old in V41
    return mount(V41.replace(old, new))


def test_it_has_the_mounts_options_and_another_way_to_write_the_address() -> None:
    own = own_mount(mount(V41), 1)
    assert (own.source, own.fstype, own.synchronous) == (
        "sa1.file.core.windows.net:/sa1/share",
        "nfs4",
        False,
    )
    assert own.options == (
        "vers=4.1,rsize=1048576,wsize=1048576,hard,noresvport,timeo=600,retrans=2,sec=sys,"
        "clientaddr=10.0.0.5,proto=tcp6,nconnect=1,addr=::ffff:10.0.0.4"
    )


def test_of_nfs3_it_has_no_locks_and_asks_the_same_mountd() -> None:
    own = own_mount(mount(V3), 8)
    assert own.synchronous
    assert own.options == (
        "vers=3,rsize=262144,wsize=262144,hard,nocto,port=2050,timeo=600,retrans=2,sec=sys,"
        "mountaddr=10.1.2.4,mountvers=3,mountport=635,mountproto=udp,nolock,proto=tcp6,nconnect=8,"
        "addr=::ffff:10.1.2.4"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (mount(V41), ""),
        (mount(V3), ""),
        (changed("addr=10.0.0.4", "addr=127.0.0.1"), ""),
        (changed("addr=10.0.0.4", "addr=fd00::4"), "address is fd00::4"),
        (changed("addr=10.0.0.4", "addr=::ffff:10.0.0.4"), "address is ::ffff:10.0.0.4"),
        (changed(",addr=10.0.0.4", ""), "address is not shown"),
        (changed("proto=tcp", "proto=rdma"), "protocol rdma"),
        (changed("proto=tcp", "proto=udp"), "protocol udp"),
        (changed("vers=4.1,", ""), "version"),
    ],
)
def test_what_can_have_none_is_said_with_its_reason(line: Mount, said: str) -> None:
    reason = own_mount_obstacle(line)
    assert said in reason
    assert bool(said) == bool(reason)


def test_an_address_that_is_hidden_from_fstab_counts_not_the_name() -> None:
    """A tunnel's mount goes to this machine, whatever its source is called."""
    tunnel = replace(mount(V41.replace("addr=10.0.0.4", "port=20049,addr=127.0.0.1")), source="127.0.0.1:/s")
    assert own_mount(tunnel, 4).options.endswith("port=20049,proto=tcp6,nconnect=4,addr=::ffff:127.0.0.1")


@pytest.mark.parametrize(
    ("asked", "present", "target", "most"),
    [
        (None, 4, 8, 4),
        (None, 1, 8, 8),
        (None, None, 8, 8),
        (None, 1, None, None),
        (None, 1, 1, None),
        (16, 4, 8, 16),
    ],
)
def test_one_connection_is_compared_with_those_asked_for_those_there_or_the_profiles(
    asked: int | None, present: int | None, target: int | None, most: int | None
) -> None:
    assert compared_connections(asked, present, target) == most
