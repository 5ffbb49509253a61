from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nfstuned.app.facts import Scope, examine
from nfstuned.core.rules.nfs4_endpoint import stalled
from nfstuned.core.rules.nfs4_tunnels import (
    entry_waits,
    expiring_ca,
    port_twice,
    server_refused,
    thread_full,
    unusable_ca,
    unverified,
)
from nfstuned.host.config import builtin_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Fault, Measured, Target
from nfstuned.model.kernel import Mount, Options, Volume
from nfstuned.model.mounts import Endpoint, Snapshot, Superblock
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.system import CaFile, Refusal, System, Tls, TunnelEntry, TunnelService, Unit
from tests.check import hosts

NOW, DAY = 1_795_000_000, 86_400
CONF = "/etc/stunnel/microsoft/aznfs/nfsv4_fileShare/stunnel_{}.conf"


def service(server: str = "10.0.0.4", ca_file: str = "/ca.pem") -> TunnelService:
    tunnel = TunnelService(CONF.format(server), 9, "127.0.0.1:20049", 20049, server, ca_file, ca_line=1)
    return tunnel._replace(verifies_chain=True, verifies_name=True)


def facts(*services: TunnelService, file: CaFile | None = None, now_s: float | None = NOW) -> Facts:
    """Return a host with tunnels that trust /ca.pem."""
    system = System(tls=Tls(services=services, ca_files={} if file is None else {"/ca.pem": file}))
    return Facts(Scope(offline=True).has, Snapshot(), Policy(()), system=system, now_s=now_s)


def said(known: Facts) -> list[tuple[str, str]]:
    """Return which of both rules says what was observed."""
    rules = (("unusable", unusable_ca), ("expiring", expiring_ca))
    return [(name, fault.observed) for name, rule in rules for fault in rule.judge(known)]


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        ((), [("unusable", "no certificate")]),
        ((NOW - 1,), [("unusable", "valid until 2026-11-18")]),
        ((NOW - 9 * DAY, NOW - 1), [("unusable", "valid until 2026-11-18")]),
        ((NOW,), [("expiring", "0 days left")]),
        ((NOW + DAY, NOW - 1), [("expiring", "1 day left")]),
        ((NOW + 30 * DAY - 1,), [("expiring", "29 days left")]),
        ((NOW + 30 * DAY,), []),
        ((NOW - 1, NOW + DAY, NOW + 400 * DAY), []),
    ],
)
def test_the_certificate_that_ends_last_decides(ends: tuple[int, ...], found: list[tuple[str, str]]) -> None:
    assert said(facts(service(), file=CaFile(ends))) == found


@pytest.mark.parametrize(
    "other",
    [
        service()._replace(other_ca=True),
        service()._replace(verifies_peer=True),
        service()._replace(verifies_chain=False),
        service(ca_file=""),
    ],
)
def test_a_file_of_cas_that_does_not_decide_is_not_judged(other: TunnelService) -> None:
    assert said(facts(other, file=CaFile((NOW - 1,)))) == []


def test_a_file_is_reported_once_with_all_tunnels_that_trust_it() -> None:
    servers = [service(f"10.0.0.{number}") for number in range(4, 9)]
    (fault,) = unusable_ca.judge(facts(*servers, servers[0], file=CaFile((NOW - 1, NOW - 2))))
    assert fault.subject == CONF.format("10.0.0.4") + ":1"
    tunnels = "the tunnels to 10.0.0.4, 10.0.0.5, 10.0.0.6 and 2 more trust no other file: "
    assert fault.message.startswith(f"each of the 2 certificates in /ca.pem has expired, and {tunnels}")
    assert "write the certificate of the server's CA to /ca.pem" in fault.remedy


def test_a_file_of_the_system_is_renewed_by_the_systems_own_means() -> None:
    path = "/etc/ssl/certs/DigiCert_Global_Root_G2.pem"
    tls = Tls(services=(service(ca_file=path),), ca_files={path: CaFile(missing=True)})
    (fault,) = unusable_ca.judge(replace(facts(), system=System(tls=tls)))
    assert fault.remedy.startswith("run sudo update-ca-certificates --fresh on Debian")
    assert f"tls-ca-bundle.pem {path}; then sudo pkill -HUP stunnel" in fault.remedy


@pytest.mark.parametrize(
    ("trust", "observed"),
    [
        ({}, []),
        ({"verifies_name": False}, ["no checkHost"]),
        ({"verifies_chain": False, "verifies_name": False}, ["no verifyChain"]),
        ({"verifies_chain": False}, ["no verifyChain"]),
        ({"verifies_chain": False, "verifies_name": False, "verifies_peer": True}, []),
        ({"verifies_name": False, "verifies_peer": True}, []),
    ],
)
def test_chain_and_name_or_a_certificate_show_a_server(trust: dict[str, Any], observed: list[str]) -> None:
    known = facts(service()._replace(**trust))
    assert [fault.observed for fault in unverified.judge(known)] == observed
    assert all(fault.subject == CONF.format("10.0.0.4") + ":9" for fault in unverified.judge(known))


