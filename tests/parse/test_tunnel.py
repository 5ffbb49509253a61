from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Tunnel
from nfstuned.parse.etc.tunnel import parse_mountmap, parse_stunnel
from tests.parse.damage import any_text, damaged, tokens_damaged

REAL = """\
; written by a mount helper
# and commented
CAFile = /etc/ssl/certs/root.pem
client = yes

[sa1.file.core.windows.net]
accept = 127.0.0.1:20049
connect = sa1.file.core.windows.net:2049

[second]
Accept=127.0.0.1:20050
connect = 10.0.0.4:2049
connect = 10.0.0.5:2049
"""


def tunnels(text: str) -> list[tuple[int, str, int]]:
    return [(tunnel.port, tunnel.host, tunnel.host_port) for tunnel in parse_stunnel(text, "f", "p")]


def test_each_service_is_a_tunnel_of_its_provider() -> None:
    assert parse_stunnel(REAL, "stunnel_1.conf", "azure-files") == (
        Tunnel(20049, "sa1.file.core.windows.net", 2049, "azure-files", "stunnel_1.conf"),
        Tunnel(20050, "10.0.0.4", 2049, "azure-files", "stunnel_1.conf"),
    )


def test_options_before_the_first_section_are_every_sections() -> None:
    assert tunnels("connect = h:2049\n[a]\naccept = 1\n[b]\naccept = 2\nconnect = i:3\n") == [
        (1, "h", 2049),
        (2, "i", 3),
    ]


def test_a_file_without_sections_is_one_service() -> None:
    assert tunnels("accept = 127.0.0.1:20049\nconnect = h:2049\n") == [(20049, "h", 2049)]


def test_ipv6_addresses_lose_their_brackets_and_a_bare_port_is_this_host() -> None:
    assert tunnels("accept = ::1:20049\nconnect = [fd00::10]:2049\n") == [(20049, "fd00::10", 2049)]
    assert tunnels("accept = 20049\nconnect = 2049\n") == [(20049, "localhost", 2049)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "accept = /run/socket\nconnect = h:2049",
        "accept = 127.0.0.1:imaps\nconnect = h:2049",
        "accept = 20049\nexec = /bin/true",
        "accept = 0\nconnect = h:2049",
        "accept = 20049\nconnect = h:65536",
        "accept = 20049\nconnect = h:" + "9" * 5000,
        ";accept = 20049\nconnect = h:2049",
    ],
)
def test_services_that_cannot_carry_a_mount_are_left_out(text: str) -> None:
    assert tunnels(text) == []


@given(st.one_of(damaged(REAL), tokens_damaged(REAL), any_text))
def test_any_text_is_a_list_of_tunnels(text: str) -> None:
    for port, host, host_port in tunnels(text):
        assert 0 < port <= 65535
        assert 0 < host_port <= 65535
        assert host


def test_a_list_of_aznfs_has_a_name_and_two_addresses_on_each_line() -> None:
    text = "sa1.blob.core.windows.net 10.161.100.100 52.1.2.3\n\nsa2 192.168.100.100 10.0.0.4 1a2b3c\n"
    assert parse_mountmap(text, "/m", "azure-blob") == (
        Tunnel(0, "sa1.blob.core.windows.net", 0, "azure-blob", "/m", "10.161.100.100", "52.1.2.3"),
        Tunnel(0, "sa2", 0, "azure-blob", "/m", "192.168.100.100", "10.0.0.4"),
    )


@pytest.mark.parametrize("line", ["sa1", "sa1 10.161.100.100", "sa1 10.161.100 52.1.2.3", "sa1 a b"])
def test_a_line_that_is_none_of_these_is_told_and_the_others_count(line: str) -> None:
    wrong, right = parse_mountmap(f"{line}\nsa2 10.161.100.101 52.1.2.4\n", "/m", "azure-blob")
    assert isinstance(wrong, ParseError)
    assert (wrong.file, wrong.line) == ("/m", 1)
    assert isinstance(right, Tunnel)


@given(any_text)
def test_any_list_of_aznfs_is_taken_or_told(text: str) -> None:
    for row in parse_mountmap(text, "/m", "azure-blob"):
        assert isinstance(row, (Tunnel, ParseError))
