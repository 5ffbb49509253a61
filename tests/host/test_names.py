from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from nfstuned.host.network.names import from_hosts, resolve
from nfstuned.host.root import Root
from nfstuned.model.system import Answer
from tests.host.servers import Zone, dns_server
from tests.tree import put

SHARE = "sa1.file.core.windows.net"
ZONE: Zone = {
    SHARE: (("CNAME", "sa1.privatelink.file.core.windows.net"),),
    "sa1.privatelink.file.core.windows.net": (("A", "10.10.10.10"),),
    "sa2.file.core.windows.net": (("CNAME", "sa2.privatelink.file.core.windows.net"),),
    "sa2.privatelink.file.core.windows.net": (("CNAME", "file.ams09prdstr09a.store.core.windows.net"),),
    "file.ams09prdstr09a.store.core.windows.net": (("A", "52.239.238.8"),),
    "sa3.file.core.windows.net": (("CNAME", "sa3.privatelink.file.core.windows.net"),),
    "both.example.com": (("A", "192.0.2.7"), ("A", "192.0.2.8"), ("AAAA", "2001:db8::7")),
    "mail.example.com": (("TXT", '"no address"'),),
    "slow.example.com": (("", "SILENT"),),
    "four.example.com": (("A", "192.0.2.4"), ("AAAA", "SILENT")),
    "broken.example.com": (("", "SERVFAIL"),),
    "lame.example.com": (("", "LAME"),),
    "store.example.com": (("TXT", '"no address"'),),
    "store.corp.example.com": (("AAAA", "2001:db8::5"),),
    "sick.example.com": (("", "SERVFAIL"),),
    "sick.corp.example.com": (("A", "192.0.2.6"),),
    "nas.east": (("TXT", '"no address"'),),
    "nas.east.corp.example.com": (("A", "192.0.2.3"),),
    "filer.corp.example.com": (("A", "192.0.2.9"),),
    "loop.example.com": (("CNAME", "loop.example.com"),),
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with dns_server(ZONE) as number:
        yield number


def tree(tmp_path: Path, **files: str) -> Root:
    texts = {"resolv": "nameserver 127.0.0.1\n", "nsswitch": "hosts: files dns\n", "hosts": "", **files}
    for name, text in texts.items():
        put(tmp_path / "etc" / ("hosts" if name == "hosts" else f"{name}.conf"), text)
    return Root(str(tmp_path))


def one(root: Root, name: str, port: int, seconds: float = 3.0) -> Answer:
    (answer,) = resolve(root, (name,), seconds, port)
    assert answer.host == name
    return answer


def test_a_private_link_is_followed_to_its_address(tmp_path: Path, port: int) -> None:
    assert one(tree(tmp_path), SHARE, port) == Answer(
        SHARE, ("10.10.10.10",), ("sa1.privatelink.file.core.windows.net",)
    )


def test_every_alias_is_named_in_order(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path), "sa2.file.core.windows.net", port)
    assert answer.chain == (
        "sa2.privatelink.file.core.windows.net",
        "file.ams09prdstr09a.store.core.windows.net",
    )
    assert answer.addresses == ("52.239.238.8",)


def test_addresses_of_both_families_are_found(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path), "both.example.com", port)
    assert answer.addresses == ("192.0.2.7", "192.0.2.8", "2001:db8::7")


def test_a_name_that_does_not_exist_is_a_verdict(tmp_path: Path, port: int) -> None:
    assert one(tree(tmp_path), "nowhere.example.com", port) == Answer(
        "nowhere.example.com", error="NXDOMAIN", final=True
    )


def test_an_alias_that_leads_nowhere_keeps_its_chain(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path), "sa3.file.core.windows.net", port)
    assert (answer.error, answer.final) == ("NXDOMAIN", True)
    assert answer.chain == ("sa3.privatelink.file.core.windows.net",)


def test_a_name_without_addresses_is_a_verdict(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path), "mail.example.com", port)
    assert (answer.addresses, answer.error, answer.final) == ((), "no A or AAAA record", True)


def test_a_resolver_that_fails_gives_no_verdict(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path), "broken.example.com", port)
    assert "SERVFAIL" in answer.error
    assert not answer.final


def test_a_server_that_knows_nothing_and_asks_nobody_gives_no_verdict(tmp_path: Path, port: int) -> None:
    """glibc goes on to the next server then."""
    answer = one(tree(tmp_path), "lame.example.com", port)
    assert answer.error
    assert not answer.final


def test_an_alias_of_itself_gives_no_verdict(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path), "loop.example.com", port, 1)
    assert answer.error
    assert not answer.final


