from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nfstuned.host.network.links import observe_links, observe_traffic, traffic_between
from nfstuned.host.root import Root
from nfstuned.model.facts import Traffic
from nfstuned.model.system import Interface, Route
from tests.tree import link, put

OWN_NETWORK = ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c"]
OWN_SYSFS = 'mount -t sysfs sysfs /sys && exec "$0" -c "$1"'
ROUTED = """
from pyroute2 import IPRoute
from nfstuned.host.network.links import observe_links
from nfstuned.host.root import Root
with IPRoute() as netlink:
    def number(name):
        return netlink.link_lookup(ifname=name)[0]
    netlink.link("add", ifname="br0", kind="bridge")
    netlink.link("add", ifname="v0", kind="veth", peer="v1")
    netlink.link("set", index=number("v0"), mtu=9000)
    netlink.link("set", index=number("v1"), master=number("br0"))
    for name in ("lo", "br0", "v0", "v1"):
        netlink.link("set", index=number(name), state="up")
    netlink.addr("add", index=number("v0"), address="10.0.0.1", prefixlen=24)
    netlink.route("add", dst="10.2.0.0/16", gateway="10.0.0.2", metrics={"mtu": 1500})
    netlink.route("add", dst="10.3.0.0/16", type="unreachable")
    netlink.route("add", dst="10.4.0.0/16", type="blackhole")
ends = ("10.3.0.9", "10.4.0.9", "10.5.0.9")
links = observe_links(Root(), ("10.0.0.9", "10.2.0.9", *ends, "10.0.0.1"))
for one in (*links.routes, *links.unknown):
    print(one)
for one in links.interfaces:
    print(one.name, one.master, one.mtu)
with IPRoute() as netlink:
    netlink.addr("add", index=number("v1"), address="10.6.0.1", prefixlen=24)
for one in observe_links(Root(), ("10.6.0.9", "fe80::9%br0")).interfaces:
    print(one.name, one.master, one.mtu)
"""


def device(root: Path, name: str, driver: str, rps: str = "0") -> None:
    folder = root / "sys/class/net" / name
    for number in range(2):
        put(folder / f"queues/rx-{number}/rps_cpus", rps + "\n")
    (folder / "queues/tx-0").mkdir()
    link(folder / "device/driver", f"../../../../bus/vmbus/drivers/{driver}")
    put(folder / "ifindex", "1\n")
    put(folder / "mtu", "1400\n")
    put(folder / "statistics/rx_bytes", "1000\n")
    put(folder / "statistics/tx_bytes", "2000\n")


@pytest.mark.parametrize(
    "route",
    [
        Route("127.0.0.1", "lo", local=True),
        Route("::ffff:127.0.0.1", "lo", local=True),
        Route("fe80::1%lo", "lo"),
        Route("fe80::1%1", "lo"),  # as the kernel writes it
    ],
    ids=str,
)
def test_an_own_address_is_local_and_a_link_local_one_has_an_interface(tmp_path: Path, route: Route) -> None:
    assert observe_links(Root(str(tmp_path)), (route.address,)).routes == (route,)


@pytest.mark.parametrize(
    ("mask", "spread"), [("0", False), ("00000000,00000000", False), ("00000000,0000000f", True)]
)
def test_a_device_of_sysfs_is_read_below_the_root(tmp_path: Path, mask: str, *, spread: bool) -> None:
    device(tmp_path, "lo", "hv_netvsc", rps=mask)
    device(tmp_path, "gone0", "mana")
    (lo,) = observe_links(Root(str(tmp_path)), ("127.0.0.1",)).interfaces
    assert lo == Interface("lo", "hv_netvsc", None, 1400, 2, spread, 1000, 2000)


def test_the_sysfs_of_another_network_says_nothing_of_this_one(tmp_path: Path) -> None:
    device(tmp_path, "lo", "hv_netvsc")
    put(tmp_path / "sys/class/net/lo/ifindex", "7\n")
    links = observe_links(Root(str(tmp_path)), ("fe80::1%lo",))
    assert links.interfaces == ()
    assert links.unknown == ("interface lo: /sys/class/net is of another network namespace",)


def test_routes_are_the_kernels_own() -> None:
    """In a network of its own: a bridge port with jumbo frames, a route with an MTU, and ways that end."""
    command = [*OWN_NETWORK, OWN_SYSFS, sys.executable]
    if subprocess.run([*command, "pass"], check=False, capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    done = subprocess.run([*command, ROUTED], check=False, capture_output=True, text=True)
    if "Operation not supported" in done.stderr:
        pytest.skip("this kernel has no bridge or veth")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str(Route("10.0.0.9", "v0")),
        str(Route("10.2.0.9", "v0", mtu=1500)),
        str(Route("10.0.0.1", "lo", local=True)),
        "v0 None 9000",
        "lo None 65536",
        "v1 br0 1500",
        "br0 None 1500",
    ]


def test_a_kernel_that_says_nothing_is_said_so() -> None:
    """Without a file descriptor left there is no netlink, as in a sandbox without that address family."""
    script = (
        "import os, resource\n"
        "from nfstuned.host.network.links import observe_links\n"
        "from nfstuned.host.root import Root\n"
        "root = Root('/nowhere')\n"
        "_, most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))\n"
        "print(observe_links(root, ('127.0.0.1',)).unknown)\n"
    )
    assert run(script) == "('network interfaces and routes: [Errno 24] Too many open files',)\n"


def test_traffic_is_what_was_carried_between_two_looks(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    device(tmp_path, "eth0", "hv_netvsc")
    before = observe_traffic(root, ("eth0", "eth9"))
    (tmp_path / "sys/class/net/eth0/statistics/rx_bytes").write_text("1500\n")
    (tmp_path / "sys/class/net/eth0/statistics/tx_bytes").write_text("9000\n")
    later = observe_traffic(root, ("eth0", "eth9"))
    assert traffic_between(before, later) == (Traffic("eth0", 500, 7000),)
    assert traffic_between(later, before) == (), "an interface that came again"
    assert traffic_between((), later) == ()


ALONE = """
import sys
from contextlib import closing
from nfstuned.host.network.links import Rtnetlink
addresses = "127.0.0.1", "127.8.9.10", "::1"
def shown(routes):
    return [(route["type"], route.get_attr("RTA_OIF")) for route in routes]
with closing(Rtnetlink()) as netlink:
    alone = shown(map(netlink.route, addresses))
print("pyroute2.ndb" in sys.modules, "pyroute2" in sys.modules)
import pyroute2
with pyroute2.IPRoute() as whole:
    print(alone == shown(whole.route("get", dst=address)[0] for address in addresses))
"""
CHANGED = """
import importlib, sys
from contextlib import closing
from nfstuned.host.network import links as rtnetlink
rtnetlink._import_alone = lambda module: importlib.import_module("a_name_that_is_gone")
with closing(rtnetlink.Rtnetlink()) as netlink:
    print(netlink.route("127.0.0.1").get_attr("RTA_OIF") == 1, "pyroute2.ndb" in sys.modules)
"""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return done.stdout


def test_messages_loaded_alone_are_pyroute2s_own_and_where_they_cannot_be_the_rest_is_loaded() -> None:
    assert run(ALONE).split() == ["False", "False", "True"]
    assert run(CHANGED).split() == ["True", "True"]
