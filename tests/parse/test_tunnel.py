from __future__ import annotations

from typing import Any

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Tunnel
from nfstuned.model.system import Refusal, TunnelEntry, TunnelService
from nfstuned.parse.etc.tunnel import (
    parse_listening,
    parse_mountmap,
    parse_refusal,
    parse_services,
    parse_stunnel,
    parse_tunnel_list,
    parse_variable,
)
from tests.check import hosts
from tests.parse.rows import shown

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Options before the first section are every section's, and a file without sections is one service.
        ("connect = h:9\n[a]\naccept = 1\n[b]\naccept = 2\nconnect = i:3\n", [(1, "h", 9), (2, "i", 3)]),
        ("accept = 127.0.0.1:20049\nconnect = h:2049\n", [(20049, "h", 2049)]),
        # IPv6 addresses lose their brackets, and a bare port is this host's.
        ("accept = ::1:20049\nconnect = [fd00::10]:2049\n", [(20049, "fd00::10", 2049)]),
        ("accept = 20049\nconnect = 2049\n", [(20049, "localhost", 2049)]),
        # Services that cannot carry a mount are left out.
        *((f"accept = {one}\nconnect = h:2049", []) for one in ("/run/socket", "127.0.0.1:imaps", "0")),
        *((f"accept = 20049\nconnect = h:{port}", []) for port in ("65536", "9" * 5000)),
        *(
            (text, [])
            for text in ("", "accept = 20049\nexec = /bin/true", ";accept = 20049\nconnect = h:2049")
        ),
    ],
)
def test_services_that_carry_a_mount_have_ports(text: str, expected: list[tuple[int, str, int]]) -> None:
    assert tunnels(text) == expected


AZNFS = """\
CAFile = /etc/ssl/certs/DigiCert_Global_Root_G2.pem
verifyChain = yes
checkHost = *.file.core.windows.net
debug = info

[10.10.10.10]
client = yes
accept = 127.0.0.1:20049
connect = 10.10.10.10:2049
"""
SERVICE = TunnelService("f", 3, "20049", 20049, "h")


def test_a_service_says_whom_it_trusts_and_in_which_line() -> None:
    (service,) = parse_services(AZNFS, "/etc/stunnel.conf")
    place = TunnelService("/etc/stunnel.conf", 8, "127.0.0.1:20049", 20049, "10.10.10.10")
    ca_file = "/etc/ssl/certs/DigiCert_Global_Root_G2.pem"
    assert service == place._replace(ca_file=ca_file, ca_line=1, verifies_chain=True, verifies_name=True)


@pytest.mark.parametrize(
    ("option", "changed"),
    [
        ("", {}),
        ("verifyChain = yes", {"verifies_chain": True}),
        ("VERIFYCHAIN=YES", {"verifies_chain": True}),
        ("verifyChain = no", {}),
        ("verifyPeer = yes", {"verifies_peer": True}),
        ("verify = 0", {}),
        ("verify = 1", {"verifies_chain": True}),
        ("verify = 2", {"verifies_chain": True}),
        ("verify = 3", {"verifies_chain": True, "verifies_peer": True}),
        ("verify = 4", {"verifies_peer": True}),
        ("PSKsecrets = /etc/psk", {"verifies_peer": True}),
        ("checkHost = *.file.core.windows.net", {"verifies_name": True}),
        ("checkIP = 10.0.0.4", {"verifies_name": True}),
        ("CAfile = /ca.pem", {"ca_file": "/ca.pem", "ca_line": 2}),
        ("CApath = /etc/ssl/certs", {"other_ca": True}),
        ("CAengine = pkcs11:", {"other_ca": True}),
        ("; CAfile = /ca.pem", {}),
        ("output = /var/log/a.log", {"log": "/var/log/a.log"}),
    ],
)
def test_each_option_about_trust_has_its_meaning(option: str, changed: dict[str, Any]) -> None:
    (service,) = parse_services(f"[a]\n{option}\naccept = 20049\nconnect = h:2049\n", "f")
    assert service == SERVICE._replace(**changed)


@pytest.mark.parametrize("line", ["sa1", "sa1 10.161.100.100", "sa1 10.161.100 52.1.2.3", "sa1 a b"])
def test_a_list_of_aznfs_has_a_name_and_two_addresses_on_each_line(line: str) -> None:
    host = "sa1.blob.core.windows.net"
    text = f"{host} 10.161.100.100 52.1.2.3\n{line}\n\nsa2 192.168.100.100 10.0.0.4 1a2b3c\n"
    first, wrong, second = parse_mountmap(text, "/m", "azure-blob")
    assert first == Tunnel(0, host, 0, "azure-blob", "/m", "10.161.100.100", "52.1.2.3")
    assert isinstance(wrong, ParseError)
    assert (wrong.file, wrong.line) == ("/m", 2)
    assert second == Tunnel(0, "sa2", 0, "azure-blob", "/m", "192.168.100.100", "10.0.0.4")


CONF = "/etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_10.0.0.4.conf"
ENTRY = f"10.0.0.4;{CONF};/l/stunnel_10.0.0.4.log;/l/stunnel_10.0.0.4.pid;3301;waiting;1763000000"


