"""The servers that get a section of nfstuned's own drop-in of nfsmount.conf, and the drop-in's promises."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nfstuned.core.mounts.requests import last_asked, requested
from nfstuned.core.nconnect.persist import section_uses, sections, with_sections
from nfstuned.model.mounts import FSTAB, PERSISTED, UTAB, Maker, Request, Result, Snapshot, Tunnel
from nfstuned.model.policy import Assignment, Match, Policy
from nfstuned.model.system import Answer, Network, NfsUtils
from tests.core.fstabs import BUILTIN, EVERYWHERE, NETAPP, NETWORK, POLICY, private
from tests.core.nconnect_hosts import Made, facts
from tests.core.persisted import (
    ANF,
    ANF2,
    NEW,
    OLD,
    OLDEST,
    PUBLIC,
    SA1,
    SA2,
    after,
    conf,
    fstab,
    host,
    ours,
    planned,
    said,
    told,
)

A, B = f"{SA1}:/sa1/a /a vers=4.1", f"{SA1}:/sa1/b /b vers=4.1"
VOL = f"{ANF}:/vol /v vers=4.1"


def named(name: str, profile: str = "azure-netapp-files") -> Policy:
    return replace(BUILTIN, assignments=(Assignment(Match(server=(name,)), profile, "policy 1"),))


CLEAR = Request(f"{SA1}:/sa1/a", "/a", "vers=4,minorversion=1,notls", FSTAB, 1, fstype="aznfs")
STAND_IN = Tunnel(0, SA1, 0, "azure-files", "/list", "10.161.100.100", "10.10.10.10")
EFS = "fs-0123456789abcdef0.efs.us-east-1.amazonaws.com"
BY_HAND = Made("/a", source=f"{SA1}:/sa1/a", at="10.10.10.10")
OF_POD = replace(BY_HAND, point="/var/lib/kubelet/pods/7c1d/volumes/kubernetes.io~csi/pv/mount")
TYPED = replace(BY_HAND, asked="rw,nconnect=2", shown="vers=4.1,nconnect=2")
UNIT = Request(f"{SA1}:/sa1/a", "/a", "vers=4.1", "/etc/systemd/system/a.mount", 4, maker=Maker.UNIT)
HOMES = Request(f"{ANF}:/home/&", "/home/*", "rw", "/etc/auto.home", 1, wildcard=True, maker=Maker.AUTOFS)
RECORDED = Request(f"{SA1}:/sa1/a", "/a", "vers=4.1,nconnect=4", UTAB, 1)
"""utab has the options that nfstuned's own file added; the line has not."""
WRITTEN = {
    "each server gets the number of its profile": (host(A, B, VOL, "nas:/x /x rw"), {ANF: 8, SA1: 4}),
    "a mount by hand is a server that was seen": (facts(BY_HAND).snapshot, {SA1: 4}),
    "a pod's mount has its options elsewhere": (facts(OF_POD).snapshot, {}),
    "a line counts, whatever pods mount": (facts(OF_POD, lines=(A,)).snapshot, {SA1: 4}),
    "a number typed by hand counts for this time only": (facts(TYPED).snapshot, {SA1: 4}),
    "the mounts of units and maps count": (host(requests=(UNIT, HOMES)), {ANF: 8, SA1: 4}),
    "another port has the same section": (host(VOL, f"{ANF}:/o /o vers=3,port=2050,proto=rdma"), {}),
    "a number within the profile raises all": (host(VOL, f"{ANF}:/w /w nconnect=16"), {ANF: 16}),
    "a name has one section for any case": (host(A, f"{SA1.upper()}:/sa1/b /b vers=4.1"), {SA1: 4}),
    "a mount in utab counts by its line": (host(requests=(RECORDED, *fstab(A))), {SA1: 4}),
    "the older mount.aznfs mounts by name": (host(requests=(CLEAR,)), {SA1: 4}),
}


@pytest.mark.parametrize(("snapshot", "sections"), WRITTEN.values(), ids=WRITTEN)
def test_the_sections_of_a_host(snapshot: Snapshot, sections: dict[str, int]) -> None:
    assert after(planned(snapshot)) == sections


