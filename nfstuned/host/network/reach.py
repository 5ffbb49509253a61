"""TCP ports and NFS servers behind them: connections within a deadline, and the NULL procedure of NFS.

The client's own mount(2) begins with that procedure, too. A port that opens proves little: the kernel of a
server opens it while its NFS service hangs, and so does the end of a tunnel to a dead server. RFC 5531
describes the messages, RFC 1813 and RFC 8881 the program.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from nfstuned.model.system import Reach, Reachable

DEADLINE_S = 2.0
AT_ONCE = 512
"""Half of the usual limit of open files."""

Place = tuple[str, int]


def reach(servers: Sequence[Sequence[Place]], seconds: float = DEADLINE_S) -> tuple[Reach, ...]:
    """Return for each server (all of its addresses) the first that opens, or else every attempt.

    It takes `seconds` at most. An address that could not be tried in that time is left out.
    """
    # By turns: a name with more dead addresses than can be tried at once must not be all that is tried.
    turns = (place for turn in zip_longest(*servers) for place in turn if place is not None)
    tried = _attempt(dict.fromkeys(turns), seconds)
    reaches: dict[Reach, None] = {}
    for places in servers:
        attempts = [tried[place] for place in places if place in tried]
        opened = [attempt for attempt in attempts if attempt.state is Reachable.OPEN]
        reaches.update(dict.fromkeys(opened[:1] or attempts))
    return tuple(reaches)


def _attempt(places: Iterable[Place], seconds: float) -> dict[Place, Reach]:
    """Connect to all places at once; a place that could not be tried within `seconds` is left out."""
    end = time.monotonic() + seconds
    waiting = list(places)[::-1]
    attempts: dict[Place, Reach] = {}
    with selectors.DefaultSelector() as selector:
        while True:
            left = end - time.monotonic()
            # A late start would call a slow server dead.
            while waiting and len(selector.get_map()) < AT_ONCE and left > seconds / 2:
                _start(selector, waiting.pop(), attempts)
            if not selector.get_map() or left <= 0:
                break
            for key, _ in selector.select(left):
                attempts[key.data] = _verdict(key.data, _close(selector, key))
        for key in list(selector.get_map().values()):
            _close(selector, key)
            address, port = key.data
            attempts[address, port] = Reach(
                address, port, Reachable.TIMEOUT, f"no answer within {seconds:g} s"
            )
    return attempts


def _start(selector: selectors.BaseSelector, place: Place, attempts: dict[Place, Reach]) -> None:
    """Begin to connect; a refusal on this machine itself is known at once."""
    address, port = place
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
        sock = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
    except UnicodeError as error:  # of a scope that no interface can have
        attempts[place] = Reach(address, port, Reachable.UNREACHABLE, str(error))
        return
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):  # ours, not the server's
            attempts[place] = Reach(address, port, Reachable.UNREACHABLE, error.strerror or str(error))
        return
    code = sock.connect_ex(target)
    if code in (0, errno.EINPROGRESS):
        selector.register(sock.detach(), selectors.EVENT_WRITE, place)
        return
    sock.close()
    attempts[place] = _verdict(place, code)


def _close(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> int:
    """Close a connection and return its result, an errno."""
    selector.unregister(key.fileobj)
    with socket.socket(fileno=key.fd) as sock:
        return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def _verdict(place: Place, code: int) -> Reach:
    if code == 0:
        return Reach(*place, Reachable.OPEN)
    states = {errno.ECONNREFUSED: Reachable.REFUSED, errno.ETIMEDOUT: Reachable.TIMEOUT}
    return Reach(*place, states.get(code, Reachable.UNREACHABLE), os.strerror(code))


_CALL = struct.Struct(">10I")
"""xid, CALL, RPC version, program, version, procedure, and two empty credentials of AUTH_NONE."""
_MARK = struct.Struct(">I")
_LAST_FRAGMENT = 0x80000000
_NFS, _VERSION = 100003, 4
_REPLY = 1
_LEAST = 8
"""xid and REPLY: any reply is an answer, also a demand for other credentials or versions."""


def ping(place: tuple[str, int], seconds: float) -> str:
    """Return why the server at this address and port gave no answer; "" where it answered."""
    end = time.monotonic() + seconds
    try:
        with socket.create_connection(place, seconds) as sock:
            speaks_nfs = _answers(sock, end)
    except TimeoutError:
        why = f"no answer within {seconds:g} s"
    except OSError as error:
        why = error.strerror or str(error)
    else:
        why = "" if speaks_nfs else "another service than NFS answers there"
    return f"{place[0]} port {place[1]}: {why}" if why else ""


def _answers(sock: socket.socket, end: float) -> bool:
    """Return whether an NFS server answers. Raises OSError, TimeoutError at the end."""
    xid = time.monotonic_ns() & 0xFFFFFFFF
    body = _CALL.pack(xid, 0, 2, _NFS, _VERSION, 0, 0, 0, 0, 0)
    sock.settimeout(max(end - time.monotonic(), 0.001))
    sock.sendall(_MARK.pack(_LAST_FRAGMENT | len(body)) + body)
    head = b""
    while len(head) < _MARK.size + _LEAST:
        sock.settimeout(max(end - time.monotonic(), 0.001))
        part = sock.recv(_MARK.size + _LEAST - len(head))
        if not part:
            return False
        head += part
    return struct.unpack_from(">II", head, _MARK.size) == (xid, _REPLY)
