from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from nfstuned.host.network.reach import ping, reach
from nfstuned.model.system import Reach, Reachable
from tests.host.servers import rpc_reply, rpc_server, silent_port

HERE = "127.0.0.1"


@pytest.fixture
def opened() -> Iterator[int]:
    with socket.create_server((HERE, 0), backlog=1024) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server((HERE, 0)) as listener:
        return int(listener.getsockname()[1])


def test_a_port_that_never_answers_is_given_up() -> None:
    with silent_port() as port:
        begun = time.monotonic()
        assert reach([[(HERE, port)]], 0.4) == (
            Reach(HERE, port, Reachable.TIMEOUT, "no answer within 0.4 s"),
        )
        assert 0.4 <= time.monotonic() - begun < 2


@pytest.mark.parametrize("scope", ["nowhere0", "\udcff", "9" * 5000])
def test_an_address_without_a_way_is_unreachable(scope: str) -> None:
    (one,) = reach([[(f"::ffff:0:0:1%{scope}", 2049)]])
    assert one.state is Reachable.UNREACHABLE
    assert one.detail


def test_ipv6_opens_as_well() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listener:
        port = listener.getsockname()[1]
        assert reach([[("::1", port)]]) == (Reach("::1", port, Reachable.OPEN),)


def test_of_a_servers_addresses_the_first_that_opens_counts_or_else_each(opened: int, closed: int) -> None:
    places = [("127.0.0.9", opened), (HERE, opened), ("127.0.0.8", opened)]
    assert reach([places]) == (Reach(HERE, opened, Reachable.OPEN),)
    places = [("127.0.0.9", closed), (HERE, closed)]
    assert [one.address for one in reach([places])] == ["127.0.0.9", HERE]


def test_hundreds_of_servers_take_no_longer_than_one(opened: int, closed: int) -> None:
    with silent_port() as port:
        silent = [[(f"127.0.{number}.1", opened)] for number in range(1, 200)]
        begun = time.monotonic()
        found = reach([*silent, [(HERE, port)], [(HERE, opened)], [(HERE, closed)]], 0.5)
        assert time.monotonic() - begun < 3
    assert len(found) == 202
    assert [one.state for one in found[-3:]] == [Reachable.TIMEOUT, Reachable.OPEN, Reachable.REFUSED]


def test_many_dead_addresses_delay_no_other_server(monkeypatch: pytest.MonkeyPatch, opened: int) -> None:
    monkeypatch.setattr("nfstuned.host.network.reach.AT_ONCE", 2)
    with silent_port() as port:
        many = [(HERE, port), ("::ffff:127.0.0.1", port)]
        found = reach([many, [(HERE, opened)]], 0.3)
    assert Reach(HERE, opened, Reachable.OPEN) in found


def test_what_could_not_be_tried_in_time_is_left_out(monkeypatch: pytest.MonkeyPatch, opened: int) -> None:
    monkeypatch.setattr("nfstuned.host.network.reach.AT_ONCE", 1)
    with silent_port() as port:
        found = reach([[(HERE, port)], [(HERE, opened)]], 0.3)
    assert [one.state for one in found] == [Reachable.TIMEOUT]


DENIED = (1, 1, 1, 5)
"""REPLY, MSG_DENIED, AUTH_ERROR, AUTH_TOOWEAK: the answer of a server that wants TLS."""
STRANGER = "another service than NFS answers there"


def test_the_call_is_nfs_null_and_its_reply_an_answer() -> None:
    seen: list[bytes] = []

    def answer(call: bytes, sock: socket.socket) -> None:
        seen.append(call)
        whole = rpc_reply(call, 1, 0, 0, 0, 0)
        sock.sendall(whole[:5])
        time.sleep(0.05)
        sock.sendall(whole[5:])

    with rpc_server(answer) as place:
        assert ping(place, 10) == ""
    mark, _, kind, rpc, program, version, procedure, *rest = struct.unpack(">11I", seen[0])
    assert (mark, kind, rpc, program, version, procedure) == (0x80000028, 0, 2, 100003, 4, 0)
    assert rest == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (lambda call, sock: sock.sendall(rpc_reply(call, *DENIED)), ""),
        (lambda _, sock: sock.sendall(b"HTTP/1.1 400 Bad Request\r\n"), STRANGER),
        (lambda _, sock: sock.close(), STRANGER),
    ],
    ids=["refusal", "HTTP", "end"],
)
def test_refusals_and_strangers_are_named(answer: Callable[[bytes, socket.socket], None], end: str) -> None:
    with rpc_server(answer) as place:
        said = ping(place, 10)
    assert (said.endswith(end), bool(said)) == (True, bool(end))
