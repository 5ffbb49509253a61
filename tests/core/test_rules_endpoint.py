from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from nfstuned.app.facts import Scope
from nfstuned.core.policy.decision import matcher
from nfstuned.core.policy.endpoint import as_address
from nfstuned.core.rules import catalogue
from nfstuned.core.rules.catalogue import run_rules, select_rules
from nfstuned.core.rules.nfs4_tls import helper_down, wrong_cloud
from nfstuned.host.config import builtin_policy
from nfstuned.model.facts import Facts, Fault, Measured, Target
from nfstuned.model.kernel import Mount, Options, parse_options
from nfstuned.model.mounts import Asked, Endpoint, Maker, Request, Snapshot, Superblock
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.system import (
    AUTOFS,
    LOGINS,
    Answer,
    Network,
    Override,
    Reach,
    Reachable,
    System,
    Tls,
    Unit,
)

SA1 = "sa1.file.core.windows.net"
LINK = "sa1.privatelink.file.core.windows.net"
STORE = "file.ams20prdstr05a.store.core.windows.net"
PRIVATE, PUBLIC = "10.10.10.10", "52.239.238.8"
GENERIC = Profile("generic")
POLICY = Policy((GENERIC,), providers=builtin_policy().providers)
by_name = matcher(POLICY).providers.by_name
RULES = select_rules(catalogue.RULES, ("NFS4",), ())
NO_TLS = Tls()
OPEN = Reach(PRIVATE, 2049, Reachable.OPEN)


def live(source: str, address: str | None, point: str = "/mnt/a", *, host: str = "", **more: str) -> Target:
    """Return a live mount; `host` is the endpoint's where it is not the source's."""
    name = host or source.partition(":/")[0]
    pairs = {"vers": "4.1", "proto": "tcp", **more, **({"addr": address} if address else {})}
    mount = Mount(40, 25, "0:43", "/", point, "nfs4", source, Options(tuple(pairs.items())))
    place = Endpoint(name, address, int(more.get("port", "2049")), by_name(name))
    return Target(point, point, source, "nfs4", place, GENERIC, live=mount)


def asked(source: str, options: str = "vers=4.1", line: int = 4, fstype: str = "nfs") -> Target:
    """Return what only fstab asks for."""
    name = source.partition(":/")[0]
    request = Request(source, f"/mnt/{line}", options, "/etc/fstab", line, fstype=fstype)
    asked = tuple(Asked(*pair, "/etc/fstab", line) for pair in parse_options(options).pairs)
    place = Endpoint(name, None, 2049, by_name(name))
    target = Target(f"/etc/fstab:{line}", request.point, source, fstype, place, GENERIC, asked=asked)
    return replace(target, request=request)


def tunnelled(real: str, port: int = 20049, point: str = "/mnt/tls") -> Target:
    """Return a live mount through a tunnel to `real`."""
    target = live("127.0.0.1:/sa1/share", "127.0.0.1", point, port=str(port))
    address = real if as_address(real) else None
    return replace(target, endpoint=Endpoint(real, address, 2049, "azure-files"))


Targets = Iterable[Target]
Answers = Iterable[Answer]
Reaches = Iterable[Reach]


def facts(targets: Targets, answers: Answers = (), reaches: Reaches = (), tls: Tls = NO_TLS) -> Facts:
    network = Network(answers=tuple(answers), reaches=tuple(reaches))
    system = System(tls=tls)
    return Facts(Scope().has, Snapshot(), POLICY, tuple(targets), network=network, system=system)


def found(targets: Targets, answers: Answers = (), reaches: Reaches = (), tls: Tls = NO_TLS) -> list[str]:
    diagnosis = run_rules(facts(targets, answers, reaches, tls), RULES)
    assert not diagnosis.crashed, diagnosis
    return [f"{one.rule} {one.subject}" for one in diagnosis.findings]


def foreign(target: Target) -> Target:
    """Return a live mount as another mount namespace has it."""
    assert target.live is not None
    return replace(target, live=replace(target.live, foreign=True))


