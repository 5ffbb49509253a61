"""NFS215: lines for one server that ask for different nconnect; and which mounts are of one server."""

from __future__ import annotations

import pytest

from nfstuned.core.nconnect.server import group_by_ids, servers
from nfstuned.core.rules.catalogue import RULES, run_rules, select_rules
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import KernelRelease
from nfstuned.model.mounts import Maker, Request, Setting
from nfstuned.model.system import Answer, Network
from tests.core.nconnect_hosts import (
    AZURE,
    NAS,
    NAS_ADDRESS,
    Made,
    answered,
    facts,
    faults,
    on_host,
    subjects,
)

A, B = f"{NAS}:/a /a ", f"{NAS}:/b /b "


def told(host: Facts) -> list[str]:
    """Return the findings about nconnect: rule and subject."""
    rules = select_rules(RULES, ("NFS20", "NFS215"), ("NFS208", "NFS209"))
    return [f"{one.rule} {one.subject}" for one in run_rules(host, rules).findings]


@pytest.mark.parametrize(
    "host", [NAS, AZURE, "fs-01234567.efs.eu-west-1.amazonaws.com", "10.0.0.5", "10.9.0.5"]
)
@pytest.mark.parametrize(
    ("options", "most"),
    [(("rw", "nconnect=4"), 101), (("nconnect=4", "rw"), 100), (("nconnect=2", "nconnect=4"), 101)],
)
def test_lines_of_one_server_that_differ_are_one_finding_whoever_the_vendor_is(
    host: str, options: tuple[str, str], most: int
) -> None:
    found = facts(lines=tuple(f"{host}:/{n} /{n} vers=4.1,{text}" for n, text in enumerate(options)))
    assert told(found) == [f"NFS215 /etc/fstab:{most}"]
    (fault,) = faults("NFS215", found)
    assert all(f"/etc/fstab:{line}" in fault.message for line in (100, 101))


def test_every_line_that_is_to_be_changed_is_named_however_many_there_are() -> None:
    lines = [f"{NAS}:/{n} /{n} rw" for n in range(12)]
    (fault,) = faults("NFS215", facts(lines=(*lines, f"{NAS}:/x /x nconnect=8")))
    assert "(nconnect=8 in /etc/fstab:112; no nconnect in /etc/fstab:100, " in fault.message
    assert fault.remedy == "set nconnect=8 in " + ", ".join(f"/etc/fstab:{100 + n}" for n in range(12))
    assert (fault.observed, fault.expected) == (
        "nconnect=8, no nconnect",
        "the same nconnect in all lines of a server",
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"{A}rw", f"{B}rw"),
        (f"{A}nconnect=4", f"{B}nconnect=4"),
        (f"{A}nconnect=1", f"{B}rw"),
        (f"{A}nconnect=4", "other:/b /b rw"),
        (f"{A}vers=4.1,nconnect=4", f"{B}vers=4.2"),
        (f"{A}vers=3,nconnect=4", f"{B}vers=4.1"),
        (f"{A}vers=4.1,nconnect=4", f"{B}rw"),  # which version comes of negotiation is open
        (f"{A}nconnect=4", f"{B}port=2050"),
        (f"{A}nconnect=4", f"{B}proto=rdma"),
        (f"{A}nconnect=4", f"{B}xprtsec=tls"),
        (f"{A}proto=udp,nconnect=4", f"{B}proto=udp"),
        (f"{A}nconnect=17", f"{B}rw"),
        (f"{A}nconnect=many", f"{B}nconnect=4"),
        ("nas,spare:/a /a nconnect=4", f"{B}rw"),
        ("127.0.0.1:/a /a port=20049,nconnect=4", "127.0.0.1:/b /b port=20050"),
    ],
)
def test_lines_that_share_nothing_or_do_not_differ_are_no_finding(first: str, second: str) -> None:
    assert not faults("NFS215", facts(lines=(first, second)))


def test_spellings_of_a_name_are_one_name() -> None:
    assert subjects("NFS215", facts(lines=(f"{A}nconnect=4", "NAS.:/b /b rw"))) == ["/etc/fstab:100"]


def test_names_of_one_address_are_one_server_and_a_name_of_several_is_none() -> None:
    lines = (f"{A}nconnect=4", "other:/b /b rw")
    network = Network(answers=tuple(Answer(host, (NAS_ADDRESS,)) for host in (NAS, "other")))
    assert subjects("NFS215", facts(lines=lines, network=network)) == ["/etc/fstab:100"]
    alike = (f"{A}nconnect=4", f"{B}rw")
    for addresses, number in ((("10.0.0.5", "fd00::5"), 1), (("10.0.0.5", "10.0.0.6"), 0)):
        network = Network(answers=(Answer(NAS, addresses),))
        assert len(faults("NFS215", facts(lines=alike, network=network))) == number


def test_what_nfsmount_conf_adds_counts_and_is_left_alone() -> None:
    found = facts(lines=(f"{A}rw", f"{B}nconnect=2"))
    conf = (Setting("nfsmount_global_options", None, "nconnect", "4", "/etc/nfsmount.conf", 2),)
    (fault,) = faults("NFS215", on_host(found, settings=conf))
    assert (fault.subject, fault.remedy) == ("/etc/fstab:100", "set nconnect=4 in /etc/fstab:101")
    agreed = facts(lines=(f"{A}rw", f"{B}nconnect=4"))
    assert not faults("NFS215", on_host(agreed, settings=conf))