TWO_NAMES = Network(answers=(private(SA1, "10.10.10.10"), private(SA2, "10.10.10.10")))
NAS6 = replace(BUILTIN, assignments=(replace(NETAPP, match=Match(server=("nas", "fd00::10"))),))
BY_IPV6 = {"network": Network(answers=(Answer("nas", ("10.1.2.4", "fd00::10")),)), "policy": NAS6}
SEVERAL = {"network": Network(answers=(Answer("nas", (ANF, ANF2)),)), "policy": named("nas")}
AUTO = Request("nas:/x", "/auto/x", "rw", "/etc/auto.x", 1, maker=Maker.AUTOFS)
ANF1 = host("anf1:/x /x rw", "anf1:/y /y vers=3")
ANF1_LIVE = facts(Made("/x", source="anf1:/x", at=ANF), lines=("anf1:/y /y vers=4.1",)).snapshot
LESS = f"{SA1}:/sa1/a /a nconnect=2"
KNOWN: dict[str, tuple[Snapshot, dict[str, Any], dict[str, int]]] = {
    "each name of a server": (host(A, f"{SA2}:/sa2/b /b rw"), {"network": TWO_NAMES}, {SA1: 4, SA2: 4}),
    "a share by IPv6 without a number": (host("nas:/a /a rw", "[fd00::10]:/b /b rw"), BY_IPV6, {}),
    "and with one": (host("nas:/a /a rw", "[fd00::10]:/b /b nconnect=8"), BY_IPV6, {"nas": 8}),
    "autofs chooses among several addresses": (host(requests=(AUTO,)), SEVERAL, {}),
    "mount(8) does not": (host(requests=(AUTO._replace(maker=Maker.MOUNT),)), SEVERAL, {"nas": 8}),
    "a name's one address": (ANF1, {"network": Network(answers=(Answer("anf1", (ANF,)),))}, {"anf1": 8}),
    "two addresses": (ANF1, {"network": Network(answers=(Answer("anf1", (ANF, "10.77.0.1")),))}, {}),
    "the address of a live mount": (ANF1_LIVE, {"network": Network()}, {"anf1": 8}),
    "a server that needs none keeps it from nobody": (host(LESS, VOL), {"utils": OLD}, {ANF: 8}),
    "no version is an old one": (host(A, VOL), {"utils": NfsUtils(None, drop_ins=True)}, {SA1: 4}),
}


@pytest.mark.parametrize(("snapshot", "known", "sections"), KNOWN.values(), ids=KNOWN)
def test_addresses_and_programs_count(snapshot: Snapshot, known: dict[str, Any], sections: object) -> None:
    assert after(planned(snapshot, **known)) == sections


def test_the_reason_of_a_section_is_a_profile_or_another_mount() -> None:
    assert told(planned(host(A)), PLANNED)[SA1] == "azure-files recommends nconnect=4"
    assert told(planned(host(VOL, f"{ANF}:/w /w nconnect=16")), PLANNED)[ANF].startswith("as /etc/fstab:2, ")
    reason = f"the kubelet makes {OF_POD.point}, with the options in its PersistentVolume (mountOptions;"
    assert told(planned(facts(OF_POD).snapshot))[SA1].startswith(reason)
    gone = told(planned(host("nas:/x /x rw"), {"nas": 8}), PLANNED)
    assert gone["nas"] == "its profile generic names no nconnect"


def test_a_map_whose_key_is_the_server_names_none() -> None:
    wild = Request("&:/export", "/net/*", "rw", "/etc/auto.net", 1, wildcard=True, maker=Maker.AUTOFS)
    everything = replace(BUILTIN, assignments=(Assignment(Match(), "azure-netapp-files", "policy 1"),))
    assert planned(host(requests=(wild,)), policy=everything).changes == ()


PLANNED, SKIPPED, FAILED = Result.PLANNED, Result.SKIPPED, Result.FAILED
SILENT = Network(answers=(Answer(SA1, error="no answer within 3 s", final=False),))
NAS_LOST = ("nas", 8, None, PLANNED)
PUBLIC_SHARE, TOO_MANY = f"{PUBLIC}:/sapublic/a /a vers=4.1", f"{SA1}:/sa1/b /b nconnect=8"
FATES: dict[str, tuple[tuple[str, ...], dict[str, int], Network, list[object]]] = {
    "right sections are not mentioned": ((A, VOL), {ANF: 8, SA1: 4}, NETWORK, []),
    "another number is changed": ((A,), {SA1: 8}, NETWORK, [(SA1, 8, 4, PLANNED)]),
    "a public endpoint gets none": ((PUBLIC_SHARE,), {}, NETWORK, [(PUBLIC, None, 4, SKIPPED)]),
    "a public endpoint loses it": ((PUBLIC_SHARE,), {PUBLIC: 4}, NETWORK, [(PUBLIC, 4, None, PLANNED)]),
    "without an answer none is written": ((A,), {}, SILENT, [(SA1, None, 4, FAILED)]),
    "without an answer none goes": ((A,), {SA1: 4}, SILENT, []),
    "one connection is no section": ((f"{EFS}:/ /e vers=4.1",), {}, NETWORK, []),
    "one connection loses it": ((f"{EFS}:/ /e vers=4.1",), {EFS: 4}, NETWORK, [(EFS, 4, None, PLANNED)]),
    "too many in a line write none": ((A, TOO_MANY), {}, NETWORK, [(SA1, None, 4, SKIPPED)]),
    "too many in a line leave it": ((A, TOO_MANY), {SA1: 4}, NETWORK, []),
    "no profile with a number loses it": (("nas:/x /x rw",), {"nas": 8}, NETWORK, [NAS_LOST]),
}