def made_by(target: Target, maker: Maker) -> Target:
    assert target.request is not None
    return replace(target, request=target.request._replace(maker=maker))


def test_the_rules_are_in_the_order_of_their_ids() -> None:
    assert [rule.id for rule in RULES] == [f"NFS4{number:02}" for number in range(1, 23)]


@pytest.mark.parametrize(
    ("options", "addresses", "finds"),
    [
        ("vers=4.2", ("93.184.215.14",), True),
        ("sec=sys", ("93.184.215.14",), True),
        ("sec=krb5p", ("93.184.215.14",), False),
        ("xprtsec=mtls", ("93.184.215.14",), False),
        ("xprtsec=none", ("93.184.215.14",), True),
        ("vers=4.2", ("93.184.215.14", "10.0.0.4"), False),
        ("vers=4.2", ("10.0.0.4",), False),
        ("vers=4.2", ("100.64.0.9",), False),
        ("vers=4.2", ("2606:2800:21f:cb07:6820:80da:af6b:8b2c",), False),
        ("vers=4.2", (), False),
    ],
)
def test_public_nfs_in_the_clear_is_named(options: str, addresses: tuple[str, ...], *, finds: bool) -> None:
    line, host = asked("nas.example.com:/a", options), Answer("nas.example.com", addresses)
    assert found([line], [host]) == (["NFS410 /etc/fstab:4"] if finds else [])


@pytest.mark.parametrize(
    ("fstype", "options", "clear"),
    [("aznfs", "vers=4.1", 0), ("aznfs", "vers=4,notls", 1), ("aznfs", "vers=3", 1), ("nfs", "vers=4.1", 1)],
)
def test_a_line_through_a_helpers_tunnel_is_not_clear(fstype: str, options: str, clear: int) -> None:
    line = asked("files.example.com:/sa1/s", options, fstype=fstype)
    seen = found([line], [Answer("files.example.com", (PUBLIC,))])
    assert ("NFS410 /etc/fstab:4" in seen) == clear


def test_a_public_address_in_a_line_or_of_a_live_mount_needs_no_resolver() -> None:
    assert found([asked("93.184.215.14:/a")]) == ["NFS410 /etc/fstab:4"]
    assert found([live("nas.example.com:/a", "93.184.215.14", "/a")]) == ["NFS410 /a"]
    assert found([live("nas.example.com:/a", "10.0.0.4", "/a")]) == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(SA1, (PUBLIC,)), ["NFS401"]),
        (Answer(SA1, (PUBLIC,), (STORE,)), ["NFS401"]),
        (Answer(SA1, (PUBLIC, "52.239.238.7"), (STORE,)), ["NFS401"]),
        (Answer(SA1, (PUBLIC, PRIVATE), (STORE,)), []),
        (Answer(SA1, (PUBLIC,), (LINK, STORE)), ["NFS402"]),
        (Answer(SA1, (PUBLIC,), (LINK,)), ["NFS402"]),
        (Answer(SA1, (PUBLIC, PRIVATE), (LINK, STORE)), []),
        (Answer(SA1, (PRIVATE,), (LINK,)), []),
        (Answer(SA1, ("100.64.0.9",), (LINK,)), []),
        (Answer(SA1, ("::ffff:10.0.0.4",)), []),
        (Answer(SA1), []),
    ],
)
def test_a_name_is_public_when_all_its_addresses_are(answer: Answer, expected: list[str]) -> None:
    assert found([asked(f"{SA1}:/sa1/s")], [answer]) == [f"{rule} /etc/fstab:4" for rule in expected]


def faults(rule: str, target: Target, *answers: Answer) -> list[Fault]:
    (judge,) = (one.judge for one in RULES if one.id == rule)
    return list(judge(facts([target], answers)))


def test_a_name_of_the_privatelink_zone_that_ends_in_public_is_not_linked() -> None:
    target, answer = asked(f"{LINK}:/sa1/s"), Answer(LINK, (PUBLIC,), (STORE,))
    assert found([target], [answer]) == ["NFS402 /etc/fstab:4", "NFS403 /etc/fstab:4"]
    (fault,) = faults("NFS402", target, answer)
    assert fault.observed == f"{LINK} -> {STORE} -> {PUBLIC}"
    assert "alias" not in fault.message
    assert "zone privatelink.file.core.windows.net " in fault.remedy