def test_an_entry_of_aznfs_list_of_tunnels_has_seven_fields() -> None:
    entry = TunnelEntry("/m", 2, "10.0.0.4", CONF, "waiting", 1763000000)
    assert shown(parse_tunnel_list(f"{ENTRY}x\n{ENTRY}\n", "/m")) == [
        "/m:1: the end of the time for a mount is not a number: '1763000000x'",
        entry,
    ]
    assert parse_tunnel_list(f"\n{ENTRY}\n", "/m") == (entry,)
    assert parse_tunnel_list(ENTRY.rpartition(";waiting")[0], "/m") == ()


LOG = "etc/stunnel/microsoft/aznfs/nfsv4_fileShare/logs/stunnel_10.10.10.10.log"
REFUSED, RENAMED, ACCEPTED = (
    hosts.text(name, LOG)
    for name in ("tls-server-refused", "tls-server-of-another-name", "tls-server-accepted-again")
)
LEAF = "CN=sa1.file.core.windows.net"


def test_a_log_says_whom_stunnel_refused_last_and_why() -> None:
    refused = Refusal("2026.11.25 04:46:34", "unable to get local issuer certificate", LEAF)
    for start in (0, 1, 40, len(REFUSED) // 2):  # a log may begin in the middle of a line
        assert parse_refusal(REFUSED[start:]) == refused
    assert parse_refusal(RENAMED) == Refusal("2026.11.25 04:46:36", "Subject checks failed", LEAF)


@pytest.mark.parametrize(
    "after",
    [
        "2026.11.25 04:46:30 LOG6[0]: TLS connected: new session negotiated",
        "2026.11.25 04:46:30 LOG6[1]: TLS connected: previous session reused",
        "2026.11.25 04:46:30 LOG5[ui]: Configuration successful",
    ],
)
def test_after_a_connection_or_a_new_configuration_nobody_is_refused(after: str) -> None:
    assert parse_refusal(f"{REFUSED}{after}\n") is None
    assert parse_refusal(f"{after}\n{REFUSED.partition('Configuration successful')[2]}") is not None
    assert parse_refusal(ACCEPTED) is None


def test_the_reason_is_that_of_the_same_thread() -> None:
    rejected = "2026.11.25 04:46:34 LOG4[7]: Rejected by CERT at depth=0: CN=a: b"
    other = "2026.11.25 04:46:34 LOG4[8]: CERT: Subject checks failed"
    assert parse_refusal(f"{other}\n{rejected}") == Refusal("2026.11.25 04:46:34", "", "CN=a: b")
    ignored = other.replace("[8]", "[7]")
    ignored = ignored.replace("Subject checks failed", "Pre-verification error ignored: x")
    assert parse_refusal(f"{ignored}\n{rejected}") == Refusal("2026.11.25 04:46:34", "", "CN=a: b")


NAME, CHINA = "AZURE_ENDPOINT_OVERRIDE", "chinacloudapi.cn"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{NAME}=chinacloudapi.cn\n", CHINA),
        (f'{NAME}="chinacloudapi.cn"\n', CHINA),
        (f"export {NAME}='chinacloudapi.cn'\n", CHINA),
        (f"[Manager]\nDefaultEnvironment=LANG=C {NAME}=chinacloudapi.cn OTHER=1\n", CHINA),
        (f'[Mount]\nEnvironment="{NAME}=chinacloudapi.cn"\n', CHINA),
        (f"BOOT_IMAGE=/vmlinuz root=/dev/sda1 systemd.setenv={NAME}=chinacloudapi.cn quiet\n", CHINA),
        (f"systemd.setenv={NAME}=windows.net systemd.setenv={NAME}=chinacloudapi.cn\n", CHINA),
        *(
            (text, None)
            for text in ("", f"# {NAME}=a\n", f"  ; {NAME}=a\n", f"{NAME}=a\n{NAME}=\n", f"MY_{NAME}=a\n")
        ),
        (f"{NAME}S=a\n", None),
    ],
)
def test_a_variable_is_found_in_every_form_and_no_other_is_taken_for_it(text: str, value: str | None) -> None:
    assert parse_variable(text, NAME) == value


SOCKETS = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4E51 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 24511 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18021 1
   2: 0100007F:03B6 0100007F:4E52 01 00000000:00000000 00:00000000 00000000     0        0 24519 1
  10: 0100007F:4E53 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24520 1
"""
V6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr
   0: 00000000000000000000000001000000:4E51 00000000000000000000000000000000:0000 0A 00000000:00000000
"""


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        (SOCKETS, {22, 20049}),
        (V6, {20049}),
        (SOCKETS.partition("\n")[0], set()),
        ("", None),
        ("no such file\n", None),
        (f"{SOCKETS}  11: 0100007F:4E5", {22, 20049}),
        (f"{SOCKETS}  11: 0100007F:zzzz 00000000:0000 0A 0\n", {22, 20049}),
    ],
)
def test_only_listening_sockets_count_and_no_list_is_not_empty(text: str, ports: set[int] | None) -> None:
    assert parse_listening(text) == ports
