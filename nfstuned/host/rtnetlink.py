"""The kernel's interfaces and routes, asked for over rtnetlink(7).

pyroute2 knows the messages; the socket is this module's own. `import pyroute2` loads a database, IPVS,
WireGuard and more with them, which takes longer than all else that a check does (its issue 1404).
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE, SOCK_CLOEXEC, SOCK_RAW, socket
from types import ModuleType
from typing import Any, NamedTuple

_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence number, port."""
_ALIGNED = 4
_RTM_GETLINK, _RTM_GETROUTE = 18, 26
_REQUEST, _DUMP, _INTERRUPTED = 0x1, 0x300, 0x10
_ERROR, _DONE = 2, 3
_MOST_BYTES = 1 << 16
"""Twice what the kernel puts into one answer to a dump."""
_TRIES = 5
_TIMEOUT_S = 1.0
"""The kernel answers while it is asked; this is only a bound."""


class _Message(NamedTuple):
    kind: int
    flags: int
    number: int
    whole: bytes


class Rtnetlink:
    """A socket to the kernel. What it refuses is an OSError with its errno."""

    def __init__(self) -> None:
        self._socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)
        self._socket.settimeout(_TIMEOUT_S)
        self._number = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def links(self) -> Mapping[int, Any]:
        """Return every interface of this network namespace by its index, as pyroute2's ifinfmsg."""
        codec = _codec("ifinfmsg")
        for _ in range(_TRIES):
            answers = self._ask(codec(), _RTM_GETLINK, _DUMP)
            if not any(answer.flags & _INTERRUPTED for answer in answers):
                links = (_decoded(codec, answer) for answer in answers if answer.kind != _DONE)
                return {link["index"]: link for link in links}
        raise OSError(errno.EAGAIN, "interfaces come and go faster than they can be listed")

    def route(self, address: str) -> Any:  # noqa: ANN401 - pyroute2 has no types
        """Return the route that a packet to `address` takes now, as pyroute2's rtmsg."""
        codec, target = _codec("rtmsg"), ip_address(address)
        request = codec()
        request["family"] = AF_INET if target.version == 4 else AF_INET6  # noqa: PLR2004 - IPv4
        request["dst_len"] = target.max_prefixlen
        request["attrs"] = [("RTA_DST", address)]
        (answer,) = self._ask(request, _RTM_GETROUTE, 0)
        return _decoded(codec, answer)

    def _ask(self, request: Any, kind: int, flags: int) -> list[_Message]:  # noqa: ANN401 - as above
        self._number += 1
        header = request["header"]
        header["type"], header["flags"], header["sequence_number"] = kind, _REQUEST | flags, self._number
        request.encode()
        self._socket.send(request.data)
        answers: list[_Message] = []
        while not answers or (flags and answers[-1].kind != _DONE):
            received = _messages(self._socket.recv(_MOST_BYTES))
            answers += (one for one in received if one.number == self._number)
        return answers


def _messages(data: bytes) -> Iterator[_Message]:
    """Yield each message of one datagram. Raises OSError for the kernel's refusal."""
    start = 0
    while start < len(data):
        length, kind, flags, number, _ = _HEADER.unpack_from(data, start)
        if kind == _ERROR:
            (code,) = struct.unpack_from("=i", data, start + _HEADER.size)
            raise OSError(-code, os.strerror(-code))
        yield _Message(kind, flags, number, data[start : start + length])
        start += -(-length // _ALIGNED) * _ALIGNED


def _decoded(codec: Any, message: _Message) -> Any:  # noqa: ANN401 - as above
    decoded = codec(message.whole)
    decoded.decode()
    return decoded


def _codec(name: str) -> Any:  # noqa: ANN401 - as above
    """Return pyroute2's class of a message, loaded without the rest of pyroute2 where that is possible."""
    module = f"pyroute2.netlink.rtnl.{name}"
    if module not in sys.modules and "pyroute2" not in sys.modules:
        with suppress(ImportError, AttributeError):
            _import_alone(module)
    return getattr(import_module(module), name)


def _import_alone(module: str) -> None:
    """Import a module of pyroute2 while an empty package stands for pyroute2's own, which imports all."""
    found = PathFinder.find_spec("pyroute2")
    stand_in = ModuleType("pyroute2")
    stand_in.__path__ = list(found.submodule_search_locations or ()) if found else []
    sys.modules["pyroute2"] = stand_in
    try:
        import_module(module)
    finally:
        del sys.modules["pyroute2"]