def test_a_name_of_the_privatelink_zone_without_a_record_is_no_alias() -> None:
    (fault,) = faults("NFS408", asked(f"{LINK}:/sa1/s"), Answer(LINK, error="NXDOMAIN"))
    assert "it has no record in the zone that this machine asks" in fault.message
    (fault,) = faults("NFS408", asked(f"{SA1}:/sa1/s"), Answer(SA1, (), (LINK,), error="NXDOMAIN"))
    assert f"its alias {LINK} has no record" in fault.message


@pytest.mark.parametrize("host", ["files.example.cn", "nas.file.example.cn"])
def test_the_zone_of_a_name_of_ones_own_is_of_the_cloud_that_it_leads_to(host: str) -> None:
    chain = ("sa1.file.core.chinacloudapi.cn", "file.sha20prdstr05a.store.core.chinacloudapi.cn")
    (fault,) = faults("NFS401", asked(f"{host}:/sa1/s"), Answer(host, (PUBLIC,), chain))
    assert "zone privatelink.file.core.chinacloudapi.cn," in fault.remedy


@pytest.mark.parametrize(
    ("name", "owner"), [("fs-abc123.z05", "file share"), ("sa1.z12", "storage account's file service")]
)
def test_the_zone_of_a_name_without_one_is_left_to_the_endpoint(name: str, owner: str) -> None:
    host = f"{name}.file.storage.azure.net"
    (fault,) = faults("NFS401", asked(f"{host}:/a/share1"), Answer(host, (PUBLIC,)))
    zone = "link the DNS zone in its DNS configuration, and mount again"
    assert fault.remedy == f"create a private endpoint for the {owner} in this network, {zone}"


def test_a_name_of_ones_own_that_leads_to_azure_files_is_judged_like_its_own() -> None:
    target = asked("files.example.net:/sa1/s")
    assert found([target], [Answer("files.example.net", (PUBLIC,), (SA1, STORE))]) == ["NFS401 /etc/fstab:4"]
    other = Answer("files.example.net", (PUBLIC,), ("nas.example.com",))
    assert found([target], [other]) == ["NFS410 /etc/fstab:4"]
    assert found([asked("sa1.blob.core.windows.net:/sa1/c")], [Answer(SA1, (PUBLIC,))]) == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_mount_that_makes_no_sessions_does_not_hide_those_of_another(order: int) -> None:
    blocks = [Superblock(device, 7, 128) for device in ("0:43", "0:44")]
    mounts = [replace(live("nas:/e", PRIVATE, f"/{one.device}"), superblock=one) for one in blocks]
    measured = Measured(10, sessions={"0:43": 7})  # the other is of NFSv3
    seen = replace(facts(mounts[::order]), has=Scope(offline=True, sample_s=1).has, measured=measured)
    (fault,) = run_rules(seen, select_rules(RULES, ("NFS414",), ())).findings
    assert (fault.subject, fault.observed) == ("nas", "7 new sessions")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(SA1, ("10.10.10.11",)), True),
        (Answer(SA1, ("10.10.10.11", "10.10.10.12")), True),
        (Answer(SA1, ("10.10.10.11", PRIVATE)), False),
        (Answer(SA1, (f"::ffff:{PRIVATE}",)), False),
        (Answer(SA1, ("fd00::1",)), False),
        (Answer(SA1, error="no answer within 3 s", final=False), False),
    ],
)
def test_a_mount_has_drifted_if_its_name_has_only_other_addresses(answer: Answer, *, expected: bool) -> None:
    assert found([live(f"{SA1}:/sa1/s", PRIVATE)], [answer], [OPEN]) == ["NFS404 /mnt/a"] * expected


