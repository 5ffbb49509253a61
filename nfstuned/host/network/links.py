"""Which way packets leave this host: routes from the kernel, interfaces and devices from sysfs.

pyroute2 knows the messages; the socket is this module's own. `import pyroute2` loads a database, IPVS,
WireGuard and more with them, which takes longer than all else that a check does (its issue 1404). So do its
messages about interfaces, and a host of containers has thousands of those: sysfs has the few values.

Routes: rtnetlink(7). Devices: Documentation/ABI/testing/sysfs-class-net, -queues and -statistics. Nobody
needs a right for any of it.
"""

from __future__ import annotations

import errno
import os
import posixpath
import struct
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from importlib import import_module
from importlib.machinery import PathFinder
from ipaddress import IPv6Address, ip_address
from socket import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    NETLINK_ROUTE,
    SOCK_CLOEXEC,
    SOCK_RAW,
    if_indextoname,
    if_nametoindex,
    socket,
)
from types import ModuleType
from typing import Any, NamedTuple

from nfstuned.host.root import Root
from nfstuned.model.facts import Traffic
from nfstuned.model.kernel import decimal
from nfstuned.model.system import Interface, Route

_HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence number, port."""
_RTM_GETROUTE, _REQUEST, _ERROR = 26, 0x1, 2
_MOST_BYTES = 1 << 16
_TIMEOUT_S = 1.0
"""The kernel answers while it is asked; this is only a bound."""


class Rtnetlink:
    """A socket to the kernel. Its refusals are OSErrors with their errno."""

    def __init__(self) -> None:
        self._socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)
        self._socket.settimeout(_TIMEOUT_S)
        self._number = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def route(self, address: str) -> Any:  # noqa: ANN401 - pyroute2 has no types
        """Return the route that a packet to `address` takes now, as pyroute2's rtmsg."""
        codec, target = _codec("rtmsg"), ip_address(address)
        if isinstance(target, IPv6Address) and target.ipv4_mapped is not None:
            target = target.ipv4_mapped  # a socket sends its packets as those of IPv4
        request = codec()
        request["family"] = AF_INET if target.version == 4 else AF_INET6  # noqa: PLR2004 - IPv4
        request["dst_len"] = target.max_prefixlen
        request["attrs"] = [("RTA_DST", str(target))]
        answer = codec(self._ask(request, _RTM_GETROUTE))
        answer.decode()
        return answer

    def _ask(self, request: Any, kind: int) -> bytes:  # noqa: ANN401 - as above
        """Return the message that answers a request. Raises OSError for the kernel's refusal."""
        self._number += 1
        header = request["header"]
        header["type"], header["flags"], header["sequence_number"] = kind, _REQUEST, self._number
        request.encode()
        self._socket.send(request.data)
        number = 0
        while number != self._number:  # an answer that came too late belongs to an earlier request
            answer = self._socket.recv(_MOST_BYTES)
            _, kind, _, number, _ = _HEADER.unpack_from(answer)
        if kind == _ERROR:
            (code,) = struct.unpack_from("=i", answer, _HEADER.size)
            raise OSError(-code, os.strerror(-code))
        return answer


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


class Links(NamedTuple):
    """The kernel's routes to some addresses, and the interfaces."""

    routes: tuple[Route, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    """Those on a route, and every device; not the many virtual interfaces of containers."""
    unknown: tuple[str, ...] = ()


_NO_ROUTE = {
    *(errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENODEV, errno.EADDRNOTAVAIL),
    *(errno.EACCES, errno.EINVAL, errno.EPERM, errno.EAFNOSUPPORT, errno.EOPNOTSUPP),
}
"""The kernel's answers without a route: it has none, or one that refuses (prohibit, blackhole)."""


def observe_links(root: Root, addresses: Sequence[str]) -> Links:
    """Return the routes to `addresses`, and the interfaces. An address without a route is left out."""
    if not addresses:
        return Links()
    try:
        with closing(Rtnetlink()) as netlink:
            routes = tuple(_routes(netlink, addresses))
    except OSError as error:
        return Links(unknown=(f"network interfaces and routes: {error}",))
    there = root.names(FOLDER)
    used = dict.fromkeys(route.interface for route in routes)
    devices = (name for name in there if root.exists(f"{FOLDER}/{name}/device"))
    own = [name for name in dict.fromkeys((*used, *devices)) if _is_own(root, name)]
    remote = dict.fromkeys(route.interface for route in routes if not route.local)
    foreign = (name for name in remote if there and name not in own)
    unknown = (f"interface {name}: /{FOLDER} is of another network namespace" for name in foreign)
    return Links(routes, tuple(_interface(root, name) for name in own), tuple(unknown))


def _routes(netlink: Rtnetlink, addresses: Iterable[str]) -> Iterable[Route]:
    for text in addresses:
        address, _, scope = text.partition("%")
        if scope:  # a link-local address names its interface itself, to the kernel by number (rpc_ntop6)
            number = decimal(scope)
            yield Route(text, scope if number is None else _name(number) or scope)
            continue
        try:
            route = netlink.route(address)
        except OSError as error:
            if error.errno not in _NO_ROUTE:
                raise
            continue
        if name := _name(route.get_attr("RTA_OIF") or 0):
            local, mtu = route["type"] == _RTN_LOCAL, route.get_nested("RTA_METRICS", "RTAX_MTU")
            yield Route(text, name, local, mtu)


def _name(number: int) -> str:
    """Return the name of an interface of this network namespace by its index; "" where it is gone."""
    try:
        return if_indextoname(number)
    except (OSError, OverflowError):
        return ""


def _is_own(root: Root, name: str) -> bool:
    """Return whether sysfs means the interface of this process: it may be another network namespace's."""
    try:
        return decimal(root.read_or_empty(f"{FOLDER}/{name}/ifindex").strip()) == if_nametoindex(name)
    except OSError:
        return False


def _interface(root: Root, name: str) -> Interface:
    folder = f"{FOLDER}/{name}"
    driver, master = root.link(f"{folder}/device/driver"), root.link(f"{folder}/master")
    queues = [queue for queue in root.names(f"{folder}/queues") if queue.startswith("rx-")]
    masks = (root.read_or_empty(f"{folder}/queues/{queue}/rps_cpus") for queue in queues)
    return Interface(
        name,
        driver=posixpath.basename(driver) if driver else None,  # a virtual interface has no device
        master=posixpath.basename(master) if master else None,
        mtu=decimal(root.read_or_empty(f"{folder}/mtu").strip()),
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
    """Return the byte counters of interfaces, since each was made; an interface that is gone is left out."""
    counters = (
        (name, byte_count(root, name, "rx_bytes"), byte_count(root, name, "tx_bytes")) for name in names
    )
    return tuple(
        Traffic(name, received, sent)
        for name, received, sent in counters
        if received is not None and sent is not None
    )


def traffic_between(before: tuple[Traffic, ...], after: tuple[Traffic, ...]) -> tuple[Traffic, ...]:
    """Return the traffic of each interface, without those that came or went, or with a counter that fell."""
    earlier = {traffic.interface: traffic for traffic in before}
    return tuple(
        Traffic(now.interface, now.received - then.received, now.sent - then.sent)
        for now in after
        if (then := earlier.get(now.interface)) and now.received >= then.received and now.sent >= then.sent
    )
