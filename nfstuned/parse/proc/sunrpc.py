"""`/sys/kernel/debug/sunrpc` (net/sunrpc/debugfs.c): the requests that NFS clients wait for.

A kernel that is locked down hides them. /sys/fs/nfs has a folder for each superblock since Linux 6.5
(fs/nfs/sysfs.c); its link `nfs_client` leads to the RPC client. No mount is touched.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from nfstuned.errors import ParseError
from nfstuned.model.kernel import bracketed
from nfstuned.model.stalls import Requests, RpcRequest
from nfstuned.parse.fields import quoted
from nfstuned.parse.tree import FileTree

_TASK = re.compile(
    r" *(?P<task>\d{1,10}) [0-9a-f]+ +-?\d+ 0x[0-9a-f]+ 0x(?P<xid>[0-9a-f]{1,8}) +-?\d+ \S+(?: \[\S+\])? "
    r"(?P<program>\S+)v(?P<version>\d{1,3}) (?P<operation>\S{1,64}) a:.*"
)
_TASK_COUNT = re.compile(r"clnt\[.*\] RPC tasks\[\d+\]")
"""The line that newer kernels write behind a client's tasks."""
_NFS = frozenset({"nfs", "nfsacl"})
"""The programs of a mount. Others are locks, the port mapper, and calls of a server of this machine."""


def parse_requests(text: str, client: int, file: str) -> Iterator[tuple[RpcRequest, int]]:
    """Yield the requests of a client's `tasks`, each with the version of its program (3 or 4).

    Raises ParseError for a line that is neither a task nor the number of tasks, which newer kernels write
    last (Linux 6.14, net/sunrpc/debugfs.c). Where a page is full the kernel cuts its last line and ends it
    with a NUL: that line is left out.
    """
    text, cut, _ = text.partition("\0")
    text = text[: text.rfind("\n") + 1] if cut else text
    for place, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        match = _TASK.fullmatch(line)
        if match is None:
            if _TASK_COUNT.fullmatch(line):
                continue
            raise ParseError(file, place, f"not a task: {quoted(line)}")
        if match["program"] in _NFS:
            request = RpcRequest(client, int(match["task"]), int(match["xid"], 16), match["operation"])
            yield request, int(match["version"])


def parse_endpoint(text: str) -> str:
    """Return the server of a transport's `info`, "10.10.10.10:2049"; "" for a file without one."""
    values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    address, port = values.get("addr", "").strip(), values.get("port", "").strip()
    return f"{bracketed(address)}:{port}" if address and port else ""


_CLIENT = re.compile(r"clnt-[0-9]{1,10}")
_REQUESTS = "sys/kernel/debug/sunrpc/rpc_clnt"
_SUPERBLOCKS = "sys/fs/nfs"
_CLIENTS_OF = ("nfs_client", "nfsacl_client", "nfs_state_client")
"""A superblock's own clients, and its server's client for the lease (fs/nfs/sysfs.c)."""
_GOING = frozenset({errno.ENOENT, errno.EINVAL, errno.EIO})
"""The errors of a client's file once nobody uses the client (net/sunrpc/debugfs.c, tasks_open;
fs/debugfs/file.c)."""
_PAGE = 65536
"""In bytes, of a single read: the kernel gives a page of them at most, a client's oldest requests first."""


def read_requests(root: FileTree, devices: Iterable[str]) -> Requests | None:
    """Return the requests that are under way on this machine; None where debugfs does not show them.

    It does not in a kernel that is locked down (Secure Boot), or without rights. No server is asked. Raises
    ParseError for text that is no list of tasks.
    """
    try:
        with root.faults.block():
            names = root.listing(_REQUESTS)
            requests = [request for name in names for request in _requests_of(root, name)]
    except OSError:
        return None
    waiting = tuple(request for request in requests if request.xid)
    queued = tuple(request for request in requests if not request.xid)
    return Requests(waiting, _clients(root, devices) if waiting else None, queued)


def _requests_of(root: FileTree, name: str) -> Iterator[RpcRequest]:
    """Yield a client's requests; a client that is gone, or goes, has none. Raises OSError, ParseError."""
    file = f"{_REQUESTS}/{name}/tasks"
    try:
        text = root.read_start(file, _PAGE)
    except OSError as error:
        if error.errno in _GOING:
            root.faults.forget(file)
            return
        raise
    if not text:
        return
    endpoint = parse_endpoint(root.read_or_empty(f"{_REQUESTS}/{name}/xprt/info"))
    for request, version in parse_requests(text.decode("ascii", "replace"), int(name, 16), root.shown(file)):
        yield request._replace(peer=f"v{version} {endpoint}" if endpoint else "")


def _clients(root: FileTree, devices: Iterable[str]) -> Mapping[str, frozenset[int]] | None:
    """Return the RPC clients of superblocks; None where the kernel does not show them."""
    found: dict[str, frozenset[int]] = {}
    for device in devices:
        links = (root.link(f"{_SUPERBLOCKS}/{device}/{name}") for name in _CLIENTS_OF)
        names = (posixpath.basename(link) for link in links if link)
        found[device] = frozenset(
            int(name.removeprefix("clnt-")) for name in names if _CLIENT.fullmatch(name)
        )
    return found if any(found.values()) else None