@pytest.mark.parametrize(("lines", "held", "network", "changes"), FATES.values(), ids=FATES)
def test_the_changes_of_a_file(
    lines: tuple[str, ...], held: dict[str, int], network: Network, changes: list[object]
) -> None:
    plan = planned(host(*lines), held, network=network)
    assert said(plan) == changes
    assert planned(host(*lines), held, network=network, prune=True).changes == plan.changes


def test_a_named_server_is_asked_about_as_any_other() -> None:
    policy = named(PUBLIC, "azure-files")
    assert "public endpoint" in told(planned(host(), policy=policy))[PUBLIC]
    assert section_uses(host(), policy).names_to_resolve() == (PUBLIC,)


@pytest.mark.parametrize(
    ("options", "words"),
    [("sec=krb5", "Kerberos"), *((f"proto={name}", "nconnect is for TCP") for name in ("udp", "rdma"))],
)
def test_one_mount_that_must_not_have_it_keeps_it_from_the_whole_server(options: str, words: str) -> None:
    plan = planned(host(VOL, f"{ANF}:/other /o vers=3,{options}"))
    assert after(plan) == {}
    assert "/etc/fstab:2: " in told(plan)[ANF]
    assert words in told(plan)[ANF]


def test_a_line_that_asks_for_kerberos_next_time_counts_before_it_is_mounted() -> None:
    made = Made("/v", source=f"{ANF}:/vol", at=ANF, shown="vers=4.1", fstab="vers=4.1,sec=krb5")
    assert "Kerberos" in told(planned(facts(made).snapshot))[ANF]


def test_a_share_without_an_opinion_keeps_it_from_its_server() -> None:
    policy = replace(BUILTIN, assignments=(replace(NETAPP, match=Match(server=(ANF,), export=("/vol*",))),))
    assert "names no nconnect" in told(planned(host(VOL, f"{ANF}:/home /h rw"), policy=policy))[ANF]


def test_a_line_that_asks_for_less_is_named_and_nothing_is_written() -> None:
    plan = planned(host(VOL, f"{ANF}:/w /w nconnect=2"))
    assert after(plan) == {}
    rule = "all mounts of a server should ask for one number, here 8"
    assert told(plan)[ANF] == f"/etc/fstab:2 asks for nconnect=2, and {rule}"


def test_a_number_that_is_missing_is_not_called_none() -> None:
    plan = planned(host(VOL, f"{ANF}:/w /w nconnect,noatime"))
    assert told(plan)[ANF].startswith("/etc/fstab:2 asks for nconnect, and all mounts")
    plan = planned(host(VOL, settings=(conf("server", ANF, "True"),)))
    assert told(plan)[ANF] == "/etc/nfsmount.conf:2 has nconnect, which takes precedence"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("[fd00::10]:/vol", "mount.nfs ends a name at its first colon"),
        ("127.0.0.1:/vol", "every TLS tunnel"),
        ("localhost:/vol", "every TLS tunnel"),
        ("nas-a,nas-b:/vol", "is not a single name"),
        ('na"s:/vol', "is not a single name"),
        ("na]s:/vol", "is not a single name"),
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
    assert "has nconnect=2, which takes precedence" in told(plan)[SA1]
    assert said(planned(host(A, settings=(setting,)), {SA1: 4})) == [(SA1, 4, None, Result.PLANNED)]


def test_the_same_number_of_the_administrators_needs_no_section() -> None:
    settings = (conf("server", SA1, "4"),)
    assert planned(host(A, settings=settings)).changes == ()
    assert said(planned(host(A, settings=settings), {SA1: 4})) == [(SA1, 4, None, Result.PLANNED)]