def test_a_name_that_stands_for_many_machines_has_drifted_only_when_the_old_one_is_dead() -> None:
    mount, answer = live("nas:/e", PRIVATE), Answer("nas", ("10.10.10.11",))
    assert found([mount], [answer], [OPEN]) == []
    assert found([mount], [answer]) == []
    dead = [OPEN._replace(state=Reachable.TIMEOUT)]
    assert found([mount], [answer], dead) == ["NFS405 /mnt/a", "NFS404 /mnt/a"]


def test_two_mounts_that_drifted_do_not_excuse_each_other() -> None:
    sa2 = "sa2.file.core.windows.net"
    mounts = [live(f"{SA1}:/sa1/s", PRIVATE), live(f"{sa2}:/sa2/s", PRIVATE, "/mnt/b")]
    moved = Answer(SA1, ("10.10.10.11",))
    both = ["NFS404 /mnt/a", "NFS404 /mnt/b"]
    assert found(mounts, [moved, Answer(sa2, ("10.10.10.12",))], [OPEN]) == both
    silent = Answer(sa2, error="no answer within 3 s", final=False)
    assert found(mounts, [moved, silent], [OPEN]) == both[:1]


def test_a_mount_point_is_quoted_in_a_command() -> None:
    mounts = (
        live(f"{SA1}:/sa1/s", PRIVATE, "/mnt/my $HOME"),
        live("127.0.0.1:/sa1/t", "10.10.10.20", "/mnt/a;b", port="20049"),
        tunnelled("10.10.10.12", point="/mnt/it's"),
    )
    seen = facts(mounts, [Answer(SA1, ("10.10.10.11",))], [OPEN], Tls(listening=frozenset()))
    remedies = {one.rule: one.remedy for one in run_rules(seen, RULES).findings}
    assert "umount '/mnt/my $HOME' " in remedies["NFS404"]
    assert "umount '/mnt/a;b' and" in remedies["NFS407"]
    assert """umount '/mnt/it'"'"'s' and""" in remedies["NFS406"]


CHINA = "sa1.file.core.chinacloudapi.cn"


@pytest.mark.parametrize("state", [Reachable.REFUSED, Reachable.TIMEOUT, Reachable.UNREACHABLE])
def test_a_port_that_does_not_open_is_found_for_live_and_asked_mounts(state: Reachable) -> None:
    targets = [live(f"{SA1}:/sa1/s", PRIVATE), asked(f"{SA1}:/sa1/t")]
    seen = found(targets, [Answer(SA1, (PRIVATE,))], [OPEN._replace(state=state)])
    assert seen == ["NFS405 /etc/fstab:4", "NFS405 /mnt/a"]


def test_a_live_mount_has_no_replicas_but_the_next_one_may_come_from_another_server() -> None:
    request = Request("a:/e", "/mnt/a", "", "/etc/auto.direct", 1, maker=Maker.AUTOFS)
    mounted = replace(live("a:/e", PRIVATE), request=request)
    other = replace(asked("b:/e"), point="/mnt/a", request=request._replace(source="b:/e"))
    dead, opened = OPEN._replace(state=Reachable.TIMEOUT), OPEN._replace(address="10.10.10.11")
    answers = [Answer("a", error="NXDOMAIN"), Answer("b", ("10.10.10.11",))]
    assert found([mounted, other], answers, [dead, opened]) == ["NFS405 /mnt/a"]
    assert found([mounted], answers, [dead, opened]) == ["NFS405 /mnt/a", "NFS408 /mnt/a"]


@pytest.mark.parametrize("options", ["proto=rdma,port=20049", "rdma", "proto=udp", "udp", "port=2050"])
def test_only_the_mounts_own_tcp_port_counts(options: str) -> None:
    dead = OPEN._replace(state=Reachable.REFUSED)
    target = asked(f"{PRIVATE}:/e", options)
    port = int(parse_options(options).get("port") or 2049)
    target = replace(target, endpoint=target.endpoint._replace(port=port))
    assert found([target], reaches=[dead, dead._replace(port=20049)]) == []


