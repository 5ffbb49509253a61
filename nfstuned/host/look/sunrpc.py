"""The requests that NFS clients wait for, in debugfs (net/sunrpc/debugfs.c), and their superblocks.

debugfs shows them where the kernel is not locked down. /sys/fs/nfs has a folder for each superblock since
Linux 6.5 (fs/nfs/sysfs.c); its link `nfs_client` leads to the RPC client. No mount is touched.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from nfstuned.host.root import Root
from nfstuned.model.stalls import Requests, RpcRequest
from nfstuned.parse.proc.sunrpc import parse_endpoint, parse_requests

_CLIENT = re.compile(r"clnt-[0-9]{1,10}")
_REQUESTS = "sys/kernel/debug/sunrpc/rpc_clnt"
_SUPERBLOCKS = "sys/fs/nfs"
_CLIENTS_OF = ("nfs_client", "nfsacl_client", "nfs_state_client")
"""A superblock's own, and that of the lease, which it shares with others of its server (fs/nfs/sysfs.c)."""
_GOING = frozenset({errno.ENOENT, errno.EINVAL, errno.EIO})
"""What opening or reading a client's file says once nobody uses the client (net/sunrpc/debugfs.c, tasks_open;
fs/debugfs/file.c)."""
_PAGE = 65536
"""In bytes, of a single read: the kernel gives a page of them at most, a client's oldest requests first."""


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
