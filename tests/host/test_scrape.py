"""The scrape endpoint over real sockets."""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from nfstuned.host.telemetry import scrape
from nfstuned.host.telemetry.scrape import (
    BURST,
    LEFT_MOST,
    MOST_CONNECTIONS,
    PAUSE_S,
    PIECE,
    REQUEST_MOST,
    TIMEOUT_S,
    ScrapeServer,
)

BODY = b"nfstuned_mounts 1\n"
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def serving(listen: str, body: bytes | None = BODY) -> ScrapeServer:
    return ScrapeServer(listen, lambda: body)


@pytest.fixture
def server() -> Iterator[ScrapeServer]:
    made = serving("127.0.0.1:0")
    yield made
    made.close()


def connect(server: ScrapeServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=5)


def turn(server: ScrapeServer, seconds: float = 0.05) -> float:
    """Serve for a while as the daemon's loop does; return what the longest call took."""
    poll, longest, end = select.epoll(), 0.0, time.monotonic() + seconds
    poll.register(server.fileno(), select.EPOLLIN)
    while (now := time.monotonic()) < end:
        if poll.poll(max(0.0, min(end, server.deadline) - now)) or now >= server.deadline:
            began = time.monotonic()
            server.serve()
            longest = max(longest, time.monotonic() - began)
    poll.close()
    return longest


def ask(server: ScrapeServer, request: bytes = GET) -> tuple[bytes, bytes]:
    """Return head and body of the answer, up to the end of the connection."""
    with connect(server) as client:
        client.sendall(request)
        turn(server)
        client.settimeout(5)
        parts = []
        while part := client.recv(1 << 16):
            parts.append(part)
            turn(server, 0.01)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    return head, body


def test_the_metrics_are_at_their_path(server: ScrapeServer) -> None:
    head, body = ask(server)
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n")
    assert f"Content-Length: {len(BODY)}".encode() in head
    assert body == BODY


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200 OK", b""),
        (b"GET /metrics?x=1 HTTP/1.0\n\n", b"200 OK", BODY),
        (b"GET / HTTP/1.1\r\n\r\n", b"200 OK", b"nfstuned: the metrics are at /metrics\n"),
        (b"GET /etc/passwd HTTP/1.1\r\n\r\n", b"404 Not Found", b"there is only /metrics\n"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", b"only GET and HEAD\n"),
        (b"GET /metrics HTTP/2\r\n\r\n", b"400 Bad Request", b"not a request of HTTP/1\n"),
        (b"\x16\x03\x01\x00\n\n", b"400 Bad Request", b"not a request of HTTP/1\n"),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * REQUEST_MOST, b"431", b"the request is too long\n"),
    ],
)
def test_other_requests_have_an_answer_of_their_own(
    server: ScrapeServer, request_: bytes, status: bytes, body: bytes
) -> None:
    head, found = ask(server, request_)
    assert head.startswith(b"HTTP/1.1 " + status)
    assert found == body


def test_before_the_first_sample_it_says_so() -> None:
    server = serving("127.0.0.1:0", None)
    head, body = ask(server)
    server.close()
    assert head.startswith(b"HTTP/1.1 503 ")
    assert body == b"no sample was taken yet\n"


def test_a_request_may_come_in_pieces(server: ScrapeServer) -> None:
    with connect(server) as client:
        for byte in GET:
            client.sendall(bytes([byte]))
            turn(server, 0.001)
        turn(server)
        assert client.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_large_answer_reaches_a_slow_reader_whole_and_no_turn_waits_for_it() -> None:
    body = os.urandom(2_000_000)
    server = serving("127.0.0.1:0", body)
    received = bytearray()
    with connect(server) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 15)
        client.sendall(GET)
        longest, began = 0.0, time.monotonic()
        client.setblocking(False)
        end = began + 8
        while time.monotonic() < end and len(received) < len(body) + 100:
            longest = max(longest, turn(server, 0.001))
            try:
                received += client.recv(1 << 17)
            except BlockingIOError:
                continue
    server.close()
    assert bytes(received).endswith(body)
    assert longest < (time.monotonic() - began) / 2


def test_a_client_that_says_nothing_or_reads_nothing_is_hung_up_on(
    server: ScrapeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrape, "TIMEOUT_S", 0.2)
    assert TIMEOUT_S == 10.0
    with connect(server) as silent, connect(server) as dripping:
        turn(server, 0.02)
        began = time.monotonic()
        while time.monotonic() - began < 0.4:
            turn(server, 0.05)
            with suppress(OSError):
                dripping.send(b"G")
        assert silent.recv(1) == b""
        assert server.deadline == float("inf")


def storm(port: int, stop: threading.Event) -> None:
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            client.sendall(GET)