def test_a_section_of_a_server_that_is_gone_stays_until_it_is_pruned() -> None:
    held = {SA1: 4, "gone.example.org": 8}
    plan = planned(host(A), held)
    assert (plan.changes, plan.unused, after(plan, held)) == ((), ("gone.example.org",), held)
    plan = planned(host(A), held, prune=True)
    assert said(plan) == [("gone.example.org", 8, None, Result.PLANNED)]
    assert (plan.unused, after(plan, held)) == ((), {SA1: 4})


def test_nothing_is_asked_where_nobody_has_an_opinion() -> None:
    assert section_uses(host("nas:/x /x rw"), BUILTIN).names_to_resolve() == ()
    assert section_uses(host(A, VOL), POLICY).names_to_resolve() == (SA1,)
    assert section_uses(ANF1, POLICY).names_to_resolve() == ("anf1",)


@pytest.mark.parametrize("package", [{"azfiles": True}, {"tunnels": (STAND_IN,)}])
def test_where_mount_aznfs_takes_its_own_address_no_section_is_written(package: dict[str, object]) -> None:
    snapshot = host(requests=(CLEAR,), **package)
    assert said(planned(snapshot)) == [(SA1, None, 4, Result.SKIPPED)]
    reason = f"mount.aznfs mounts {SA1} by an address of its own, which no section can name"
    assert told(planned(snapshot))[SA1] == f"{reason}: put nconnect into the options of the mount"
    asking = CLEAR._replace(options=f"{CLEAR.options},nconnect=4")
    by_name = fstab(B)
    assert planned(host(requests=(asking,), **package)).changes == ()
    assert after(planned(host(requests=(asking, *by_name), **package))) == {SA1: 4}
    assert after(planned(host(requests=(CLEAR, *by_name), **package))) == {}


def test_a_mount_of_such_an_address_gets_no_section_whoever_made_it() -> None:
    seen = facts(Made("/a", source="10.161.100.100:/sa1/a", at="10.161.100.100")).snapshot
    for requests in (seen.requests, (*seen.requests, CLEAR)):
        snapshot = replace(seen, requests=requests, tunnels=(STAND_IN,))
        assert said(planned(snapshot)) == [(SA1, None, 4, Result.SKIPPED)]


@pytest.mark.parametrize(("at", "asked"), [("10.10.10.10", ()), ("52.239.238.8", (SA1,))])
def test_a_live_mount_gives_an_address_but_no_owner_of_a_public_one(at: str, asked: tuple[str, ...]) -> None:
    snapshot = facts(Made("/a", source=f"{SA1}:/sa1/a", at=at)).snapshot
    assert section_uses(snapshot, POLICY).names_to_resolve() == asked
    network = Network(answers=(Answer(SA1, (at,), (f"{SA1}".replace(".", ".privatelink.", 1),)),))
    assert after(planned(snapshot, network=network)) == {SA1: 4}


VOL2 = f"{ANF2}:/vol /w vers=4.1"


def test_with_debian_12_the_first_server_gets_the_only_section() -> None:
    plan = planned(host(A, VOL), utils=OLD)
    assert after(plan) == {SA1: 4}
    reason = f"mount.nfs 2.6.2 uses one nconnect for all [ Server ] sections, and {SA1} has it"
    assert told(plan)[ANF] == f"{reason}: put nconnect into the options of the mounts instead"


def test_the_server_that_has_it_keeps_it() -> None:
    plan = planned(host(A, VOL), {ANF: 8}, OLD)
    assert (after(plan, {ANF: 8}), list(told(plan))) == ({ANF: 8}, [SA1])


def test_a_server_whose_mounts_all_ask_by_themselves_lacks_nothing() -> None:
    asking = f"{SA1}:/sa1/a /a nconnect=4"
    plan = planned(host(asking, VOL), utils=OLD)
    assert said(plan) == [(ANF, None, 8, PLANNED)]
    others = said(planned(host(asking, VOL, VOL2), utils=OLD))
    assert others == [(ANF, None, 8, PLANNED), (ANF2, None, 8, SKIPPED)]
    assert after(planned(host(asking), utils=OLD)) == {SA1: 4}
    assert planned(host(asking), utils=OLDEST).changes == ()


def test_sections_that_a_newer_one_had_are_taken_out_but_for_one() -> None:
    held = {ANF: 8, SA1: 4, "gone": 2}
    plan = planned(host(A, VOL), held, OLD)
    assert said(plan) == [("gone", 2, None, Result.PLANNED), (SA1, 4, None, Result.PLANNED)]
    assert (after(plan, held), plan.unused) == ({ANF: 8}, ())


