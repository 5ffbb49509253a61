from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from nfstuned.core.policy.decision import (
    as_network,
    decide,
    decide_early,
    depends_on_implementation,
    matcher,
    read_ahead_kb,
)
from nfstuned.host.config import builtin_policy
from nfstuned.model.kernel import Mount, MountStats, NfsClient, Options, Volume
from nfstuned.model.mounts import Decision, Snapshot, Superblock, Tunnel
from nfstuned.model.policy import ADAPT_ON, Assignment, Match, Policy, Profile, ReadAhead, Workload

PROFILES = (
    Profile("azure-files", ReadAhead(kb=15360)),
    Profile("azure-netapp-files", ReadAhead(kb=15360)),
    Profile("aws-efs", ReadAhead(times_rsize=15)),
    Profile("generic", ReadAhead(kb=1024)),
    Profile("netapp-ontap", ReadAhead(kb=1024)),
    Profile("scratch", ReadAhead(kb=4096), lower=True),
    Profile("silent"),
)
PROVIDERS = builtin_policy().providers


def policy_of(
    profiles: tuple[Profile, ...],
    assignments: tuple[Assignment, ...] = (),
    workloads: tuple[Workload, ...] = (),
) -> Policy:
    return Policy(profiles, assignments, workloads=workloads, providers=PROVIDERS)


BUILTIN = policy_of(PROFILES)
NETAPP_SAYS = "name='NetApp Release 9.14.1',domain='netapp.com'"
AZNFS = Tunnel(20049, "10.0.0.5", 2049, "azure-files", "stunnel_10.0.0.5.conf")


def policy(*entries: tuple[Match, str]) -> Policy:
    return replace(
        BUILTIN,
        assignments=tuple(
            Assignment(match, profile, f"policy {number} of nfstuned.toml")
            for number, (match, profile) in enumerate(entries, 1)
        ),
    )


def mount(source: str, point: str = "/mnt", **options: str) -> Mount:
    return Mount(40, 25, "0:43", "/", point, "nfs4", source, Options(tuple(options.items())))


def test_profiles_are_not_compared_for_a_policy_that_was_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        pytest.fail("profiles were compared")

    before = matcher(BUILTIN)
    again = replace(BUILTIN)
    monkeypatch.setattr(Profile, "__eq__", refuse)
    assert matcher(again) is not before
    assert matcher(again) is matcher(again)
    assert matcher(BUILTIN) is before


def test_policies_that_were_replaced_are_gone_without_the_collector() -> None:
    """A daemon of months sees many reloads."""
    gc.collect()
    for _ in range(6):
        matcher(policy_of(PROFILES)).providers.by_name("sa1.file.core.windows.net")
    assert gc.collect() == 0


Rows = tuple[NfsClient, ...]


def superblock(*mounts: Mount, volume: Volume | None = None, servers: Rows = ()) -> Superblock:
    return Superblock("0:43", 7, 128, mounts, volume, servers)


def volume(address: str = "10.0.0.5", port: int = 2049, version: int = 4) -> Volume:
    return Volume(version, address, port, "0:43", "1:2")


def row(name: str, at: str = "10.0.0.5", port: int = 2049, users: int = 2, version: int = 4) -> NfsClient:
    return NfsClient(version, at, port, users, name)


def decided(entries: Policy, *mounts: Mount) -> Decision:
    return decide(entries, superblock(*mounts), Snapshot())


class TestWorkload:
    """A [[policy]] entry that says what programs do with a mount."""

    SMALL, LARGE, OWN = Workload("random", "", 256), Workload("media", "", 32768), Workload("sequential")

    def policy(self, workload: str, profile: str = "") -> Policy:
        entry = Assignment(Match(mount_point=("/mnt",)), profile, "policy 1", workload)
        return replace(BUILTIN, assignments=(entry,), workloads=(self.SMALL, self.LARGE, self.OWN))

    def test_its_read_ahead_counts_in_the_place_of_the_providers_and_is_lowered_too(self) -> None:
        seen = decided(self.policy("random"), mount("sa1.file.core.windows.net:/sa1/s"))
        assert seen == Decision(
            256, "azure-files+random", "azure-files", lower=True, why="policy 1", most_kb=256
        )
        assert decided(self.policy("random"), mount("nas:/v", "/elsewhere")).kb == 1024

    def test_an_early_decision_waits_where_a_server_may_turn_out_to_want_less(self) -> None:
        entry = Assignment(Match(server=("10.0.0.0/24",)), "", "policy 1", "sequential")
        ontap = Profile("netapp-ontap", ReadAhead(kb=512))
        known = policy_of((*PROFILES, ontap), (entry,), workloads=(self.OWN,))
        assert decide_early(known, volume(version=4), (row("10.0.0.5"),), (), azure=False) is None

    def test_a_limit_of_ontaps_matters_to_a_workload(self) -> None:
        limited = Profile("netapp-ontap", ReadAhead(kb=1024), read_ahead_max_kb=2048)
        assert depends_on_implementation(policy_of((*PROFILES, limited)))


