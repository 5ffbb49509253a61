"""The connections of NFS superblocks in sysfs (net/sunrpc/sysfs.c, fs/nfs/sysfs.c): no mount is touched.

/sys/fs/nfs has a folder a superblock since Linux 6.5; its link `nfs_client` leads to the RPC client, and that
client's link `switch` to the connections, which all superblocks of a transport group share.

debugfs has the requests that a client waits for, where the kernel is not locked down.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from nfstuned.host.root import Root
from nfstuned.model.connections import SwitchSeen, Xprt
from nfstuned.model.stalls import Requests, RpcRequest
from nfstuned.parse.proc.sunrpc import (
    parse_endpoint,
    parse_requests,
    parse_switch_info,
    parse_transport_info,
    parse_transport_name,
    parse_transport_state,
)

SWITCHES = "sys/kernel/sunrpc/xprt-switches"
_CLIENTS = "sys/kernel/sunrpc/rpc-clients"
_CLIENT, _SWITCH = re.compile(r"clnt-[0-9]{1,10}"), re.compile(r"switch-[0-9]{1,10}")
_FOLDER = "xprt-"
_REQUESTS = "sys/kernel/debug/sunrpc/rpc_clnt"
_SUPERBLOCKS = "sys/fs/nfs"
_CLIENTS_OF = ("nfs_client", "nfsacl_client", "nfs_state_client")
"""A superblock's own, and that of the lease, which it shares with others of its server (fs/nfs/sysfs.c)."""
_GOING = frozenset({errno.ENOENT, errno.EINVAL, errno.EIO})
"""What opening or reading a client's file says once nobody uses the client (net/sunrpc/debugfs.c, tasks_open;
fs/debugfs/file.c)."""
_PAGE = 65536
"""In bytes, of a single read: the kernel gives a page of them at most, a client's oldest requests first."""


def switch_name(root: Root, device: str) -> str | None:
    """Return the folder of a superblock's connections; None where the kernel does not tell it."""
    client = posixpath.basename(root.link(f"sys/fs/nfs/{device}/nfs_client") or "")
    if not _CLIENT.fullmatch(client):
        return None
    name = posixpath.basename(root.link(f"{_CLIENTS}/{client}/switch") or "")
    return name if _SWITCH.fullmatch(name) else None


def observe_switch(root: Root, device: str) -> SwitchSeen | None:
    """Return a superblock's connections; None where the kernel does not tell. Raises ParseError."""
    name = switch_name(root, device)
    if name is None:
        return None
    folder = f"{SWITCHES}/{name}"
    file = f"{folder}/xprt_switch_info"
    text = root.read_or_empty(file)
    if not text:
        return None
    xprts = (xprt for xprt in root.names(folder) if xprt.startswith(_FOLDER))
    return SwitchSeen(
        name,
        parse_switch_info(text, root.shown(file)),
        tuple(_xprt(root, folder, xprt) for xprt in xprts),
        grows=root.exists(f"{folder}/add_xprt"),
    )


def _xprt(root: Root, folder: str, name: str) -> Xprt:
    state, info = f"{folder}/{name}/xprt_state", f"{folder}/{name}/xprt_info"
    values = parse_transport_info(root.read_or_empty(info), root.shown(info))
    return Xprt(
        name,
        parse_transport_name(name, root.shown(f"{folder}/{name}"))[1],
        parse_transport_state(root.read_or_empty(state), root.shown(state)),
        values.get("src_port"),
        values.get("tasks_queuelen"),
    )


def observe_requests(root: Root, devices: Iterable[str]) -> Requests | None:
    """Return the requests that are under way on this machine; None where debugfs does not show them.

    It does not in a kernel that is locked down (Secure Boot), or without rights. No server is asked. Raises
    ParseError for what is no list of tasks.
    """
    try:
        with root.watched():
            names = root.listing(_REQUESTS)
            requests = [request for name in names for request in _requests(root, name)]
    except OSError:
        return None
    waiting = tuple(request for request in requests if request.xid)
    queued = tuple(request for request in requests if not request.xid)
    return Requests(waiting, _clients(root, devices) if waiting else None, queued)


def _requests(root: Root, name: str) -> Iterator[RpcRequest]:
    """Yield a client's requests; a client that is gone, or goes, has none. Raises OSError, ParseError."""
    file = f"{_REQUESTS}/{name}/tasks"
    try:
        text = root.read_start(file, _PAGE)
    except OSError as error:
        if error.errno in _GOING:
            root.faults.pop(file, None)
            return
        raise
    if not text:
        return
    endpoint = parse_endpoint(root.read_or_empty(f"{_REQUESTS}/{name}/xprt/info"))
    for request, version in parse_requests(text.decode("ascii", "replace"), int(name, 16), root.shown(file)):
        yield request._replace(peer=f"v{version} {endpoint}" if endpoint else "")


def _clients(root: Root, devices: Iterable[str]) -> Mapping[str, frozenset[int]] | None:
    """Return the RPC clients of superblocks; None where the kernel does not tell them."""
    found: dict[str, frozenset[int]] = {}
    for device in devices:
        links = (root.link(f"{_SUPERBLOCKS}/{device}/{name}") for name in _CLIENTS_OF)
        names = (posixpath.basename(link) for link in links if link)
        found[device] = frozenset(
            int(name.removeprefix("clnt-")) for name in names if _CLIENT.fullmatch(name)
        )
    return found if any(found.values()) else None
