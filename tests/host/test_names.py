from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from nfstuned.host.network.names import from_hosts, name_server_lines, parse_hosts, parse_sources, resolve
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


BOTH = ("192.0.2.7", "192.0.2.8", "2001:db8::7")
SHARED = Answer(SHARE, ("10.10.10.10",), ("sa1.privatelink.file.core.windows.net",))
STORE = ("sa2.privatelink.file.core.windows.net", "file.ams09prdstr09a.store.core.windows.net")
NO_ADDRESS, UNKNOWN = "no A or AAAA record", "NXDOMAIN"
PINNED = f"# pinned\n10.9.9.9 SA1.file.core.windows.net sa1\n2001:db8::9 {SHARE}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        SHARED,
        Answer("sa2.file.core.windows.net", ("52.239.238.8",), STORE),
        Answer("both.example.com", BOTH),
        Answer("four.example.com", ("192.0.2.4",)),  # AAAA is never answered
        Answer("nowhere.example.com", error=UNKNOWN),
        Answer("sa3.file.core.windows.net", (), ("sa3.privatelink.file.core.windows.net",), UNKNOWN),
        Answer("mail.example.com", error=NO_ADDRESS),
    ],
    ids=str,
)
def test_an_answer_has_addresses_and_aliases_or_a_verdict(tmp_path: Path, port: int, answer: Answer) -> None:
    assert one(tree(tmp_path), answer.host, port) == answer


@pytest.mark.parametrize(
    "answer",
    [
        Answer("filer", ("192.0.2.9",)),
        Answer("store", ("2001:db8::5",)),  # the first domain has the name without an address
        Answer("sick", ("192.0.2.6",)),  # its server fails
        Answer("nas.east", ("192.0.2.3",)),  # it has a dot, and is tried as it is first
        Answer("mail", error=NO_ADDRESS),
        Answer("both", BOTH),
        Answer("nowhere", error=UNKNOWN),
        Answer("nowhere.east", error=UNKNOWN),
    ],
    ids=str,
)
def test_the_search_goes_on_where_glibcs_does(tmp_path: Path, port: int, answer: Answer) -> None:
    root = tree(tmp_path, resolv="search example.com corp.example.com\nnameserver 127.0.0.1\n")
    assert one(root, answer.host, port) == answer


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nameserver\nnameserver name.example.com\n",
        "nameserver 127.0.0.9%eth0\nnameserver ::1%lo%lo\nnameserver ::1%\n",
        "search a..b\noptions ndots:x\n",
        "nameserver 0.0.0.0\n",
        "nameserver 127.0.0.1\noptions timeout:0\n",
        "nameserver 127.0.0.1\noptions timeout:-1\n",
    ],
)
def test_an_odd_resolv_conf_means_this_machine_and_a_second(tmp_path: Path, port: int, text: str) -> None:
    assert one(tree(tmp_path, resolv=text), SHARE, port) == SHARED


@pytest.mark.parametrize(
    ("sources", "answer"),
    [
        ("files dns", Answer(SHARE, ("10.9.9.9", "2001:db8::9"))),
        ("dns files", SHARED),
        ("dns files", Answer("sa1", ("10.9.9.9",))),
        ("dns", SHARED),
        ("files", Answer("both.example.com", error="not in /etc/hosts, and nsswitch.conf leaves DNS out")),
        ("files dns ldap", Answer("nowhere.example.com", (), (), "NXDOMAIN; not asked: ldap", final=False)),
    ],
)
def test_the_hosts_file_counts_by_nsswitch(tmp_path: Path, port: int, sources: str, answer: Answer) -> None:
    root = tree(tmp_path, hosts=PINNED, nsswitch=f"hosts: {sources}\n")
    assert one(root, answer.host, port) == answer


@pytest.mark.parametrize(
    "name", ["broken.example.com", "lame.example.com", "loop.example.com", "broken", "slow"]
)
def test_a_server_that_fails_or_is_silent_gives_no_verdict(tmp_path: Path, port: int, name: str) -> None:
    """glibc goes on to the next server where one knows nothing and asks nobody (lame)."""
    answer = one(tree(tmp_path, resolv="search example.com\nnameserver 127.0.0.1\n"), name, port, 1)
    assert answer.error
    assert not answer.final
    assert ("SERVFAIL" in answer.error) is name.startswith("broken")


@pytest.mark.slow
def test_what_never_answers_does_not_hold_the_others_up(tmp_path: Path, port: int) -> None:
    names = (*(f"{number}.slow.example.com" for number in range(40)), "slow.example.com", SHARE)
    begun = time.monotonic()
    answers = resolve(tree(tmp_path), names, 4, port)
    # One after the other they would take four seconds each.
    assert time.monotonic() - begun < 4 * len(names) / 2
    assert [answer.host for answer in answers] == list(names)
    assert answers[-1].addresses == ("10.10.10.10",)
    assert (answers[-2].error, answers[-2].final) == ("no answer within 4 s", False)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_few_threads_resolve(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
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


def test_a_dead_name_server_leaves_time_for_the_next(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, resolv="nameserver 127.0.0.2\nnameserver 127.0.0.1\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.2", port))
        assert one(root, SHARE, port, 2).addresses == ("10.10.10.10",)


