"""Whether an NFS server answers: the NULL procedure, which the client's own mount(2) begins with, too.

A port that opens says little: the kernel of a server whose NFS service hangs opens it, and so does the end of
a tunnel to a dead server. RFC 5531 describes the messages, RFC 1813 and RFC 8881 the program.
"""

from __future__ import annotations

import socket
import struct
import time

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
    end = time.monotonic() + seconds
    try:
        with socket.create_connection(place, seconds) as sock:
            answered = _ask(sock, end)
    except TimeoutError:
        why = f"no answer within {seconds:g} s"
    except OSError as error:
        why = error.strerror or str(error)
    else:
        why = "" if answered else "what answers there is no NFS server"
    return f"{place[0]} port {place[1]}: {why}" if why else ""


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