def test_tunnels_to_different_servers_need_different_ports() -> None:
    other = service("10.0.0.5")._replace(port=20050, accept="127.0.0.1:20050")
    assert list(port_twice.judge(facts(service(), other))) == []
    assert list(port_twice.judge(facts(service(), service()._replace(file="/etc/other.conf")))) == []
    (fault,) = port_twice.judge(facts(service(), service("10.0.0.5")))
    assert fault.subject == CONF.format("10.0.0.5") + ":9"
    assert fault.observed == f"accept = 127.0.0.1:20049 in {CONF.format('10.0.0.4')}:9, too"
    assert "may reach" not in fault.message


def waiting(
    late_s: int, *, status: str = "waiting", superblock: Superblock | None = None, active: bool | None = True
) -> Facts:
    """Return a host whose helper has an entry with a mount under way."""
    entry = TunnelEntry("/map", 3, "10.0.0.4", CONF.format("10.0.0.4"), status, NOW - late_s)
    tls = Tls(watchdog=Unit(installed=True, active=active), services=(service(),), entries=(entry,))
    snapshot = Snapshot(superblocks=(superblock,) if superblock else ())
    return replace(facts(), system=System(tls=tls), snapshot=snapshot)


def test_an_entry_waits_too_long_when_its_time_is_over_and_the_watchdog_had_a_minute() -> None:
    assert list(entry_waits.judge(waiting(59))) == []
    assert list(entry_waits.judge(waiting(3600, status="mounted"))) == []
    (fault,) = entry_waits.judge(waiting(60))
    assert (fault.subject, fault.observed) == ("/map:3", "waiting, 60 s over its time")
    assert "pgrep -a mount.nfs" in fault.remedy
    (fault,) = entry_waits.judge(waiting(60, active=False))
    assert fault.remedy == "sudo systemctl enable --now aznfswatchdogv4"


def test_an_entry_of_a_tunnel_that_is_in_use_or_unknown_is_left_alone() -> None:
    mount = Mount(40, 25, "0:43", "/", "/mnt/a", "nfs4", "127.0.0.1:/", Options((("port", "20049"),)))
    volume = Volume(4, "127.0.0.1", 20049, "0:43", "0:0")
    block = Superblock("0:43", 1, 128)
    elsewhere = block._replace(volume=volume._replace(port=2049))
    used = block._replace(mounts=(mount,)), block._replace(volume=volume)
    for superblock, waits in ((used[0], 0), (used[1], 0), (elsewhere, 1)):
        assert len(list(entry_waits.judge(waiting(600, superblock=superblock)))) == waits
    known = waiting(600)
    assert list(entry_waits.judge(replace(known, now_s=None))) == []
    tls = replace(known.system.tls, services=())
    assert list(entry_waits.judge(replace(known, system=System(tls=tls)))) == []


def refusing(reason: str, trusting: TunnelService | None = None) -> Fault:
    """Return what is said of a tunnel that refused its server."""
    tunnel = trusting or service()
    refusal = Refusal("2026.11.25 04:46:34", reason, "CN=sa1")
    tls = Tls(services=(service("10.0.0.5"), tunnel), refusals={tunnel.file: refusal})
    (fault,) = server_refused.judge(replace(facts(), system=System(tls=tls)))
    return fault


def test_a_server_of_an_unknown_ca_and_one_of_another_name_have_remedies_of_their_own() -> None:
    unknown, renamed = refusing("unable to get local issuer certificate"), refusing("Subject checks failed")
    assert unknown.subject == CONF.format("10.0.0.4") + ":1"
    assert "refused the server for 'unable to get local issuer certificate': " in unknown.message
    assert unknown.remedy.startswith("openssl s_client -connect 10.0.0.4:2049 </dev/null shows")
    assert "/etc/ssl/certs/ca-certificates.crt /ca.pem" in unknown.remedy
    assert renamed.remedy.startswith("set AZURE_ENDPOINT_OVERRIDE")


def test_a_refusal_without_a_reason_in_the_log_has_none() -> None:
    assert "refused the server for a reason that its log does not name: " in refusing("").message
    bare = service("fd00::10", ca_file="")._replace(ca_line=0)
    fault = refusing("x", bare)
    assert fault.subject == CONF.format("fd00::10") + ":9"
    assert fault.remedy == "openssl s_client -connect [fd00::10]:2049 </dev/null shows its certificate"


