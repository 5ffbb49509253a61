"""The scrape endpoint: as much HTTP/1.1 as a scraper needs, for a loop that must never wait (RFC 9112).

The sockets have an epoll of their own, whose only descriptor the loop watches. Nothing here blocks, and what
a call of `serve` does is bounded: a few connections, a few KiB read, a piece sent to each.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

from nfstuned.host.telemetry.exposition import CONTENT_TYPE

_PLAIN = "text/plain; charset=utf-8"
_WORDS = 3
Answer = tuple[bytes, bytes]
"""Head and body; the body can be large, and is not copied."""


def _answer(status: str, text: bytes, kind: str = _PLAIN, more: str = "") -> Answer:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n"
        f"{more}Connection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n"
    )
    return head.encode(), text


TOO_LONG = b"".join(_answer("431 Request Header Fields Too Large", b"the request is too long\n"))


def answer(request: bytes, body: Callable[[], bytes | None]) -> Answer:
    """Return head and body for the request's first line; the fields of its header change nothing.

    `body` is asked for the metrics, and may return None: there are none yet.
    """
    words = request.partition(b"\n")[0].split()
    if len(words) != _WORDS or not words[2].startswith(b"HTTP/1."):
        return _answer("400 Bad Request", b"not a request of HTTP/1\n")
    method, path = words[0], words[1].partition(b"?")[0]
    if method not in {b"GET", b"HEAD"}:
        return _answer("405 Method Not Allowed", b"only GET and HEAD\n", more="Allow: GET, HEAD\r\n")
    if path == b"/metrics":
        metrics = body()
        if metrics is None:
            head, text = _answer(
                "503 Service Unavailable", b"no sample was taken yet\n", more="Retry-After: 1\r\n"
            )
        else:
            head, text = _answer("200 OK", metrics, CONTENT_TYPE)
    elif path == b"/":
        head, text = _answer("200 OK", b"nfstuned: the metrics are at /metrics\n")
    else:
        head, text = _answer("404 Not Found", b"there is only /metrics\n")
    return head, b"" if method == b"HEAD" else text


MOST_CONNECTIONS = 16
"""A further connection takes the place of the connection that has been quiet for longest: whoever holds many
without a word holds up nobody, and each has MOST_CONNECTIONS / BURST * PAUSE_S seconds at least."""
TIMEOUT_S = 10.0
"""For all of a connection: as long as Prometheus waits for a scrape where it is not told otherwise."""
REQUEST_MOST = 8192
PIECE = 1 << 16
"""Bytes that are sent or thrown away at a time."""
LEFT_MOST = 16 * PIECE
"""Bytes that are thrown away of a connection that has its answer: whoever sends without end is hung up on."""
BURST, PAUSE_S = 4, 0.1
"""So many connections are taken at once, then none for a while: whoever connects in a loop costs little."""
_BACKLOG = 64
_LINGER_S = 1.0
_AT_ONCE = 8


class _Connection:
    """A scraper: first its request, then the answer, then whatever it still sends until it hangs up."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        self.sock = sock
        self.deadline = now + TIMEOUT_S
        self.moved = now
        """When it began, or last took a part of its answer: a request that drips in is no sign of life."""
        self.request = b""
        self.head = memoryview(b"")
        self.body = memoryview(b"")
        self.answered = False
        self.left = LEFT_MOST
        """Bytes that may still be thrown away."""