def test_a_section_that_nothing_uses_stands_in_the_way_until_it_is_pruned() -> None:
    plan = planned(host(VOL), {"gone": 4}, OLD)
    assert after(plan, {"gone": 4}) == {"gone": 4}
    assert "gone has it, which nothing uses here: --prune takes it out" in told(plan)[ANF]
    assert after(planned(host(VOL), {"gone": 4}, OLD, prune=True), {"gone": 4}) == {ANF: 8}


def test_a_server_under_two_names_would_need_two() -> None:
    lines = (A, f"{SA2}:/sa2/a /b vers=4.1")
    plan = planned(host(*lines), utils=OLD, network=TWO_NAMES)
    assert after(plan) == {}
    assert "this server is mounted by several names" in told(plan)[SA1]
    assert after(planned(host(*lines, VOL), utils=OLD, network=TWO_NAMES)) == {ANF: 8}


@pytest.mark.parametrize("name", ["elsewhere", SA2])
def test_a_section_of_the_administrators_is_neither_taken_away_nor_believed(name: str) -> None:
    settings = (conf("server", name, "2"),)
    plan = planned(host(A, settings=settings), utils=OLD)
    assert after(plan) == {}
    assert f"/etc/nfsmount.conf:2 has it for {name}" in told(plan)[SA1]
    assert said(planned(host(A, settings=settings), {SA1: 4}, OLD)) == [(SA1, 4, None, Result.PLANNED)]
    assert after(planned(host(A, settings=settings), utils=NEW)) == {SA1: 4}


def test_one_that_reads_no_drop_ins_gets_none() -> None:
    plan = planned(host(A), utils=OLDEST)
    assert said(plan) == [(SA1, None, 4, Result.SKIPPED)]
    assert "mount.nfs 2.3.3 does not read /etc/nfsmount.conf.d" in told(plan)[SA1]
    assert after(planned(host(A), {SA1: 4, "gone": 4}, OLDEST), {SA1: 4, "gone": 4}) == {}


@pytest.mark.parametrize(
    ("utils", "words"), [(None, "there is no mount.nfs here: install"), (NfsUtils(), "shows no version")]
)
def test_without_knowing_it_nothing_is_written_or_taken_away(utils: NfsUtils | None, words: str) -> None:
    plan = planned(host(A, VOL), {SA1: 4}, utils)
    assert said(plan) == [(ANF, None, 8, Result.FAILED)]
    assert words in told(plan, Result.FAILED)[ANF]
    assert after(plan, {SA1: 4}) == {SA1: 4}


NAMES = (SA1, SA1.upper(), SA2, PUBLIC, ANF, ANF2, "nas", "[fd00::10]", "127.0.0.1", "unknown.example.org")
OPTIONS = ("rw", *(f"nconnect={count}" for count in (2, 4, 8, 16, "x")), "sec=krb5", "proto=rdma")
LINES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(OPTIONS)), max_size=5).map(
    lambda found: tuple(f"{name}:/x{n} /p{n} {options}" for n, (name, options) in enumerate(found))
)
SETTINGS = st.lists(
    st.one_of(
        st.builds(conf, st.just("server"), st.sampled_from((*NAMES, "gone")), st.sampled_from("248")),
        st.builds(conf, st.just("mountpoint"), st.sampled_from(("/p0", "/p1")), st.sampled_from("248")),
        st.builds(conf, st.just("nfsmount_global_options"), st.none(), st.sampled_from("248")),
    ),
    max_size=2,
).map(tuple)
HOLDERS = st.sampled_from((SA1, SA2, PUBLIC, ANF, ANF2, "nas", "gone"))
HELD = st.dictionaries(HOLDERS, st.integers(1, 16), max_size=3)
UTILS = st.sampled_from((NEW, OLD, OLDEST, NfsUtils(), None))
HOSTS = st.builds(lambda lines, settings: host(*lines, settings=settings), LINES, SETTINGS)
TWO_MINDS = host(
    f"{SA1}:/x0 /p0 rw",
    f"{SA1}:/x1 /p1 rw",
    settings=(conf("mountpoint", "/p0", "2"), conf("nfsmount_global_options", None, "4")),
)
"""A section that was written before would take the global number from the second mount."""


