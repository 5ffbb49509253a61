"""`/sys/kernel/debug/sunrpc` (net/sunrpc/debugfs.c): the requests that an RPC client waits for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.errors import ParseError
from nfstuned.model.kernel import bracketed
from nfstuned.model.stalls import RpcRequest
from nfstuned.parse.fields import quoted

_TASK = re.compile(
    r" *(?P<task>\d{1,10}) [0-9a-f]+ +-?\d+ 0x[0-9a-f]+ 0x(?P<xid>[0-9a-f]{1,8}) +-?\d+ \S+(?: \[\S+\])? "
    r"(?P<program>\S+)v(?P<version>\d+) (?P<operation>\S{1,64}) a:.*"
)
_TASK_COUNT = re.compile(r"clnt\[.*\] RPC tasks\[\d+\]")
"""What newer kernels write behind a client's tasks."""
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
    for place, line in enumerate(text.splitlines(), 1):
        match = _TASK.fullmatch(line)
        if match is None:
            if _TASK_COUNT.fullmatch(line):
                continue
            raise ParseError(file, place, f"not a task: {quoted(line)}")
        if match["program"] in _NFS:
            request = RpcRequest(client, int(match["task"]), int(match["xid"], 16), match["operation"])
            yield request, int(match["version"])


def parse_endpoint(text: str) -> str:
    """Return the server of a transport's `info`, "10.10.10.10:2049"; "" where there is none."""
    values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    address, port = values.get("addr", "").strip(), values.get("port", "").strip()
    return f"{bracketed(address)}:{port}" if address and port else ""