def test_a_mount_by_address_needs_no_name() -> None:
    gone = [Answer(SA1, error="NXDOMAIN")]
    assert found([live(f"{PRIVATE}:/sa1/s", PRIVATE, host=SA1)], gone) == ["NFS403 /mnt/a"]


WATCHED = Unit(installed=True, enabled=True, active=True)
STOPPED = WATCHED._replace(active=False)


@pytest.mark.parametrize(
    ("listening", "watchdog", "expected"),
    [
        (frozenset({22, 20049}), WATCHED, False),
        (frozenset({22, 20050}), WATCHED, True),
        (frozenset({22, 20049}), STOPPED, True),
        (frozenset({22}), STOPPED, True),
        (None, WATCHED, False),
        (None, STOPPED, True),
        (None, WATCHED._replace(active=None), False),
        (frozenset({20049}), Unit(), False),
        (frozenset({20049}), Unit(active=False), False),
    ],
)
def test_tunnels_need_a_watchdog(listening: frozenset[int] | None, watchdog: Unit, *, expected: bool) -> None:
    assert found([tunnelled(PRIVATE)], tls=Tls(watchdog, listening)) == ["NFS406 /mnt/tls"] * expected


@pytest.mark.parametrize("listening", [frozenset({20049}), frozenset[int]()])
def test_a_watchdog_that_is_masked_is_unmasked_before_it_is_started(listening: frozenset[int]) -> None:
    for masked in (True, False):
        tls = Tls(STOPPED._replace(masked=masked), listening)
        (fault,) = helper_down.judge(facts([tunnelled(PRIVATE)], tls=tls))
        assert fault.remedy.startswith("sudo systemctl unmask aznfswatchdogv4 && sudo") is masked


def test_a_tunnel_without_a_configuration_is_the_helpers_where_that_is_installed() -> None:
    lost = live("127.0.0.1:/sa1/share", "127.0.0.1", port="20050")
    none: frozenset[int] = frozenset()
    assert found([lost], tls=Tls(WATCHED, none)) == ["NFS406 /mnt/a"]
    assert found([lost], tls=Tls(listening=none)) == []
    ours = replace(lost, endpoint=lost.endpoint._replace(provider="aws-efs", host="fs-1", address=None))
    assert found([ours], tls=Tls(WATCHED, none)) == []
    nas = live("127.0.0.1:/e", "127.0.0.1", port="2049")
    assert found([nas], tls=Tls(WATCHED, none)) == []


def test_lines_that_are_not_mounted_are_mixed_by_the_addresses_of_their_names() -> None:
    clear, tls = asked(f"{SA1}:/sa1/t"), asked(f"{SA1}:/sa1/s", line=5, fstype="aznfs")
    assert found([clear, tls]) == ["NFS407 /etc/fstab:4"]
    assert found([clear, tunnelled(PRIVATE)]) == []
    answer = Answer(SA1, (PRIVATE,))
    assert found([clear, tunnelled(PRIVATE)], [answer]) == ["NFS407 /etc/fstab:4"]
    assert found([clear, tunnelled(PRIVATE, point="/mnt/4")], [answer]) == []  # two ways to mount one place
    other = asked("sa2.file.core.windows.net:/sa2/s", line=5, fstype="aznfs")
    assert found([clear, other]) == []
    shared = [answer, Answer("sa2.file.core.windows.net", (PRIVATE,))]
    assert found([clear, other], shared) == ["NFS407 /etc/fstab:4"]


@pytest.mark.parametrize(
    ("options", "mixed"),
    [("vers=4.1,minorversion=1", False), ("nconnect=4", False), ("vers=3", False), ("vers=4.1,notls", True)],
)
def test_a_line_that_the_helper_refuses_is_mixed_with_nothing(options: str, *, mixed: bool) -> None:
    tls, line = asked(f"{SA1}:/sa1/s", fstype="aznfs"), asked(f"{SA1}:/sa1/t", options, 5, "aznfs")
    assert found([tls, line]) == (["NFS407 /etc/fstab:5"] if mixed else [])