@given(snapshot=HOSTS, held=HELD, utils=UTILS, prune=st.booleans())
def test_a_second_run_has_nothing_to_do(
    *, snapshot: Snapshot, held: dict[str, int], utils: NfsUtils | None, prune: bool
) -> None:
    first = planned(snapshot, held, utils, prune=prune)
    then = after(first, held)
    second = planned(snapshot, then, utils, prune=prune)
    assert after(second, then) == then
    assert not [one for one in second.changes if one.result is Result.PLANNED]


@given(snapshot=HOSTS, held=HELD, prune=st.booleans())
@example(snapshot=TWO_MINDS, held={SA1: 1}, prune=False)
def test_the_file_changes_no_other_mount(*, snapshot: Snapshot, held: dict[str, int], prune: bool) -> None:
    then = after(planned(snapshot, held, NEW, prune=prune), held)
    for use in section_uses(snapshot, POLICY).members:
        request = use.target.request
        assert request is not None
        before = last_asked(requested(request, snapshot.settings), "nconnect")
        now = last_asked(requested(request, (*snapshot.settings, *ours(then))), "nconnect")
        if before is not None:
            assert now == before
        elif use.section in then:
            assert now is not None
            assert (now.file, now.value) == (PERSISTED, str(then[use.section]))
        else:
            assert now is None


@given(snapshot=HOSTS, held=HELD, prune=st.booleans())
def test_an_old_mount_nfs_has_one_section(*, snapshot: Snapshot, held: dict[str, int], prune: bool) -> None:
    then = after(planned(snapshot, held, OLD, prune=prune), held)
    others = [one for one in snapshot.settings if one.section == "server"]
    assert len(then) <= (0 if others else 1)


@given(HOSTS, HELD)
def test_every_share_of_a_server_gets_the_same(snapshot: Snapshot, held: dict[str, int]) -> None:
    plan = planned(snapshot, held, NEW)
    made = (change for change in plan.changes if change.result is Result.PLANNED)
    written = {change.target: change.new for change in made if change.new}
    settings = (*snapshot.settings, *ours(after(plan, held)))
    for use in section_uses(snapshot, POLICY).members:
        if use.section in written and use.target.request is not None:
            found = last_asked(requested(use.target.request, settings), "nconnect")
            assert found is not None
            assert found.value == str(written[use.section])


@given(
    sources=st.lists(st.builds("{}{}".format, st.text(max_size=9), st.sampled_from(["", ":/x"])), max_size=3),
    options=st.text(max_size=12),
    maker=st.sampled_from(Maker),
    wildcard=st.booleans(),
)
def test_only_names_are_sections(*, sources: list[str], options: str, maker: Maker, wildcard: bool) -> None:
    requests = tuple(
        Request(source, f"/{n}", options, FSTAB, n, wildcard=wildcard, maker=maker)
        for n, source in enumerate(sources, 1)
    )
    then = after(planned(host(requests=requests), policy=EVERYWHERE))
    assert sections(with_sections(then)) == then
    assert all(re.fullmatch("[a-z0-9_.-]+", name) for name in then)


SECTION_NAMES = st.from_regex(r"[a-z0-9_](?:[a-z0-9._-]{0,20}[a-z0-9_])?", fullmatch=True)
SECTIONS = st.dictionaries(SECTION_NAMES, st.integers(1, 16), max_size=5)
SOME = {"sa1.file.core.windows.net": 4, "10.1.2.4": 8}


@given(SECTIONS, st.data())
def test_no_edit_goes_unseen(wanted: dict[str, int], data: st.DataObject) -> None:
    text = with_sections(wanted)
    place, gone = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    new = data.draw(st.text(max_size=3))
    edited = text[:place] + new + text[place + gone :]
    assert (sections(edited) == wanted) == (edited == text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[ Server "nas" ]\nnconnect=4\n',
        with_sections(SOME).replace("nconnect=4", "nconnect=2"),
        with_sections(SOME).replace("\n", "\r\n"),
        with_sections(SOME)[:-1],
        with_sections(SOME) + "\n",
    ],
)
def test_what_nfstuned_did_not_write_is_not_its_own(text: str) -> None:
    assert sections(text) is None


def test_the_text_tells_a_reader_what_it_is() -> None:
    lines = with_sections({"nas": 8}).split("\n")
    assert lines[0].startswith("# nfstuned wrote this, sha256 ")
    assert [line for line in lines if line and not line.startswith("#")] == ['[ Server "nas" ]', "nconnect=8"]
    assert max(len(line) for line in lines) <= 110
