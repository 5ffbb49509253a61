"""Whether an NFS server answers: the NULL procedure, which the client's own mount(2) begins with, too.

A port that opens says little: the kernel of a server whose NFS service hangs opens it, and so does the end of
a tunnel to a dead server. RFC 5531 describes the messages, RFC 1813 and RFC 8881 the program.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import ExitStack

_CALL = struct.Struct(">10I")
"""xid, CALL, RPC version, program, version, procedure, and two empty credentials of AUTH_NONE."""
_MARK = struct.Struct(">I")
_LAST = 0x80000000
_NFS, _VERSION = 100003, 4
_REPLY = 1
_LEAST = 8
"""xid and REPLY: what else it says, also that it wants other credentials or versions, is an answer."""


def ping(place: tuple[str, int], seconds: float) -> str:
    """Return why the server at this address and port gave no answer; "" where it answered."""
    return pings(place, 1, seconds)


def pings(place: tuple[str, int], count: int, seconds: float) -> str:
    """Return why the server did not answer on each of `count` connections that are open at the same time.

    They come from ordinary ports, above 1023. All of it takes so many seconds at most.
    """
    end = time.monotonic() + seconds
    with ExitStack() as opened:
        for number in range(1, count + 1):
            try:
                left = max(end - time.monotonic(), 0.001)
                answered = _ask(opened.enter_context(socket.create_connection(place, left)), end)
            except TimeoutError:
                return _failure(place, number, f"no answer within {seconds:g} s")
            except OSError as error:
                return _failure(place, number, error.strerror or str(error))
            if not answered:
                return _failure(place, number, "what answers there is no NFS server")
    return ""


def _failure(place: tuple[str, int], number: int, why: str) -> str:
    further = f", connection {number} at a time" if number > 1 else ""
    return f"{place[0]} port {place[1]}{further}: {why}"


def _ask(sock: socket.socket, end: float) -> bool:
    """Return whether an NFS server answers. Raises OSError, TimeoutError at the end."""
    xid = time.monotonic_ns() & 0xFFFFFFFF
    body = _CALL.pack(xid, 0, 2, _NFS, _VERSION, 0, 0, 0, 0, 0)
    sock.settimeout(max(end - time.monotonic(), 0.001))
    sock.sendall(_MARK.pack(_LAST | len(body)) + body)
    head = b""
    while len(head) < _MARK.size + _LEAST:
        sock.settimeout(max(end - time.monotonic(), 0.001))
        part = sock.recv(_MARK.size + _LEAST - len(head))
        if not part:
            return False
        head += part
    return struct.unpack_from(">II", head, _MARK.size) == (xid, _REPLY)
