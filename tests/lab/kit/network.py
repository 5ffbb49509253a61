"""Addresses that say nothing any more, while others go on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextlib.contextmanager
def silent(address: str) -> Iterator[None]:
    """Drop every packet to and from one address of the guest's server while the block runs."""
    rules = [("INPUT", "-d", address), ("INPUT", "-s", address), ("OUTPUT", "-d", address)]
    for rule in rules:
        run("iptables", "-I", *rule, "-j", "DROP")
    try:
        yield
    finally:
        for rule in rules:
            run("iptables", "-D", *rule, "-j", "DROP")


@contextlib.contextmanager
def cut(address: str, ports: Iterable[str]) -> Iterator[None]:
    """Drop every packet of connections to an address from these ports of the client while the block runs."""
    rules = [("OUTPUT", "-p", "tcp", "-d", address, "--sport", port) for port in ports] + [
        ("OUTPUT", "-p", "tcp", "-s", address, "--dport", port) for port in ports
    ]
    for rule in rules:
        run("iptables", "-I", *rule, "-j", "DROP")
    try:
        yield
    finally:
        for rule in rules:
            run("iptables", "-D", *rule, "-j", "DROP")


def client_ports(address: str) -> list[str]:
    """Return the client's ports of its connections to a server."""
    lines = run("ss", "-Htn", "state", "established", "dst", f"{address}:2049").splitlines()
    return [line.split()[2].rpartition(":")[2] for line in lines]