def test_units_and_maps_are_lines_too_and_replicas_are_not() -> None:
    found = facts(lines=(f"{A}nconnect=4",))
    for requests, number in (
        ((Request(f"{NAS}:/b", "/b", "rw", "/etc/systemd/system/b.mount", 5),), 1),
        ((Request(f"{NAS}:/&", "/b/*", "rw", "/etc/auto.b", 1, wildcard=True, maker=Maker.AUTOFS),), 1),
        ((Request("&:/x", "/b/*", "rw", "/etc/auto.b", 1, wildcard=True, maker=Maker.AUTOFS),), 0),
        (
            tuple(
                Request(f"{host}:/b", "/b", "rw", "/etc/auto.b", 1, maker=Maker.AUTOFS)
                for host in (NAS, "spare")
            ),
            0,
        ),
    ):
        host = on_host(found, requests=(*found.snapshot.requests, *requests))
        assert len(faults("NFS215", host)) == number


def test_the_number_is_good_for_every_line() -> None:
    for lines, remedy in (
        ((f"{A}nconnect=4", f"{B}sec=krb5"), "set nconnect=1 in /etc/fstab:100, as /etc/fstab:101 asks for"),
        (
            ("10.9.0.5:/a /a nconnect=2", "10.9.0.5:/b /b rw"),
            "set nconnect=8 in /etc/fstab:100, /etc/fstab:101",
        ),
        (
            (f"{AZURE}:/a /a nconnect=16", f"{AZURE}:/b /b rw"),
            "set nconnect=4 in /etc/fstab:100, /etc/fstab:101",
        ),
        ((f"{AZURE}:/a /a nconnect=4", f"{AZURE}:/b /b sec=krb5"), "set nconnect=4 in /etc/fstab:101"),
    ):
        (fault,) = faults("NFS215", facts(lines=lines))
        assert fault.remedy.startswith(remedy)


def test_a_kernel_without_nconnect_has_nothing_to_differ() -> None:
    found = facts(lines=(f"{A}nconnect=4", f"{B}rw"))
    for version, text, number in (((4, 19, 0), "4.19.0", 0), ((5, 10, 0), "5.10.0", 1)):
        host = on_host(found, kernel=KernelRelease(version, text))
        assert len(faults("NFS215", host)) == number
    for kernel_now in (KernelRelease((5, 4, 0), "5.4.0"), None):
        host = facts(lines=(f"{A}vers=4.0,nconnect=4", f"{B}vers=4.0"))
        assert not faults("NFS215", on_host(host, kernel=kernel_now))


def test_lines_that_differ_are_told_while_the_right_one_happens_to_be_first() -> None:
    shown = "vers=4.1,proto=tcp,nconnect=4"
    host = facts(Made("/a", "nconnect=4", shown, fstab="nconnect=4"), Made("/b", "rw", shown, fstab="rw"))
    assert told(host) == ["NFS215 /etc/fstab:1"]
    assert faults("NFS215", host)[0].remedy == "set nconnect=4 in /etc/fstab:2"


def test_lines_that_differ_are_left_to_the_mount_that_lost_by_it() -> None:
    host = facts(Made("/a", "nconnect=4", fstab="nconnect=4"), Made("/b", "rw", fstab="rw"))
    assert told(host) == ["NFS204 /a"]


def test_newer_lines_are_told_with_what_gives_the_mounts_their_number() -> None:
    host = facts(
        Made("/a", "rw", source=f"{AZURE}:/sa1/a", fstab="nconnect=4"),
        Made("/b", "rw", source=f"{AZURE}:/sa1/b", fstab="rw"),
    )
    assert told(host) == ["NFS215 /etc/fstab:1"]
    assert faults("NFS215", host)[0].remedy == (
        "set nconnect=4 in /etc/fstab:2, then sudo umount /b /a && sudo mount /a && sudo mount /b"
    )


def test_shares_of_a_private_endpoint_that_differ_are_left_to_the_vendors_rule() -> None:
    lines = (f"{AZURE}:/sa1/a /a nconnect=4", f"{AZURE}:/sa1/b /b rw")
    assert told(facts(lines=lines, network=answered(AZURE, "10.0.0.4"))) == ["NFS205 /etc/fstab:100"]
    assert told(facts(lines=lines, network=answered(AZURE, "52.239.238.8"))) == ["NFS206 /etc/fstab:100"]


def points(host: Facts) -> list[list[str]]:
    """Return the mount points of each server."""
    return sorted([target.point for target in server.targets] for server in servers(host))


def test_mounts_of_one_server_are_together_with_the_lines_that_will_join_them() -> None:
    other = Made("/b", "vers=4.2", "vers=4.2,proto=tcp")
    assert points(facts(Made("/a", fstab="rw"), other, lines=(f"{NAS}:/c /c rw",))) == [["/a", "/c"], ["/b"]]
    pod = Made("/b", fstab="rw", space="pod")
    lines = (f"{NAS}:/c /c rw",)
    assert points(facts(Made("/a", fstab="rw"), pod, lines=lines)) == [["/a"], ["/b"], ["/c"]]


def test_things_are_united_also_through_a_third_and_through_none() -> None:
    things: tuple[tuple[set[int], str], ...] = (
        ({1}, "a"),
        ({2}, "b"),
        (set(), "c"),
        ({3}, "d"),
        ({1, 2}, "e"),
        ({2}, "f"),
    )
    groups = group_by_ids((frozenset[object](ids), name) for ids, name in things)
    assert groups == [("c",), ("d",), ("a", "b", "e", "f")]