def test_a_short_name_may_be_known_to_the_neighbours(tmp_path: Path, port: int) -> None:
    root = tree(tmp_path, nsswitch="hosts: files resolve [!UNAVAIL=return] dns\n")
    names = ("filer", "nas.local", "nowhere.example.com")
    assert [answer.final for answer in resolve(root, names, 3, port)] == [False, False, True]


@pytest.mark.parametrize(("server", "final"), [("127.0.0.1", False), ("127.0.0.53", True)])
def test_only_systemd_resolveds_server_has_its_verdict(tmp_path: Path, server: str, *, final: bool) -> None:
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
    for name in ("localhost", "_gateway"):  # without systemd's sources, names like others
        assert one(tree(tmp_path), name, port).final


@pytest.mark.parametrize("name", ["\udcff.example.com", "a..b", "x" * 64 + ".example.com", ""])
def test_a_text_that_is_not_a_name_is_an_error(tmp_path: Path, port: int, name: str) -> None:
    answer = one(tree(tmp_path), name, port)
    assert answer.error
    assert answer.addresses == ()


def test_an_images_hosts_file_is_read_and_nothing_else_is_asked(tmp_path: Path) -> None:
    told, untold = from_hosts(tree(tmp_path, hosts=PINNED), (SHARE, "nas.lab.internal"))
    assert told == Answer(SHARE, ("10.9.9.9", "2001:db8::9"))
    assert (untold.host, untold.addresses) == ("nas.lab.internal", ())
    assert "/etc/hosts" in untold.error
    for order in ("dns files", "dns"):  # name servers come first
        root = tree(tmp_path, hosts=PINNED, nsswitch=f"hosts: {order}\n")
        assert [answer.addresses for answer in from_hosts(root, (SHARE,))] == [()]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            "127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # both\n",
            {"localhost": ("127.0.0.1", "::1"), "ip6-localhost": ("::1",)},
        ),
        (
            "10.0.0.5 NAS.example.com nas\n10.0.0.5 nas\n",
            {"nas.example.com": ("10.0.0.5",), "nas": ("10.0.0.5",)},
        ),
        ("# 10.0.0.5 nas\n\nnas 10.0.0.5\n10.0.0.300 nas\n10.0.0.5\nfe80::1 #nas\n", {}),
        # The inet_pton(3) of glibc 2.36 takes no scope.
        ("fe80::1%eth0 nas\n10.0.0.5%eth0 nas\n", {}),
    ],
)
def test_a_name_has_its_addresses_in_the_order_of_the_file(text: str, known: dict[str, object]) -> None:
    assert parse_hosts(text) == known


@pytest.mark.parametrize(
    ("line", "sources"),
    [
        ("", "files dns"),
        ("passwd: files\n", "files dns"),
        ("hosts: files dns # as ever\n", "files dns"),
        ("hosts:\t\tdns files\n", "dns files"),
        ("hosts: dns\nhosts: files\n", "files"),
        ("#hosts: files\nhosts: dns\n", "dns"),
        ("hosts: files mdns4_minimal [NOTFOUND=return] dns myhostname", "files mdns4_minimal dns myhostname"),
        ("hosts: files [NOTFOUND=return] dns\n", "files"),
        ("hosts: files [ NOTFOUND = return ] dns\n", "files"),
        ("hosts: files [\tNOTFOUND\t=\treturn\t] dns\n", "files"),
        ("hosts: files [UNAVAIL=continue NOTFOUND=return] dns\n", "files"),
        ("hosts: files [notfound=return success=continue] dns\n", "files"),
        ("hosts: files [!UNAVAIL=return NOTFOUND=continue] dns\n", "files dns"),
        ("hosts: files [NOTFOUND=continue ! UNAVAIL=return] dns\n", "files"),
        ("hosts: files [SUCCESS=return] dns\n", "files dns"),
        ("hosts: mymachines resolve [!UNAVAIL=return] files myhostname dns", "mymachines files dns resolve"),
        ("hosts: files dns [!NOTFOUND=return] ldap\n", "files dns ldap"),
    ],
)
def test_what_is_asked_in_which_order(line: str, sources: str) -> None:
    assert parse_sources(line) == tuple(sources.split())


def test_name_servers_that_glibc_passes_over_are_left_out() -> None:
    counting = ("search a.example", "nameserver 10.0.0.1", "nameserver ::1%lo", "nameserver 10.0.0.3")
    passed = ("nameserver b.example", "nameserver", " nameserver 10.0.0.2")
    text = "\n".join((*counting[:2], *passed, *counting[2:], "nameserver 10.0.0.4"))
    assert name_server_lines(text).split("\n")[:-1] == [*counting]