@pytest.mark.parametrize(
    ("host", "override", "expected"),
    [
        (SA1, "", False),
        ("sa1.z12.file.storage.azure.net", "", False),
        ("sa1.file.preprod.core.windows.net", "", False),
        ("sa1.file.core.chinacloudapi.cn", "", True),
        ("sa1.file.core.chinacloudapi.cn", "chinacloudapi.cn", False),
        (SA1, "windows.net", False),
        ("sa1.z12.file.storage.azure.net", "storage.azure.net", False),
        (SA1, "chinacloudapi.cn", True),
        ("sa1.file.core.chinacloudapi.cn", "usgovcloudapi.net", True),
        ("sa1.privatelink.file.core.usgovcloudapi.net", "", True),
        ("files.example.net", "", True),
        ("files.example.net", "windows.net", False),
        ("10.10.10.10", "", False),
    ],
)
def test_another_cloud_or_an_own_name_needs_the_override(host: str, override: str, *, expected: bool) -> None:
    overrides = (Override(override, "/etc/systemd/system.conf"),) if override else ()
    seen = found([asked(f"{host}:/sa1/s", fstype="aznfs")], tls=Tls(overrides=overrides))
    assert ("NFS409 /etc/fstab:4" in seen) is expected
    assert "NFS409 /etc/fstab:4" not in found([asked(f"{host}:/sa1/s", "vers=4.1,notls", fstype="aznfs")])


@pytest.mark.parametrize(
    ("maker", "scopes", "expected"),
    [
        (Maker.MOUNT, {"": "chinacloudapi.cn", "mnt-5.mount.d": "windows.net"}, False),
        (Maker.MOUNT, {"": "windows.net", "mnt-4.mount.d": "chinacloudapi.cn"}, False),
        (Maker.MOUNT, {"": "chinacloudapi.cn", "mnt-4.mount.d": "windows.net"}, True),
        (Maker.MOUNT, {"mnt-5.mount.d": "chinacloudapi.cn"}, True),
        (Maker.MOUNT, {"mnt-.mount.d": "chinacloudapi.cn"}, False),
        (Maker.MOUNT, {"": "chinacloudapi.cn", "autofs.service.d": "windows.net"}, False),
        (Maker.AUTOFS, {"": "chinacloudapi.cn", "autofs.service.d": "windows.net"}, True),
        (Maker.AUTOFS, {"": "chinacloudapi.cn", "mnt-4.mount.d": "windows.net"}, False),
    ],
)
def test_no_other_mounts_override_counts(maker: Maker, scopes: dict[str, str], *, expected: bool) -> None:
    target = made_by(asked(f"{CHINA}:/sa1/s", fstype="aznfs"), maker)
    overrides = tuple(Override(value, f"/etc/{scope}", scope) for scope, value in scopes.items())
    assert found([target], tls=Tls(overrides=overrides)) == (["NFS409 /etc/fstab:4"] if expected else [])


@pytest.mark.parametrize(
    ("drop_ins", "expected"),
    [
        ([("mnt-4", "a", "windows.net"), ("mnt-4", "a", "")], None),
        ([("mnt-", "a", "windows.net"), ("mnt-4", "a", "")], None),
        ([("mnt-4", "a", "windows.net"), ("mnt-5", "a", "")], "windows.net"),
        ([("mnt-4", "a", "windows.net"), ("mnt-4", "b", "")], "windows.net"),
        ([("mnt-4", "a", "windows.net"), ("mnt-4", "a", "azure.eu")], "azure.eu"),
        ([("mnt-4", "a", "windows.net"), ("mnt-4", "b", "azure.eu"), ("mnt-4", "b", "")], "windows.net"),
    ],
)
def test_a_drop_in_hides_weaker_namesakes(drop_ins: list[tuple[str, str, str]], expected: str | None) -> None:
    """The service manager's override counts where none of a mount's own does."""
    places = [(f"{unit}.mount.d", name, value) for unit, name, value in drop_ins]
    overrides = [
        Override(value, f"/{n}/{scope}/{name}.conf", scope) for n, (scope, name, value) in enumerate(places)
    ]
    everyones = Override("usgovcloudapi.net", "/etc/systemd/system.conf")
    fault = corrected(asked(f"{CHINA}:/sa1/s", fstype="aznfs"), Tls(overrides=(everyones, *overrides)))
    assert (fault.observed or "").split()[0] == (expected or everyones.value)


