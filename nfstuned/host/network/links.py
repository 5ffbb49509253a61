"""Which way packets leave this host: routes and interfaces from the kernel, devices from sysfs.

pyroute2 knows the messages; the socket is this module's own. `import pyroute2` loads a database, IPVS,
WireGuard and more with them, which takes longer than all else that a check does (its issue 1404).

Routes: rtnetlink(7). Devices: Documentation/ABI/testing/sysfs-class-net, -queues and -statistics. Nobody
needs a right for any of it.
"""

from __future__ import annotations

import errno
import os
import posixpath
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE, SOCK_CLOEXEC, SOCK_RAW, socket
from types import ModuleType
from typing import Any, NamedTuple

from nfstuned.host.root import Root
from nfstuned.model.facts import Traffic
from nfstuned.model.kernel import decimal
from nfstuned.model.system import Interface, Route

_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence number, port."""
_ALIGNED = 4
_RTM_GETLINK, _RTM_GETROUTE = 18, 26
_REQUEST, _DUMP, _INTERRUPTED = 0x1, 0x300, 0x10
_ERROR, _DONE = 2, 3
_MOST_BYTES = 1 << 16
"""Twice the size of the kernel's answer to a dump."""
_TRIES = 5
_TIMEOUT_S = 1.0
"""The kernel answers while it is asked; this is only a bound."""


class _Message(NamedTuple):
    kind: int
    flags: int
    number: int
    whole: bytes


class Rtnetlink:
    """A socket to the kernel. Its refusals are OSErrors with their errno."""

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
        if isinstance(target, IPv6Address) and target.ipv4_mapped is not None:
            target = target.ipv4_mapped  # a socket sends its packets as those of IPv4
        request = codec()
        request["family"] = AF_INET if target.version == 4 else AF_INET6  # noqa: PLR2004 - IPv4
        request["dst_len"] = target.max_prefixlen
        request["attrs"] = [("RTA_DST", str(target))]
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
            answers += (message for message in received if message.number == self._number)
        return answers


def _messages(data: bytes) -> Iterator[_Message]:
    """Yield each message of a datagram. Raises OSError for the kernel's refusal."""
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
    package = PathFinder.find_spec("pyroute2")
    stand_in = ModuleType("pyroute2")
    stand_in.__path__ = list(package.submodule_search_locations or ()) if package else []
    sys.modules["pyroute2"] = stand_in
    try:
        import_module(module)
    finally:
        del sys.modules["pyroute2"]


FOLDER = "sys/class/net"
_RTN_LOCAL = 2


@dataclass(frozen=True, slots=True)
class Links:
    """The kernel's routes to some addresses, and the interfaces."""

    routes: tuple[Route, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    """Those on a route, and every device; not the many virtual interfaces of containers."""
    unknown: tuple[str, ...] = ()


def observe_links(root: Root, addresses: Sequence[str]) -> Links:
    """Return the routes to `addresses`, and the interfaces. An address without a route is left out."""
    if not addresses:
        return Links()
    try:
        with closing(Rtnetlink()) as netlink:
            links = netlink.links()
            routes = tuple(_routes(netlink, addresses, links))
    except OSError as error:
        return Links(unknown=(f"network interfaces and routes: {error}",))
    used = {route.interface for route in routes}
    interfaces = (
        _interface(root, link, links)
        for link in links.values()
        if link.get_attr("IFLA_IFNAME") in used
        or link.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") is None  # a device
    )
    return Links(routes, tuple(interfaces))


def _routes(netlink: Rtnetlink, addresses: Iterable[str], links: Mapping[int, Any]) -> Iterable[Route]:
    for text in addresses:
        address, _, scope = text.partition("%")
        if scope:  # a link-local address names its interface itself, to the kernel by number (rpc_ntop6)
            number = decimal(scope)
            named = links.get(number) if number is not None else None
            yield Route(text, named.get_attr("IFLA_IFNAME") if named is not None else scope)
            continue
        try:
            route = netlink.route(address)
        except OSError:  # unreachable, prohibited: no way leads there
            continue
        link = links.get(route.get_attr("RTA_OIF"))
        if link is not None:
            local, mtu = route["type"] == _RTN_LOCAL, route.get_nested("RTA_METRICS", "RTAX_MTU")
            yield Route(text, link.get_attr("IFLA_IFNAME"), local, mtu)


def _interface(root: Root, link: Any, links: Mapping[int, Any]) -> Interface:  # noqa: ANN401 - as above
    name = link.get_attr("IFLA_IFNAME")
    master = links.get(link.get_attr("IFLA_MASTER"))
    driver = root.link(f"{FOLDER}/{name}/device/driver")  # a virtual interface has no device
    queues = [queue for queue in root.names(f"{FOLDER}/{name}/queues") if queue.startswith("rx-")]
    masks = (root.read_or_empty(f"{FOLDER}/{name}/queues/{queue}/rps_cpus") for queue in queues)
    return Interface(
        name,
        master=master.get_attr("IFLA_IFNAME") if master else None,
        mtu=link.get_attr("IFLA_MTU"),
        driver=posixpath.basename(driver) if driver else None,
        rx_queues=len(queues) or None,
        # Receive packet steering hands a queue's packets to other CPUs where there is a mask like "0,f".
        spread=any(mask.strip().strip("0,") for mask in masks),
        rx_bytes=byte_count(root, name, "rx_bytes"),
        tx_bytes=byte_count(root, name, "tx_bytes"),
    )


def byte_count(root: Root, name: str, counter: str) -> int | None:
    """Return a counter of an interface; None where it has no such counter."""
    return decimal(root.read_or_empty(f"{FOLDER}/{name}/statistics/{counter}").strip())


def observe_traffic(root: Root, names: tuple[str, ...]) -> tuple[Traffic, ...]:
    """Return the byte counters of interfaces, since each came up; an interface that is gone is left out."""
    counters = (
        (name, byte_count(root, name, "rx_bytes"), byte_count(root, name, "tx_bytes")) for name in names
    )
    return tuple(
        Traffic(name, received, sent)
        for name, received, sent in counters
        if received is not None and sent is not None
    )


def traffic_between(before: tuple[Traffic, ...], after: tuple[Traffic, ...]) -> tuple[Traffic, ...]:
    """Return the traffic of each interface; an interface that came, went or came again is left out."""
    earlier = {traffic.interface: traffic for traffic in before}
    return tuple(
        Traffic(now.interface, now.received - then.received, now.sent - then.sent)
        for now in after
        if (then := earlier.get(now.interface)) and now.received >= then.received and now.sent >= then.sent
    )
