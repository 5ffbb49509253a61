"""A server with hostile names: the guest's own, through a proxy that changes its answers.

Only the answer to EXCHANGE_ID is changed (RFC 8881, section 18.35); all else goes through as it is.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST, PORT = "127.0.0.2", 20490
_NFS = ("127.0.0.1", 2049)
_EXCHANGE_ID = 42
_LAST = 1 << 31
"""The bit of a record's length for its last fragment (RFC 5531, section 11)."""


@contextlib.contextmanager
def named(name: bytes, domain: bytes) -> Iterator[None]:
    """Serve at HOST and PORT under this implementation name and domain while the block runs.

    No connection to the guest's own server is left: other scenarios count these.
    """
    servers: list[socket.socket] = []
    with socket.create_server((HOST, PORT)) as listening:
        threading.Thread(target=_accept, args=(listening, servers, name, domain), daemon=True).start()
        try:
            yield
        finally:
            for connection in (listening, *servers):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, servers: list[socket.socket], name: bytes, domain: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listening.accept()
            server = _connected()
            servers.append(server)
            threading.Thread(target=_ask, args=(client, server), daemon=True).start()
            threading.Thread(target=_answer, args=(server, client, name, domain), daemon=True).start()


def _connected() -> socket.socket:
    """Return a connection to the server from a port that only root may use: others it refuses."""
    for port in range(1023, 600, -1):
        with contextlib.suppress(OSError):
            return socket.create_connection(_NFS, source_address=(_NFS[0], port))
    raise OSError("no port is free below 1024")


def _ask(client: socket.socket, server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(1 << 16):
            server.sendall(data)
    server.close()


def _answer(server: socket.socket, client: socket.socket, name: bytes, domain: bytes) -> None:
    with contextlib.suppress(OSError, EOFError), server.makefile("rb") as stream:
        while header := stream.read(4):
            (length,) = struct.unpack(">I", header)
            record = renamed(stream.read(length & ~_LAST), name, domain) if length & _LAST else b""
            client.sendall(struct.pack(">I", len(record) | _LAST) + record)
    client.close()


def renamed(reply: bytes, name: bytes, domain: bytes) -> bytes:
    """Return a server's reply; in an answer to EXCHANGE_ID the server's names are replaced."""
    # Behind the verifier: accepted, status, tag, number of operations.
    at = 16 + _padded(reply, 16)
    if reply[at : at + 8] != bytes(8):
        return reply
    at += 8
    at += _padded(reply, at) + 4
    operation, status = struct.unpack_from(">II", reply, at)
    if (operation, status) != (_EXCHANGE_ID, 0):
        return reply
    at += 8 + 8 + 4 + 4  # the client id, its sequence and flags
    (protection,) = struct.unpack_from(">I", reply, at)
    assert protection == 0, "SP4_NONE"
    at += 4
    # Another owner and scope: or the client takes this for the server that it knows already.
    owner = bytes(8) + _opaque(b"hostile " + name[:8]) + _opaque(b"hostile")
    date = struct.pack(">QI", 0, 0)
    return reply[:at] + owner + struct.pack(">I", 1) + _opaque(domain) + _opaque(name) + date


def _padded(data: bytes, at: int) -> int:
    """Return the bytes of a field of a length, with its length and its padding to four."""
    return 4 + (int.from_bytes(data[at : at + 4], "big") + 3) // 4 * 4


def _opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)
