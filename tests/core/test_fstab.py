"""Which entries get which number, and which are left, with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.nconnect.fstab import fstab_users
from nfstuned.model.kernel import (
    Distribution,
    KernelRelease,
    Mount,
    MountStats,
    NfsClient,
    Volume,
    parse_options,
)
from nfstuned.model.mounts import UTAB, Maker, Request, Result, Snapshot, Superblock, Tunnel
from nfstuned.model.policy import Assignment, Match, Policy, Profile
from nfstuned.model.system import Answer, Network
from tests.core.fstabs import BUILTIN, NETWORK, POLICY, SNAPSHOT, edited

SA1 = "sa1.file.core.windows.net"


def line(
    source: str = f"{SA1}:/sa1/a", options: str = "vers=4.1", point: str = "/a", kind: str = "nfs"
) -> str:
    return f"{source} {point} {kind} {options} 0 0\n"


def unit(source: str, options: str = "nconnect=8", point: str = "/u") -> Request:
    return Request(source, point, options, "/etc/systemd/system/u.mount", 4, maker=Maker.UNIT)


def numbers(text: str, policy: Policy = POLICY, **changes: object) -> list[tuple[object, object, Result]]:
    snapshot = replace(SNAPSHOT, **changes)  # type: ignore[arg-type]  # keyword arguments of any field
    return [(one.old, one.new, one.result) for one in edited(text, policy, snapshot).changes]


def reason(text: str, policy: Policy = POLICY, **changes: object) -> str:
    snapshot = replace(SNAPSHOT, **changes)  # type: ignore[arg-type]  # as above
    return edited(text, policy, snapshot).changes[0].reason


EFS = "fs-0123456789abcdef0.efs.us-east-1.amazonaws.com"


def of_server(profile: str, *more: Profile) -> Policy:
    """Return a policy in which 10.1.9.9 has that profile."""
    assignments = (Assignment(Match(server=("10.1.9.9",)), profile, "policy 1"),)
    return replace(BUILTIN, profiles=(*BUILTIN.profiles, *more), assignments=assignments)


ONTAP = of_server("ours", replace(BUILTIN.profile("aws-fsx-ontap"), name="ours", nconnect=8))
"""An administrator's nconnect for FSx for ONTAP, which has none with NFSv4.0."""
STRICT = Profile("strict", nconnect=2, nconnect_max=2)
MIXED = replace(
    BUILTIN,
    profiles=(*BUILTIN.profiles, STRICT),
    assignments=(
        Assignment(Match(export=("/strict",)), "strict", "policy 1"),
        Assignment(Match(export=("/none",)), "generic", "policy 2"),
        Assignment(Match(server=("10.1.2.4",)), "azure-netapp-files", "policy 3"),
    ),
)


NETAPP = line("10.1.2.4:/a", "rw")
PLANNED, SKIPPED = Result.PLANNED, Result.SKIPPED
ANF = "10.1.2.4:/v"
OF_OWN = "10.1.9.9:/v"
NUMBERS: dict[str, tuple[str, list[tuple[int | None, int, Result]]]] = {
    "no number becomes the profile's": (line(), [(None, 4, PLANNED)]),
    "so does one": (line(options="nconnect=1"), [(1, 4, PLANNED)]),
    "a word is no number": (line(options="nconnect=x"), [(None, 4, PLANNED)]),
    "too many are lowered": (line(options="nconnect=5"), [(5, 4, PLANNED)]),
    "the last number counts": (line(options="nconnect=16,nconnect=2"), [(2, 4, PLANNED)]),
    "NFS 3 has it, too": (line(ANF, "vers=3"), [(None, 8, PLANNED)]),
    "too few are raised": (line(ANF, "nconnect=7"), [(7, 8, PLANNED)]),
    "more than the kernel allows are lowered": (line(ANF, "nconnect=17"), [(17, 8, PLANNED)]),
    "the right number stays": (line(options="nconnect=4"), []),
    "the right last number stays": (line(options="nconnect=8,nconnect=4"), []),
    "the recommended number stays": (line(ANF, "nconnect=8"), []),
    "more within the limit stay": (line(ANF, "nconnect=16"), []),
    "without an opinion none comes": (line("nas:/v", "rw"), []),
    "without an opinion any stays": (line("nas:/v", "nconnect=16"), []),
    "one connection is right": (line(f"{EFS}:/", "rw"), []),
    "the vendor's limit alone lowers a number": (
        line(f"{EFS}:/", "nconnect=8") + line(f"{EFS}:/b", "rw", "/b") + line("nas:/v", "nconnect=8", "/c"),
        [(8, 1, PLANNED)],
    ),
    "SMB and disks are left": (line(f"//{SA1}/s", kind="cifs") + "/dev/sda1 /b ext4 rw 0 1\n", []),
    "two spellings are one server": (
        line(ANF, "nconnect=12") + line("[::ffff:10.1.2.4]:/b", "rw", "/b"),
        [(None, 12, PLANNED)],
    ),
    "an address that mount.nfs takes out is no server": (
        line(ANF, "nconnect=12") + line("nas:/b", "addr=10.1.2.4", "/b"),
        [],
    ),
    "another protocol does not hold its server up": (
        line(ANF, "vers=3,proto=udp") + line("10.1.2.4:/b", "vers=3", "/b"),
        [(None, 8, SKIPPED), (None, 8, PLANNED)],
    ),
}