@pytest.mark.parametrize(
    ("wanted", "rsize", "kb"),
    [
        (ReadAhead(kb=15360), None, 15360),
        (ReadAhead(times_rsize=15), 1048576, 15360),
        (ReadAhead(times_rsize=15), 1024, 64),
        (ReadAhead(times_rsize=128), 1048576, 65536),
        (ReadAhead(kb=1), None, 64),
        (ReadAhead(times_rsize=15), None, None),
        (ReadAhead(), 1048576, None),
        (None, 1048576, None),
    ],
)
def test_a_read_ahead_is_within_bounds(wanted: ReadAhead | None, rsize: int | None, kb: int | None) -> None:
    assert read_ahead_kb(wanted, rsize) == kb


class TestDecide:
    def test_the_reason_for_a_tls_mounts_value_names_its_tunnel(self) -> None:
        block = superblock(mount("127.0.0.1:/sa1/s", addr="127.0.0.1", port="20049"))
        seen = decide(BUILTIN, block, Snapshot(tunnels=(AZNFS,)))
        assert (seen.kb, seen.why) == (15360, "azure-files behind a TLS tunnel to 10.0.0.5")

    def test_netapp_is_known_by_the_stanza_of_its_own_mount(self) -> None:
        here, there = mount("10.0.1.4:/v1", "/a"), mount("10.0.1.4:/v1", "/b")
        stats = MountStats("10.0.1.4:/v1", "/a", "nfs4", "1.1", implementation=NETAPP_SAYS)
        seen = decide(BUILTIN, superblock(here), Snapshot(stats=(stats,), azure=True))
        assert (seen.kb, seen.why) == (15360, "azure-netapp-files by the own name of 10.0.1.4")
        assert decide(BUILTIN, superblock(there), Snapshot(stats=(stats,), azure=True)).provider == "generic"
        away = replace(here, foreign=True)
        assert decide(BUILTIN, superblock(away), Snapshot(stats=(stats,), azure=True)).provider == "generic"

    def test_a_multiple_of_rsize_uses_the_mounts_own(self) -> None:
        name = "fs-1.efs.eu-west-1.amazonaws.com:/"
        assert decided(BUILTIN, mount(name, rsize="1048576")).kb == 15360
        assert decided(BUILTIN, mount(name)).kb is None

    def test_the_first_entry_that_matches_wins_over_the_provider(self) -> None:
        other, ours = (Match(server=("other",)), "generic"), (Match(server=("SA1.*",)), "scratch")
        seen = decided(policy(other, ours, (Match(), "generic")), mount("sa1.file.core.windows.net:/s"))
        why = "policy 2 of nfstuned.toml"
        assert seen == Decision(4096, "scratch", "azure-files", lower=True, why=why, most_kb=4096)

    @pytest.mark.parametrize("pattern", ["10.0.0.0/24", "10.0.0.5", "127.0.0.1", "127.*", "127.0.0.0/8"])
    def test_a_server_pattern_means_both_ends_of_a_tunnel(self, pattern: str) -> None:
        entries = policy((Match(server=("nothing", pattern)), "scratch"))
        tls = mount("127.0.0.1:/s", addr="127.0.0.1", port="20049")
        assert decide(entries, superblock(tls), Snapshot(tunnels=(AZNFS,))).profile == "scratch"

    @pytest.mark.parametrize("pattern", ["2001:db8::/32", "[2001:db8::1]", "2001:DB8:0::1", "2001:db8:*"])
    def test_ipv6_servers_match_by_address_network_and_glob(self, pattern: str) -> None:
        entries = policy((Match(server=(pattern,)), "scratch"))
        assert decided(entries, mount("[2001:db8::1]:/x", addr="2001:db8::1")).profile == "scratch"
        assert decided(entries, mount("[2001:db9::1]:/x", addr="2001:db9::1")).profile == "generic"
        assert decided(entries, mount("10.0.0.1:/x")).profile == "generic"

    def test_exports_match_as_globs_with_case(self) -> None:
        for export, profile in (("/vol1*", "scratch"), ("/Vol1*", "generic"), ("/v", "generic")):
            entries = policy((Match(export=(export,)), "scratch"))
            assert decided(entries, mount("[2001:db8::1]:/vol1/sub")).profile == profile

    def test_the_largest_value_of_a_shared_superblocks_mounts_wins_with_the_reason(self) -> None:
        entries = policy((Match(mount_point=("/a",)), "scratch"), (Match(mount_point=("/s",)), "silent"))
        name = "sa1.file.core.windows.net:/s"
        seen = decided(entries, mount(name, "/a"), mount(name, "/b"), mount(name, "/s"))
        assert (seen.kb, seen.profile, seen.lower) == (15360, "azure-files", False)
        assert seen.why.endswith("; its mounts ask for 4096 and 15360 KiB, the largest counts")

    def test_of_equal_values_the_one_that_does_not_lower_counts(self) -> None:
        gentle = Profile("gentle", ReadAhead(kb=4096))
        entries = policy((Match(mount_point=("/a",)), "scratch"), (Match(), "gentle"))
        with_gentle = replace(entries, profiles=(*PROFILES, gentle))
        seen = decided(with_gentle, mount("nas:/v", "/a"), mount("nas:/v", "/b"))
        assert (seen.kb, seen.lower, seen.why) == (4096, False, "policy 2 of nfstuned.toml")

    def test_a_mount_that_nothing_moves_holds_its_superblock(self) -> None:
        entries = policy((Match(mount_point=("/a",)), "rising"), (Match(mount_point=("/b",)), "silent"))
        rising = Profile("rising", adapt=ADAPT_ON)
        with_rising = replace(entries, profiles=(*PROFILES, rising))
        a, b = (mount("nas:/v", point, rsize="262144") for point in ("/a", "/b"))
        assert decided(with_rising, a).most_kb is not None
        assert decided(with_rising, a, b).most_kb is None
        assert decided(with_rising, b, a).most_kb is None


