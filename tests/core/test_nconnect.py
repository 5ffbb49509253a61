"""Which mounts share connections, who decided their number, and when the rules keep silent."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from nfstuned.core.nconnect.transport import is_private, members, transport_groups
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import KernelRelease
from nfstuned.model.mounts import Asked, Maker, Request, Setting
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
    only,
    subjects,
)

OLD = KernelRelease((4, 19, 0), "4.19.0")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("rw", "tcp"),
        ("proto=tcp6", "tcp"),
        ("rdma", "rdma"),
        ("tcp,udp", "udp"),
        ("udp,tcp", "tcp"),
        ("proto=tcp,rdma", "rdma"),
        ("rdma,proto=tcp", "tcp"),
        ("proto=udp6,tcp,rsize=1024", "tcp"),
        ("proto,rdma=1", "rdma"),
    ],
)
def test_the_protocol_of_a_mount_is_the_last_that_is_named(options: str, told: str) -> None:
    assert only(facts(lines=(f"{NAS}:/srv /mnt {options}",))).protocol == told


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (Made("/b", shown="vers=4.2,proto=tcp"), 2),
        (Made("/b", shown="vers=4.1,proto=rdma"), 2),
        (Made("/b", shown="vers=4.1,proto=tcp,port=2050"), 2),
        (Made("/b", shown="vers=4.1,proto=tcp,xprtsec=tls"), 2),
        (Made("/b", space="pod"), 2),
        # A tunnel's mount over the connections of a mount without one.
        (Made("/b", source="127.0.0.1:/srv", shown="vers=4.1,proto=tcp,port=20049", port=2049), 1),
    ],
)
def test_version_protocol_port_security_and_namespace_make_a_group(other: Made, count: int) -> None:
    assert len(transport_groups(facts(Made("/a"), other)).live) == count


def test_mounts_of_one_address_share_connections_whatever_the_server_is_called() -> None:
    found = facts(Made("/a"), Made("/b", source="other:/srv"), Made("/c", at="10.0.0.6"))
    groups = transport_groups(found).live.values()
    assert [[one.point for one in alike] for alike in groups] == [["/a", "/b"], ["/c"]]


def test_a_mount_that_is_only_asked_for_joins_a_group_where_only_one_is_possible() -> None:
    line = f"{NAS}:/x /x vers=4.1,nconnect=4"
    known = answered(NAS, NAS_ADDRESS)
    for options, network, joins in (
        (line, known, True),
        (line, Network(), False),  # nobody resolved the name
        (line, Network(answers=(Answer(NAS, (NAS_ADDRESS, "10.0.0.6")),)), False),
        (line.replace("4.1", "4"), known, False),  # the minor version is negotiated
        (line.replace("vers=4.1,", ""), known, False),
        (line.replace("4.1", "4.2"), known, False),
        (line.replace("vers", "port=20490,vers"), known, False),
    ):
        found = facts(Made("/a"), lines=(options,), network=network)
        alike = members(found.targets[-1], found)
        assert [one.point for one in alike] == (["/a"] if joins else [])
        assert subjects("NFS204", found) == (["/etc/fstab:100"] if joins else [])


def test_a_mount_that_asks_for_more_than_the_first_is_told_who_came_first() -> None:
    second = Made("/b", "nconnect=4", age_s=20, fstab="nconnect=4")
    (fault,) = faults("NFS204", facts(Made("/a", age_s=90), second))
    assert fault.subject == "/b"
    assert fault.message.startswith("/etc/fstab:2 asks for nconnect=4 and the mount has 1: ")
    assert fault.message.endswith("(10.0.0.5) share its connections, and /a was mounted first")
    again = "sudo mount /b && sudo mount -t nfs4 -o rw,nconnect=4 nas:/srv /a"
    assert fault.remedy.endswith(f"sudo umount /b /a && {again}")


def test_no_line_is_named_for_a_mount_that_was_made_by_hand() -> None:
    third = Made("/c", "nconnect=4", fstab="rw", age_s=9)
    (fault,) = faults("NFS204", facts(Made("/a", age_s=90), Made("/b", "nconnect=4", age_s=20), third))
    assert fault.message.startswith("mount(8) was asked for nconnect=4")
    assert fault.remedy.startswith("set nconnect=4 in /etc/fstab:3, then sudo umount")
    assert fault.remedy.endswith(
        "mount -t nfs4 -o nconnect=4 nas:/srv /b && sudo mount -t nfs4 -o rw,nconnect=4 nas:/srv /a "
        "&& sudo mount /c"
    )


def test_nobody_is_said_to_have_come_first_where_the_ages_do_not_tell() -> None:
    for ages in ((90, 90), (None, 20), (20, 90)):
        (fault,) = faults("NFS204", facts(Made("/a", age_s=ages[0]), Made("/b", "nconnect=4", age_s=ages[1])))
        assert "an earlier mount of the same server decided (/a)" in fault.message


def test_what_old_kernels_ignore_for_nfs_4_0_was_decided_by_nobody() -> None:
    found = facts(Made("/a", "nconnect=4", "vers=4.0,proto=tcp"))
    old = on_host(found, kernel=KernelRelease((5, 4, 0), "5.4.0"))
    assert subjects("NFS204", found) == ["/a"]
    assert not faults("NFS204", old)


def test_inner_mounts_go_first_and_come_back_last() -> None:
    asking = Made("/a/x/b", "nconnect=4", fstab="nconnect=4")
    (fault,) = faults("NFS204", facts(Made("/a", fstab="rw"), Made("/a/in side", fstab="rw"), asking))
    assert fault.remedy == (
        "set nconnect=4 in /etc/fstab:1, /etc/fstab:2, then sudo umount /a/x/b '/a/in side' /a && "
        "sudo mount /a && sudo mount /a/x/b && sudo mount '/a/in side'"
    )


def test_a_superblock_that_umount_left_behind_is_named() -> None:
    found = facts(Made("/a"), Made("/b", "nconnect=4"), Made("/gone"))
    *rest, hidden = found.snapshot.superblocks
    found = on_host(found, superblocks=(*rest, hidden._replace(mounts=())))
    assert "0:52, which umount -l left behind" in faults("NFS204", found)[0].remedy


def test_more_connections_are_advised_once_and_only_where_they_are_possible() -> None:
    share = f"{AZURE}:/sa1/share"
    first, second = Made("/a", source=share, age_s=9), Made("/b", "nconnect=4", source=share, age_s=5)
    assert subjects("NFS201", facts(first, second)) == []
    assert subjects("NFS201", facts(first, replace(second, asked=""))) == ["/a"]
    assert subjects("NFS204", facts(first, second)) == ["/b"]
    assert not faults("NFS201", facts(replace(first, shown="vers=4.1,proto=tcp,sec=krb5")))
    assert not faults("NFS201", facts(replace(first, shown="vers=4.1,proto=rdma")))
    assert not faults("NFS201", on_host(facts(first), kernel=OLD))


def test_a_kernel_that_shows_nconnect_has_it_whatever_its_number() -> None:
    old = KernelRelease((4, 19, 0), "4.19.0-vendor")
    for shown, told in (("", ["/etc/fstab:100"]), ("vers=4.1,proto=tcp,nconnect=2", [])):
        found = facts(Made("/a", None, shown), lines=(f"{NAS}:/x /x nconnect=4",))
        assert subjects("NFS203", on_host(found, kernel=old)) == told


def test_the_names_tell_a_private_endpoint_before_the_address_does() -> None:
    zone = "sa1.privatelink.file.core.windows.net"
    for network, private in (
        (answered(AZURE, "10.0.0.4", zone), True),
        (answered(AZURE, "10.0.0.4"), True),  # /etc/hosts, or a resolver of one's own
        (answered(AZURE, "100.64.0.4"), True),
        (answered(AZURE, "52.239.238.8", zone), True),  # a virtual network may use any addresses
        (answered(AZURE, "52.239.238.8", zone, "file.lon21prdstf01a.store.core.windows.net"), False),
        (answered(AZURE, "52.239.238.8"), False),
        (answered(AZURE, "127.0.0.1"), None),
        (answered(zone, "52.239.238.8"), False),
        (Network(answers=(Answer(zone),)), True),
        (Network(), None),
    ):
        host = next((answer.host for answer in network.answers), AZURE)
        found = facts(lines=(f"{host}:/sa1/share /mnt vers=4.1",), network=network)
        assert is_private(only(found), found) is private, network


def test_shares_are_not_told_to_ask_for_more_than_their_profile_allows() -> None:
    for at, rule in (("10.0.0.4", "NFS205"), ("52.239.238.8", "NFS206")):
        for count, advice in (
            (4, "put nconnect=4 also into the options of /0, the options of /2, and"),
            (16, "put nconnect=4 into the options of /0, the options of /1, the options of /2, and"),
            (32, "put nconnect=4 into the options of /0, the options of /1, the options of /2, and"),
        ):
            (fault,) = faults(rule, _shares("rw", f"nconnect={count}", "nconnect=2", at=at))
            assert fault.remedy.startswith(advice)
            assert f"{count} on /1, 2 on /2, none on /0" in fault.message


def _shares(*requests: str, source: str = f"{AZURE}:/sa1/s", at: str = "10.0.0.4") -> Facts:
    return facts(*(Made(f"/{n}", one, source=f"{source}{n}", at=at) for n, one in enumerate(requests)))


SHARE, EIGHT = f"{AZURE}:/sa1/share", "vers=4.1,proto=tcp,nconnect=8"
FOUR, OTHER = "vers=4.1,proto=tcp,nconnect=4", AZURE.replace("sa1", "sa2")
PUBLIC = "52.239.238.8"
ANF = [Made(f"/{at}", "rw", source="10.9.0.5:/v", at=f"10.9.0.{at}") for at in (5, 6)]
ASKED, CHANGED = Made("/a", "nconnect=4", FOUR), Made("/a", None, fstab="nconnect=4")
ANF_OF_POD = replace(ANF[0], point="/pod", space="pod")
POD = Made("/b", "rw", source=f"{AZURE}:/sa1/b", at="10.0.0.4", space="pod")
SEVERAL = Network(answers=tuple(Answer(host, ("10.0.0.4", "10.0.0.5")) for host in (AZURE, OTHER)))
SUBJECTS: dict[str, tuple[str, Facts, list[str]]] = {
    "a mount that asks for nothing lost nothing": ("NFS204", facts(ASKED, Made("/b", "rw", FOUR)), []),
    "a file newer than the mount accuses nobody": ("NFS204", facts(CHANGED), []),
    "another mount shows that the file is not newer": ("NFS204", facts(CHANGED, Made("/b")), ["/a"]),
    "too many belong to the mount that asked": (
        "NFS202",
        facts(Made("/a", "nconnect=8", EIGHT, SHARE, 9), Made("/b", "nconnect=4", EIGHT, SHARE, 5)),
        ["/a"],
    ),
    "too many belong to the line that asks": (
        "NFS202",
        facts(lines=(f"{SHARE} /a nconnect=5", f"{SHARE} /b nconnect=4")),
        ["/etc/fstab:100"],
    ),
    "shares of a private endpoint differ": ("NFS205", _shares("rw", "nconnect=4", "nconnect=2"), ["/1"]),
    "shares that agree are right": ("NFS205", _shares("nconnect=4", "nconnect=4"), []),
    "other servers may differ": ("NFS205", _shares("nconnect=4", "rw", source=f"{NAS}:/sa1/s"), []),
    "folders may differ": ("NFS205", _shares("nconnect=4", "rw", source=f"{AZURE}:/sa1/s/sub"), []),
    "a private endpoint is not public": ("NFS206", _shares("rw", "nconnect=4"), []),
    "public endpoints are one": ("NFS206", _shares("rw", "nconnect=4", at=PUBLIC), ["/1"]),
    "public endpoints that agree are right": ("NFS206", _shares("nconnect=4", "nconnect=4", at=PUBLIC), []),
    "a public endpoint is not private": ("NFS205", _shares("rw", "nconnect=4", at=PUBLIC), []),
    "another network namespace does not count": (
        "NFS205",
        facts(Made("/a", "nconnect=4", source=f"{AZURE}:/sa1/a", at="10.0.0.4"), POD),
        [],
    ),
    "names of several addresses are not one endpoint": (
        "NFS205",
        facts(lines=(f"{AZURE}:/sa1/a /a rw", f"{OTHER}:/sa2/a /b nconnect=4"), network=SEVERAL),
        [],
    ),
    "each server has its finding": ("NFS201", facts(*ANF), ["/5", "/6"]),
    "each namespace has its finding": ("NFS201", facts(ANF[0], ANF_OF_POD), ["/5", "/pod"]),
}


@pytest.mark.parametrize(("rule", "found", "expected"), SUBJECTS.values(), ids=SUBJECTS)
def test_the_subjects_of_a_rule(rule: str, found: Facts, expected: list[str]) -> None:
    assert subjects(rule, found) == expected


KERBEROS = "vers=4.1,proto=tcp,nconnect=4,sec=krb5"


def test_the_line_is_named_from_which_a_kerberos_mount_has_its_nconnect() -> None:
    files = ("/etc/fstab", "/etc/nfsmount.conf", "/etc/systemd/system/a.mount.d/x.conf", "/etc/auto.mnt")
    for file in files:
        found = facts(Made("/a", None, KERBEROS, fstab="sec=krb5"))
        asked = (Asked("sec", "krb5", "/etc/fstab", 1), Asked("nconnect", "4", file, 7))
        (fault,) = faults("NFS207", replace(found, targets=(replace(only(found), asked=asked),)))
        assert f"nconnect=4 ({file}:7): " in fault.message
        assert fault.remedy.startswith(f"remove nconnect from {file}:7, then unmount every mount")


def test_kerberos_mounts_that_share_connections_name_the_line_of_the_mount_that_asked() -> None:
    other = Made("/b", "nconnect=4", KERBEROS.replace("krb5", "sys"), fstab="nconnect=4")
    (fault,) = faults("NFS207", facts(Made("/a", "sec=krb5", KERBEROS, fstab="sec=krb5"), other))
    assert (fault.subject, "nconnect=4 (/etc/fstab:2): " in fault.message) == ("/a", True)
    assert fault.remedy.startswith("remove nconnect from /etc/fstab:2, then ")
    (fault,) = faults("NFS207", facts(Made("/a", "nconnect=4,sec=krb5", KERBEROS, fstab="sec=krb5")))
    assert "nconnect=4 (the options of /a): " in fault.message
    (fault,) = faults("NFS207", facts(Made("/a", None, KERBEROS)))
    assert "nconnect=4: connections" in fault.message
    assert fault.remedy.startswith("unmount every mount of this server")


def _asked_by(request: Request, *, at: str = "/mnt/in side") -> str:
    """Return how a mount that a file asks for comes to the connections that another mount decided."""
    host = facts(Made(at, None), Made("/b"))
    (fault,) = faults("NFS204", on_host(host, requests=(*host.snapshot.requests, request)))
    before, unmounted, after = fault.remedy.partition(f"sudo umount {shlex.quote(at)} /b && ")
    assert (fault.subject, bool(unmounted)) == (at, True)
    return (before + after).removesuffix(" && sudo mount -t nfs4 -o rw,nconnect=4 nas:/srv /b")


ITS_UNIT = "mnt-in\\x20side.mount"


@pytest.mark.parametrize("file", [ITS_UNIT, f"{ITS_UNIT}.d/x.conf", "mnt-.mount.d/x.conf"])
def test_systemd_mounts_what_its_units_ask_for(file: str) -> None:
    place = f"/etc/systemd/system/{file}"
    request = Request(f"{NAS}:/srv", "/mnt/in side", "nconnect=4", place, 4, maker=Maker.UNIT)
    again = r"sudo systemctl daemon-reload && sudo systemctl start 'mnt-in\x20side.mount'"
    assert _asked_by(request) == again
    assert _asked_by(request._replace(maker=Maker.AUTOMOUNT)) == again


def test_the_automounter_mounts_what_somebody_looks_into() -> None:
    request = Request(f"{NAS}:/srv", "/mnt/in side", "nconnect=4", "/etc/auto.mnt", 4, maker=Maker.AUTOFS)
    assert _asked_by(request) == "sudo systemctl reload autofs && ls '/mnt/in side/' >/dev/null"
    home = request._replace(point="/home/*", wildcard=True)
    assert _asked_by(home, at="/home/me too").endswith("reload autofs && ls '/home/me too/' >/dev/null")


def test_any_key_of_a_map_stands_for_those_that_nobody_used_yet() -> None:
    home = Request(f"{NAS}:/&", "/home/*", "vers=4.1,nconnect=4", "/etc/auto.home", 2, wildcard=True)
    home = home._replace(maker=Maker.AUTOFS)
    host = facts(Made("/b"), network=answered(NAS, NAS_ADDRESS))
    (fault,) = faults("NFS204", on_host(host, requests=(*host.snapshot.requests, home)))
    assert "reload autofs && sudo umount /b && ls /home/KEY/ >/dev/null && sudo mount" in fault.remedy
    assert fault.remedy.endswith(", with a key of the map for KEY")


def test_a_mount_comes_back_also_where_nothing_tells_its_options() -> None:
    (fault,) = faults("NFS204", facts(Made("/a", None), Made("/b", "nconnect=4")))
    again = "mount /a again with nconnect=4 and otherwise its old options"
    command = "sudo umount /b /a && sudo mount -t nfs4 -o nconnect=4 nas:/srv /b"
    assert fault.remedy == f"{command}, then {again}"
    (fault,) = faults("NFS201", facts(Made("/a", None, source=f"{AZURE}:/sa1/s"), Made("/b", fstab="rw")))
    assert fault.remedy.endswith(f"then sudo umount /b /a, then {again}, then sudo mount /b")


VOLUMES = range(12)
NAMED = "; the same for /mnt/01, /mnt/02, /mnt/03 and 8 more"


@pytest.mark.parametrize(
    ("rule", "asked", "shown", "count"),
    [
        ("NFS201", "hard", "vers=4.1,proto=tcp", 8),
        ("NFS204", "nconnect=8", "vers=4.1,proto=tcp,nconnect=2", 8),
        ("NFS207", "nconnect=8,sec=krb5", "vers=4.1,proto=tcp,nconnect=8,sec=krb5", 1),
    ],
)
def test_twelve_volumes_are_one_finding_with_each_line(rule: str, asked: str, shown: str, count: int) -> None:
    at = "10.9.0.5"
    host = facts(*(Made(f"/mnt/{n:02}", asked, shown, f"{at}:/v{n}", at=at, fstab=asked) for n in VOLUMES))
    (fault,) = faults(rule, host)
    assert fault.subject == "/mnt/00"
    assert fault.message.endswith(NAMED)
    if rule == "NFS201":
        lines = ", ".join(f"/etc/fstab:{n + 1}" for n in VOLUMES)
        assert fault.remedy.startswith(f"set nconnect={count} in {lines}, then sudo umount ")
    assert all(f"/etc/fstab:{n + 1}" in fault.remedy for n in VOLUMES) is (rule != "NFS204")
    rules = ("NFS201", "NFS202", "NFS204", "NFS207", "NFS215")
    assert [other for other in rules for _ in faults(other, host)] == [rule]


def test_what_is_above_the_profile_is_one_finding_a_server() -> None:
    source = f"{AZURE}:/sa1/s"
    host = facts(*(Made(f"/{n}", "nconnect=8", "vers=4.1,proto=tcp,nconnect=8", source) for n in range(3)))
    (fault,) = faults("NFS202", host)
    assert fault.subject == "/0"
    assert fault.message.endswith("; the same for /1, /2")
    lines = tuple(f"{source}{n} /{n} nconnect=8" for n in range(3))
    (fault,) = faults("NFS202", facts(lines=lines))
    assert fault.remedy == "set nconnect=4 in /etc/fstab:100, /etc/fstab:101, /etc/fstab:102"


def test_a_server_without_a_mount_is_one_finding_that_names_every_line() -> None:
    lines = tuple(f"10.9.0.5:/v{n} /{n} vers=4.1" for n in VOLUMES)
    (fault,) = faults("NFS201", facts(lines=lines))
    assert fault.subject == "/etc/fstab:100"
    assert fault.remedy == "set nconnect=8 in " + ", ".join(f"/etc/fstab:{100 + n}" for n in VOLUMES)


def test_a_kernel_without_nconnect_is_one_finding() -> None:
    found = facts(lines=tuple(f"{NAS}:/{n} /{n} nconnect=4" for n in range(3)))
    (fault,) = faults("NFS203", on_host(found, kernel=OLD))
    assert fault.remedy.endswith("from the options in /etc/fstab:100, /etc/fstab:101, /etc/fstab:102")


def with_global(host: Facts, count: int, section: str = "nfsmount_global_options") -> Facts:
    """Return a host whose nfsmount.conf asks for connections."""
    argument = None if section.startswith("nfsmount") else AZURE
    conf = (Setting(section, argument, "nconnect", str(count), "/etc/nfsmount.conf", 3),)
    return on_host(host, settings=conf)


def test_what_nfsmount_conf_has_for_all_servers_is_left_to_the_others() -> None:
    line = facts(lines=(f"{AZURE}:/sa1/s /a rw", f"{NAS}:/b /b rw"))
    (fault,) = faults("NFS202", with_global(line, 16))
    assert fault.remedy == "set nconnect=4 in /etc/fstab:100"
    (fault,) = faults("NFS202", with_global(line, 16, "server"))
    assert fault.remedy == "set nconnect=4 in /etc/nfsmount.conf:3"
    shown = "vers=4.1,proto=tcp,nconnect=16"
    by_hand = facts(Made("/a", "nconnect=16", shown, f"{AZURE}:/sa1/s"))
    (fault,) = faults("NFS202", with_global(by_hand, 16))
    section = f'[ Server "{AZURE}" ] of /etc/nfsmount.conf'
    assert fault.remedy.startswith(f"set nconnect=4 in {section}, then sudo ")
    (fault,) = faults("NFS207", with_global(facts(lines=(f"{NAS}:/a /a sec=krb5",)), 4))
    assert fault.remedy.startswith("set nconnect=1 in /etc/fstab:100, then unmount every mount")
    (fault,) = faults("NFS201", with_global(facts(lines=(f"{AZURE}:/sa1/s /a rw",)), 2))
    assert fault.remedy.startswith("set nconnect=4 in /etc/fstab:100; only where the endpoint is private")
    link = AZURE.replace(".file.", ".privatelink.file.")
    (fault,) = faults("NFS201", facts(lines=(f"{link}:/sa1/s /a rw",)))
    assert "only where" not in fault.remedy


def test_no_mount_gets_more_than_the_profiles_of_its_group_allow() -> None:
    share = f"{AZURE}:/sa1/s"
    first, second = Made("/a", source=share, age_s=9), Made("/b", "nconnect=8", fstab="nconnect=8")
    (fault,) = faults("NFS204", facts(first, second))
    line = "set nconnect=4 in /etc/fstab:2, as the profile of /a allows no more"
    assert fault.remedy.startswith(f"{line}, then sudo umount /b /a && ")
    first, second = replace(first, asked="nconnect=4", shown=FOUR), replace(second, shown=FOUR)
    (fault,) = faults("NFS204", facts(first, second))
    assert fault.remedy == f"{line}, then sudo umount /b && sudo mount /b"


def test_groups_are_worked_out_once_for_a_host_and_anew_for_another() -> None:
    found = facts(Made("/a"))
    known = transport_groups(found)
    assert transport_groups(found) is known
    other = replace(found, targets=())
    assert not transport_groups(other).live
    assert transport_groups(found).live == known.live
