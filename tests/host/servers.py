"""Small real servers on the loopback: DNS over UDP, HTTP, RPC, and a TCP port that never answers."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

Zone = Mapping[str, tuple[tuple[str, str], ...]]
"""Name to (type, value); ("", "SILENT") is never answered, ("", "SERVFAIL") is refused, ("", "LAME") is
answered with nothing by a server that neither has the zone nor asks others."""


@contextmanager
def dns_server(zone: Zone, address: str = "127.0.0.1") -> Iterator[int]:
    """Serve a zone as a recursive name server does, aliases followed; give the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 0))
        sock.settimeout(0.05)
        ended = Event()
        thread = Thread(target=_serve, args=(sock, zone, ended), daemon=True)
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            ended.set()
            thread.join()


def _serve(sock: socket.socket, zone: Zone, ended: Event) -> None:
    while not ended.is_set():
        try:
            data, client = sock.recvfrom(4096)
        except TimeoutError:
            continue
        reply = _reply(dns.message.from_wire(data), zone)
        if reply is not None:
            sock.sendto(reply.to_wire(), client)


def _reply(query: dns.message.Message, zone: Zone) -> dns.message.Message | None:
    question = query.question[0]
    name = question.name.to_text(omit_final_dot=True).lower()
    kind = question.rdtype.name
    reply = dns.message.make_response(query)
    reply.flags |= dns.flags.RA
    for _ in range(16):
        records = zone.get(name)
        if records is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
            return reply
        if ("", "SILENT") in records or (kind, "SILENT") in records:
            return None
        if ("", "SERVFAIL") in records:
            reply.set_rcode(dns.rcode.SERVFAIL)
            return reply
        if ("", "LAME") in records:
            reply.flags &= ~dns.flags.RA
            return reply
        alias = next((value for each, value in records if each == "CNAME"), None)
        values = [alias + "."] if alias else [value for each, value in records if each == kind]
        if values:
            reply.answer.append(
                dns.rrset.from_text(name + ".", 60, "IN", "CNAME" if alias else kind, *values)
            )
        if not alias:
            return reply
        name = alias
    return reply


@contextmanager
def http_server(status: int, body: str) -> Iterator[tuple[str, list[str]]]:
    """Give the address of a server that answers each GET alike, and the `Metadata` headers that it saw."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers.get('Metadata')}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/size?format=text", seen
        server.shutdown()


@contextmanager
def rpc_server(
    answer: Callable[[bytes, socket.socket], object], place: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[tuple[str, int]]:
    """Give the place of a server that answers the call of each connection, and then closes it."""
    with socket.create_server(place) as listening:

        def serve() -> None:
            while True:
                try:
                    sock, _ = listening.accept()
                except OSError:  # it is closed
                    return
                with sock:
                    answer(sock.recv(4096), sock)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def rpc_reply(call: bytes, *words: int) -> bytes:
    """Return a reply to a call, in one record, with these words after the call's number."""
    body = call[4:8] + struct.pack(f">{len(words)}I", *words)
    return struct.pack(">I", 0x80000000 | len(body)) + body


@contextmanager
def silent_port() -> Iterator[int]:
    """Give a port whose queue of connections is full: the kernel answers nobody there any more."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        clients = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            clients.append(client)
        yield port
        for client in clients:
            client.close()
