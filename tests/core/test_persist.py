"""Which servers get a section of nfstuned's own drop-in of nfsmount.conf, and which do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from nfstuned.core.nconnect.persist import section_uses
from nfstuned.model.facts import Answer, Network
from nfstuned.model.kernel import Distribution, KernelRelease
from nfstuned.model.mounts import FSTAB, UTAB, Maker, Request, Result, Tunnel
from nfstuned.model.policy import Assignment, Match, Policy
from tests.core.fstabs import BUILTIN, NETAPP, POLICY, private
from tests.core.nconnect_hosts import Made, facts
from tests.core.persisted import ANF, ANF2, PUBLIC, SA1, SA2, after, conf, fstab, host, planned, said, told

A, B = f"{SA1}:/sa1/a /a vers=4.1", f"{SA1}:/sa1/b /b vers=4.1"
NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})
VOL = f"{ANF}:/vol /v vers=4.1"


def named(
    name: str, profile: str = "azure-netapp-files", match: Mapping[str, tuple[str, ...]] = NOTHING
) -> Policy:
    """Return a policy that names a server."""
    return replace(BUILTIN, assignments=(Assignment(Match(server=(name,), **match), profile, "policy 1"),))


def test_each_server_gets_the_number_of_its_profile() -> None:
    plan = planned(host(A, B, VOL, "nas:/x /x rw"))
    assert said(plan) == [(ANF, None, 8, Result.PLANNED), (SA1, None, 4, Result.PLANNED)]
    assert told(plan, Result.PLANNED)[SA1] == "azure-files asks for nconnect=4"
    assert after(plan) == {ANF: 8, SA1: 4}


def test_what_is_there_is_not_mentioned() -> None:
    held = {ANF: 8, SA1: 4}
    assert planned(host(A, VOL), held).changes == ()


def test_a_number_that_a_profile_no_longer_names_is_changed() -> None:
    assert said(planned(host(A), {SA1: 8})) == [(SA1, 8, 4, Result.PLANNED)]


def test_a_live_mount_made_by_hand_is_a_server_that_was_seen() -> None:
    snapshot = facts(Made("/a", source=f"{SA1}:/sa1/a", at="10.10.10.10")).snapshot
    assert after(planned(snapshot)) == {SA1: 4}


def test_what_a_hand_typed_this_time_is_no_word_about_the_next_time() -> None:
    made = Made(
        "/a", asked="rw,nconnect=2", shown="vers=4.1,nconnect=2", source=f"{SA1}:/sa1/a", at="10.10.10.10"
    )
    assert after(planned(facts(made).snapshot)) == {SA1: 4}


def test_a_units_mount_and_a_maps_count() -> None:
    unit = Request(f"{SA1}:/sa1/a", "/a", "vers=4.1", "/etc/systemd/system/a.mount", 4, maker=Maker.UNIT)
    wild = Request(
        f"{ANF}:/home/&", "/home/*", "vers=4.1", "/etc/auto.home", 1, wildcard=True, maker=Maker.AUTOFS
    )
    assert after(planned(host(requests=(unit, wild)))) == {ANF: 8, SA1: 4}


def test_a_map_whose_key_is_the_server_names_none() -> None:
    wild = Request("&:/export", "/net/*", "rw", "/etc/auto.net", 1, wildcard=True, maker=Maker.AUTOFS)
    everything = replace(BUILTIN, assignments=(Assignment(Match(), "azure-netapp-files", "policy 1"),))
    assert planned(host(requests=(wild,)), policy=everything).changes == ()


@pytest.mark.parametrize(
    ("pattern", "match", "expected"),
    [
        ("nas.example.org", {}, {"nas.example.org": 8}),
        ("NAS.example.org.", {}, {"nas.example.org": 8}),
        ("10.7.7.7", {}, {"10.7.7.7": 8}),
        ("nas*", {}, {}),
        ("10.7.0.0/16", {}, {}),
        ("fd00::5", {}, {}),
        ("127.0.0.1", {}, {}),
        ("nas.example.org", {"export": ("/vol1*",)}, {}),
        ("nas.example.org", {"mount_point": ("/mnt",)}, {}),
    ],
)
def test_a_server_that_the_policy_names_gets_one_before_it_is_mounted(
    pattern: str, match: dict[str, tuple[str, ...]], expected: dict[str, int]
) -> None:
    assert after(planned(host(), policy=named(pattern, match=match))) == expected


def test_a_named_server_is_asked_about_as_any_other() -> None:
    policy = named(PUBLIC, "azure-files")
    assert "public endpoint" in told(planned(host(), policy=policy))[PUBLIC]
    assert section_uses(host(), policy).unsettled() == (PUBLIC,)


def test_a_public_endpoint_gets_none_and_loses_the_one_that_it_has() -> None:
    line = f"{PUBLIC}:/sapublic/a /a vers=4.1"
    assert said(planned(host(line))) == [(PUBLIC, None, 4, Result.SKIPPED)]
    assert said(planned(host(line), {PUBLIC: 4})) == [(PUBLIC, 4, None, Result.PLANNED)]


def test_without_an_answer_nothing_is_written_and_nothing_taken_away() -> None:
    silent = Network(answers=(Answer(SA1, error="no answer within 3 s", final=False),))
    assert said(planned(host(A), network=silent)) == [(SA1, None, 4, Result.FAILED)]
    plan = planned(host(A), {SA1: 4}, network=silent)
    assert (plan.changes, after(plan, {SA1: 4})) == ((), {SA1: 4})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("vers=4.1,sec=krb5", "Kerberos"),
        ("vers=3,proto=udp", "nconnect is for TCP"),
        ("vers=3,proto=rdma", "nconnect is for TCP"),
    ],
)
def test_one_mount_that_must_not_have_it_keeps_it_from_the_whole_server(options: str, words: str) -> None:
    plan = planned(host(VOL, f"{ANF}:/other /o {options}"))
    assert after(plan) == {}
    assert "/etc/fstab:2: " in told(plan)[ANF]
    assert words in told(plan)[ANF]


def test_a_line_that_asks_for_kerberos_next_time_counts_before_it_is_mounted() -> None:
    made = Made("/v", source=f"{ANF}:/vol", at=ANF, shown="vers=4.1", fstab="vers=4.1,sec=krb5")
    assert "Kerberos" in told(planned(facts(made).snapshot))[ANF]


def test_another_port_of_a_server_has_the_same_section() -> None:
    plan = planned(host(VOL, f"{ANF}:/other /o vers=3,port=2050,proto=rdma"))
    assert after(plan) == {}


def test_an_old_kernel_refuses_every_mount_with_it() -> None:
    old = KernelRelease((4, 19, 0), "4.19.0")
    here = host(VOL, kernel=old, distribution=Distribution("debian", "10", "Debian"))
    assert "does not know nconnect" in told(planned(here))[ANF]
    assert said(planned(here, {ANF: 8})) == [(ANF, 8, None, Result.PLANNED)]


def test_a_share_without_an_opinion_keeps_it_from_its_server() -> None:
    policy = replace(BUILTIN, assignments=(replace(NETAPP, match=Match(server=(ANF,), export=("/vol*",))),))
    assert "names no nconnect" in told(planned(host(VOL, f"{ANF}:/home /h rw"), policy=policy))[ANF]


def test_a_server_whose_profile_allows_one_connection_gets_no_section_and_loses_one() -> None:
    efs = "fs-0123456789abcdef0.efs.us-east-1.amazonaws.com"
    snapshot = host(f"{efs}:/ /e vers=4.1")
    assert after(planned(snapshot)) == {}
    assert after(planned(snapshot, {efs: 4}), {efs: 4}) == {}


def test_a_server_that_no_profile_has_an_opinion_about_any_more_loses_its_section() -> None:
    plan = planned(host("nas:/x /x rw"), {"nas": 8})
    assert said(plan) == [("nas", 8, None, Result.PLANNED)]
    assert told(plan, Result.PLANNED)["nas"] == "its profile generic names no nconnect"


def test_a_line_that_asks_for_more_within_the_profile_raises_all() -> None:
    assert after(planned(host(VOL, f"{ANF}:/w /w nconnect=16"))) == {ANF: 16}


def test_a_line_that_asks_for_less_is_named_and_nothing_is_written() -> None:
    plan = planned(host(VOL, f"{ANF}:/w /w nconnect=2"))
    assert after(plan) == {}
    assert told(plan)[ANF] == (
        "/etc/fstab:2 asks for nconnect=2, and all mounts of a server should ask for one number, here 8"
    )


def test_a_number_that_is_missing_is_not_called_none() -> None:
    plan = planned(host(VOL, f"{ANF}:/w /w nconnect,noatime"))
    assert told(plan)[ANF].startswith("/etc/fstab:2 asks for nconnect, and all mounts")
    plan = planned(host(VOL, settings=(conf("server", ANF, "True"),)))
    assert told(plan)[ANF] == "/etc/nfsmount.conf:2 says nconnect: that counts"


def test_a_line_that_asks_for_more_than_the_profile_allows_leaves_a_section_that_is_there() -> None:
    line = f"{SA1}:/sa1/b /b nconnect=8"
    assert after(planned(host(A, line))) == {}
    plan = planned(host(A, line), {SA1: 4})
    assert (plan.changes, after(plan, {SA1: 4})) == ((), {SA1: 4})


def test_names_of_one_server_get_a_section_each() -> None:
    network = Network(answers=(private(SA1, "10.10.10.10"), private(SA2, "10.10.10.10")))
    plan = planned(host(A, f"{SA2}:/sa2/b /b vers=4.1"), network=network)
    assert after(plan) == {SA1: 4, SA2: 4}


def test_a_name_has_one_section_whatever_its_case() -> None:
    assert after(planned(host(A, f"{SA1.upper()}:/sa1/b /b vers=4.1"))) == {SA1: 4}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("[fd00::10]:/vol", "mount.nfs ends a name at its first colon"),
        ("127.0.0.1:/vol", "every TLS tunnel"),
        ("localhost:/vol", "every TLS tunnel"),
        ("nas-a,nas-b:/vol", "is no single name"),
        ('na"s:/vol', "is no single name"),
        ("na]s:/vol", "is no single name"),
    ],
)
def test_a_name_that_no_section_can_have_gets_none(source: str, words: str) -> None:
    everything = replace(BUILTIN, assignments=(Assignment(Match(), "azure-netapp-files", "policy 1"),))
    plan = planned(host(f"{source} /v rw"), policy=everything)
    assert after(plan) == {}
    (reason,) = told(plan).values()
    assert words in reason
    asking = planned(host(f"{source} /v nconnect=8"), policy=everything)
    assert asking.changes == ()


def test_a_share_by_ipv6_without_a_number_keeps_the_section_from_its_server() -> None:
    network = Network(answers=(Answer("nas", ("10.1.2.4", "fd00::10")),))
    policy = replace(BUILTIN, assignments=(replace(NETAPP, match=Match(server=("nas", "fd00::10"))),))
    lines = ("nas:/a /a rw", "[fd00::10]:/b /b rw")
    assert after(planned(host(*lines), policy=policy, network=network)) == {}
    lines = ("nas:/a /a rw", "[fd00::10]:/b /b nconnect=8")
    assert after(planned(host(*lines), policy=policy, network=network)) == {"nas": 8}


def test_tunnels_of_one_account_say_nothing_about_the_others() -> None:
    tls = Request(f"{SA2}:/sa2/b", "/b", "vers=4.1", "/etc/fstab", 2, fstype="aznfs")
    plan = planned(host(requests=(*fstab(A), tls)))
    assert after(plan) == {SA1: 4}
    assert "every TLS tunnel" in told(plan)[SA2]


def test_the_automounter_mounts_a_name_of_several_addresses_by_one_of_them() -> None:
    many = Network(answers=(Answer("nas", ("10.1.2.4", "10.1.2.5")),))
    policy = named("nas")
    request = Request("nas:/x", "/auto/x", "rw", "/etc/auto.x", 1, maker=Maker.AUTOFS)
    assert after(planned(host(requests=(request,)), policy=policy, network=many)) == {}
    request = replace(request, maker=Maker.MOUNT)
    assert after(planned(host(requests=(request,)), policy=policy, network=many)) == {"nas": 8}


@pytest.mark.parametrize(
    "setting",
    [
        conf("server", SA1.upper(), "2"),
        conf("server", SA1, "2", "/etc/nfsmount.conf.d/60-mine.conf"),
        conf("nfsmount_global_options", None, "2"),
    ],
)
def test_another_number_of_the_administrators_is_never_contradicted(setting: object) -> None:
    plan = planned(host(A, settings=(setting,)))
    assert after(plan) == {}
    assert "says nconnect=2: that counts" in told(plan)[SA1]
    assert said(planned(host(A, settings=(setting,)), {SA1: 4})) == [(SA1, 4, None, Result.PLANNED)]


def test_the_same_number_of_the_administrators_needs_no_section() -> None:
    settings = (conf("server", SA1, "4"),)
    assert planned(host(A, settings=settings)).changes == ()
    assert said(planned(host(A, settings=settings), {SA1: 4})) == [(SA1, 4, None, Result.PLANNED)]


def test_a_section_of_a_mount_point_with_another_number_keeps_the_shares_from_being_alike() -> None:
    plan = planned(host(A, B, settings=(conf("mountpoint", "/b", "2"),)))
    assert after(plan) == {}
    assert "/etc/nfsmount.conf:2 asks for nconnect=2" in told(plan)[SA1]
    assert after(planned(host(A, B, settings=(conf("mountpoint", "/b", "4"),)))) == {SA1: 4}


def test_a_section_of_a_server_that_is_gone_stays_until_it_is_pruned() -> None:
    held = {SA1: 4, "gone.example.org": 8}
    plan = planned(host(A), held)
    assert (plan.changes, plan.unused, after(plan, held)) == ((), ("gone.example.org",), held)
    plan = planned(host(A), held, prune=True)
    assert said(plan) == [("gone.example.org", 8, None, Result.PLANNED)]
    assert (plan.unused, after(plan, held)) == ((), {SA1: 4})


def test_pruning_leaves_what_is_in_use() -> None:
    assert planned(host(A), {SA1: 4}, prune=True).changes == ()


def test_a_mount_that_utab_knows_is_judged_by_its_line() -> None:
    """utab has what nfstuned's own file added; the line has not."""
    row = Request(f"{SA1}:/sa1/a", "/a", "vers=4.1,nconnect=4", UTAB, 1)
    assert after(planned(host(requests=(row, *fstab(A))))) == {SA1: 4}