def test_what_never_answers_does_not_hold_the_others_up(tmp_path: Path, port: int) -> None:
    names = (*(f"{number}.slow.example.com" for number in range(40)), "slow.example.com", SHARE)
    begun = time.monotonic()
    answers = resolve(tree(tmp_path), names, 1, port)
    assert time.monotonic() - begun < 3
    assert [answer.host for answer in answers] == list(names)
    assert answers[-1].addresses == ("10.10.10.10",)
    assert (answers[-2].error, answers[-2].final) == ("no answer within 1 s", False)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_names_resolve_with_the_threads_that_there_may_be(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A container, or a user, may have few."""
    started = 0

    class Limited(Thread):
        def start(self) -> None:
            nonlocal started
            started += 1
            if started > most:
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr("nfstuned.host.network.names.Thread", Limited)
    names = (SHARE, "both.example.com", "nowhere.example.com", "filer.corp.example.com")
    answers = resolve(tree(tmp_path), names, 3, port)
    assert [answer.error for answer in answers] == ["", "", "NXDOMAIN", ""]
    assert answers[1].addresses == ("192.0.2.7", "192.0.2.8", "2001:db8::7")


def test_one_family_is_enough_where_the_other_is_never_answered(tmp_path: Path, port: int) -> None:
    assert one(tree(tmp_path), "four.example.com", port, 3) == Answer("four.example.com", ("192.0.2.4",))


def test_a_dead_name_server_leaves_time_for_the_next(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, resolv="nameserver 127.0.0.2\nnameserver 127.0.0.1\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.2", port))
        assert one(root, SHARE, port, 2).addresses == ("10.10.10.10",)


def test_a_search_domain_completes_a_short_name(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, resolv="search example.com corp.example.com\nnameserver 127.0.0.1\n")
    assert one(root, "filer", port).addresses == ("192.0.2.9",)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("store", Answer("store", ("2001:db8::5",))),  # the first domain has the name without an address
        ("sick", Answer("sick", ("192.0.2.6",))),  # its server fails
        ("nas.east", Answer("nas.east", ("192.0.2.3",))),  # it has a dot, and is tried as it is first
        ("mail", Answer("mail", error="no A or AAAA record")),
        ("both", Answer("both", ("192.0.2.7", "192.0.2.8", "2001:db8::7"))),
        ("nowhere", Answer("nowhere", error="NXDOMAIN")),
        ("nowhere.east", Answer("nowhere.east", error="NXDOMAIN")),
    ],
)
def test_the_search_goes_on_where_glibcs_does(tmp_path: Path, port: int, name: str, answer: Answer) -> None:
    root = tree(tmp_path, resolv="search example.com corp.example.com\nnameserver 127.0.0.1\n")
    assert one(root, name, port) == answer


def test_a_name_that_one_domain_could_not_be_asked_for_has_no_verdict(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, resolv="search example.com\nnameserver 127.0.0.1\n")
    for name in ("broken", "slow"):
        answer = one(root, name, port, 1)
        assert answer.error
        assert not answer.final


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nameserver\nnameserver name.example.com\n",
        "nameserver 127.0.0.9%eth0\nnameserver ::1%lo%lo\nnameserver ::1%\n",
        "search a..b\noptions ndots:x\n",
    ],
)
def test_without_a_usable_name_server_this_machine_is_asked(tmp_path: Path, port: int, text: str) -> None:
    assert one(tree(tmp_path, resolv=text), SHARE, port).addresses == ("10.10.10.10",)


def test_the_name_server_of_no_address_is_this_machine_as_for_glibc(tmp_path: Path, port: int) -> None:
    assert one(tree(tmp_path, resolv="nameserver 0.0.0.0\n"), SHARE, port).addresses == ("10.10.10.10",)


@pytest.mark.parametrize("timeout", ["0", "-1"])
def test_a_timeout_of_nothing_is_a_second_as_with_glibc(tmp_path: Path, port: int, timeout: str) -> None:
    root = tree(tmp_path, resolv=f"nameserver 127.0.0.1\noptions timeout:{timeout}\n")
    assert one(root, SHARE, port).addresses == ("10.10.10.10",)


def test_the_hosts_file_comes_first_and_has_no_chain(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, hosts=f"# pinned\n10.9.9.9 SA1.file.core.windows.net sa1\n2001:db8::9 {SHARE}\n")
    assert one(root, SHARE, port) == Answer(SHARE, ("10.9.9.9", "2001:db8::9"))


def test_the_hosts_file_comes_last_where_nsswitch_says_so(tmp_path: Path, port: int) -> None:
    hosts = f"10.9.9.9 {SHARE} nowhere.example.com\n"
    root = tree(tmp_path, hosts=hosts, nsswitch="hosts: dns files\n")
    answers = resolve(root, (SHARE, "nowhere.example.com"), 3, port)
    assert [answer.addresses for answer in answers] == [("10.10.10.10",), ("10.9.9.9",)]


def test_without_dns_in_nsswitch_nobody_is_asked(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path, nsswitch="hosts: files\n"), SHARE, port)
    assert (answer.addresses, answer.final) == ((), True)
    assert "nsswitch.conf" in answer.error


def test_without_files_in_nsswitch_the_hosts_file_does_not_count(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, hosts=f"10.9.9.9 {SHARE}\n", nsswitch="hosts: dns\n")
    assert one(root, SHARE, port).addresses == ("10.10.10.10",)


def test_what_another_source_may_know_is_no_verdict(tmp_path: Path, port: int) -> None:
    answer = one(tree(tmp_path, nsswitch="hosts: files dns ldap\n"), "nowhere.example.com", port)
    assert (answer.error, answer.final) == ("NXDOMAIN; not asked: ldap", False)


def test_a_short_name_may_be_known_to_the_neighbours(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, nsswitch="hosts: files resolve [!UNAVAIL=return] dns\n")
    names = ("filer", "nas.local", "nowhere.example.com")
    assert [answer.final for answer in resolve(root, names, 3, port)] == [False, False, True]


@pytest.mark.parametrize(("server", "final"), [("127.0.0.1", False), ("127.0.0.53", True)])
def test_where_systemd_resolved_runs_only_its_own_server_has_its_verdict(
    tmp_path: Path, server: str, *, final: bool
) -> None:
    """It may ask another server for a domain (a VPN's), of which resolv.conf tells nothing."""
    root = tree(
        tmp_path, resolv=f"nameserver {server}\n", nsswitch="hosts: files resolve [!UNAVAIL=return] dns\n"
    )
    put(tmp_path / "run/systemd/resolve/stub-resolv.conf", "nameserver 127.0.0.53\n")
    with dns_server(ZONE, server) as number:
        answer = one(root, "nowhere.example.com", number)
    assert answer.error.startswith("NXDOMAIN")
    assert answer.final is final


@pytest.mark.parametrize(
    "sources", ["files dns myhostname", "mymachines resolve [!UNAVAIL=return] files myhostname dns"]
)
def test_the_names_that_systemd_answers_for_need_no_dns(tmp_path: Path, port: int, sources: str) -> None:
    root = tree(tmp_path, nsswitch=f"hosts: {sources}\n", hosts="192.0.2.1 pinned.localhost\n")
    put(tmp_path / "proc/sys/kernel/hostname", "Client1\n")
    for name in ("localhost", "nas.localhost", "localhost.localdomain"):
        assert one(root, name, port) == Answer(name, ("127.0.0.1", "::1"))
    assert one(root, "pinned.localhost", port).addresses == ("192.0.2.1",)
    for name in ("client1", "_gateway"):
        answer = one(root, name, port)
        assert (answer.addresses, answer.final) == ((), False)


def test_without_systemds_sources_its_names_are_names_like_others(tmp_path: Path, port: int) -> None:
    for name in ("localhost", "_gateway"):
        assert one(tree(tmp_path / name), name, port).final


@pytest.mark.parametrize("name", ["\udcff.example.com", "a..b", "x" * 64 + ".example.com", ""])
def test_what_is_no_name_is_a_verdict(tmp_path: Path, port: int, name: str) -> None:
    answer = one(tree(tmp_path), name, port)
    assert answer.error
    assert answer.addresses == ()


def test_an_images_hosts_file_is_read_and_nothing_else_is_asked(tmp_path: Path) -> None:
    hosts = f"10.10.10.10 {SHARE} sa1\n"
    root = tree(tmp_path, hosts=hosts)
    told, untold = from_hosts(root, (SHARE, "nas.lab.internal"))
    assert told == Answer(SHARE, ("10.10.10.10",))
    assert (untold.host, untold.addresses) == ("nas.lab.internal", ())
    assert "/etc/hosts" in untold.error


@pytest.mark.parametrize("order", ["dns files", "dns"])
def test_an_images_hosts_file_says_nothing_where_name_servers_come_first(tmp_path: Path, order: str) -> None:
    root = tree(tmp_path, hosts=f"10.10.10.10 {SHARE}\n", nsswitch=f"hosts: {order}\n")
    assert [one.addresses for one in from_hosts(root, (SHARE,))] == [()]