@pytest.mark.parametrize(("text", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_the_numbers_of_entries(text: str, expected: list[tuple[int | None, int, Result]]) -> None:
    assert numbers(text) == expected


def test_a_profile_whose_number_depends_proposes_none() -> None:
    assert BUILTIN.profile("google-filestore").nconnect_depends
    assert numbers(line(OF_OWN, "vers=3"), of_server("google-filestore")) == []


def test_units_of_other_servers_and_behind_fstab_do_not_count() -> None:
    assert numbers(NETAPP, requests=(unit("10.1.2.5:/b", "rw"),)) == [(None, 8, PLANNED)]
    entry = Request("10.1.2.4:/a", "/a", "rw", "/etc/fstab", 1)
    assert numbers(NETAPP, requests=(entry, unit("10.1.2.4:/z", "rw", "/a"))) == [(None, 8, PLANNED)]


def test_a_version_that_may_not_have_it_gets_none_and_says_so() -> None:
    assert numbers(line(OF_OWN, "vers=4.1"), ONTAP) == [(None, 8, PLANNED)]
    assert numbers(line(OF_OWN, "vers=4.0"), ONTAP) == []
    text = line(OF_OWN, "vers=4.0,nconnect=8")
    assert numbers(text, ONTAP) == [(8, 1, PLANNED)]
    assert reason(text, ONTAP) == "ours allows at most 1"
    others = line(OF_OWN, "vers=3") + line("10.1.9.9:/w", "vers=4.0", "/w")
    assert numbers(others, ONTAP) == [(None, 8, PLANNED)]


@pytest.mark.parametrize(
    ("asked", "result", "words"),
    [(4, PLANNED, "capped allows at most 4"), (2, SKIPPED, "it asks for nconnect=2")],
)
def test_a_limit_without_a_number_binds_the_entries_above_it(asked: int, result: Result, words: str) -> None:
    capped = of_server("capped", Profile("capped", nconnect_max=4))
    text = line(OF_OWN, "nconnect=8") + line("10.1.9.9:/w", "nconnect=4", "/w")
    units = (unit("10.1.9.9:/b", f"nconnect={asked}"),)
    assert numbers(text, capped, requests=units) == [(8, 4, result)]
    assert words in reason(text, capped, requests=units)


def test_the_reason_names_the_profile_and_its_limit() -> None:
    assert reason(line()) == "azure-files recommends nconnect=4"
    assert reason(line(options="nconnect=8")) == "azure-files allows at most 4"


def test_all_shares_of_a_server_get_what_one_asks_for_within_the_limit() -> None:
    text = line(ANF, "nconnect=12") + line("10.1.2.4:/b", "rw", "/b") + line("10.1.2.5:/c", "rw", "/c")
    assert numbers(text) == [(None, 12, PLANNED), (None, 8, PLANNED)]
    assert reason(text) == "as /etc/fstab:1, which is of the same server"


def test_the_strictest_profile_of_a_server_binds_all() -> None:
    text = line("10.1.2.4:/a", "nconnect=8") + line("10.1.2.4:/strict", "rw", "/b")
    assert numbers(text, MIXED) == [(8, 2, PLANNED), (None, 2, PLANNED)]
    assert reason(text, MIXED) == "the profiles of 10.1.2.4 allow nconnect=2"
    by_unit = unit("10.1.2.4:/strict", "nconnect=2")
    assert numbers(NETAPP, MIXED, requests=(by_unit,)) == [(None, 2, PLANNED)]


def test_a_share_without_an_opinion_keeps_its_whole_server_as_it_is() -> None:
    text = line("10.1.2.4:/a") + line("10.1.2.4:/none", "rw", "/b")
    assert numbers(text, MIXED) == [(None, 8, SKIPPED), (None, 8, SKIPPED)]
    assert reason(text, MIXED).startswith("/etc/fstab:2 has the same server and stays unchanged: its profile")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(("vers=3,proto=udp", "proto=udp"), ("proto=rdma6", "proto=rdma"), ("rdma", "proto=rdma")),
        *(("sec=krb5i", "Kerberos"), ("sec=sys:krb5", "Kerberos"), ("comment=cloudconfig", "cloud-init")),
    ],
)
def test_an_entry_that_cannot_or_must_not_have_it_is_left(options: str, words: str) -> None:
    assert numbers(line("10.1.2.4:/a", options)) == [(None, 8, SKIPPED)]
    assert words in reason(line("10.1.2.4:/a", options))