def test_nothing_is_asked_where_nobody_has_an_opinion() -> None:
    assert section_uses(host("nas:/x /x rw"), BUILTIN).unsettled() == ()
    assert section_uses(host(A, VOL), POLICY).unsettled() == (SA1,)


CLEAR = Request(f"{SA1}:/sa1/a", "/a", "vers=4,minorversion=1,notls", FSTAB, 1, fstype="aznfs")
STAND_IN = Tunnel(0, SA1, 0, "azure-files", "/list", "10.161.100.100", "10.10.10.10")


def test_the_older_mount_aznfs_mounts_by_name_without_tls() -> None:
    assert after(planned(host(requests=(CLEAR,)))) == {SA1: 4}


@pytest.mark.parametrize("package", [{"azfiles": True}, {"tunnels": (STAND_IN,)}])
def test_where_mount_aznfs_mounts_an_address_of_its_own_no_section_is_written(
    package: dict[str, object],
) -> None:
    snapshot = host(requests=(CLEAR,), **package)
    assert said(planned(snapshot)) == [(SA1, None, 4, Result.SKIPPED)]
    assert told(planned(snapshot))[SA1] == (
        f"mount.aznfs mounts {SA1} by an address of its own, for which no section is: put nconnect into the "
        "options of the mount"
    )
    asking = replace(CLEAR, options=f"{CLEAR.options},nconnect=4")
    by_name = fstab(B)
    assert planned(host(requests=(asking,), **package)).changes == ()
    assert after(planned(host(requests=(asking, *by_name), **package))) == {SA1: 4}
    assert after(planned(host(requests=(CLEAR, *by_name), **package))) == {}


