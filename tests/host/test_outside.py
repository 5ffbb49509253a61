from __future__ import annotations

import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from nfstuned.host.network import outside
from nfstuned.host.network.outside import LiveOutside, Questions, vm_size
from nfstuned.host.root import Root
from nfstuned.model.system import Answer, Network, Reach, Reachable, Route
from tests.host.servers import Zone, dns_server, http_server, silent_port
from tests.tree import put

PATIENCE_S = 60.0
"""A loaded machine may need longer than the deadline of a second to load the HTTP client."""

ZONE: Zone = {
    "sa1.file.core.windows.net": (("CNAME", "sa1.privatelink.file.core.windows.net"),),
    "sa1.privatelink.file.core.windows.net": (("A", "127.0.0.1"), ("A", "127.0.0.9")),
    "slow.example.com": (("", "SILENT"),),
}


def root(tmp_path: Path) -> Root:
    put(tmp_path / "etc/resolv.conf", "nameserver 127.0.0.1\n")
    return Root(str(tmp_path))


def test_everything_is_asked_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "vm_size", partial(outside.vm_size, seconds=PATIENCE_S))
    share = "sa1.file.core.windows.net"
    put(tmp_path / "sys/class/net/lo/ifindex", "1\n")
    with (
        dns_server(ZONE) as dns_port,
        http_server(200, "Standard_E16s_v3") as (url, _),
        socket.create_server(("127.0.0.1", 0)) as nfs,
    ):
        port = nfs.getsockname()[1]
        questions = Questions((share,), ((share, port), ("127.0.0.2", port)), ("127.0.0.3",), azure=True)
        network, unknown = LiveOutside(root(tmp_path), url, dns_port).ask(questions, offline=False)
    assert unknown == ()
    assert network.answers == (
        Answer(share, ("127.0.0.1", "127.0.0.9"), ("sa1.privatelink.file.core.windows.net",)),
    )
    assert network.reaches == (
        Reach("127.0.0.1", port, Reachable.OPEN),
        Reach("127.0.0.2", port, Reachable.REFUSED, "Connection refused"),
    )
    assert network.routes == tuple(
        Route(address, "lo", local=True) for address in ("127.0.0.3", "127.0.0.2", "127.0.0.1", "127.0.0.9")
    )
    assert [one.name for one in network.interfaces] == ["lo"]
    assert network.vm_size == "Standard_E16s_v3"


def test_offline_only_the_kernel_is_asked(tmp_path: Path) -> None:
    with dns_server(ZONE) as dns_port, http_server(200, "Standard_E16s_v3") as (url, seen):
        questions = Questions(("slow.example.com",), (("127.0.0.2", 2049),), ("127.0.0.3",), azure=True)
        network, unknown = LiveOutside(root(tmp_path), url, dns_port).ask(questions, offline=True)
    assert (network.answers, network.reaches, network.vm_size, unknown, seen) == ((), (), None, (), [])
    assert [route.address for route in network.routes] == ["127.0.0.3", "127.0.0.2"]


@pytest.mark.slow  # it waits for the longest that a command may
def test_whatever_does_not_answer_ends_in_time_and_is_named(tmp_path: Path) -> None:
    names = ("slow.example.com", *(f"{number}.slow.example.com" for number in range(500)))
    zone = dict.fromkeys(names, (("", "SILENT"),))
    with dns_server(zone) as dns_port, silent_port() as dead:
        servers = tuple((name, 2049) for name in names)
        questions = Questions(names, (*servers, ("127.0.0.1", dead)), azure=True)
        live = LiveOutside(root(tmp_path), f"http://127.0.0.1:{dead}/", dns_port)
        begun = time.monotonic()
        network, unknown = live.ask(questions, offline=False)
        # One after the other, the names would take 25 minutes; the deadlines are 6 s, and load adds some.
        assert time.monotonic() - begun < PATIENCE_S
    assert network.reaches == (Reach("127.0.0.1", dead, Reachable.TIMEOUT, "no answer within 2 s"),)
    assert unknown[0] == "slow.example.com: no answer within 3 s"
    assert len(unknown) == len(names) + 1
    assert unknown[-1].startswith("VM size from Azure's metadata service: ")


def test_a_server_that_could_not_be_tried_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfstuned.host.network.reach.AT_ONCE", 0)
    questions = Questions((), (("127.0.0.1", 2049),))
    network, unknown = LiveOutside(root(tmp_path)).ask(questions, offline=False)
    assert network.reaches == ()
    assert unknown == ("127.0.0.1 port 2049: not tried",)


def test_the_process_ends_although_a_name_is_still_waited_for(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from nfstuned.host.network.names import resolve\n"
        "from nfstuned.host.root import Root\n"
        "print(resolve(Root(sys.argv[1]), ('slow.example.com',), 0.2, int(sys.argv[2]))[0].error)\n"
    )
    with dns_server(ZONE) as port:
        command = [sys.executable, "-c", script, root(tmp_path).prefix, str(port)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
    assert done.stdout == "no answer within 0.2 s\n"


def test_no_questions_cost_nothing(tmp_path: Path) -> None:
    assert LiveOutside(root(tmp_path)).ask(Questions(), offline=False) == (Network(), ())


def test_a_pause_takes_its_time(tmp_path: Path) -> None:
    begun = time.monotonic()
    LiveOutside(root(tmp_path)).pause(0.05)
    assert time.monotonic() - begun >= 0.05


def test_the_size_is_what_the_service_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with http_server(200, "Standard_D16_v4") as (url, seen):
        assert vm_size(url, PATIENCE_S) == ("Standard_D16_v4", "")
    assert seen == ["/size?format=text true"]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (404, "Not found", "status 404"),
        (200, "<html>a captive portal</html>", "not a size"),
        (200, "", "not a size"),
    ],
)
def test_anything_else_is_no_size(status: int, body: str, problem: str) -> None:
    with http_server(status, body) as (url, _):
        size, said = vm_size(url, PATIENCE_S)
    assert size is None
    assert said.startswith("VM size from Azure's metadata service: ")
    assert problem in said
