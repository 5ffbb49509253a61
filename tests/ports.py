"""Ports for programs that tests start, on a machine where other tests ask for ports at the same time."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that the kernel gives to nobody else while this process runs.

    It stays bound here, where nobody listens: who binds it by its number, with SO_REUSEADDR, may listen.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = int(held.getsockname()[1])
    held.detach()  # left open on purpose, until the process ends
    return port