@pytest.mark.parametrize(
    ("options", "maker", "expected"),
    [
        ("vers=4.1", Maker.MOUNT, True),
        ("vers=4.1,noauto", Maker.MOUNT, False),
        ("vers=4.1,noauto,x-systemd.automount", Maker.MOUNT, True),
        ("vers=4.1,noauto", Maker.UNIT, True),
        ("vers=4.1", Maker.AUTOFS, True),
    ],
)
def test_an_override_of_logins_counts_for_hand_mounts(options: str, maker: Maker, *, expected: bool) -> None:
    target = made_by(asked(f"{CHINA}:/sa1/s", options, fstype="aznfs"), maker)
    tls = Tls(overrides=(Override("chinacloudapi.cn", "/etc/environment", LOGINS),))
    assert found([target], tls=tls) == (["NFS409 /etc/fstab:4"] if expected else [])
    if expected:
        assert "OVERRIDE is not set outside of logins (/etc/environment): " in corrected(target, tls).message


WANTED = "AZURE_ENDPOINT_OVERRIDE=chinacloudapi.cn"
UNITS = "/etc/systemd/system"
OWN = f"to {UNITS}/mnt-4.mount.d/aznfs.conf"


def corrected(target: Target, tls: Tls) -> Fault:
    (fault,) = wrong_cloud.judge(facts([target], tls=tls))
    return fault


@pytest.mark.parametrize(
    ("scope", "file", "remedy"),
    [
        ("mnt-4.mount", f"{UNITS}/mnt-4.mount", f"set {WANTED} in {UNITS}/mnt-4.mount, then "),
        ("mnt-4.mount.d", f"{UNITS}/mnt-4.mount.d/x.conf", f"set {WANTED} in {UNITS}/mnt-4.mount.d/x.conf, "),
        ("mnt-.mount.d", f"{UNITS}/mnt-.mount.d/a.conf", f"{OWN} for this "),
        ("mnt-.mount.d", f"{UNITS}/mnt-.mount.d/x.conf", f"to {UNITS}/mnt-4.mount.d/x_nfs.conf for this "),
        ("mount.d", f"{UNITS}/mount.d/a.conf", f"if no mount needs the value in {UNITS}/mount.d/a.conf, "),
        ("", "/etc/systemd/system.conf.d/x.conf", f"{OWN} for this mount "),
        ("", "/proc/cmdline", "or, if no mount needs the value in the kernel command line, set it there"),
        (None, "", f"{OWN} for this mount alone, then sudo systemctl daemon-reload"),
    ],
)
def test_only_the_mounts_own_override_is_changed_in_place(scope: str | None, file: str, remedy: str) -> None:
    overrides = () if scope is None else (Override("windows.net", file, scope),)
    fault = corrected(asked(f"{CHINA}:/sa1/s", fstype="aznfs"), Tls(overrides=overrides))
    assert remedy in fault.remedy
    assert ("for this mount alone" in fault.remedy) is (scope not in {"mnt-4.mount", "mnt-4.mount.d"})


@pytest.mark.parametrize("scope", [None, "", AUTOFS])
def test_the_automounter_has_an_environment_of_its_own(scope: str | None) -> None:
    target = made_by(asked(f"{CHINA}:/sa1/s", fstype="aznfs"), Maker.AUTOFS)
    overrides = () if scope is None else (Override("windows.net", "/etc/x.conf", scope),)
    reload = "sudo systemctl daemon-reload and sudo systemctl restart autofs"
    own = f"set {WANTED} in /etc/x.conf, then {reload}"
    new = f"write {WANTED} to /etc/default/autofs (Debian) or /etc/sysconfig/autofs"
    remedy = own if scope == AUTOFS else f"{new}, then sudo systemctl restart autofs"
    assert corrected(target, Tls(overrides=overrides)).remedy == remedy
