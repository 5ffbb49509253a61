"""A second mount of the same folder, with connections of its own: whether there can be one, and its options.

The first mount of a transport group decides nconnect for all that join it, and no option of a mainline kernel
keeps a mount out of a group. But to the kernel (fs/nfs/client.c, nfs_match_client) an IPv4 address and the
same address written as IPv6 (::ffff:192.0.2.1, RFC 4291) differ, while the packets to both are IPv4: to the
same server, by the same way, past the same firewalls. NFSv4.1 also asks the server whether it knows this
client by the machine's name (nfs4_discover_server_trunking): so host/bench/guard.py first sets another name.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address

from nfstuned.core.samples.rates import sends_between
from nfstuned.model.bench import OwnMount
from nfstuned.model.kernel import Mount
from nfstuned.model.samples import Look

_USED_PART = 0.1
"""A connection counts as used from this part of an equal share of the requests on."""
_LEFT_OUT = frozenset(
    {
        # Flags of mount(2), or of the mount alone.
        *("ro", "rw", "sync", "dirsync", "lazytime", "mand"),
        # Labels of files: the jobs run as root, and the labels of the two mounts need not be alike.
        *("seclabel", "context", "fscontext", "defcontext", "rootcontext"),
        # Options that are replaced, or lead to other servers' addresses or to a cache on a disk.
        *("addr", "proto", "nconnect", "max_connect", "trunkdiscovery", "notrunkdiscovery", "fsc"),
        # Nothing locks a file here, and without locks NFSv3 needs no rpc.statd.
        *("local_lock", "lock", "nolock"),
        # The server's own limit.
        "namlen",
    }
)


def own_mount_obstacle(mount: Mount) -> str:
    """Return why a mount can have no second one with connections of its own, "" where it can."""
    shown = mount.options
    protocol, address = shown.get("proto"), shown.get("addr")
    if protocol not in {"tcp", "tcp6"}:
        return f"its protocol is {protocol or 'not shown'}, and only TCP connections are compared"
    try:
        IPv4Address(address or "")
    except AddressValueError:
        return (
            f"its server's address is {address or 'not shown'}: mounts of one address share their "
            "connections, and only an IPv4 address has a second notation"
        )
    if shown.get("vers") is None:
        return "the kernel does not show its version of NFS"
    return ""


def own_mount(mount: Mount, connections: int) -> OwnMount:
    """Return the arguments of a mount like `mount`, which has no obstacle, but with its own connections."""
    options = [text for text in mount.options.texts if text.partition("=")[0] not in _LEFT_OUT]
    if (mount.options.get("vers") or "").startswith("3"):
        options.append("nolock")
    options += ["proto=tcp6", f"nconnect={connections}", f"addr=::ffff:{mount.options.get('addr')}"]
    return OwnMount(mount.source, mount.fstype, ",".join(options), synchronous="sync" in mount.options)


def compared_connections(asked: int | None, present: int | None, target: int | None) -> int | None:
    """Return the first number above 1, with which one connection is compared; None without such a number."""
    return next((number for number in (asked, present, target) if number is not None and number > 1), None)


def wrong_connections(wanted: int | None, before: Look, after: Look) -> str:
    """Return why a run was not made with the connections of its setting, "" where it was."""
    if wanted is None:
        return ""
    # Both looks hold the measured superblock alone.
    sends = next(iter(sends_between(before, after).values()), None)
    if sends is None:
        return "the kernel does not show the requests of its connections"
    used = used_connections(sends)
    return "" if used == wanted else f"connections used by its requests: {used} instead of {wanted}"


def used_connections(sends: tuple[int, ...]) -> int:
    """Return the number of connections that carried requests."""
    least = _USED_PART * sum(sends) / len(sends) if sends else 0
    return sum(each > 0 and each >= least for each in sends)