class TestWithoutVisibleMounts:
    def test_nothing_is_decided_without_the_servers_row(self) -> None:
        seen = decide(BUILTIN, superblock(volume=volume(), servers=(row("nas", port=2050),)), Snapshot())
        assert (seen.kb, seen.why) == (None, "none of its mounts is visible here")

    def test_the_rows_name_decides(self) -> None:
        block = superblock(volume=volume(), servers=(row("sa1.file.core.windows.net"),))
        assert decide(BUILTIN, block, Snapshot()).why == "azure-files by name sa1.file.core.windows.net"

    def test_the_least_possible_value_is_safe(self) -> None:
        entries = policy((Match(mount_point=("/scratch",)), "scratch"))
        block = superblock(volume=volume(), servers=(row("sa1.file.core.windows.net"),))
        seen = decide(entries, block, Snapshot())
        assert (seen.kb, seen.profile, seen.lower) == (4096, "scratch", False)
        unseen = "none of its mounts is visible here, and this is the least possible value"
        assert seen.why == f"policy 1 of nfstuned.toml; {unseen}"


NAS = (row("nas"),)
LOW = Profile("low", ReadAhead(1024), lower=True)
LOWERING = replace(policy((Match(export=("/a",)), "low")), profiles=(*PROFILES, LOW))
CERTAIN_FIRST = policy((Match(("10.0.0.0/24",)), "scratch"), (Match(export=("/a",)), "generic"))
SAME_VALUE = policy((Match(export=("/a",)), "azure-netapp-files"))