class ScrapeServer:
    """Listens on "ADDRESS:PORT" or "unix:PATH", and answers GET /metrics with what `body` returns.

    Watch `fileno`; call `serve` when it is readable, or `deadline` (CLOCK_MONOTONIC) has passed. `body` is
    asked at each request, and returns None when there is nothing yet. Raises OSError where the address
    cannot be had.
    """

    def __init__(self, listen: str, body: Callable[[], bytes | None]) -> None:
        self._body = body
        self._path = listen.removeprefix("unix:") if listen.startswith("unix:") else ""
        self._listener = _unix(self._path) if self._path else _tcp(listen)
        self._poll = select.epoll()
        self._connections: dict[int, _Connection] = {}
        self._taken = 0
        self._pause_ends = 0.0
        self._armed = False
        self._arm(time.monotonic())

    @property
    def port(self) -> int:
        """The port; 0 of a Unix socket."""
        return 0 if self._path else int(self._listener.getsockname()[1])

    @property
    def connections(self) -> int:
        """How many scrapers are connected."""
        return len(self._connections)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is something to do."""
        return self._poll.fileno()

    @property
    def deadline(self) -> float:
        """When `serve` is due though nothing is readable; infinity where nothing is."""
        due = [connection.deadline for connection in self._connections.values()]
        if not self._armed:
            due.append(self._pause_ends)
        return min(due, default=float("inf"))

    def serve(self) -> None:
        """Do what can be done without waiting."""
        now = time.monotonic()
        for fd, _ in self._poll.poll(0, _AT_ONCE):
            if fd == self._listener.fileno():
                self._accept(now)
            elif (connection := self._connections.get(fd)) is not None:
                self._go_on(connection, now)
        for connection in [c for c in self._connections.values() if now >= c.deadline]:
            self._drop(connection)
        self._arm(now)

    def close(self) -> None:
        """Hang up, and leave no socket behind."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._listener.close()
        self._poll.close()
        if self._path:
            with suppress(OSError):
                os.unlink(self._path)

    def _accept(self, now: float) -> None:
        while self._taken < BURST:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # too many files are open: it stays readable, and asking at once again is no help
                break
            sock.setblocking(False)
            self._taken += 1
            if len(self._connections) >= MOST_CONNECTIONS:
                self._drop(min(self._connections.values(), key=lambda connection: connection.moved))
            self._connections[sock.fileno()] = _Connection(sock, now)
            self._poll.register(sock, select.EPOLLIN)
        self._disarm(now)

    def _arm(self, now: float) -> None:
        """Listen again once the pause is over."""
        if self._armed or now < self._pause_ends:
            return
        self._armed = True
        self._taken = 0
        self._poll.register(self._listener, select.EPOLLIN)

    def _disarm(self, now: float) -> None:
        self._armed = False
        self._pause_ends = now + PAUSE_S
        self._poll.unregister(self._listener)

    def _go_on(self, connection: _Connection, now: float) -> None:
        try:
            if connection.answered:
                self._finish(connection)
            elif connection.head or connection.body:
                self._send(connection, now)
            else:
                self._read(connection)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)

    def _read(self, connection: _Connection) -> None:
        received = connection.sock.recv(REQUEST_MOST + 1 - len(connection.request))
        connection.request += received
        if not received:
            self._drop(connection)
        elif b"\r\n\r\n" in connection.request or b"\n\n" in connection.request:
            head, body = answer(connection.request, self._body)
            connection.head, connection.body = memoryview(head), memoryview(body)
            self._poll.modify(connection.sock, select.EPOLLOUT)
        elif len(connection.request) > REQUEST_MOST:
            connection.head = memoryview(TOO_LONG)
            self._poll.modify(connection.sock, select.EPOLLOUT)

    def _send(self, connection: _Connection, now: float) -> None:
        if connection.head:
            connection.head = connection.head[connection.sock.send(connection.head) :]
        else:
            connection.body = connection.body[connection.sock.send(connection.body[:PIECE]) :]
        connection.moved = now
        if not connection.head and not connection.body:
            # What the other side still sends must be read, or the kernel would take back the answer.
            connection.answered = True
            connection.deadline = min(connection.deadline, now + _LINGER_S)
            connection.sock.shutdown(socket.SHUT_WR)
            self._poll.modify(connection.sock, select.EPOLLIN)

    def _finish(self, connection: _Connection) -> None:
        received = len(connection.sock.recv(PIECE))
        connection.left -= received
        if not received or connection.left <= 0:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        del self._connections[connection.sock.fileno()]
        # To close it does not take it out of the epoll as long as a child that was just begun has it, too.
        self._poll.unregister(connection.sock)
        connection.sock.close()


def _tcp(listen: str) -> socket.socket:
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET  # noqa: PLR2004 - IPv6
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _unix(path: str) -> socket.socket:
    """Return a socket that every user may connect to: what it gives, /proc gives them, too."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    umask = os.umask(0o111)
    try:
        _remove_left_over(path)
        listener.bind(path)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(umask)
    return listener


def _remove_left_over(path: str) -> None:
    """Remove a socket that nobody listens on any more; anything else stays. Raises OSError."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EEXIST, "something that is no socket is there already", path)
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass
    raise OSError(errno.EADDRINUSE, "another program listens there", path)
