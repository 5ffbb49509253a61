from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nfstuned.host.network.reach import ping

DENIED = (1, 1, 1, 5)
"""REPLY, MSG_DENIED, AUTH_ERROR, AUTH_TOOWEAK: what a server says that wants TLS."""


@contextmanager
def serving(answer: Callable[[bytes, socket.socket], None]) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            sock, _ = listening.accept()
            with sock:
                answer(sock.recv(4096), sock)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        place: tuple[str, int] = listening.getsockname()
        yield place
        thread.join(10)


def reply(call: bytes, *words: int) -> bytes:
    xid = struct.unpack_from(">I", call, 4)[0]
    body = struct.pack(f">{1 + len(words)}I", xid, *words)
    return struct.pack(">I", 0x80000000 | len(body)) + body


def test_the_call_is_nfs_null_and_its_reply_an_answer() -> None:
    seen: list[bytes] = []

    def answer(call: bytes, sock: socket.socket) -> None:
        seen.append(call)
        whole = reply(call, 1, 0, 0, 0, 0)
        sock.sendall(whole[:5])
        time.sleep(0.05)
        sock.sendall(whole[5:])

    with serving(answer) as place:
        assert ping(place, 10) == ""
    mark, _, kind, rpc, program, version, procedure, *rest = struct.unpack(">11I", seen[0])
    assert (mark, kind, rpc, program, version, procedure) == (0x80000028, 0, 2, 100003, 4, 0)
    assert rest == [0, 0, 0, 0]


def test_a_refusal_is_an_answer() -> None:
    with serving(lambda call, sock: sock.sendall(reply(call, *DENIED))) as place:
        assert ping(place, 10) == ""


def test_an_open_port_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = listening.getsockname()
        started = time.monotonic()
        assert ping(place, 0.3) == f"127.0.0.1 port {place[1]}: no answer within 0.3 s"
        assert time.monotonic() - started < 5


def test_something_else_is_none() -> None:
    with serving(lambda _, sock: sock.sendall(b"HTTP/1.1 400 Bad Request\r\n")) as place:
        assert ping(place, 10).endswith("what answers there is no NFS server")
    with serving(lambda _, sock: sock.close()) as place:
        assert ping(place, 10).endswith("what answers there is no NFS server")


def test_a_closed_port_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = listening.getsockname()
    assert ping(place, 10) == f"127.0.0.1 port {place[1]}: Connection refused"