class TestEarly:
    @pytest.mark.parametrize(
        ("entries", "rows", "profile"),
        [
            (BUILTIN, NAS, "generic"),
            # Without a row, with names of different values and with a multiple of rsize it waits,
            (BUILTIN, (row("nas", version=3), row("nas", "10.0.0.6"), row("nas", port=2050)), None),
            (BUILTIN, (*NAS, row("sa1.file.core.windows.net")), None),
            (BUILTIN, (row("fs-1.efs.eu-west-1.amazonaws.com"),), None),
            # and so it does for an entry that may match later,
            (policy((Match(export=("/a",)), "scratch")), NAS, None),
            (policy((Match(mount_point=("/a",)), "scratch")), NAS, None),
            (policy((Match(("nas",), ("/a",)), "scratch")), NAS, None),
            (LOWERING, NAS, None),
            # not for one that cannot match, follows a certain entry or has the same value,
            (policy((Match(("other",), ("/a",)), "scratch")), NAS, "generic"),
            (policy((Match(("10.9.0.0/16",), mount_point=("/a",)), "scratch")), NAS, "generic"),
            (policy((Match(("10.9.*",), ("/a",)), "scratch")), NAS, "generic"),
            (CERTAIN_FIRST, NAS, "scratch"),
            (SAME_VALUE, (row("sa1.file.core.windows.net"),), "azure-netapp-files"),
            # and a shared client hides no addresses.
            (policy((Match(("10.9.0.0/16", "10.8.*")), "scratch")), (row("nas", users=9),), "generic"),
        ],
    )
    def test_it_waits_for_facts_that_count(
        self, entries: Policy, rows: tuple[NfsClient, ...], profile: str | None
    ) -> None:
        early = decide_early(entries, volume(), rows, ())
        assert (early.profile if early else None) == profile

    def test_a_shared_client_hides_later_mounts_names(self) -> None:
        entries = policy((Match(server=("alias.*",)), "scratch"))
        for version, users, waits in ((4, 2, False), (4, 3, True), (3, 1, False), (3, 2, True)):
            rows = (row("nas", version=version, users=users),)
            assert (decide_early(entries, volume(version=version), rows, ()) is None) is waits

    def test_a_port_of_the_tls_helpers_waits_until_its_tunnel_is_known(self) -> None:
        local = volume("127.0.0.1", 20049)
        rows = (row("127.0.0.1", "127.0.0.1", 20049),)
        assert decide_early(BUILTIN, local, rows, ()) is None
        assert decide_early(BUILTIN, local, rows, (AZNFS._replace(port=20050),)) is None
        seen = decide_early(BUILTIN, local, rows, (AZNFS,))
        assert seen is not None
        assert seen.provider == "azure-files"

    def test_rdmas_port_on_another_host_does_not_wait(self) -> None:
        assert decide_early(BUILTIN, volume(port=20049), (row("nas", port=20049),), ()) is not None


def test_an_early_decision_waits_for_netapps_number_also_where_an_entry_of_the_same_value_may_match() -> None:
    alike = Profile("mine", ReadAhead(1024))
    less = Profile("azure-netapp-files", ReadAhead(512))
    profiles = (Profile("generic", ReadAhead(1024)), less, alike)
    known = policy_of(profiles, assignments=(Assignment(Match(export=("/a",)), "mine", "policy 1"),))
    servers = (row("nas"),)
    assert decide_early(known, volume(), servers, ()) is None
    assert decide_early(known, volume(version=3), (row("nas", version=3),), ()) is not None


def test_a_servers_own_name_matters_where_netapps_number_is_its_own() -> None:
    assert not depends_on_implementation(BUILTIN)
    others = (Profile("generic", ReadAhead(kb=1024)), Profile("netapp-ontap", ReadAhead(kb=4096)))
    assert depends_on_implementation(policy_of(others))


@pytest.mark.parametrize(
    ("pattern", "network"),
    [
        ("10.1.2.0/24", "10.1.2.0/24"),
        ("[fe80::1%eth0]", "fe80::1/128"),
        ("10.*", "None"),
        ("::ffff:10.1.2.3", "10.1.2.3/32"),
        ("::ffff:10.1.2.0/120", "10.1.2.0/24"),
    ],
)
def test_a_pattern_is_a_network_or_a_glob(pattern: str, network: str) -> None:
    assert str(as_network(pattern)) == network
