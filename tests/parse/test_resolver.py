from __future__ import annotations

import pytest

from nfstuned.parse.etc.resolver import name_server_lines, parse_hosts, parse_sources


def test_a_name_has_all_its_addresses_in_the_order_of_the_file() -> None:
    loopback = "127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # both\n"
    text = loopback + "10.0.0.5 NAS.example.com nas\n10.0.0.5 nas\n"
    assert dict(parse_hosts(text)) == {
        "localhost": ("127.0.0.1", "::1"),
        "ip6-localhost": ("::1",),
        "nas.example.com": ("10.0.0.5",),
        "nas": ("10.0.0.5",),
    }


def test_lines_without_an_address_do_not_count() -> None:
    assert not parse_hosts("# 10.0.0.5 nas\n\nnas 10.0.0.5\n10.0.0.300 nas\n10.0.0.5\nfe80::1 #nas\n")


def test_a_scope_stands_in_no_line_of_hosts() -> None:
    """So it is with glibc 2.36, whose inet_pton(3) takes no scope."""
    assert not parse_hosts("fe80::1%eth0 nas\n10.0.0.5%eth0 nas\n")


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("", ("files", "dns")),
        ("passwd: files\n", ("files", "dns")),
        ("hosts: files dns # as ever\n", ("files", "dns")),
        ("hosts:\t\tdns files\n", ("dns", "files")),
        ("hosts: files\n", ("files",)),
        ("#hosts: files\nhosts: dns\n", ("dns",)),
        (
            "hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname\n",
            ("files", "mdns4_minimal", "dns", "myhostname"),
        ),
        ("hosts: files [NOTFOUND=return] dns\n", ("files",)),
        ("hosts: files [ NOTFOUND = return ] dns\n", ("files",)),
        ("hosts: files [\tNOTFOUND\t=\treturn\t] dns\n", ("files",)),
        ("hosts: files [UNAVAIL=continue NOTFOUND=return] dns\n", ("files",)),
        ("hosts: files [notfound=return success=continue] dns\n", ("files",)),
        ("hosts: files [!UNAVAIL=return NOTFOUND=continue] dns\n", ("files", "dns")),
        ("hosts: files [NOTFOUND=continue ! UNAVAIL=return] dns\n", ("files",)),
        ("hosts: files [SUCCESS=return] dns\n", ("files", "dns")),
        (
            "hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns\n",
            ("mymachines", "files", "dns", "resolve"),
        ),
        ("hosts: files dns [!NOTFOUND=return] ldap\n", ("files", "dns", "ldap")),
    ],
)
def test_what_is_asked_in_which_order(line: str, sources: tuple[str, ...]) -> None:
    assert parse_sources(line) == sources


def test_name_servers_that_are_no_addresses_are_left_out() -> None:
    lines = (
        "search a.example",
        "nameserver 10.0.0.1",
        "nameserver b.example",
        "nameserver",
        "nameserver ::1%lo",
    )
    assert name_server_lines("\n".join(lines)).splitlines() == [lines[0], lines[1], lines[4]]