def through(point: str, port: int = 20049, options: str = "", host: str = "127.0.0.1") -> Target:
    """Return a live mount that goes to a port of a host."""
    words = (tuple(word.split("=")) for word in (f"port={port}", *options.split()))
    known = Options(tuple((name, value) for name, value in words))
    mount = Mount(40, 25, "0:43", "/", point, "nfs4", f"{host}:/s", known)
    server, profile = Endpoint("sa1", "10.0.0.4", 2049, "azure-files"), Profile("azure-files", nconnect=4)
    return Target(point, point, f"{host}:/s", "nfs4", server, profile, live=mount)


def full(shares: tuple[float, ...], *mounts: Target, listening: set[int] | None = None) -> list[Fault]:
    """Return what is said of a tunnel whose threads had so much of a processor in ten seconds."""
    known = facts(service())
    tls = replace(known.system.tls, listening=None if listening is None else frozenset(listening))
    measured = Measured(10, tunnels={service().file: shares})
    system = replace(known.system, tls=tls)
    return list(thread_full.judge(replace(known, targets=mounts, measured=measured, system=system)))


def test_a_thread_is_full_from_nine_tenths_of_a_processor_on() -> None:
    (fault,) = full((0.9, 0.01), through("/mnt/a"))
    assert (fault.subject, fault.observed) == (service().file, "90% of a processor")
    assert "it carries the only connection: it is the limit for /mnt/a" in fault.message
    mounts = "the mounts through port 20049 (findmnt -t nfs4 -O port=20049)"
    assert fault.remedy.startswith(f"unmount {mounts}, and mount again with nconnect=4: ")
    assert full((0.899, 0.01), through("/mnt/a")) == []
    assert full((), through("/mnt/a")) == []


def test_it_is_the_limit_where_as_many_threads_are_full_as_there_are_connections() -> None:
    four = through("/mnt/a", options="nconnect=4")
    assert full((0.97, 0.96, 0.95, 0.2, 0.01), four) == []
    (fault,) = full((0.97, 0.96, 0.95, 0.93, 0.01), four)
    threads = "4 threads of the tunnel had 93% of a processor or more"
    assert f"{threads}, and they carry all 4 connections" in fault.message


def test_a_tunnel_without_a_mount_limits_nobody_nor_does_a_tunnel_that_listens_no_more() -> None:
    elsewhere = through("/mnt/b", 20050), through("/mnt/c", host="10.0.0.9")
    assert full((1.0,), *elsewhere) == []
    assert list(thread_full.judge(replace(facts(service()), targets=(through("/mnt/a"),)))) == []
    assert full((1.0,), through("/mnt/a"), listening={22}) == []
    assert full((1.0,), through("/mnt/a"), listening={20049})


def test_all_mounts_of_a_tunnel_are_named_and_where_connections_are_many_others_help() -> None:
    mounts = (through("/mnt/a", options="nconnect=4"), through("/mnt/my b", options="nconnect=4"))
    (fault,) = full((0.97,) * 4, *mounts)
    assert "they are the limit for /mnt/a, /mnt/my b together" in fault.message
    assert fault.remedy.startswith("move shares to another storage account")
    assert "nfstuned bench /mnt/a " in fault.remedy


SILENT = "nfs: server {} not responding, still trying"


def stalled_facts(tmp_path: Path, words: str = "", name: str = "mount-stalled") -> Facts:
    case = hosts.load(name)
    root = Root(str(case.build(tmp_path / "host")))
    return examine(root, builtin_policy(), Scope(), hosts.World(case.network, words=words))


def message(known: Facts) -> str:
    (fault,) = stalled.judge(known)
    return fault.message


@pytest.mark.parametrize(
    ("server", "said"),
    [("sa1.file.core.windows.net", True), ("10.10.10.10", True), ("10.10.10.1", False), ("nas", False)],
)
def test_the_kernels_words_of_this_server_are_passed_on(tmp_path: Path, server: str, *, said: bool) -> None:
    words = SILENT.format(server)
    assert (f'; the kernel says "{words}"' in message(stalled_facts(tmp_path, words))) is said


def test_a_server_that_answers_again_is_not_quoted(tmp_path: Path) -> None:
    assert "the kernel says" not in message(stalled_facts(tmp_path, "nfs: server 10.10.10.10 OK"))


def test_the_first_of_many_waiters_are_named(tmp_path: Path) -> None:
    known = replace(stalled_facts(tmp_path), waiters={"0:46": tuple(f"cp ({pid})" for pid in range(9))})
    assert "waiting programs with files there: cp (0), cp (1)" in message(known)
    assert "cp (8)" not in message(known)
