from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace

import pytest

from nfstuned.core.nconnect.server import group_by_ids, servers
from nfstuned.core.rules.catalogue import RULES, run_rules, select_rules
from nfstuned.model.facts import Facts, Fault
from nfstuned.model.kernel import KernelRelease, parse_options
from nfstuned.model.mounts import PERSISTED, Maker, Request, Setting, Tunnel
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
    rules = select_rules(RULES, ("NFS20", "NFS215"), ("NFS208", "NFS209"))
    return [f"{one.rule} {one.subject}" for one in run_rules(host, rules).findings]


@pytest.mark.parametrize("host", [NAS, AZURE, "fs-01.efs.eu-west-1.amazonaws.com", "10.0.0.5", "10.9.0.5"])
@pytest.mark.parametrize(
    ("options", "most"),
    [(("rw", "nconnect=4"), 101), (("nconnect=4", "rw"), 100), (("nconnect=2", "nconnect=4"), 101)],
)
def test_a_servers_lines_that_differ_are_one_finding(host: str, options: tuple[str, str], most: int) -> None:
    found = facts(lines=tuple(f"{host}:/{n} /{n} vers=4.1,{text}" for n, text in enumerate(options)))
    assert told(found) == [f"NFS215 /etc/fstab:{most}"]
    (fault,) = faults("NFS215", found)
    assert all(f"/etc/fstab:{line}" in fault.message for line in (100, 101))


def test_every_line_that_is_to_be_changed_is_named_however_many_there_are() -> None:
    lines = [f"{NAS}:/{n} /{n} rw" for n in range(12)]
    (fault,) = faults("NFS215", facts(lines=(*lines, f"{NAS}:/x /x nconnect=8")))
    assert "(nconnect=8 in /etc/fstab:112; no nconnect in /etc/fstab:100, " in fault.message
    assert fault.remedy == "set nconnect=8 in " + ", ".join(f"/etc/fstab:{100 + n}" for n in range(12))
    assert fault.observed == "nconnect=8, no nconnect"
    assert fault.expected == "the same nconnect in all lines of a server"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"{A}rw", f"{B}rw"),
        (f"{A}nconnect=4", f"{B}nconnect=4"),
        (f"{A}nconnect=1", f"{B}rw"),
        (f"{A}nconnect=4", "other:/b /b rw"),
        (f"{A}vers=4.1,nconnect=4", f"{B}vers=4.2"),
        (f"{A}vers=4.1,nconnect=4", f"{B}rw"),  # which version comes of negotiation is open
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


def test_names_of_one_address_are_one_server_and_a_name_of_several_is_none() -> None:
    lines = (f"{A}nconnect=4", "other:/b /b rw")
    network = Network(answers=tuple(Answer(host, (NAS_ADDRESS,)) for host in (NAS, "other")))
    assert subjects("NFS215", facts(lines=lines, network=network)) == ["/etc/fstab:100"]
    alike = (f"{A}nconnect=4", f"{B}rw")
    for addresses, number in ((("10.0.0.5", "fd00::5"), 1), (("10.0.0.5", "10.0.0.6"), 0)):
        network = Network(answers=(Answer(NAS, addresses),))
        assert len(faults("NFS215", facts(lines=alike, network=network))) == number


def test_units_and_maps_are_lines_too_and_replicas_are_not() -> None:
    found = facts(lines=(f"{A}nconnect=4",))
    key = Request(f"{NAS}:/b", "/b", "rw", "/etc/auto.b", 1, maker=Maker.AUTOFS)
    any_key = key._replace(point="/b/*", wildcard=True)
    for requests, number in (
        ((Request(f"{NAS}:/b", "/b", "rw", "/etc/systemd/system/b.mount", 5),), 1),
        ((any_key._replace(source=f"{NAS}:/&"),), 1),
        ((any_key._replace(source="&:/x"),), 0),
        ((key, key._replace(source="spare:/b")), 0),
    ):
        host = on_host(found, requests=(*found.snapshot.requests, *requests))
        assert len(faults("NFS215", host)) == number


def test_the_number_is_good_for_every_line() -> None:
    for host, options, remedy in (
        (NAS, ("nconnect=4", "sec=krb5"), "1 in /etc/fstab:100, as /etc/fstab:101 asks for"),
        ("10.9.0.5", ("nconnect=2", "rw"), "8 in /etc/fstab:100, /etc/fstab:101"),
        (AZURE, ("nconnect=16", "rw"), "4 in /etc/fstab:100, /etc/fstab:101"),
        (AZURE, ("nconnect=4", "sec=krb5"), "4 in /etc/fstab:101"),
    ):
        lines = (f"{host}:/a /a {options[0]}", f"{host}:/b /b {options[1]}")
        (fault,) = faults("NFS215", facts(lines=lines))
        assert fault.remedy.startswith(f"set nconnect={remedy}")


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