def test_nobody_can_make_it_turn_all_the_time() -> None:
    """Connections in a loop are taken in bursts, with pauses in which the descriptor is silent."""
    answered = 0

    def body() -> bytes:
        nonlocal answered
        answered += 1
        return BODY

    server, stop = ScrapeServer("127.0.0.1:0", body), threading.Event()
    attackers = [threading.Thread(target=storm, args=(server.port, stop)) for _ in range(3)]
    for attacker in attackers:
        attacker.start()
    began = time.monotonic()
    longest = turn(server, 1.0)
    took = time.monotonic() - began
    stop.set()
    server.close()
    for attacker in attackers:
        attacker.join()
    assert 0 < answered <= BURST * (took / PAUSE_S + 1)
    assert longest < took / 2


def test_there_are_never_more_connections_than_it_serves(server: ScrapeServer) -> None:
    clients = [connect(server) for _ in range(MOST_CONNECTIONS + 3)]
    until = time.monotonic() + 30
    while server.connections < MOST_CONNECTIONS and time.monotonic() < until:
        turn(server, PAUSE_S)
    turn(server, 2 * PAUSE_S)
    assert server.connections == MOST_CONNECTIONS
    assert [client.recv(1) for client in clients[:3]] == [b""] * 3
    clients[3].sendall(GET)
    turn(server)
    assert clients[3].recv(4096).startswith(b"HTTP/1.1 200")
    for client in clients:
        client.close()


@pytest.mark.parametrize("said", [b"", b"GET /met", GET])
def test_connections_that_somebody_holds_keep_nobody_else_away(said: bytes) -> None:
    """The kernel does not take the whole of the answer, and who holds them does not read it."""
    server = ScrapeServer("127.0.0.1:0", lambda: bytes(20_000_000) if held else BODY)
    held = [connect(server) for _ in range(60)]
    for client in held:
        client.sendall(said)
    turn(server, 0.5)
    holders, held = held, []
    answers = [scraped(server) for _ in range(13)]
    assert [answer.endswith(BODY) for answer in answers] == [True] * 13
    server.close()
    for client in holders:
        client.close()


def scraped(server: ScrapeServer) -> bytes:
    """Return what a scraper gets within the ten seconds that Prometheus waits."""
    parts, end = [], time.monotonic() + TIMEOUT_S
    with connect(server) as client:
        client.sendall(GET)
        client.setblocking(False)
        while time.monotonic() < end:
            turn(server, 0.02)
            with suppress(BlockingIOError, ConnectionError):
                part = client.recv(1 << 16)
                if not part:
                    break
                parts.append(part)
    return b"".join(parts)


def test_a_client_that_goes_away_breaks_nothing(server: ScrapeServer) -> None:
    for _ in range(3):
        client = connect(server)
        client.sendall(GET)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()  # a reset
    turn(server, 0.2)
    assert ask(server)[1] == BODY


def sockets() -> set[int]:
    """The descriptors of this process that are sockets."""
    return {int(link.name) for link in Path("/proc/self/fd").iterdir() if link.is_socket()}


def test_who_sends_without_end_after_the_answer_is_hung_up_on(server: ScrapeServer) -> None:
    sent, end = 0, time.monotonic() + 5
    with connect(server) as client:
        client.sendall(GET)
        turn(server)
        client.setblocking(False)
        with suppress(ConnectionError):
            while server.connections and time.monotonic() < end:
                with suppress(BlockingIOError):
                    sent += client.send(bytes(PIECE))
                server.serve()
    assert server.connections == 0
    assert LEFT_MOST <= sent < 10 * LEFT_MOST


def test_a_copy_of_a_connection_in_a_child_that_just_began_does_not_keep_it_turning(
    server: ScrapeServer,
) -> None:
    """fork(2) copies it before the child can close it; a copy in this process does the same to the epoll."""
    before = sockets()
    client = connect(server)
    turn(server)
    (fd,) = sockets() - before - {client.fileno()}
    copy = os.dup(fd)
    client.close()
    turn(server)
    assert server.connections == 0
    poll = select.epoll()
    poll.register(server.fileno(), select.EPOLLIN)
    assert poll.poll(0.3) == []
    poll.close()
    os.close(copy)


def test_a_port_in_use_is_an_error(server: ScrapeServer) -> None:
    with pytest.raises(OSError, match="in use"):
        serving(f"127.0.0.1:{server.port}")


def test_ipv6_has_its_brackets() -> None:
    try:
        server = serving("[::1]:0")
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with socket.create_connection(("::1", server.port), timeout=5) as client:
        client.sendall(GET)
        turn(server)
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
    server.close()


class TestUnix:
    def test_everybody_may_connect_and_nothing_stays_behind(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        server = serving(f"unix:{path}")
        assert stat.S_IMODE(path.stat().st_mode) == 0o666
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(GET)
            turn(server)
            assert client.recv(4096).endswith(BODY)
        server.close()
        assert not path.exists()

    def test_what_a_killed_daemon_left_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(path))
        serving(f"unix:{path}").close()

    def test_another_program_keeps_its_socket(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        server = serving(f"unix:{path}")
        with pytest.raises(OSError, match="another program listens there"):
            serving(f"unix:{path}")
        assert path.exists()
        server.close()

    def test_a_file_is_never_removed(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        path.write_text("mine")
        with pytest.raises(OSError, match="no socket"):
            serving(f"unix:{path}")
        assert path.read_text() == "mine"
