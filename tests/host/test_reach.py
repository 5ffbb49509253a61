from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from nfstuned.host.network.reach import reach
from nfstuned.model.facts import Reach, Reachable
from tests.host.servers import silent_port

HERE = "127.0.0.1"


@pytest.fixture
def opened() -> Iterator[int]:
    with socket.create_server((HERE, 0), backlog=1024) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server((HERE, 0)) as listener:
        return int(listener.getsockname()[1])


def test_an_open_port_opens(opened: int) -> None:
    assert reach([[(HERE, opened)]]) == (Reach(HERE, opened, Reachable.OPEN),)


def test_a_closed_port_refuses(closed: int) -> None:
    assert reach([[(HERE, closed)]]) == (Reach(HERE, closed, Reachable.REFUSED, "Connection refused"),)


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


def test_of_a_server_with_several_addresses_the_first_that_opens_counts(opened: int) -> None:
    places = [("127.0.0.9", opened), (HERE, opened), ("127.0.0.8", opened)]
    assert reach([places]) == (Reach(HERE, opened, Reachable.OPEN),)


def test_of_a_server_that_opens_nowhere_every_attempt_is_told(closed: int) -> None:
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


def test_a_server_with_many_dead_addresses_keeps_no_other_from_its_turn(
    monkeypatch: pytest.MonkeyPatch, opened: int
) -> None:
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