DEBIAN = Distribution("debian", "10", "Debian")
OLD, RHEL8 = KernelRelease((4, 19, 0), "4.19.0-27-amd64"), KernelRelease((4, 18, 0), "4.18.0-553.el8.x86_64")
AT_5_4, AT_5_8 = KernelRelease((5, 4, 0), "5.4.0"), KernelRelease((5, 8, 0), "5.8.0")


@pytest.mark.parametrize(
    ("release", "options", "words"),
    [
        (OLD, "vers=4.1", "Linux 4.19.0-27-amd64 does not know nconnect"),
        (AT_5_4, "vers=4.0", "Linux 5.4.0 ignores nconnect with NFS 4.0"),
        (None, "vers=4.0", "nconnect works with NFS 4.0 only since Linux 5.8"),
        *((AT_5_4, "vers=4.1", ""), (AT_5_8, "vers=4.0", ""), (RHEL8, "vers=3", ""), (None, "vers=4.1", "")),
    ],
)
def test_the_kernel_must_know_it(release: KernelRelease | None, options: str, words: str) -> None:
    text = line("10.1.2.4:/a", options)
    ((_, _, result),) = numbers(text, kernel=release, distribution=DEBIAN)
    assert result is (SKIPPED if words else PLANNED)
    assert not words or reason(text, kernel=release, distribution=DEBIAN) == words


def test_a_block_of_ansible_s_is_left() -> None:
    text = f"# BEGIN ANSIBLE MANAGED BLOCK\n{line()}# END ANSIBLE MANAGED BLOCK\n"
    assert "blockinfile" in reason(text)


def test_every_name_is_asked_for_where_an_entry_may_be_changed() -> None:
    text = line(point="/b") + line("nas:/c", point="/c") + line("10.1.2.4:/d", point="/d")
    assert fstab_users(line() + text, SNAPSHOT, POLICY).names_to_resolve() == (SA1, "nas")
    assert fstab_users(line("nas:/c"), SNAPSHOT, BUILTIN).names_to_resolve() == ()
    units = (unit("filer:/x"), unit("&:/y")._replace(maker=Maker.AUTOFS, wildcard=True))
    assert fstab_users(line(), replace(SNAPSHOT, requests=units), POLICY).names_to_resolve() == (SA1, "filer")


def live(source: str, address: str, point: str = "/live", **more: object) -> Snapshot:
    options = parse_options(f"vers=4.1,proto=tcp,addr={address}")
    mount = Mount(60, 27, "0:50", "/", point, "nfs4", source, options)
    volume, servers = Volume(4, address, 2049, "0:50", "0:0"), (NfsClient(4, address, 2049, 2, "x"),)
    superblock = Superblock("0:50", 1, 128, (mount,), volume, servers)
    return replace(SNAPSHOT, superblocks=(superblock,), **more)  # type: ignore[arg-type]  # as above


