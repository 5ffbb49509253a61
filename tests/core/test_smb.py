"""The facts of SMB mounts, and the rules about them where no host tree shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.app.facts import Scope
from nfstuned.core.mounts.smb import asked_channels, attribute_cache_s, multichannel_support, sessions_of
from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules import catalogue
from nfstuned.core.rules.catalogue import select_rules
from nfstuned.core.rules.smb6 import no_cache, short_attribute_cache, signing_cost
from nfstuned.host.config import builtin_policy
from nfstuned.model.facts import Facts, Measured, Target
from nfstuned.model.kernel import Distribution, KernelRelease, Mount, parse_options
from nfstuned.model.mounts import Request, Snapshot
from nfstuned.model.policy import Policy, Profile
from nfstuned.model.system import SmbOps, SmbSession, System
from nfstuned.parse.proc.machine import parse_release

NAS = "//nas.lab.internal/share"


RULES = select_rules(catalogue.RULES, ("SMB6",), ())
POLICY = Policy(
    profiles=(
        Profile("generic"),
        Profile("azure-files"),
        Profile("azure-files-smb", max_channels=4, actimeo_min=30),
        Profile("azure-netapp-files-smb"),
    ),
    providers=builtin_policy().providers,
)
AZURE = "//sa1.file.core.windows.net/smb"
LIVE = "vers=3.1.1,cache=strict,serverino,actimeo=30,addr=10.10.10.10"
GOOD = "vers=3.1.1,actimeo=30,_netdev,nofail"
SHARES = (r"\\sa1.file.core.windows.net\smb",)
SESSION = SmbSession("sa1.file.core.windows.net", "10.10.10.10", 0x311, 1, SHARES, signed=False)
UBUNTU = Distribution("ubuntu", "24.04", "Ubuntu 24.04.3 LTS")


def mount(options: str = LIVE, source: str = AZURE) -> Mount:
    return Mount(65, 27, "0:47", "/", "/mnt/smb", "cifs", source, parse_options(options))


def request(options: str = GOOD, source: str = AZURE) -> Request:
    return Request(source, "/mnt/smb", options, "/etc/fstab", 7, fstype="cifs")


def host(*asked: Request, live: tuple[Mount, ...] = (), kernel: str = "", **fields: object) -> Facts:
    release = parse_release(kernel) if kernel else None
    snapshot = Snapshot(requests=asked, kernel=release, distribution=UBUNTU if release else None)
    has = Scope(offline=True, sample_s=1).has
    facts = Facts(has, snapshot, POLICY, targets(snapshot, POLICY, live))
    return replace(facts, **fields)  # type: ignore[arg-type]  # a test's shorthand


def found(facts: Facts) -> list[str]:
    return [f"{rule.id} {fault.subject}" for rule in RULES for fault in rule.judge(facts)]


def only(facts: Facts) -> Target:
    (target,) = facts.targets
    return target


def test_a_remedy_can_be_pasted_and_replaces_the_lines_own_option() -> None:
    line = request("vers=3.1.1,actimeo=30,cache=none")._replace(point="/mnt/a b")
    live = replace(mount("vers=3.1.1,serverino,actimeo=30,cache=none"), point="/mnt/a b")
    (fault,) = no_cache.judge(host(line, live=(live,)))
    assert fault.observed == "cache=none"
    assert fault.remedy.startswith("write cache=strict instead of cache=none in /etc/fstab:7, then ")
    assert fault.remedy.endswith("sudo umount '/mnt/a b' and mount it again")


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ("rw", None),
        ("max_channels=8", 8),
        ("multichannel", 2),
        ("multichannel,max_channels=4", 4),
        ("nomultichannel,max_channels=4", 4),
        ("max_channels=4,nomultichannel", 1),
        ("nomultichannel,multichannel", 2),
        ("max_channels=4,multichannel", 4),
        ("max_channels=x", None),
    ],
)
def test_channels_are_those_that_the_kernel_takes_from_the_options(options: str, number: int | None) -> None:
    assert asked_channels(parse_options(options)) == number


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("rw", 1),
        ("actimeo=60", 60),
        ("acregmax=30", 1),
        ("acregmax=30,acdirmax=60", 30),
        ("actimeo=60,acdirmax=20", 20),
        ("acregmax=60,actimeo=30", 1),
        ("acregmax=60,acdirmax=60,actimeo=5", 60),
        ("actimeo=5,actimeo=30", 5),
        ("acregmax=1,actimeo=30", 30),
        ("actimeo=x,actimeo=30", 30),
    ],
)
def test_attribute_caches_of_a_file_have_the_kernels_default(asked: str, seconds: int) -> None:
    assert attribute_cache_s(only(host(request(asked)))) == seconds


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("vers=3.1.1", "at the end of"),
        ("actimeo=5,vers=3.1.1", "instead of actimeo=5 in"),
        ("acregmax=60,acdirmax=5,vers=3.1.1", "instead of acregmax=60,acdirmax=5 in"),
        ("acdirmax=5,actimeo=60,vers=3.1.1", "instead of acdirmax=5,actimeo=60 in"),
    ],
)
def test_a_longer_time_replaces_times_after_which_it_would_not_count(asked: str, place: str) -> None:
    (fault,) = short_attribute_cache.judge(host(request(asked)))
    assert f"write actimeo=30 {place} the options in /etc/fstab:7" in fault.remedy
    shown = mount(LIVE.replace("actimeo=30", "acdirmax=5,acregmax=60"))
    (fault,) = short_attribute_cache.judge(host(request(asked), live=(shown,)))
    assert f"write actimeo=30 {place} the options in /etc/fstab:7, then sudo umount" in fault.remedy


def test_an_attribute_cache_that_the_kernel_does_not_show_is_not_known() -> None:
    assert attribute_cache_s(only(host(live=(mount("vers=3.1.1"),)))) is None


@pytest.mark.parametrize(
    ("distribution", "kernel", "supported"),
    [
        (("ubuntu", "24.04"), "6.14.0-1017-azure", True),
        (("ubuntu", "24.04"), "6.14.0-1016-azure", False),
        (("ubuntu", "24.04"), "6.8.0-1042-azure", True),
        (("ubuntu", "24.04"), "6.8.0-1041-azure", False),
        (("ubuntu", "24.04"), "6.11.0-1018-azure", False),
        (("ubuntu", "24.04"), "6.17.0-1001-azure", True),
        (("ubuntu", "24.04"), "6.8.0-87-generic", None),
        (("ubuntu", "24.04"), "6.14.0-1017-aws", None),
        (("ubuntu", "22.04"), "6.8.0-1044-azure", True),
        (("ubuntu", "22.04"), "6.8.0-1042-azure", False),
        (("ubuntu", "22.04"), "5.15.0-160-generic", False),
        (("ubuntu", "20.04"), "5.15.0-1090-azure", None),
        (("azurelinux", "3.0"), "6.6.106.1-1.azl3", True),
        (("azurelinux", "3.0"), "6.6.104.2-4.azl3", False),
        (("rhel", "9.7"), "5.14.0-611.5.1.el9_7.x86_64", True),
        (("rhel", "9.7"), "5.14.0-611.el9.x86_64", False),
        (("rhel", "9.6"), "5.14.0-570.62.1.el9_6.x86_64", False),
        (("rhel", "10.1"), "6.12.0-124.8.1.el10_1.x86_64", True),
        (("rhel", "10.0"), "6.12.0-55.41.1.el10_0.x86_64", False),
        (("rhel", "8.10"), "4.18.0-553.el8_10.x86_64", None),
        (("rocky", "9.6"), "5.14.0-570.62.1.el9_6.x86_64", None),
        (("debian", "13"), "6.12.107+deb13-cloud-amd64", None),
        (("ubuntu", "24.04"), "6.14", None),
    ],
)
def test_the_list_has_a_kernel(distribution: tuple[str, str], kernel: str, *, supported: bool | None) -> None:
    release = KernelRelease((0, 0, 0), kernel)
    snapshot = Snapshot(kernel=release, distribution=Distribution(*distribution, pretty_name=""))
    assert multichannel_support(snapshot).supported is supported


def test_the_first_kernels_are_named_as_distributions_name_them() -> None:
    azure = Distribution("azurelinux", "3.0", "")
    for distribution, least in ((UBUNTU, "6.8.0-1042 or 6.14.0-1017"), (azure, "6.6.106.1")):
        snapshot = Snapshot(kernel=parse_release("6.8.0-1-azure"), distribution=distribution)
        assert multichannel_support(snapshot).first_kernels == least


def test_a_session_is_a_mounts_by_address_and_share() -> None:
    target = only(host(live=(mount(source="//SA1.file.core.windows.net/SMB/folder"),)))
    shares = (rf"\\sa1.file.core.windows.net\{name}" for name in ("IPC$", "smb2"))
    others = SESSION._replace(address="10.10.10.11"), *(SESSION._replace(shares=(one,)) for one in shares)
    assert sessions_of(target, (SESSION, *others)) == (SESSION,)


@pytest.mark.parametrize("source", ["", "/", "//", "//host", "host:share", "smb://host/share", "\\\\h"])
def test_any_source_is_judged(source: str) -> None:
    assert found(host(request(source=source), live=(mount(source=source),), smb=(SESSION,))) == []


LISTED = "6.14.0-1017-azure"


class TestRules:
    def test_a_dialect_that_the_server_does_not_have_is_an_error(self) -> None:
        for dialect, severity in (("1.0", "error"), ("2.0", "error"), ("2.1", "warning"), ("3.0", "warning")):
            findings = catalogue.run_rules(host(request(f"guest,vers={dialect},actimeo=30")), RULES).findings
            assert [one.severity.value for one in findings] == [severity]

    def test_the_session_knows_the_dialect_of_vers_3(self) -> None:
        live = (mount(LIVE.replace("vers=3.1.1", "vers=3")),)
        assert found(host(live=live, smb=(SESSION,))) == []
        assert found(host(live=live, smb=(SESSION._replace(dialect=0x300),))) == ["SMB605 /mnt/smb"]

    def test_another_server_only_has_the_kernels_own_rules(self) -> None:
        options = "guest,vers=3.0,actimeo=1,max_channels=8,cache=none,noserverino,seal"
        facts = host(request(options, NAS), kernel="6.14.0-1016-azure")
        assert found(facts) == ["SMB607 /etc/fstab:7", "SMB607 /etc/fstab:7", "SMB609 /etc/fstab:7"]

    def test_ntlm_in_fips_mode(self) -> None:
        judged = ["SMB610 /etc/fstab:7"]
        ntlm = ("password=,sec=ntlmssp", "password=,sec=ntlmsspi", "credentials=/etc/smb.cred")
        for options in (*ntlm, "sec=krb5,username=a", "sec=krb5i", "guest", "guest,multiuser"):
            facts = host(request(f"{GOOD},{options}"))
            assert found(facts) == []
            assert found(replace(facts, system=System(fips=True))) == judged * (options in ntlm), options

    def test_a_live_mount_in_fips_mode_is_judged_by_the_options_that_it_shows(self) -> None:
        fips = System(fips=True)
        assert found(host(live=(mount(f"{LIVE},username=a"),), system=fips)) == []
        assert found(host(live=(mount(f"{LIVE},sec=ntlmssp"),), system=fips)) == ["SMB610 /mnt/smb"]

    @pytest.mark.parametrize(
        ("metadata", "data", "finds"),
        [(750, 250, True), (740, 260, False), (500, 0, True), (499, 0, False), (0, 0, False)],
    )
    def test_metadata_is_heavy_by_share_and_rate(self, metadata: int, data: int, *, finds: bool) -> None:
        server = r"\\sa1.file.core.windows.net"
        ops = SmbOps(rf"{server}\smb", metadata, data), SmbOps(rf"{server}\other", 0, 10_000)
        facts = host(live=(mount(),), measured=Measured(10.0, smb=ops))
        assert found(facts) == (["SMB611 /mnt/smb"] if finds else [])


class TestSigning:
    VOLUME = "//anf-7a3c.contoso.example/vol1"

    SESSION = SESSION._replace(shares=(r"\\anf-7a3c.contoso.example\vol1",), signed=True)

    def of_netapp(self, facts: Facts) -> Facts:
        netapp = POLICY.profile("azure-netapp-files-smb")
        return replace(facts, targets=(replace(only(facts), profile=netapp),))

    @pytest.mark.parametrize(
        ("more", "session", "costs"),
        [
            ("", SESSION, True),
            ("", SESSION._replace(signed=False), False),
            ("", SESSION._replace(encrypted=True), False),  # encrypted packets are not signed as well
            (",multichannel,max_channels=2", SESSION._replace(channels=2), False),
            *[(f",{option}", None, True) for option in ("sign", "sec=krb5i", "sec=ntlmsspi,cruid=0")],
        ],
    )
    def test_a_channel_pays_for_signing(self, more: str, session: SmbSession | None, *, costs: bool) -> None:
        facts = host(live=(mount(LIVE + more, self.VOLUME),), smb=(session,) if session else ())
        assert found(self.of_netapp(facts)) == ["SMB608 /mnt/smb"] * costs

    def test_the_remedy_leaves_no_option_that_the_kernel_refuses_with_it(self) -> None:
        line = request("vers=3.1.1,sign,nomultichannel", self.VOLUME)
        (fault,) = signing_cost.judge(self.of_netapp(host(line)))
        assert fault.remedy == "set max_channels=4 instead of nomultichannel in /etc/fstab:7"
