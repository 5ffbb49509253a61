from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import pytest
from pyroute2 import IPRoute

from nfstuned.host.network.links import Rtnetlink

ALONE = """
import sys
from contextlib import closing
from nfstuned.host.network.links import Rtnetlink
with closing(Rtnetlink()) as netlink:
    alone = {index: link.get_attr("IFLA_IFNAME") for index, link in netlink.links().items()}
print("pyroute2.ndb" in sys.modules, "pyroute2" in sys.modules)
import pyroute2
with pyroute2.IPRoute() as whole:
    print(alone == {link["index"]: link.get_attr("IFLA_IFNAME") for link in whole.get_links()})
"""
CHANGED = """
import importlib, sys
from contextlib import closing
from nfstuned.host.network import links as rtnetlink
rtnetlink._import_alone = lambda module: importlib.import_module("a_name_that_is_gone")
with closing(rtnetlink.Rtnetlink()) as netlink:
    print(1 in netlink.links(), "pyroute2.ndb" in sys.modules)
"""
ATTRIBUTES = ("IFLA_IFNAME", "IFLA_MTU", "IFLA_MASTER", "IFLA_OPERSTATE")


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return done.stdout


def test_links_are_those_of_pyroute2s_own_socket() -> None:
    with closing(Rtnetlink()) as netlink, IPRoute() as whole:
        links = netlink.links()
        assert {index: [link.get_attr(name) for name in ATTRIBUTES] for index, link in links.items()} == {
            link["index"]: [link.get_attr(name) for name in ATTRIBUTES] for link in whole.get_links()
        }


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1"])
def test_routes_are_those_of_pyroute2s_own_socket(address: str) -> None:
    with closing(Rtnetlink()) as netlink, IPRoute() as whole:
        route = netlink.route(address)
        (other,) = whole.route("get", dst=address)
    assert route["type"] == other["type"]
    assert route.get_attr("RTA_OIF") == other.get_attr("RTA_OIF")


def test_the_messages_are_loaded_without_the_rest_and_the_rest_still_loads() -> None:
    assert run(ALONE).split() == ["False", "False", "True"]


def test_a_pyroute2_whose_parts_do_not_load_alone_is_loaded_whole() -> None:
    assert run(CHANGED).split() == ["True", "True"]