def test_a_public_answer_counts_before_a_live_mount() -> None:
    snapshot = live("sapublic.file.core.windows.net:/s", "10.0.0.9")
    (change,) = edited(line("sapublic.file.core.windows.net:/s"), POLICY, snapshot, NETWORK).changes
    assert (change.result, "public endpoint" in change.reason) == (SKIPPED, True)


def test_a_server_that_says_netapp_by_a_live_mount_is_that_for_its_other_volumes() -> None:
    stats = MountStats("10.7.7.7:/v1", "/live", "nfs4", "1.1", 9, implementation="NetApp Release 9.13.1")
    snapshot = live("10.7.7.7:/v1", "10.7.7.7", stats=(stats,), azure=True)
    assert [one.new for one in edited(line("10.7.7.7:/v2", "noauto"), POLICY, snapshot).changes] == [8]
    assert edited(line("10.7.7.7:/v2", "noauto"), POLICY).changes == ()


def test_a_mount_of_aznfs_by_an_address_of_its_own_is_its_entrys() -> None:
    stand_in = Tunnel(0, SA1, 0, "azure-files", "/list", "10.161.100.100", "10.10.10.10")
    row = Request("10.161.100.100:/sa1/a", "/a", "vers=4.1", UTAB, 1)
    snapshot = live("10.161.100.100:/sa1/a", "10.161.100.100", "/a", tunnels=(stand_in,), requests=(row,))
    text = line(options="vers=4,minorversion=1,notls", kind="aznfs")
    (change,) = edited(text, POLICY, snapshot).changes
    assert (change.new, change.result) == (4, PLANNED)
    by_name = row._replace(source=f"{SA1}:/sa1/a")
    before = live(f"{SA1}:/sa1/a", "10.10.10.10", "/a", tunnels=(stand_in,), requests=(by_name,))
    assert [one.result for one in edited(text, POLICY, before).changes] == [PLANNED]


VOLUME = "anf1.corp.example"
"""The name of a server whose profile only its address tells: POLICY has 10.1.2.0/24."""


@pytest.mark.parametrize("places", [(), ("10.77.0.1",), ("10.1.2.4", "10.77.0.1")])
def test_an_entry_that_is_mounted_has_the_profile_of_its_mount(places: tuple[str, ...]) -> None:
    network = Network(answers=(Answer(VOLUME, places),) if places else ())
    mounted = live(f"{VOLUME}:/v", "10.1.2.4", "/v")
    (change,) = edited(line(f"{VOLUME}:/v", "vers=3", "/v"), POLICY, mounted, network).changes
    assert change.new == 8


@pytest.mark.parametrize("server", ["10.1.2.0/24", "10.1.2.4", "10.1.2.*", "[fd00::5]"])
def test_names_are_asked_for_where_the_policy_goes_by_addresses(server: str) -> None:
    for servers, names in ((("x.example", server), ("nas",)), (("x.example",), ())):
        matches = (Assignment(Match(server=servers), "azure-netapp-files", "policy 1"),)
        policy = replace(BUILTIN, assignments=matches)
        assert fstab_users(line("nas:/c"), SNAPSHOT, policy).names_to_resolve() == names


@pytest.mark.parametrize(
    ("options", "result", "new", "words"),
    [
        ("nconnect=8", PLANNED, 8, "azure-netapp-files recommends nconnect=8"),
        ("nconnect=12", PLANNED, 12, "as /etc/systemd/system/u.mount:4, which is of the same server"),
        ("nconnect=2", SKIPPED, 8, "it asks for nconnect=2"),
        ("rw", SKIPPED, 8, "it asks for no nconnect"),
        ("nconnect=8,sec=krb5", SKIPPED, 8, "Kerberos"),
    ],
)
@pytest.mark.parametrize("maker", [Maker.UNIT, Maker.AUTOFS])
def test_units_and_maps_count_too(options: str, result: Result, new: int, words: str, maker: Maker) -> None:
    other = unit("10.1.2.4:/b", options)._replace(maker=maker)
    assert numbers(NETAPP, requests=(other,)) == [(None, new, result)]
    assert words in reason(NETAPP, requests=(other,))
    if result is SKIPPED:
        assert "/etc/systemd/system/u.mount:4 has the same" in reason(NETAPP, requests=(other,))


