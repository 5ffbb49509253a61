"""Which way packets leave this host: routes and interfaces from the kernel, devices from sysfs.

Routes: rtnetlink(7). Devices: Documentation/ABI/testing/sysfs-class-net, -queues and -statistics. Nobody
needs a right for any of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from socket import AF_INET, AF_INET6
from typing import Any

from nfstuned.host.root import Root
from nfstuned.model.facts import Interface, Route
from nfstuned.model.kernel import decimal

FOLDER = "sys/class/net"
_RTN_LOCAL = 2
_USUAL_MTU, _NETVSC, _LOOPBACK = "1500", "hv_netvsc", "lo"


@dataclass(frozen=True, slots=True)
class Links:
    """What the kernel says of the way to some addresses."""

    routes: tuple[Route, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    """Those on a route, and every device; not the many virtual ones of containers."""
    unknown: tuple[str, ...] = ()


def observe_links(root: Root, addresses: Sequence[str]) -> Links:
    """Return the routes to `addresses`, and the interfaces. An address without a route is left out."""
    if not addresses:
        return Links()
    from pyroute2 import IPRoute  # noqa: PLC0415 - 150 ms that only a check with a server pays
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415

    try:
        with IPRoute() as netlink:
            links = {link["index"]: link for link in netlink.get_links()}
            routes = tuple(_routes(netlink, addresses, links, NetlinkError))
    except (OSError, NetlinkError) as error:
        return Links(unknown=(f"network interfaces and routes: {error}",))
    used = {route.interface for route in routes}
    interfaces = (_interface(root, link, links) for link in links.values() if _counts(link, used))
    return Links(routes, tuple(interfaces))


def any_stands_out(root: Root) -> bool:
    """Return whether some interface is one about which a rule may have something to say.

    On most hosts none is. There nobody needs the routes, and pyroute2, which asks the kernel for them, takes
    longer to load than all else that a check does. Where sysfs shows no device, it cannot tell.
    """
    drivers = {name: _driver(root, name) for name in root.names(FOLDER)}
    devices = {name: driver for name, driver in drivers.items() if driver}
    led = {posixpath.basename(root.link(f"{FOLDER}/{name}/master") or "") for name in devices}
    if any(_odd_mtu(root, name, device=name in devices) for name in drivers):
        return True
    return not devices or any(
        (driver == _NETVSC and name not in led) or (len(_queues(root, name)) == 1 and not _spread(root, name))
        for name, driver in devices.items()
    )


def _odd_mtu(root: Root, name: str, *, device: bool) -> bool:
    """Return whether an interface's MTU may not fit; a virtual one can only be too large (NFS508)."""
    mtu = root.read_or_empty(f"{FOLDER}/{name}/mtu").strip()
    if device:
        return mtu != _USUAL_MTU
    return name != _LOOPBACK and mtu.isascii() and mtu.isdigit() and int(mtu) > int(_USUAL_MTU)


def _counts(link: Any, used: set[str]) -> bool:  # noqa: ANN401 - pyroute2 has no types
    return link.get_attr("IFLA_IFNAME") in used or link.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") is None


def _routes(
    netlink: Any,  # noqa: ANN401 - as above
    addresses: Iterable[str],
    links: dict[int, Any],
    refused: type[Exception],
) -> Iterable[Route]:
    for text in addresses:
        address, _, scope = text.partition("%")
        if scope:  # a link-local address names its interface itself
            yield Route(text, scope)
            continue
        family = AF_INET if ip_address(address).version == 4 else AF_INET6  # noqa: PLR2004 - IPv4
        try:
            answer = netlink.route("get", dst=address, family=family)
        except refused:  # unreachable, prohibited: no way leads there
            continue
        for route in answer:
            link = links.get(route.get_attr("RTA_OIF"))
            if link is not None:
                local = route["type"] == _RTN_LOCAL
                yield Route(
                    text, link.get_attr("IFLA_IFNAME"), local, route.get_nested("RTA_METRICS", "RTAX_MTU")
                )


def _interface(root: Root, link: Any, links: dict[int, Any]) -> Interface:  # noqa: ANN401 - as above
    name = link.get_attr("IFLA_IFNAME")
    master = links.get(link.get_attr("IFLA_MASTER"))
    known = Interface(
        name, master=master.get_attr("IFLA_IFNAME") if master else None, mtu=link.get_attr("IFLA_MTU")
    )
    return replace(
        known,
        driver=_driver(root, name),
        rx_queues=len(_queues(root, name)) or None,
        spread=_spread(root, name),
        rx_bytes=byte_count(root, name, "rx_bytes"),
        tx_bytes=byte_count(root, name, "tx_bytes"),
    )


def byte_count(root: Root, name: str, counter: str) -> int | None:
    """Return one of an interface's counters; None where it has none."""
    return decimal(root.read_or_empty(f"{FOLDER}/{name}/statistics/{counter}").strip())


def _driver(root: Root, name: str) -> str | None:
    """Return the driver of the device behind an interface; a virtual one has no device."""
    driver = root.link(f"{FOLDER}/{name}/device/driver")
    return posixpath.basename(driver) if driver else None


def _queues(root: Root, name: str) -> list[str]:
    return [queue for queue in root.names(f"{FOLDER}/{name}/queues") if queue.startswith("rx-")]


def _spread(root: Root, name: str) -> bool:
    """Return whether receive packet steering hands a queue's packets to other CPUs: a mask like "0,f"."""
    masks = (root.read_or_empty(f"{FOLDER}/{name}/queues/{queue}/rps_cpus") for queue in _queues(root, name))
    return any(mask.strip().strip("0,") for mask in masks)
