"""A real name server in the guest, with the records of a situation, and nothing but it to ask."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.lab.kit.shell import program, restored, wait_for

ADDRESS = "127.0.0.53"
_RESOLV, _HOSTS = Path("/etc/resolv.conf"), Path("/etc/hosts")


@contextlib.contextmanager
def zone(records: Sequence[str]) -> Iterator[None]:
    """Serve dnsmasq's `records` ("address=/NAME/ADDRESS", "cname=NAME,TARGET") while the block runs.

    Only localhost stays in /etc/hosts: a name server is never asked for its names.
    """
    argv = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
    argv += [f"--listen-address={ADDRESS}", "--bind-interfaces", "--user=root", "--local=/net/"]
    argv += ["--pid-file=", *(f"--{record}" for record in records)]
    with _resolver(ADDRESS), program(*argv, stderr=subprocess.DEVNULL):
        wait_for("the name server", _answers)
        yield


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Have a resolver configured that never answers."""
    with _resolver("10.10.10.99"):
        yield


@contextlib.contextmanager
def _resolver(address: str) -> Iterator[None]:
    # A resolver of systemd's would be behind a link; the guest has none.
    with restored(_RESOLV, f"nameserver {address}\n"), restored(_HOSTS, "127.0.0.1 localhost lab\n"):
        yield


def _answers() -> bool:
    return f"{int.from_bytes(bytes(map(int, reversed(ADDRESS.split('.'))))):08X}:0035" in (
        Path("/proc/net/udp").read_text()
    )