def test_newer_lines_are_told_with_what_gives_the_mounts_their_number() -> None:
    made = Made("/a", "rw", source=f"{AZURE}:/sa1/a", fstab="nconnect=4")
    host = facts(made, replace(made, point="/b", source=f"{AZURE}:/sa1/b", fstab="rw"))
    assert told(host) == ["NFS215 /etc/fstab:1"]
    again = "sudo umount /b /a && sudo mount /a && sudo mount /b"
    assert faults("NFS215", host)[0].remedy == f"set nconnect=4 in /etc/fstab:2, then {again}"


def test_shares_of_a_private_endpoint_that_differ_are_left_to_the_vendors_rule() -> None:
    lines = (f"{AZURE}:/sa1/a /a nconnect=4", f"{AZURE}:/sa1/b /b rw")
    assert told(facts(lines=lines, network=answered(AZURE, "10.0.0.4"))) == ["NFS205 /etc/fstab:100"]
    assert told(facts(lines=lines, network=answered(AZURE, "52.239.238.8"))) == ["NFS206 /etc/fstab:100"]


def points(host: Facts) -> list[list[str]]:
    return sorted([target.point for target in server.targets] for server in servers(host))


def test_mounts_of_one_server_are_together_with_the_lines_that_will_join_them() -> None:
    other = Made("/b", "vers=4.2", "vers=4.2,proto=tcp")
    assert points(facts(Made("/a", fstab="rw"), other, lines=(f"{NAS}:/c /c rw",))) == [["/a", "/c"], ["/b"]]
    pod = Made("/b", fstab="rw", space="pod")
    lines = (f"{NAS}:/c /c rw",)
    assert points(facts(Made("/a", fstab="rw"), pod, lines=lines)) == [["/a"], ["/b"], ["/c"]]


def test_things_are_united_also_through_a_third_and_through_none() -> None:
    ids: tuple[set[int], ...] = ({1}, {2}, set(), {3}, {1, 2}, {2})
    groups = group_by_ids((frozenset[object](each), name) for each, name in zip(ids, "abcdef", strict=True))
    assert groups == [("c",), ("d",), ("a", "b", "e", "f")]


