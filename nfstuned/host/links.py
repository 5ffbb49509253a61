"""Which way packets leave this host: routes and interfaces from the kernel, devices from sysfs.

Routes: rtnetlink(7). Devices: Documentation/ABI/testing/sysfs-class-net, -queues and -statistics. Nobody
needs a right for any of it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from nfstuned.host.root import Root
from nfstuned.host.rtnetlink import Rtnetlink
from nfstuned.model.facts import Interface, Route
from nfstuned.model.kernel import decimal

FOLDER = "sys/class/net"
_RTN_LOCAL = 2


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
    try:
        with closing(Rtnetlink()) as netlink:
            links = netlink.links()
            routes = tuple(_routes(netlink, addresses, links))
    except OSError as error:
        return Links(unknown=(f"network interfaces and routes: {error}",))
    used = {route.interface for route in routes}
    interfaces = (_interface(root, link, links) for link in links.values() if _counts(link, used))
    return Links(routes, tuple(interfaces))


def _counts(link: Any, used: set[str]) -> bool:  # noqa: ANN401 - pyroute2 has no types
    return link.get_attr("IFLA_IFNAME") in used or link.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND") is None


def _routes(netlink: Rtnetlink, addresses: Iterable[str], links: Mapping[int, Any]) -> Iterable[Route]:
    for text in addresses:
        address, _, scope = text.partition("%")
        if scope:  # a link-local address names its interface itself
            yield Route(text, scope)
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