OTHER_MOUNT = "the mount at /live has the same server and stays unchanged: it asks for no nconnect"


@pytest.mark.parametrize(
    ("source", "point", "asked", "reason"),
    [
        ("10.1.2.4:/a", "/live", "nconnect=8", ""),
        ("10.1.2.4:/a", "/live", "rw", OTHER_MOUNT),
        ("filer:/b", "/live", "rw", OTHER_MOUNT),  # another name of the same address
        ("10.1.2.4:/a", "/a", "rw", ""),  # the entry's own mount
    ],
)
def test_another_live_mount_of_the_server_counts(source: str, point: str, asked: str, reason: str) -> None:
    row = Request(source, point, asked, UTAB)
    (change,) = edited(NETAPP, POLICY, live(source, "10.1.2.4", point, requests=(row,))).changes
    assert change.result is (SKIPPED if reason else PLANNED)
    assert change.reason == (reason or "azure-netapp-files recommends nconnect=8")


def test_a_second_place_of_an_entry_s_mount_is_no_other_one() -> None:
    (superblock,) = live("10.1.2.4:/none", "10.1.2.4", "/a").superblocks
    twice = superblock._replace(mounts=(*superblock.mounts, replace(superblock.mounts[0], point="/bound")))
    matches = (Assignment(Match(mount_point=("/a",)), "azure-netapp-files", "policy 1"),)
    by_point, snapshot = replace(BUILTIN, assignments=matches), replace(SNAPSHOT, superblocks=(twice,))
    (change,) = edited(line("10.1.2.4:/none", "rw"), by_point, snapshot).changes
    assert change.result is PLANNED


def test_a_mount_of_another_network_namespace_is_no_other_one() -> None:
    row = Request("10.1.2.4:/b", "/pod", "rw", UTAB)
    (mine,) = live("10.1.2.4:/a", "10.1.2.4", "/a").superblocks
    (pods,) = live("10.1.2.4:/b", "10.1.2.4", "/pod").superblocks
    for servers, result in ((mine.servers, SKIPPED), ((), PLANNED)):
        other = pods._replace(device="0:51", servers=servers)
        snapshot = replace(SNAPSHOT, superblocks=(mine, other), requests=(row,))
        (change,) = edited(NETAPP, POLICY, snapshot).changes
        assert change.result is result


def test_what_a_unit_decides_is_changed_there() -> None:
    other = unit("10.1.2.4:/a", "rw", "/a")
    assert numbers(NETAPP, requests=(other,)) == [(None, 8, SKIPPED)]
    assert reason(NETAPP, requests=(other,)) == (
        "/etc/systemd/system/u.mount:4 decides the options of this mount: change it there"
    )
    right = other._replace(options="nconnect=8")
    assert numbers(NETAPP, requests=(right,)) == []


@pytest.mark.parametrize(
    ("answer", "result", "words"),
    [
        (Answer(SA1, ("10.0.0.4", "10.0.0.5")), PLANNED, ""),
        (Answer(SA1, ("52.1.1.1", "52.1.1.2"), (f"sa1.privatelink.{SA1[4:]}",)), PLANNED, ""),
        (Answer(SA1, ("52.1.1.1", "52.1.1.2")), SKIPPED, "is a public endpoint"),
        (Answer(SA1, ("10.0.0.4", "52.1.1.1")), SKIPPED, "several addresses"),
        (Answer(SA1, error="NXDOMAIN"), SKIPPED, "resolves to no address here"),
        (Answer(SA1, error="no answer within 3 s", final=False), Result.FAILED, "no answer within 3 s"),
    ],
)
def test_the_answer_tells_whether_the_endpoint_is_private(answer: Answer, result: Result, words: str) -> None:
    (change,) = edited(line(), POLICY, SNAPSHOT, Network(answers=(answer,))).changes
    assert (change.result, words in change.reason) == (result, True)