def test_a_mount_of_such_an_address_gets_no_section_whoever_made_it() -> None:
    seen = facts(Made("/a", source="10.161.100.100:/sa1/a", at="10.161.100.100")).snapshot
    for requests in (seen.requests, (*seen.requests, CLEAR)):
        snapshot = replace(seen, requests=requests, tunnels=(STAND_IN,))
        assert said(planned(snapshot)) == [(SA1, None, 4, Result.SKIPPED)]


def test_mount_aznfs_always_mounts_an_address_of_its_own_for_blob_storage() -> None:
    blob = Request("sa1.blob.core.windows.net:/sa1/c", "/c", "vers=3", FSTAB, 1, fstype="aznfs")
    policy = named("sa1.blob.core.windows.net")
    assert "of its own" in told(planned(host(requests=(blob,)), policy=policy))["sa1.blob.core.windows.net"]


def test_where_the_policy_goes_by_addresses_a_name_is_asked_for_and_has_the_profile_of_its_address() -> None:
    snapshot = host("anf1:/x /x rw", "anf1:/y /y vers=3")
    assert section_uses(snapshot, POLICY).unsettled() == ("anf1",)
    assert after(planned(snapshot, network=Network(answers=(Answer("anf1", (ANF,)),)))) == {"anf1": 8}
    assert after(planned(snapshot, network=Network(answers=(Answer("anf1", (ANF, "10.77.0.1")),)))) == {}


def test_a_line_beside_a_live_mount_of_its_name_has_the_profile_of_its_address() -> None:
    live = facts(Made("/x", source="anf1:/x", at=ANF), lines=("anf1:/y /y vers=4.1",)).snapshot
    assert after(planned(live, network=Network())) == {"anf1": 8}


@pytest.mark.parametrize(("at", "asked"), [("10.10.10.10", ()), ("52.239.238.8", (SA1,))])
def test_a_live_mount_tells_the_address_but_not_whose_a_public_one_is(
    at: str, asked: tuple[str, ...]
) -> None:
    snapshot = facts(Made("/a", source=f"{SA1}:/sa1/a", at=at)).snapshot
    assert section_uses(snapshot, POLICY).unsettled() == asked
    network = Network(answers=(Answer(SA1, (at,), (f"{SA1}".replace(".", ".privatelink.", 1),)),))
    assert after(planned(snapshot, network=network)) == {SA1: 4}


def test_only_the_servers_of_the_host_get_one() -> None:
    assert ANF2 not in after(planned(host(A, VOL)))
