"""`/sys/kernel/sunrpc` (net/sunrpc/sysfs.c, Linux 5.14 and later), which has switches and transports.

And `/sys/kernel/debug/sunrpc` (net/sunrpc/debugfs.c), which has what an RPC client waits for.

A connection that is down prints a word in angle brackets instead of its values, early kernels nothing or
a NUL byte: then there is nothing to know, which is no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Switch, bracketed
from nfstuned.model.stalls import RpcRequest
from nfstuned.parse.fields import number, quoted

_TASK = re.compile(
    r" *(?P<task>\d{1,10}) [0-9a-f]+ +-?\d+ 0x[0-9a-f]+ 0x(?P<xid>[0-9a-f]{1,8}) +-?\d+ \S+(?: \[\S+\])? "
    r"(?P<program>\S+)v(?P<version>\d+) (?P<operation>\S{1,64}) a:.*"
)
_TASK_COUNT = re.compile(r"clnt\[.*\] RPC tasks\[\d+\]")
"""What newer kernels write behind a client's tasks."""
_NFS = frozenset({"nfs", "nfsacl"})
"""The programs of a mount. Others are locks, the port mapper, and calls of a server of this machine."""


def parse_switch_info(text: str, file: str) -> Switch:
    """Return `xprt_switch_info`; ParseError when a value is missing or no number."""
    values = _values(text, file)
    try:
        return Switch(
            transports=values["num_xprts"],
            active=values["num_active"],
            unique_addresses=values["num_unique_destaddr"],
            queue_length=values["queue_len"],
        )
    except KeyError as missing:
        raise ParseError(file, 1, f"no line {missing.args[0]!r}=...: {quoted(text)}") from None


def parse_transport_info(text: str, file: str) -> Mapping[str, int]:
    """Return `xprt_info`, empty for a connection that is down.

    Raises ParseError for a value that is no number, and for another text without any value.
    """
    values = _values(text, file)
    if not values and (content := _content(text)):
        raise ParseError(file, 1, f"not a transport's values: {quoted(content)}")
    return values


def parse_transport_state(text: str, file: str) -> frozenset[str]:
    """Return the words of `xprt_state`, such as CONNECTED and BOUND; none for a connection that is down.

    Raises ParseError for any other text.
    """
    content = _content(text)
    if not content:
        return frozenset()
    name, separator, words = content.partition("=")
    if name != "state" or not separator:
        raise ParseError(file, 1, f"not a transport's state: {quoted(content)}")
    return frozenset(words.split())


def parse_transport_name(name: str, file: str) -> tuple[int, str]:
    """Return number and protocol of a folder `xprt-7-tcp`; ParseError for any other name."""
    match = re.fullmatch(r"xprt-([0-9]{1,10})-([a-z0-9-]+)", name)
    if match is None:
        raise ParseError(file, 1, f"not the name of a transport: {quoted(name)}")
    return int(match[1]), match[2]


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


def _content(text: str) -> str:
    content = text.strip("\0\n ")
    return "" if content.startswith("<") and content.endswith(">") else content


def _values(text: str, file: str) -> Mapping[str, int]:
    values: dict[str, int] = {}
    for line, content in enumerate(_content(text).split("\n"), 1):
        name, separator, token = content.partition("=")
        if not separator:
            continue
        negative = token.startswith("-")
        try:
            value = number(name, token[negative:])
        except ValueError as error:
            raise ParseError(file, line, str(error)) from None
        values[name] = -value if negative else value
    return MappingProxyType(values)
