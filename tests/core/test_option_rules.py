"""Rules NFS301 to NFS310 and NFS501 to NFS505 near their thresholds, on entries that are not mounted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.app.facts import Scope
from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules.catalogue import RULES, run_rules, select_rules
from nfstuned.host.policy import load_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Finding, Measured, Need, Severity
from nfstuned.model.kernel import KernelRelease, Mount, MountStats, OpCounters, parse_options
from nfstuned.model.mounts import (
    UTAB,
    Maker,
    Request,
    Setting,
    Snapshot,
    Superblock,
    Unloaded,
    Unread,
    UnreadMap,
)
from nfstuned.model.policy import Assignment, Match, Policy
from nfstuned.model.samples import OpRate
from nfstuned.model.system import CommandLine, KernelSetting, NfsUtils, System
from nfstuned.parse.etc.requests import parse_fstab
from nfstuned.parse.proc.machine import parse_release
from tests.parse.test_samples import SAMPLE

OPTIONS = select_rules(RULES, ("NFS3",), ())
MACHINE = select_rules(RULES, ("NFS501", "NFS502", "NFS503", "NFS504", "NFS505"), ())
POLICY = load_policy(Root("/nonexistent"))
AZURE, BLOB = "sa1.file.core.windows.net:/sa1/s /a", "sa1.blob.core.windows.net:/sa1/c /a"
GOOD = "vers=4.1,sec=sys,actimeo=30,noresvport,_netdev,nofail"
BARE = GOOD.replace("sec=sys,", "")
HELPERS = frozenset({"mount.nfs", "mount.aznfs"})
SYSTEM = System(helpers=HELPERS)
NEW = parse_release("6.12.1")


CONF = "/etc/nfsmount.conf"
NETAPP = replace(POLICY, assignments=(Assignment(Match(server=("nas",)), "azure-netapp-files", "policy 1"),))


def host(snapshot: Snapshot, policy: Policy = POLICY, system: System = SYSTEM) -> Facts:
    return Facts(Scope(offline=True).has, snapshot, policy, targets(snapshot, policy), system=system)


def requested(*requests: Request, settings: tuple[Setting, ...] = (), policy: Policy = POLICY) -> Facts:
    return host(Snapshot(requests=requests, settings=settings, kernel=NEW), policy)


def facts(
    text: str, *, kernel: KernelRelease | None = NEW, system: System = SYSTEM, image: bool = False
) -> Facts:
    requests = tuple(item for item in parse_fstab(text) if isinstance(item, Request))
    known = host(Snapshot(requests=requests, kernel=kernel), system=system)
    return replace(known, has=Scope(image=True).has) if image else known


def live(point: str, options: str, policy: Policy = POLICY, *, foreign: bool = False) -> Facts:
    mount = Mount(60, 27, "0:46", "/", point, "nfs4", "nas:/a", parse_options(options), foreign=foreign)
    return host(Snapshot(superblocks=(Superblock("0:46", 1, 128, (mount,)),), kernel=NEW), policy)


def conf(name: str, value: str, line: int = 2) -> Setting:
    return Setting("nfsmount_global_options", None, name, value, CONF, line)


def found(seen: Facts) -> list[str]:
    return [f"{one.rule} {one.subject}" for one in run_rules(seen, (*OPTIONS, *MACHINE)).findings]


def only(rule: str, seen: Facts) -> Finding:
    (finding,) = (one for one in run_rules(seen, (*OPTIONS, *MACHINE)).findings if one.rule == rule)
    return finding


def refused(seen: Facts) -> bool:
    """Whether NFS309 refuses the first line."""
    return "NFS309 /etc/fstab:1" in found(seen)


LINES = (Path(__file__).parent / "option-lines.txt").read_text().splitlines()


@pytest.mark.parametrize("row", [row for row in LINES if row and row[0] != "#"])
def test_a_line_is_named_by_its_rules(row: str) -> None:
    line, _, expected = row.format(AZURE=AZURE, BLOB=BLOB, BARE=BARE, GOOD=GOOD).partition(" =>")
    known, _, remedy = expected.partition(": ")
    seen = facts(line, system=System(helpers=HELPERS | {"mount.cifs", "mount.smb3"}))
    findings = run_rules(seen, (*OPTIONS, *MACHINE)).findings
    assert [one.rule for one in findings] == known.split()
    assert not remedy or findings[0].remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("version", "read", "remedy"),
    [
        ("", "no version", "into"),
        ("v4.1,", "no version", "instead of v4.1 in"),
        ("vers=4,", "version 4", "instead of vers=4 in"),
        ("vers=3,mountvers=3,", "version 3", "instead of vers=3,mountvers=3 in"),
        ("vers=4.1,minorversion=1,", "version 4.1.1", "instead of vers=4.1,minorversion=1 in"),
    ],
)
def test_the_helper_of_azure_reads_the_version_in_its_own_way(version: str, read: str, remedy: str) -> None:
    fault = only("NFS301", facts(f"{AZURE} aznfs {version}sec=sys,actimeo=30,_netdev,nofail"))
    assert fault.message.startswith(f"mount.aznfs reads {read} in these options, ")
    assert fault.remedy == f"write vers=4,minorversion=1 {remedy} the options in /etc/fstab:1"


def mounted(options: str, asked: str | None, beside: str = "", stats: MountStats | None = None) -> Facts:
    """Return a host with a mount at /a, of which utab says `asked`, and a second one of its server."""
    shown = [parse_options(f"vers=4.1,addr=10.0.0.4,{text}") for text in (options, beside)]
    source, _, point = AZURE.partition(" ")
    mounts = (
        Mount(60, 27, "0:46", "/", point, "nfs4", source, shown[0]),
        Mount(61, 27, "0:47", "/", "/b", "nfs4", f"{source}b", shown[1]),
    )
    superblocks = tuple(
        Superblock(mount.device, number, 15360, (mount,), None, ())
        for number, mount in enumerate(mounts[: 2 if beside else 1])
    )
    utab = () if asked is None else (Request(source, point, asked or "rw", UTAB, 1),)
    return host(Snapshot(superblocks, requests=utab, kernel=NEW, stats=() if stats is None else (stats,)))


CACHED, SMALL = "actimeo=30", "rsize=262144,wsize=1048576,actimeo=30"


@pytest.mark.parametrize(
    ("asked", "beside", "wrong"),
    [
        (SMALL, "", ["NFS303 /a"]),
        ("rsize=65536", "", ["NFS303 /a"]),
        (CACHED, "", []),  # the server's own limit: no line changes it
        ("rsize=0", "", []),
        (None, "", []),
        (None, SMALL, []),
        (None, "rsize=1048576,wsize=1048576,actimeo=30", ["NFS303 /a"]),
        (CACHED, "rsize=524288,wsize=1048576,actimeo=30", ["NFS303 /a"]),
    ],
)
def test_avoidable_small_transfers_are_reported(asked: str | None, beside: str, wrong: list[str]) -> None:
    assert found(mounted(SMALL, asked, beside)) == wrong


def counted(attributes: int, others: int, age_s: int | None) -> MountStats:
    ops = {"GETATTR": attributes, "READ": others, "SEQUENCE": 10**9}
    source, _, point = AZURE.partition(" ")
    counters = {name: OpCounters(number, number, 0, 0, 0, 0, 0, 0) for name, number in ops.items()}
    return MountStats(source, point, "nfs4", "1.1", age_s, ops=counters)


@pytest.mark.parametrize(
    ("stats", "wrong"),
    [
        (None, []),
        (counted(30000, 10000, 600), ["NFS306 /a"]),
        (counted(29999, 0, 600), []),
        (counted(30000, 10001, 600), []),
        (counted(3000, 0, 60), ["NFS306 /a"]),
        (counted(2999, 0, 1), []),
        (counted(30000, 0, None), []),
    ],
)
def test_default_times_matter_where_attributes_dominate(stats: MountStats | None, wrong: list[str]) -> None:
    assert found(mounted("rsize=1048576", "rw", stats=stats)) == wrong
    assert found(mounted("actimeo=30", "actimeo=30", stats=stats)) == []
    assert found(mounted("acregmin=1", "acregmin=1", stats=stats)) == ["NFS306 /a"]


def test_the_requests_between_two_looks_count_before_those_since_the_mount() -> None:
    rates = {"GETATTR": 60.0, "READ": 20.0, "RENEW": 900.0}
    ops = {name: OpRate(rate, None, None, None, 0.0, None) for name, rate in rates.items()}
    sample = replace(SAMPLE, device="0:46", ops=ops)
    idle = mounted("rsize=1048576", "rw", stats=counted(1, 1, 600))
    busy = replace(idle, measured=Measured(10.0, (sample,)))
    assert found(idle) == []
    assert "(75 % of its requests, 60 a second)" in only("NFS306", busy).message


@pytest.mark.parametrize(
    ("fields", "lacks"),
    [
        ("nas:/a /a nfs defaults", "nofail"),
        ("nas:/a /a nfs _netdev", ""),
        ("nas:/a /a auto nofail", "_netdev"),
        ("nas:/a /a auto nofail,_netdev", ""),
        ("nas:/a /a nfs noauto", ""),
        ("nas:/a /a nfs noauto,auto", "nofail"),
        ("nas:/a /a nfs x-systemd.automount", ""),
        ("nas:/a /a nfs bg", ""),
        ("nas:/a /a nfs bg,fg", "nofail"),
        ("nas:/a / nfs defaults", ""),
        (f"{AZURE} nfs vers=4.1,actimeo=30,_netdev", "nofail"),
        (f"{AZURE} nfs vers=4.1,actimeo=30,nofail", ""),
        (f"{AZURE} aznfs vers=4.1,actimeo=30,nofail", "_netdev"),
        (f"{AZURE} aznfs vers=4.1,actimeo=30,noauto", ""),
        (f"{AZURE} aznfs vers=4.1,actimeo=30,x-systemd.automount", ""),
        (f"{AZURE} aznfs vers=4.1,actimeo=30,bg", "_netdev,nofail"),
        (f"{AZURE} nfs vers=4.1,actimeo=30,bg,_netdev", ""),
        (f"{AZURE} nfs4 minorversion=1,actimeo=30,bg,_netdev", ""),
        (f"{AZURE} aznfs vers=4.1,actimeo=30,bg,_netdev", "nofail"),
        (f"{AZURE} auto vers=4.1,actimeo=30,bg,_netdev", "nofail"),
    ],
)
def test_an_entry_for_which_the_boot_waits_is_named(fields: str, lacks: str) -> None:
    seen = [one for one in run_rules(facts(fields), OPTIONS).findings if one.rule != "NFS318"]
    assert [one.remedy.split()[:2] for one in seen] == ([["add", lacks]] if lacks else [])
    assert {one.rule for one in seen} <= {"NFS308"}


@pytest.mark.parametrize(
    ("fields", "strange"),
    [
        ("nas:/a /a nfs nofail,x-gvfs-show,comment=why,context=a,users,noatime,nosuid,v4.2,retry=1", ""),
        ("nas:/a /a nfs nofail,rw,uid=0,credentials=/c,nfsvers=3", "uid,credentials"),
        ("nas:/a /a nfs nofail,vers=3.1.1", "vers=3.1.1"),
        ("nas:/a /a nfs nofail,nfsvers=4.2", ""),
        ("nas:/a /a nfs nofail,vers=4,minorversion=9", "minorversion=9"),
        ("nas:/a /a nfs nofail,minorversion=9", "minorversion=9"),
        ("nas:/a /a nfs nofail,vers=4.1,minorversion=9", ""),
        ("nas:/a /a nfs nofail,nconnect=020,port=0200001,retrans=08,rsize=0200000", ""),
        ("nas:/a /a nfs nofail,nconnect=17,port=0,retrans=0x8,rsize=01m", "nconnect=17,rsize=01m"),
        ("nas:/a /a nfs nofail,notls", "notls"),
        (f"{AZURE} aznfs {GOOD},notls,clean", ""),
        ("//nas/a /a cifs vers=3.1.1,cred=/c,dir_mode=0755,serverino,nosharesock,mfsymlinks,_netdev", ""),
        ("//nas/a /a smb3 max_channels=4,nobrl,nostrictsync,cache=strict,sec=krb5,cruid=0,_netdev", ""),
        ("//nas/a /a cifs vers=4.1,nconnect=4,_netdev", "nconnect,vers=4.1"),
        ("//nas/a /a cifs sec=sys,_netdev", "sec=sys"),
    ],
)
def test_options_that_the_type_does_not_have_are_named(fields: str, strange: str) -> None:
    faults = run_rules(facts(fields), OPTIONS).findings
    assert [one.observed for one in faults] == ([strange] if strange else [])
    assert {one.rule for one in faults} <= {"NFS309"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ("nfs uid=0,cred=/c", "only SMB knows 'uid', 'cred': a mount of type nfs"),
        ("nfs vers=3.1,Soft", "mount(8) knows 'Soft', and vers takes 2, 3, 4, 4.0, 4.1 or 4.2, not '3.1': "),
        ("nfs uid=0,nconect=4,sec=ntlm", "only SMB knows 'uid', and neither the kernel nor mount(8) knows "),
        ("nfs nconect=4,sec=ntlm", "knows 'nconect', and sec takes the flavours of nfs(5), not 'ntlm': "),
        ("nfs vers=3,v4.1", "mount.nfs accepts one option for the version, not 'vers=3', 'v4.1': a mount"),
        ("cifs nolock,lock", "only NFS knows 'lock', and Linux 5.11 and later have no 'nolock' of SMB: "),
        ("aznfs vers=4.1,notls,dir_mode=7", "only SMB knows 'dir_mode': a mount of type aznfs"),
        (
            "cifs vers=4.1,lock",
            "only NFS knows 'lock', and vers takes 1.0, 2.0, 2.1, 3, 3.0, 3.0.2, 3.02, 3.1.1, 3.11 or ",
        ),
    ],
)
def test_an_option_is_only_another_s_where_its_own_table_has_it_not(fields: str, says: str) -> None:
    assert says in only("NFS309", facts(f"nas:/a /a {fields},nofail")).message


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ("soft\u200breval", "spell 'soft\\u200breval' as softreval in"),
        ("hard\u00a0", "spell 'hard\\xa0' as hard in"),
    ],
)
def test_a_character_that_nobody_sees_is_named(options: str, remedy: str) -> None:
    assert only("NFS309", facts(f"nas:/a /a nfs {options},nofail")).remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("options", "severity", "remedy"),
    [
        ("umask=022", "error", "write the mode file_mode=0755,dir_mode=0755 instead of the mask 'umask=022'"),
        ("umask=777", "error", "write the mode file_mode=0777,dir_mode=0777 instead of the mask"),
        ("umask", "error", "write the mode file_mode=0755,dir_mode=0755 instead of the mask 'umask' in"),
        ("dirMode=0777", "error", "spell 'dirMode' as dir_mode in"),
        ("nolock,rdma6", "error", "remove 'rdma6' from the options in /etc/fstab:1, and write nobrl instead"),
        ("dirmask=027", "error", "write the mode dir_mode=0750 instead of"),
        ("FMASK=0133", "error", "write the mode file_mode=0644 instead of the mask 'FMASK=0133' in"),
        ("fmask=0022,uid=1", "warning", "write the mode file_mode=0755 instead of the mask 'fmask=0022' in"),
        ("dir_mode=077", "warning", "write the mode dir_mode=0700 instead of the mask 'dir_mode=077' in"),
        ("fmask=0022,noperm", "", ""),
        ("fmask=0644,dmask=0755,dirmode=0750,file_mode=0400,dir_mode=511", "", ""),
        ("file_mode=664,dir_mode=0775", "warning", "write file_mode=0664 instead of file_mode=664 in"),
    ],
)
def test_a_mask_for_smb_leads_to_the_mode_that_it_means(options: str, severity: str, remedy: str) -> None:
    faults = run_rules(facts(f"//nas/a /a cifs {options},nofail"), OPTIONS).findings
    assert [fault.severity.value for fault in faults] == ([severity] if severity else [])
    assert all(fault.remedy.startswith(remedy) for fault in faults)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        (
            ("a.service", "", "Requires", "b.service"),
            "warning missing: systemd cannot; name b.service",
        ),
        (("a.service", "/m", "BindsTo", ""), "warning masked by /m: systemd cannot; sudo systemctl unmask a"),
        (
            ("s", "", "Requires", "s.service"),
            "info missing: systemd ignores; name s.service instead in",
        ),
        (("a.socket", "", "x-systemd.after", "a.target"), "info missing: systemd ignores; name a.target"),
    ],
)
def test_a_unit_that_is_not_there_has_its_effect(unit: tuple[str, str, str, str], text: str) -> None:
    fault = only("NFS320", host(Snapshot(unloaded=(Unloaded("/u:2", "/a", *unit),))))
    why, remedy = text.split("; ")
    start = f"{unit[2]}= names the unit '{unit[0]}', which is "
    assert f"{fault.severity.value} {fault.message.removeprefix(start)}".startswith(why)
    assert fault.remedy.startswith(remedy)


def test_a_mount_in_another_namespace_is_not_unmounted_in_the_hosts() -> None:
    remedy = only("NFS307", live("/data", "soft", foreign=True)).remedy
    assert remedy.endswith("then unmount /data in its own mount namespace and mount it again")


BOTH = f"remove acregmin from {CONF}:2, acdirmax from {CONF}:3"


def configured(line: str, *added: tuple[str, str]) -> dict[str, str]:
    """Return the remedies for a line of fstab to which nfsmount.conf adds options, from line 2 on."""
    settings = tuple(conf(*pair, number) for number, pair in enumerate(added, 2))
    seen = requested(*facts(line).snapshot.requests, settings=settings)
    return {one.rule: one.remedy for one in run_rules(seen, OPTIONS).findings}


@pytest.mark.parametrize(
    ("given", "added", "remedy"),
    [
        ("", [("Ac", "False")], f"remove noac from {CONF}:2, and add actimeo=30 at the end of"),
        ("", [("acregmin", "5")], f"remove acregmin from {CONF}:2, and add actimeo=30 at the end of"),
        (",noac", [], "write actimeo=30 instead of noac in"),
        (",noac", [("acregmin", "5"), ("acdirmax", "9")], f"{BOTH}, and write actimeo=30 instead of noac in"),
        (",actimeo=5", [("actimeo", "60")], "write actimeo=30 instead of actimeo=5 in"),
        (",noac,actimeo=0", [], "write actimeo=30 instead of noac,actimeo=0 in"),
        (",noac,actimeo=60", [], "write actimeo=30 instead of noac in"),
        (",actimeo=9,acregmin=5", [], "write actimeo=30 instead of actimeo=9,acregmin=5 in"),
        (",actimeo=60,acregmin=5", [], "add actimeo=30 at the end of"),
    ],
)
def test_a_cache_time_goes_from_nfsmount_conf(given: str, added: list[tuple[str, str]], remedy: str) -> None:
    found = configured(f"{AZURE} nfs {GOOD}{given}", *added)
    assert found.keys() - {"NFS318"} == {"NFS306"}
    assert found["NFS306"].partition(";")[0] == f"{remedy} the options in /etc/fstab:1"


def test_noac_has_the_times_of_its_line_next_to_it() -> None:
    message = only("NFS306", facts(f"{AZURE} nfs {GOOD.replace('actimeo=30', 'actimeo=0')},noac")).message
    assert "(noac, actimeo=0)" in message


def test_soft_of_nfsmount_conf_is_taken_out_there_since_hard_does_not_keep_it_away() -> None:
    taken_out = {"NFS307": f"remove soft from {CONF}:2"}
    for given in ("nofail", "nofail,hard"):
        assert configured(f"nas:/a /a nfs {given}", ("Soft", "True")) == taken_out
    own = configured("nas:/a /a nfs nofail,soft", ("Soft", "True"))
    assert own == {"NFS307": "replace soft by hard in the options in /etc/fstab:1"}


def test_a_protocol_of_nfsmount_conf_is_taken_out_there() -> None:
    for name, value in (("Proto", "udp"), ("udp", "True")):
        added = configured("nas:/a /a nfs vers=3,nofail", (name, value))
        assert added == {"NFS312": f"remove {name.lower()} from {CONF}:2"}
    own = configured("nas:/a /a nfs vers=3,udp,nofail", ("mountproto", "udp"))
    assert own == {"NFS312": "write proto=tcp instead of udp in the options in /etc/fstab:1"}


def test_the_place_that_asks_for_a_version_is_named() -> None:
    for more, end in (("", f"{CONF}:2 asks for version 3"), (",vers=4.2", "this entry asks for version 4.2")):
        line = f"{AZURE} nfs sec=sys,actimeo=30,noresvport,nofail{more}"
        seen = requested(*facts(line).snapshot.requests, settings=(conf("Vers", "3"),))
        assert only("NFS301", seen).message.endswith(f", and {end}")


def test_a_server_without_locks_needs_nolock_in_the_line() -> None:
    for more, remedy in (("", "add nolock to"), (",lock", "write nolock instead of lock in")):
        added = configured(f"{BLOB} nfs vers=3{more},sec=sys,nofail", ("Lock", "True"))
        assert added == {"NFS319": f"{remedy} the options in /etc/fstab:1"}


def test_an_option_that_overrides_nfsmount_conf_is_written_into_the_mounts_own_line() -> None:
    small = configured(f"{AZURE} nfs {GOOD}", ("wsize", "64k"))
    assert small["NFS303"].endswith("into the options in /etc/fstab:1")
    assert not configured(f"{AZURE} nfs {GOOD},wsize=1048576", ("wsize", "64k"))


@pytest.mark.parametrize(
    ("option", "release", "wrong"),
    [
        *[(f"sec={flavour}", "5.14.0-503.el9", False) for flavour in ("ntlm", "ntlmi")],
        *[(f"sec={flavour}", "5.15.0-1001-azure", True) for flavour in ("ntlm", "ntlmi")],
        ("sec=ntlm", "", False),
        ("nolock", "4.18.0-553.el8_10.x86_64", False),
        ("nolock", "5.10.0-35-amd64", False),
        ("nolock", "5.11.0-49-generic", True),
        ("nolock", "", False),
    ],
)
def test_an_smb_option_is_refused_once_a_kernel_dropped_it(option: str, release: str, *, wrong: bool) -> None:
    kernel = parse_release(release) if release else None
    for fstype in ("cifs", "smb3"):
        line = f"//nas/a /a {fstype} vers=3.0,cred=/c,{option},_netdev,nofail"
        assert refused(facts(line, kernel=kernel)) is wrong


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *[(option, False) for option in ("cache=loose", "cache=strict", "cache=singleclient", "noperm")],
        *[(option, True) for option in ("cache=strct", "Cache=strict", "NoPerm", "directio", "strictcache")],
        *[(f"max_channels={number}", False) for number in ("1", "4", "16", "0x10")],
        *[(f"max_channels{value}", True) for value in ("=0", "=17", "=x", "=", "")],
        *[
            (option, False)
            for option in ("bsize=16384", "bsize=16777216", "rasize=1048576", "rasize=0x2000000")
        ],
        *[(option, True) for option in ("bsize=16383", "bsize=1M", "rasize=1048575", "rasize=33554433")],
        *[(option, False) for option in ("max_credits=20", "max_credits=60000", "rsize=0", "nbsessinit")],
        *[(option, True) for option in ("max_credits=19", "max_credits=60001", "rsize=1M", "wsize")],
        *[(option, True) for option in ("max_cached_dirs=0", "handletimeout=960001", "sloppy,bsize=1000")],
        ("sloppy,bsize=1M", False),
        *[(f"seal,vers={vers}", False) for vers in ("3", "3.0", "default")],
        *[(f"seal,vers={vers}", True) for vers in ("1.0", "2.0", "2.1")],
    ],
)
def test_smb_options_that_the_kernel_refuses(option: str, *, wrong: bool) -> None:
    assert refused(facts(f"//nas/a /a cifs vers=3.1.1,cred=/c,{option},_netdev,nofail")) is wrong


def test_an_option_of_the_master_map_is_named_with_its_line() -> None:
    entry = Request(
        "nas:/a", "/a", "foo", "/etc/auto.a", 1, maker=Maker.AUTOFS, inherited="/etc/auto.master:2"
    )
    fault = only("NFS323", requested(entry))
    assert fault.subject == "/etc/auto.a:1"
    assert fault.remedy.endswith("in /etc/auto.a:1 or /etc/auto.master:2")


@pytest.mark.parametrize(
    ("release", "message"),
    [
        ("5.10.0-35-amd64", "the mount is sloppy, and the kernel ignores 'foo'"),
        ("6.1.0-18-amd64", "neither the kernel nor mount(8) knows 'foo'"),
        ("", "neither the kernel nor mount(8) knows 'foo'"),
    ],
)
def test_sloppy_comes_too_late_for_smb(release: str, message: str) -> None:
    kernel = parse_release(release) if release else None
    line = facts("//nas/a /a cifs cred=/c,foo,_netdev,nofail,sloppy", kernel=kernel)
    assert only("NFS323", line).message.startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("sec=ntlmssp,sec=krb5", "of contradicting options the last counts: 'sec=krb5' undoes 'sec=ntlmssp'"),
        ("sec=krb5,sec=none", "of contradicting options the last counts: 'sec=none' undoes 'sec=krb5'"),
        ("sec=none,sec=krb5", ""),
        ("sign,sec=krb5", "'sec=krb5' takes back 'sign' before it"),
        ("signloosely,ro,sec=ntlmssp", "'sec=ntlmssp' takes back 'signloosely' before it"),
        *[(text, "") for text in ("sec=krb5,sign", "sign,sec=krb5i", "sign,sec=krb5,sign", "sec=krb5i")],
    ],
)
def test_the_last_flavour_of_smb_counts_and_sets_signing(options: str, message: str) -> None:
    seen = run_rules(facts(f"//nas/a /a cifs cred=/c,{options},_netdev,nofail"), OPTIONS).findings
    (text,) = [one.message for one in seen if one.rule == "NFS318"] or [""]
    assert text.startswith(message)
    assert bool(text) is bool(message)


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        *[(text, False) for text in ("vers=4.1", "v4.1,minorversion=1", "vers=3,mountvers=3")],
        ("vers=4.1,vers=4.1", True),
        *[(text, True) for text in ("v4,vers=4.1", "vers=3,nfsvers=3", "sloppy,v3,v4.2")],
    ],
)
def test_mount_nfs_takes_one_version_only(options: str, *, wrong: bool) -> None:
    line = f"nas:/a /a nfs {options},_netdev,nofail"
    for utils in (None, NfsUtils(), NfsUtils((2, 5, 3))):
        assert refused(facts(line, system=System(helpers=HELPERS, nfs_utils=utils))) is wrong
    assert not refused(facts(line, system=System(helpers=HELPERS, nfs_utils=NfsUtils((2, 3, 3)))))


@pytest.mark.parametrize("option", ["vers=2", "nfsvers=2", "v2"])
def test_mount_nfs_of_today_has_no_version_2(option: str) -> None:
    def with_utils(utils: NfsUtils | None) -> Facts:
        return facts(f"nas:/a /a nfs {option},nofail", system=System(helpers=HELPERS, nfs_utils=utils))

    fault = only("NFS309", with_utils(NfsUtils((2, 6, 1))))
    assert fault.remedy == f"write vers=3 instead of {option} in /etc/fstab:1"
    assert not refused(with_utils(NfsUtils((2, 5, 4))))
    known = with_utils(None)
    assert not refused(replace(known, has=known.has | {Need.NFS_UTILS}))


@pytest.mark.parametrize(
    ("line", "stale"),
    [
        ("nas:/a /a nfs vers=3,mountproto=udp,mountport=635,nofail", ""),
        ("nas:/a /a nfs mountvers=3,nofail", ""),
        ("nas:/a /a nfs vers=4.1,mountproto=udp,mountport=635,nofail", "'mountproto', 'mountport'"),
        ("nas:/a /a nfs vers=4,mounthost=nas,nofail", "'mounthost'"),
        ("nas:/a /a nfs4 mountvers=3,nofail", "'mountvers'"),
    ],
)
def test_version_4_has_no_options_of_the_mount_protocol(line: str, stale: str) -> None:
    known = facts(line, system=System(helpers=HELPERS, nfs_utils=NfsUtils((2, 5, 2))))
    faults = [one for one in run_rules(known, OPTIONS).findings if one.rule == "NFS309"]
    assert "mountport" not in str(run_rules(facts(line), OPTIONS).findings)
    assert len(faults) == bool(stale)
    assert all(f"version 4 of NFS has no {stale}: a mount" in fault.message for fault in faults)
    assert all(fault.remedy == f"remove {stale} from the options in /etc/fstab:1" for fault in faults)


def test_a_version_replaces_an_option_that_only_version_3_has() -> None:
    remedy = only("NFS301", facts(f"{AZURE} nfs mountproto=tcp,actimeo=30,_netdev,nofail")).remedy
    assert remedy == ("write vers=4,minorversion=1 instead of mountproto=tcp in the options in /etc/fstab:1")


@pytest.mark.parametrize(
    ("entry", "default", "finds"),
    [
        ("nfs nofail", None, True),
        ("nfs nofail", "4.2", True),
        ("nfs nofail", "4", True),
        ("nfs nofail", "4.1", False),
        ("nfs nofail", "3", False),
        ("nfs nofail", "4.7", False),
        ("nfs nofail", "True", False),
        ("nfs nofail,vers=4", "4.1", False),
        ("nfs nofail,vers=4", "3", True),
        ("nfs4 nofail", "4.1", False),
        ("nfs4 nofail", "3", True),
        ("nfs nofail,vers=4.2", "4.1", True),
        ("nfs nofail,vers=3", "4.2", False),
    ],
)
def test_an_open_version_is_named_where_4_2_is_first(entry: str, default: str | None, *, finds: bool) -> None:
    lines = facts(f"nas:/a /a {entry}").snapshot.requests
    settings = (conf("Defaultvers", default),) if default else ()
    seen = requested(*lines, settings=settings, policy=NETAPP)
    assert ("NFS301 /etc/fstab:1" in found(seen)) is finds


@pytest.mark.parametrize(
    ("release", "wrong"),
    [
        ("5.10.0-8-amd64", []),
        ("5.11.0-1029-azure", ["NFS501 kernel"]),
        ("4.18.0-305.120.1.el8_4.x86_64", ["NFS501 kernel", "NFS505 kernel"]),
        ("4.18.0-348.el8.x86_64", ["NFS505 kernel"]),
        ("4.18.0-25-generic", ["NFS505 kernel"]),
        ("5.0.0", []),
    ],
)
def test_a_kernel_is_known_by_its_release(release: str, wrong: list[str]) -> None:
    assert found(facts(f"{AZURE} nfs {GOOD}", kernel=parse_release(release))) == wrong
    assert found(facts(f"{AZURE} nfs {GOOD}", kernel=parse_release(release), image=True)) == wrong
    assert found(facts("", kernel=parse_release(release))) == []


def test_a_live_option_that_the_line_does_not_have_goes_by_mounting_again() -> None:
    asked = Request("nas:/a", "/a", "vers=4.1,nofail", "/etc/fstab", 1)
    seen = live("/a", "rw,sync,vers=4.1,rsize=8192,wsize=8192,proto=tcp")
    seen = host(replace(seen.snapshot, requests=(asked,)))
    again = "sudo umount /a and mount it again (/etc/fstab:1 does not ask for that)"
    assert only("NFS316", seen).remedy.startswith(f"{again}; keep it")
    assert "NFS303 /a" not in found(seen)


def test_a_cache_that_is_off_names_the_options_to_take_out() -> None:
    for options, names in (("actimeo=0", "actimeo"), ("noac,lookupcache=none", "lookupcache and noac")):
        fault = only("NFS306", facts(f"nas:/a /a nfs {options},nofail"))
        assert fault.remedy.startswith(f"remove {names} from the options in /etc/fstab:1; keep it")
        assert ("each write waits" in fault.message) is ("noac" in options)
        assert "each write" not in only("NFS306", facts(f"nas:/a /a nfs {options},ro,nofail")).message


@pytest.mark.parametrize(
    ("release", "refused", "severity"),
    [
        (None, True, Severity.WARNING),
        ("5.4.0", False, Severity.WARNING),
        ("6.12.1", True, Severity.ERROR),
        ("6.1.0-21-cloud-amd64", True, Severity.ERROR),
        ("5.8.0-1041-azure", True, Severity.ERROR),
        ("5.14.0-611.5.1.el9_7.x86_64", True, Severity.ERROR),
        ("6.17.1-300.fc43.x86_64", True, Severity.ERROR),
        ("6.4.0-150600.23.65-default", False, Severity.WARNING),
        ("6.1.155-176.282.amzn2023.x86_64", True, Severity.WARNING),
    ],
)
def test_udp_is_an_error_where_refused(release: str | None, severity: Severity, *, refused: bool) -> None:
    kernel = release and parse_release(release)
    fault = only("NFS312", facts("nas:/a /a nfs vers=3,udp,nofail", kernel=kernel or None))
    assert ("refuses the mount" in fault.message) is refused
    assert fault.severity is severity
    four = only("NFS312", facts("nas:/a /a nfs4 proto=udp,nofail", kernel=kernel or None))
    assert four.message == "version 4 of NFS over UDP: the kernel refuses the mount"
    assert four.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("nas:/a /a nfs nofail\nold:/a /a/ nfs4 nofail", ["NFS313 /etc/fstab:2"]),
        ("nas:/a /a nfs nofail\n//nas/a /a cifs nofail", ["NFS313 /etc/fstab:2"]),
        ("nas:/a /a nfs nofail\nold:/a //a nfs4 nofail", ["NFS313 /etc/fstab:2"]),
        ("nas:/a /a nfs nofail\nold:/a /a nfs noauto", []),
        ("nas:/a /a nfs noauto\nold:/a /a nfs nofail", []),
        ("nas:/a /a nfs nofail\nnas:/a /b nfs nofail", []),
    ],
)
def test_a_mount_point_has_one_line(lines: str, wrong: list[str]) -> None:
    assert found(facts(lines, system=System(helpers=HELPERS | {"mount.cifs", "mount.smb3"}))) == wrong


def test_the_protocol_of_an_address_is_corrected_in_its_own_place() -> None:
    fault = only("NFS311", facts("[fd00::10]:/a /a nfs vers=4.1,proto=tcp,nofail"))
    assert "has an IPv6 address, and proto=tcp accepts only the other kind" in fault.message
    assert fault.remedy == "write proto=tcp6 instead of proto=tcp in the options in /etc/fstab:1"
    added = configured("[fd00::10]:/a /a nfs vers=4.1,nofail", ("Proto", "rdma"))
    assert added == {"NFS311": "write proto=rdma6 into the options in /etc/fstab:1"}
    fault = only("NFS312", facts("[fd00::10]:/a /a nfs vers=3,proto=udp6,nofail"))
    assert fault.remedy == "write proto=tcp6 instead of udp in the options in /etc/fstab:1"


OPTION, ZZ, LINE = "nfs4_disable_idmapping", "modprobe.d/zz.conf", "the kernel's command line"
NOW = f"for now: echo Y | sudo tee /sys/module/nfs/parameters/{OPTION}, then unmount and mount again"


@pytest.mark.parametrize(
    ("cmdline", "file", "remedy"),
    [
        ("", "", f"options nfs {OPTION}=Y into /etc/modprobe.d/nfs-idmapping.conf"),
        ("", f"/etc/{ZZ}", f"{OPTION}=Y instead of {OPTION}=N in /etc/{ZZ}:3"),
        ("", "/usr/lib/modprobe.d/a.conf", f"options nfs {OPTION}=Y into /etc/modprobe.d/nfs-idmapping.conf"),
        ("", f"/usr/lib/{ZZ}", f"options nfs {OPTION}=Y into /etc/modprobe.d/zz_nfs.conf"),
        (f"quiet nfs.{OPTION}=0", f"/etc/{ZZ}", f"nfs.{OPTION}=Y instead of nfs.{OPTION}=0 on {LINE}"),
        (f"nfs.{OPTION}=Y", f"/etc/{ZZ}", ""),
    ],
)
def test_a_parameter_is_corrected_in_the_deciding_place(cmdline: str, file: str, remedy: str) -> None:
    name = f"nfs.{OPTION}"
    system = System(
        parameters={name: "N"},
        settings=(KernelSetting(name, "N", file, 3),) if file else (),
        cmdline=CommandLine(cmdline),
        helpers=HELPERS,
    )
    (live,) = run_rules(facts(f"{AZURE} nfs {GOOD}", system=system), MACHINE).findings
    assert live.remedy == (f"write {remedy}; {NOW}" if remedy else NOW)
    if remedy:
        (image,) = run_rules(facts(f"{AZURE} nfs {GOOD}", system=system, image=True), MACHINE).findings
        assert image.remedy == f"write {remedy}"


@pytest.mark.parametrize(
    ("inodes", "cmdline", "small"),
    [(None, "", 0), (999_999, "", 0), (1_000_000, "quiet", 1), (1_000_000, "ihash_entries=16777216", 0)],
)
def test_a_small_inode_table_matters_to_a_kernel(inodes: int | None, cmdline: str, small: int) -> None:
    system = System(cmdline=CommandLine(cmdline), helpers=HELPERS)
    seen = replace(facts(f"{AZURE} nfs {GOOD}", system=system), nfs_inodes=inodes)
    assert found(seen) == ["NFS504 ihash_entries"] * small


@pytest.mark.parametrize(
    ("why", "point", "kind", "local", "message"),
    [
        (Unread.ASKED, "/data", "yp", "", "the entries of the map 'x' for /data are in no file: {0}"),
        (Unread.ASKED, "", "ldap", "", "the entries of the master map 'x' are in no file: {0}"),
        (Unread.SOURCE, "/data", "sss, nis", "", "the map 'x' for /data is also looked up in sss, nis {1}"),
        (Unread.SOURCE, "", "sss", "/etc/x", "the master map 'x' is looked up in sss first {1}{2}"),
        (Unread.KEY, "/data/*", "file", "", "the map 'x' for /data/* depends on the key: {0}"),
        (Unread.FORMAT, "/data", "file", "", "the map 'x' for /data is written for amd: {0}"),
        (Unread.PLACE, "/data", "", "", "the map 'x' for /data lies below a mount point{3}: {0}"),
    ],
)
def test_an_unread_map_has_its_reason(why: Unread, point: str, kind: str, local: str, message: str) -> None:
    item = UnreadMap(why, point, kind, "x", "/etc/auto.master", 3, local)
    finding = only("NFS310", host(Snapshot(maps=(item,), kernel=NEW)))
    assert finding.subject == "/etc/auto.master:3"
    assert finding.message == message.format(
        "none of its mounts was checked",
        "(automount in /etc/nsswitch.conf): entries there were not checked",
        ", and /etc/x only counts for keys that are missing there",
        ", where a dead server would hold up its reader",
    )


@pytest.mark.parametrize(
    ("options", "why", "remedy"),
    [
        ("accesspoint=fsap-1,iam", "iam only with tls, and accesspoint only with tls", "add tls to"),
        ("awsprofile=a", "awsprofile only with iam, and iam only with tls", "add iam,tls to"),
        ("tls,port=1", "tls or port, but not both", "keep one of 'tls', 'port' in"),
    ],
)
def test_the_helper_of_efs_compares_its_own_options(options: str, why: str, remedy: str) -> None:
    fault = only("NFS309", facts(f"fs-0abc:/ /a efs {options},_netdev,nofail"))
    assert fault.message == f"mount.efs takes {why}: it refuses the mount"
    assert fault.remedy.startswith(remedy)