REMEDIED = ("NFS201", "NFS202", "NFS204", "NFS205", "NFS207")
FLAGS = ("ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "sync", "dirsync")


@dataclass
class Host:
    """The mounts of one server, which share connections, and what is mounted of them now."""

    made: dict[str, Made]
    mounted: list[Made] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mounted = list(self.made.values())

    def follow(self, remedy: str) -> None:
        for step in re.split(r", then | && ", remedy):
            self._do(step)

    def found(self) -> list[Fault]:
        assert {one.point for one in self.mounted} == self.made.keys(), "not all mounts are back"
        host = facts(*self.made.values())
        return [fault for rule in REMEDIED for fault in faults(rule, host)]

    def _do(self, step: str) -> None:
        words = shlex.split(step)
        if change := re.match(r"(?:put|set) nconnect=(\d+)", step):
            for line in re.findall(r"/etc/fstab:(\d+)", step):
                self._write(int(line), f"nconnect={change[1]}")
        elif words[:2] == ["sudo", "umount"]:
            for point in words[2:]:
                self.mounted = [one for one in self.mounted if one.point != point]
                assert not [one for one in self.mounted if one.point.startswith(f"{point}/")], "busy"
        elif words[:3] == ["sudo", "mount", "-t"]:
            assert self.made[words[-1]].fstab is None
            self._mount(words[-1], words[5])
        elif words[:2] == ["sudo", "mount"]:
            self._mount(words[2], self.made[words[2]].fstab or "")
        elif new := re.fullmatch(r"mount (\S+) again with (\S+) and otherwise its old options", step):
            self._mount(new[1], ",".join([new[2], *self.made[new[1]].flags.split(",")]))
        else:
            assert step == "sudo nfstuned nconnect persist"

    def _write(self, line: int, count: str) -> None:
        point = list(self.made)[line - 1]
        kept = [one for one in (self.made[point].fstab or "").split(",") if not one.startswith("nconnect=")]
        self.made[point] = replace(self.made[point], fstab=",".join([*kept, count]))

    def _mount(self, point: str, options: str) -> None:
        outer = {one for one in self.made if point.startswith(f"{one}/")}
        assert outer <= {one.point for one in self.mounted}, "it will lie below what it lies in"
        first = self.mounted[0].shown if self.mounted else options
        count = parse_options(first).number("nconnect") or 1
        shown = re.sub(r",nconnect=\d+", "", self.made[point].shown)
        flags = [name for name in FLAGS if name in parse_options(options)]
        made = replace(
            self.made[point],
            asked=options,
            shown=shown if count == 1 else f"{shown},nconnect={count}",
            age_s=90 - len(self.mounted),
            flags=",".join([*([] if "ro" in flags else ["rw"]), *flags, "relatime"]),
        )
        self.made[point] = made
        self.mounted.append(made)


BARE, FOUR, EIGHT = "vers=4.1,proto=tcp", "vers=4.1,proto=tcp,nconnect=4", "vers=4.1,proto=tcp,nconnect=8"
IN_WORDS = (" and mount all of them again", " and mount them again without nconnect")
NETAPP = "10.9.0.5"
SHARE = f"{AZURE}:/sa1/s"
IN_FSTAB = Made("/a", "nconnect=4", BARE, fstab="nconnect=4", age_s=5)
BY_HAND = Made("/b", "hard", BARE, age_s=9)
INSIDE = replace(IN_FSTAB, point="/b/a")
LIVES = {
    "a mount by hand came first": (IN_FSTAB, BY_HAND),
    "a mount by hand lies outside": (INSIDE, BY_HAND),
    "a mount by hand of unknown options lies outside": (INSIDE, replace(BY_HAND, asked=None)),
    "a mount by hand asks for another number": (IN_FSTAB, replace(BY_HAND, asked="nconnect=2,hard")),
    "read-only by hand": (IN_FSTAB, replace(BY_HAND, flags="ro,nosuid,nodev,noexec,noatime,relatime")),
    "read-only by hand, of unknown options": (IN_FSTAB, replace(BY_HAND, asked=None, flags="ro,relatime")),
    "fewer than the profile asks for": (
        Made("/a", "hard", BARE, SHARE, fstab="hard"),
        Made("/b", "hard", BARE, SHARE, flags="ro,relatime"),
    ),
    "more than the profile allows": (
        Made("/a", "hard", EIGHT, SHARE, fstab="hard"),
        Made("/b", "nconnect=8", EIGHT, SHARE, fstab="nconnect=8"),
        Made("/c", "nconnect=8", EIGHT, SHARE),
        Made("/d", "nconnect=4", EIGHT, SHARE, fstab="nconnect=4"),
    ),
    "a line was changed and its mount was not made again": (
        Made("/a", "nconnect=4", FOUR, SHARE, fstab="hard"),
        Made("/b", "nconnect=8", FOUR, SHARE, fstab="nconnect=4"),
    ),
    "the line of an outer mount asks no longer for what the mount was made with": (
        Made("/a", "nconnect=4", BARE, fstab="hard"),
        Made("/a/b", "nconnect=4", BARE, fstab="nconnect=4"),
    ),
    "the profile allows less than a mount asks for": (
        Made("/a", "nconnect=8", FOUR, SHARE, fstab="nconnect=8"),
        Made("/a/b", "nconnect=4", FOUR, SHARE, fstab="nconnect=4"),
    ),
    "Kerberos allows less than a line asks for, and utab is gone": (
        Made("/a", None, BARE, fstab="nconnect=4"),
        Made("/b", None, f"{BARE},sec=krb5", fstab="sec=krb5"),
    ),
    "the profile allows less than a mount by hand asks for": (
        Made("/a", "nconnect=4", FOUR, SHARE, fstab="nconnect=4"),
        Made("/b", "nconnect=8", FOUR, SHARE, flags="ro,relatime"),
    ),
    "a mount beside Kerberos asks for several connections": (
        Made("/a", "nconnect=8", BARE, fstab="nconnect=8", at=NETAPP),
        Made("/b", "sec=krb5", f"{BARE},sec=krb5", fstab="sec=krb5", at=NETAPP),
    ),
    "mounts beside Kerberos ask for different numbers": (
        Made("/a", "nconnect=8", FOUR, fstab="nconnect=8", at=NETAPP),
        Made("/b", "sec=krb5,nconnect=4", f"{FOUR},sec=krb5", fstab="sec=krb5,nconnect=4", at=NETAPP),
        Made("/c", "nconnect=4", FOUR, at=NETAPP),
    ),
}


@pytest.mark.parametrize("why", LIVES)
def test_who_does_what_a_finding_says_has_what_it_promises_and_no_other_finding(why: str) -> None:
    made = {one.point: one for one in LIVES[why]}
    first = Host(dict(made)).found()
    assert first
    for fault in first:
        if fault.remedy.endswith(IN_WORDS):
            continue
        host = Host(dict(made))
        host.follow(fault.remedy)
        assert host.found() == [], fault.remedy
        assert {one.point: set(one.flags.split(",")) for one in host.mounted} == {
            one.point: set(one.flags.split(",")) for one in made.values()
        }


def test_nothing_beside_kerberos_is_told_to_have_several_connections() -> None:
    plain, kerberos = Made("/a", "hard", BARE, at=NETAPP), Made("/b", None, f"{BARE},sec=krb5p", at=NETAPP)
    network = answered(NAS, NETAPP)
    pod, line = replace(plain, point="/b", space="pod"), f"{NAS}:/x /x vers=4.1,sec="
    for host, told in (
        (facts(plain), ["/a"]),
        (facts(plain, kerberos), []),
        (facts(plain, replace(kerberos, at="10.9.0.6")), ["/a"]),
        (facts(plain, replace(kerberos, space="pod")), ["/a"]),
        (facts(plain, lines=(f"{line}krb5",), network=network), []),
        (facts(plain, lines=(f"{line}sys",), network=network), ["/a"]),
        (facts(plain, lines=(f"{line}sys,nconnect=8",), network=network), []),
        (facts(plain, pod, lines=(f"{line}krb5",), network=network), ["/a", "/b"]),
        (facts(lines=(f"{line}krb5", f"{NAS}:/y /y vers=4.1"), network=network), []),
    ):
        assert [fault.subject for fault in faults("NFS201", host)] == told


def test_what_nfstuneds_own_file_asks_for_only_has_to_be_mounted_again() -> None:
    made = Made("/a", asked="rw", source=f"{AZURE}:/sa1/s", fstab="vers=4.1")
    host = facts(made)
    settings = (Setting("server", AZURE, "nconnect", "4", PERSISTED, 7),)
    (fault,) = faults("NFS201", on_host(host, settings=settings))
    assert fault.remedy == "sudo umount /a && sudo mount /a"


def test_where_mount_aznfs_mounts_an_address_of_its_own_no_file_of_nfsmount_conf_can_say_it() -> None:
    host = facts(Made("/a", asked="vers=4.1", source="10.161.100.100:/sa1/s", at="10.161.100.100"))
    tunnels = (Tunnel(0, AZURE, 0, "azure-files", "/list", "10.161.100.100", "10.10.10.10"),)
    settings = (Setting("server", AZURE, "nconnect", "4", PERSISTED, 7),)
    by_hand = on_host(host, tunnels=tunnels, settings=settings)
    (fault,) = faults("NFS201", by_hand)
    assert fault.remedy.startswith("put nconnect=4 into the options, then sudo umount /a && sudo mount -t ")
    line = Request(f"{AZURE}:/sa1/s", "/a", "vers=4,minorversion=1,notls", "/etc/fstab", 1, fstype="aznfs")
    named = on_host(by_hand, requests=(*by_hand.snapshot.requests, line))
    (fault,) = faults("NFS201", named)
    assert fault.remedy == "set nconnect=4 in /etc/fstab:1, then sudo umount /a && sudo mount /a"


def test_what_is_mounted_in_another_mount_namespace_is_not_unmounted_in_the_hosts() -> None:
    """The host may have something else at the same mount point."""
    source = f"{AZURE}:/sa1/s"
    own, other = Made("/a", "nconnect=4", BARE, source), Made("/data", None, BARE, source)
    command = f"sudo umount /a && sudo mount -t nfs4 -o nconnect=4 {source} /a"
    there = "unmount /data in its own mount namespace, and mount it there again"
    for rule, made, said in (
        ("NFS204", (own, other), f"{command} (first {there} afterwards)"),
        ("NFS201", (other,), f"sudo nfstuned nconnect persist, then {there} with nconnect=4"),
    ):
        host = facts(*made)
        (*before, last) = host.snapshot.superblocks
        blocks = (*before, last._replace(mounts=(replace(last.mounts[0], foreign=True),)))
        found = on_host(host, superblocks=blocks)
        assert [fault.remedy for fault in faults(rule, found)] == [said]
