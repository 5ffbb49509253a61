"""Faults of the guest's server: addresses and ports that fall silent, and a disk that hangs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.lab.kit.server import Server
from tests.lab.kit.shell import attempt, run

_FILE, _PLACE = Path("/var/lab-disk"), Path("/srv/disk")


@contextlib.contextmanager
def exported(server: Server, shares: int) -> Iterator[tuple[str, ...]]:
    """Export folders of a file system of their own while the block runs; yield their names."""
    names = tuple(f"disk/{number}" for number in range(shares))
    with _FILE.open("wb") as file:
        file.truncate(256 << 20)
    run("mkfs.btrfs", "-q", "-f", str(_FILE))
    _PLACE.mkdir(exist_ok=True)
    run("mount", "-o", "loop", str(_FILE), str(_PLACE))
    server.export(*names)
    try:
        yield names
    finally:
        for name in names:
            del server.shares[name]
        server.export()
        run("exportfs", "-f")
        run("umount", str(_PLACE))
        _FILE.unlink()


@contextlib.contextmanager
def hanging() -> Iterator[None]:
    """Have every write to that file system wait while the block runs, and so the server's threads."""
    run("fsfreeze", "--freeze", str(_PLACE))
    try:
        yield
    finally:
        attempt("fsfreeze", "--unfreeze", str(_PLACE))


@contextlib.contextmanager
def _dropped(*rules: tuple[str, ...]) -> Iterator[None]:
    for rule in rules:
        run("iptables", "-I", *rule, "-j", "DROP")
    try:
        yield
    finally:
        for rule in rules:
            run("iptables", "-D", *rule, "-j", "DROP")


def silent(address: str) -> contextlib.AbstractContextManager[None]:
    """Drop every packet to and from one address of the guest's server while the block runs."""
    return _dropped(("INPUT", "-d", address), ("INPUT", "-s", address), ("OUTPUT", "-d", address))


def cut(address: str, ports: Iterable[str]) -> contextlib.AbstractContextManager[None]:
    """Drop every packet of connections to an address from these ports of the client while the block runs."""
    tcp = ("OUTPUT", "-p", "tcp")
    ends = [
        ((*tcp, "-d", address, "--sport", port), (*tcp, "-s", address, "--dport", port)) for port in ports
    ]
    return _dropped(*(rule for both in ends for rule in both))


@contextlib.contextmanager
def shaped(*words: str, device: str = "lo", prefix: tuple[str, ...] = ()) -> Iterator[None]:
    """Shape the packets that a device sends while the block runs, with these words of tc(8)."""
    run(*prefix, "tc", "qdisc", "replace", "dev", device, "root", *words)
    try:
        yield
    finally:
        run(*prefix, "tc", "qdisc", "del", "dev", device, "root")


def client_ports(address: str) -> list[str]:
    """Return the client's ports of its connections to a server."""
    lines = run("ss", "-Htn", "state", "established", "dst", f"{address}:2049").splitlines()
    return [line.split()[2].rpartition(":")[2] for line in lines]
