from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType

import pytest

from nfstuned.app.facts import Scope
from nfstuned.core.mounts.targets import targets
from nfstuned.core.rules import nfs1_read_ahead as nfs1
from nfstuned.core.rules import nfs1_udev as udev
from nfstuned.core.rules.catalogue import run_rules
from nfstuned.core.rules.rule import give_workload
from nfstuned.host.config import builtin_policy
from nfstuned.host.policy import read_configuration
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Fault, Measured, Need, Rule, Severity
from nfstuned.model.kernel import KernelRelease, Mount, Options
from nfstuned.model.mounts import (
    AZNFS,
    EFS_UTILS,
    NFSRAHEAD,
    TUNED,
    Record,
    Request,
    Setting,
    Snapshot,
    Superblock,
)
from nfstuned.model.policy import RANDOM, Assignment, Match, Policy, Profile, ReadAhead
from nfstuned.model.samples import Sample, TransportRate
from nfstuned.model.system import System, Unit
from nfstuned.model.udev import UdevFile
from nfstuned.view.words import printable
from tests.core.test_udev_faults import ONE_LINE
from tests.parse.test_udevrules import NFS_UTILS, VENDOR

POLICY = Policy(
    profiles=(
        Profile("azure-files", ReadAhead(kb=15360), read_ahead_max_kb=16384),
        Profile("azure-netapp-files", ReadAhead(kb=15360), read_ahead_max_kb=16384),
        Profile("aws-efs", ReadAhead(times_rsize=15)),
        Profile("generic", ReadAhead(kb=1024)),
        Profile("small", ReadAhead(kb=512), lower=True),
        Profile("silent"),
    ),
    providers=builtin_policy().providers,
)
AZURE = "sa1.file.core.windows.net:/sa1/share"
NFS = "server.example.org:/srv"
EFS = "fs-0123456789abcdef0.efs.eu-west-1.amazonaws.com:/"
PACKAGED = UdevFile("/usr/lib/udev/rules.d/99-nfs.rules", NFS_UTILS)
RULE_1 = f"{PACKAGED.path}:1"
EARLY = UdevFile("/etc/udev/rules.d/90-a.rules", ONE_LINE)
RELOAD = "then sudo udevadm control --reload"
LATE = UdevFile("/etc/udev/rules.d/99-z.rules", ONE_LINE)


def superblock(kb: int | None, *mounts: str, rsize: int = 1048576, fstype: str = "nfs4") -> Superblock:
    """Return one with mounts of these sources at /0, /1 and so on."""
    options = Options((("rsize", str(rsize)), ("addr", "10.0.0.5")))
    made = (Mount(n, 1, "0:46", "/", f"/{n}", fstype, source, options) for n, source in enumerate(mounts))
    return Superblock("0:46", 7, kb, tuple(made))


def facts(*superblocks: Superblock, policy: Policy = POLICY, requests: Iterable[Request] = ()) -> Facts:
    kernel = KernelRelease((6, 12, 0), "6.12.0")
    snapshot = Snapshot(superblocks, requests=tuple(requests), kernel=kernel)
    return Facts(Scope(offline=True).has, snapshot, policy, targets(snapshot, policy))


def small(entries: str) -> Policy:
    """Return the policy with a profile for /1."""
    return replace(POLICY, assignments=(Assignment(Match(mount_point=("/1",)), entries, ""),))


def setting(section: str, name: str, value: str, line: int = 1) -> Setting:
    return Setting(section, None, name, value, "/f", line)


def subjects(faults: Iterable[Fault]) -> list[str]:
    return [fault.subject for fault in faults]


@pytest.mark.parametrize(("kb", "below"), [(15356, ["/0"]), (15360, []), (0, []), (4, ["/0"]), (None, [])])
def test_below_policy_is_judged_in_whole_pages_if_there_are_any(kb: int | None, below: list[str]) -> None:
    assert subjects(nfs1.low_read_ahead.judge(facts(superblock(kb, AZURE)))) == below


@pytest.mark.parametrize(
    ("source", "kb", "found"),
    [(AZURE, 16384, []), (AZURE, 16388, ["/0"]), (NFS, 65536, []), (NFS, 65540, ["/0"]), (NFS, 15360, [])],
)
def test_read_ahead_above_a_sensible_limit_is_excessive(source: str, kb: int, found: list[str]) -> None:
    assert subjects(nfs1.excessive.judge(facts(superblock(kb, source)))) == found


def test_other_writers_are_judged_by_the_profiles_number_where_reads_have_moved_it() -> None:
    moved = superblock(512, AZURE)._replace(record=Record("0:46", 7, 128, 512, None, 512))
    for kb, expected in ((15360, []), (512, ["15360 KiB"]), (128, ["15360 KiB"])):
        writer = setting(NFSRAHEAD, "default", str(kb))
        host = replace(facts(moved), udev=(PACKAGED,), writers=(writer,))
        assert [fault.expected for fault in udev.contested.judge(host)] == expected
        assert list(nfs1.low_read_ahead.judge(host)) == []


BUILTIN = builtin_policy()


def everywhere(profile: str = "", workload: str = "") -> Policy:
    """Return the built-in policy with an entry for every mount."""
    return replace(BUILTIN, assignments=(Assignment(Match(), profile, "", workload),))


@pytest.mark.parametrize(
    ("kb", "policy", "files", "writers", "found"),
    [
        (128, BUILTIN, (), (), True),
        (64, BUILTIN, (), (), True),
        (132, BUILTIN, (), (), False),
        (0, BUILTIN, (), (), False),
        (128, everywhere("qumulo"), (), (), True),
        (128, everywhere(workload="sequential"), (), (), True),
        (128, everywhere(workload="random"), (), (), False),
        (128, everywhere("vast"), (), (), False),
        (128, BUILTIN, (PACKAGED,), (), True),
        (128, BUILTIN, (PACKAGED,), (setting(NFSRAHEAD, "default", "128"),), False),
        # The administrator's own rule is broken or outrun, as NFS105 and NFS107 report.
        (128, BUILTIN, (UdevFile(LATE.path, ONE_LINE.replace("$$", "$")),), (), False),
        (128, BUILTIN, (EARLY, PACKAGED), (), False),
    ],
)
def test_the_kernels_value_without_a_vendors_number_is_advice_where_nothing_else_decides(
    kb: int, policy: Policy, files: tuple[UdevFile, ...], writers: tuple[Setting, ...], *, found: bool
) -> None:
    host = replace(facts(superblock(kb, NFS), policy=policy), udev=files, writers=writers)
    faults = list(nfs1.low_read_ahead.judge(host))
    assert [(fault.subject, fault.severity) for fault in faults] == [("/0", Severity.ADVICE)] * found
    assert all("no vendor names a number" in fault.message for fault in faults)
    others = (udev.contested, nfs1.excessive, nfs1.not_persistent, nfs1.shared_conflict)
    assert [fault for rule in others for fault in rule.judge(host)] == []


def test_a_number_to_measure_is_one_finding_a_server() -> None:
    other = superblock(128, NFS)._replace(device="0:47")
    other = other._replace(mounts=(replace(other.mounts[0], point="/x"),))
    for moved in (False, True):
        mounts = tuple(replace(mount, foreign=moved) for mount in superblock(128, NFS).mounts)
        host = facts(superblock(128, NFS)._replace(mounts=mounts), other, policy=BUILTIN)
        (finding,) = run_rules(host, [nfs1.low_read_ahead]).findings
        point = "/x" if moved else "/0"
        assert finding.subject == point
        assert finding.remedy.startswith(
            f"sudo nfstuned bench {point} --suite read-ahead measures the best; then"
        )


@pytest.mark.parametrize(("kb", "written"), [(1048576, 1024), (70000, 128), (131072, 128)])
def test_a_value_in_bytes_is_corrected_and_another_becomes_the_kernels(kb: int, written: int) -> None:
    (fault,) = nfs1.excessive.judge(facts(superblock(kb, NFS), policy=BUILTIN))
    assert fault.remedy.startswith(f"echo {written} | sudo tee ")


BINDS = tuple(AZURE for _ in range(11))


@pytest.mark.parametrize(
    ("kb", "rule", "of_server"),
    [(128, nfs1.low_read_ahead, 1), (20000, nfs1.excessive, 2), (0, nfs1.below_page, 2)],
)
def test_a_superblock_or_a_server_of_one_remedy_is_one_finding(kb: int, rule: Rule, of_server: int) -> None:
    (finding,) = run_rules(facts(superblock(kb, *BINDS)), [rule]).findings
    assert finding.subject == "/0"
    assert finding.message.endswith("; the same for /1, /10, /2 and 7 more")
    line = Request(AZURE, "/7", "vers=4.1", "/etc/fstab", 1)
    (finding,) = run_rules(facts(superblock(kb, *BINDS), requests=[line]), [rule]).findings
    assert finding.subject == "/7"
    others = superblock(kb, *BINDS[:2])._replace(device="0:47")
    moved = others._replace(mounts=tuple(replace(mount, point=f"/x{mount.point}") for mount in others.mounts))
    assert len(run_rules(facts(superblock(kb, *BINDS), moved), [rule]).findings) == of_server


def test_values_that_nothing_keeps_are_one_finding_a_host() -> None:
    other = superblock(1024, NFS)._replace(device="0:47")
    other = other._replace(mounts=(replace(other.mounts[0], point="/x"),))
    (fault,) = nfs1.not_persistent.judge(facts(superblock(15360, AZURE, AZURE), other))
    assert fault.subject == "/0"
    assert fault.message.endswith("; the same for /1, /x")


STOCK = System(daemon=Unit(installed=True, masks_rules=True))


@pytest.mark.parametrize(
    ("kb", "system", "rules"),
    [
        (128, System(), ["NFS101"]),
        (128, STOCK, ["NFS101"]),
        (15360, STOCK, ["NFS104"]),
        (64, STOCK, ["NFS104", "NFS101"]),
        # What the service does not mask has to be changed by hand.
        (128, System(daemon=Unit(installed=True)), ["NFS104"]),
        (128, System(daemon=Unit(installed=True, active=True)), ["NFS104"]),
    ],
)
def test_a_stock_128_is_one_finding(kb: int, system: System, rules: list[str]) -> None:
    host = replace(facts(superblock(kb, AZURE)), udev=(PACKAGED,), system=system)
    assert [rule.id for rule in (udev.contested, nfs1.low_read_ahead) if list(rule.judge(host))] == rules


@pytest.mark.parametrize(
    ("writers", "files", "subject"),
    [
        ((setting(NFSRAHEAD, "nfs4", "256"),), (PACKAGED,), "/f:1"),
        ((setting(TUNED, "/sys/class/bdi/*/read_ahead_kb", "256"),), (), "/f:1"),
        ((), (UdevFile(LATE.path, ONE_LINE.replace("15360", "256")),), f"{LATE.path}:1"),
    ],
)
def test_a_chosen_value_is_reported_once_at_its_setting(
    writers: tuple[Setting, ...], files: tuple[UdevFile, ...], subject: str
) -> None:
    host = replace(facts(superblock(256, AZURE)), udev=files, writers=writers)
    (fault,) = (*udev.contested.judge(host), *nfs1.low_read_ahead.judge(host))
    assert (fault.subject, "; then sudo nfstuned apply; or sudo systemctl" in fault.remedy) == (subject, True)


def test_a_rule_that_is_outrun_is_the_one_finding_about_both_rules_and_the_mount() -> None:
    host = replace(facts(superblock(128, AZURE)), udev=(EARLY, PACKAGED))
    (fault,) = (*udev.outrun.judge(host), *udev.contested.judge(host), *nfs1.low_read_ahead.judge(host))
    assert (fault.subject, fault.remedy.endswith(", and sudo nfstuned apply")) == (f"{EARLY.path}:1", True)
    assert f"; or remove the rule, and write nfs4=15360 {DROP_IN}, then sudo udevadm" in fault.remedy
    several = facts(superblock(128, AZURE), superblock(128, NFS)._replace(device="0:47"))
    (fault,) = udev.outrun.judge(replace(several, udev=host.udev))
    assert "[nfsrahead]" not in fault.remedy
    wrong = UdevFile(EARLY.path, ONE_LINE.replace("15360", "1024"))
    host = replace(facts(superblock(128, AZURE)), udev=(wrong, PACKAGED))
    rules = (udev.outrun, udev.contested, nfs1.low_read_ahead)
    assert [len(list(rule.judge(host))) for rule in rules] == [1, 0, 1]


def test_a_rule_that_is_wrong_in_two_ways_is_one_finding_with_one_remedy() -> None:
    everywhere, dollar = 'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}="15360"\n', ONE_LINE.replace("$$", "$")
    all_of_udev = (udev.broken, udev.tolerated, udev.outrun, udev.masking, udev.contested)
    for name, text, hides, said in (
        ("90-a.rules", everywhere, (), "sorts after it, overwrites its value with 128 KiB"),
        ("90-a.rules", dollar, (), "sorts after this rule, overwrites its value with 128 KiB; $4 is"),
        ("99-nfs.rules", dollar, (PACKAGED.path,), f"the file also hides {PACKAGED.path}"),
        ("99-z.rules", everywhere.replace("15360", "1024"), (), "writes 1024 KiB to every device's bdi"),
    ):
        file = UdevFile(f"/etc/udev/rules.d/{name}", text, hides)
        both = tuple(sorted((file, PACKAGED), key=lambda one: one.path.rpartition("/")[2]))
        files = (file,) if hides else both
        hidden = (setting(NFSRAHEAD, "nfs4", "15360"),) if hides else ()
        host = replace(facts(superblock(15360, AZURE)), udev=files, writers=hidden)
        (fault,) = (fault for rule in all_of_udev for fault in rule.judge(host))
        assert fault.subject == f"{file.path}:1"
        assert said in fault.message
        assert (", and sudo mv -n " in fault.remedy) is (name != "99-z.rules")
        assert (f", or write nfs4=15360 {DROP_IN}; then sudo" in fault.remedy) is (name == "90-a.rules")


def test_another_rule_of_a_broken_rules_file_keeps_its_own_finding() -> None:
    file = UdevFile(EARLY.path, ONE_LINE.replace("$$", "$") + "\n" + ONE_LINE)
    host = replace(facts(superblock(15360, AZURE)), udev=(file, PACKAGED))
    assert subjects(udev.tolerated.judge(host)) == [f"{file.path}:1"]
    (fault,) = udev.outrun.judge(host)
    assert fault.subject == f"{file.path}:3"
    assert fault.remedy.startswith(f"repair line 1 of {file.path}, then sudo mv -n ")


@pytest.mark.parametrize(("kb", "page", "nothing"), [(0, 4, 1), (4, 4, 0), (60, 64, 1), (64, 64, 0)])
def test_below_a_page_is_nothing(kb: int, page: int, nothing: int) -> None:
    host = facts(superblock(kb, AZURE))
    host = replace(host, snapshot=replace(host.snapshot, page_kb=page))
    assert subjects(nfs1.below_page.judge(host)) == ["/0"] * nothing


def elsewhere(shared: Superblock, *numbers: int) -> Superblock:
    """Return a superblock of whose mounts those with these numbers are of other mount namespaces."""
    mounts = (replace(mount, foreign=mount.mount_id in numbers) for mount in shared.mounts)
    return shared._replace(mounts=tuple(mounts))


def test_a_mount_of_another_namespace_does_not_count_next_to_the_hosts_own() -> None:
    policy = small("small")
    host = facts(elsewhere(superblock(15360, AZURE, AZURE), 1), policy=policy)
    assert not list(nfs1.shared_conflict.judge(host))
    host = facts(elsewhere(superblock(128, AZURE, AZURE), 0), policy=policy)
    (finding,) = run_rules(host, [nfs1.low_read_ahead]).findings
    assert (finding.subject, finding.expected) == ("/1", "512 KiB")


def test_a_conflict_is_of_the_hosts_own_mounts_or_where_it_has_none_of_all() -> None:
    shared, policy = superblock(15360, AZURE, AZURE, AZURE), small("small")
    (mixed,) = nfs1.shared_conflict.judge(facts(elsewhere(shared, 0), policy=policy))
    assert mixed.message.startswith("/1, /2 share one superblock")
    (away,) = nfs1.shared_conflict.judge(facts(elsewhere(shared, 0, 1, 2), policy=policy))
    assert away.message.startswith("/0, /1, /2 share one superblock")


OLD = superblock(1024, NFS, fstype="nfs")._replace(device="0:47")
DROP_IN = "below [nfsrahead] in /etc/nfs.conf.d/99-nfstuned.conf"


@pytest.mark.parametrize(
    ("settings", "file", "remedy"),
    [
        ([], "", f"write nfs=1024 and nfs4=15360 {DROP_IN}"),
        ([("nfs", "1024")], "/etc/nfs.conf", f"write nfs4=15360 {DROP_IN}"),
        ([("nfs", "1024"), ("NFS4", "1")], "/etc/nfs.conf.d/a.conf", "change {}:1 to NFS4=15360"),
        ([("nfs", "1024"), ("default", "1")], "/etc/nfs.conf", "change {}:1 to default=15360"),
        ([("default", "1")], "/etc/nfs.conf", "change {}:0 to nfs=1024 and nfs4=15360"),
        ([("default", "1")], "/usr/etc/nfs.conf", f"write nfs=1024 and nfs4=15360 {DROP_IN}"),
    ],
)
def test_nfsrahead_is_set_where_it_decides(settings: list[tuple[str, str]], file: str, remedy: str) -> None:
    writers = (setting(NFSRAHEAD, *pair, line) for line, pair in enumerate(settings))
    host = facts(superblock(15360, AZURE), OLD)
    host = replace(host, udev=(PACKAGED,), writers=tuple(one._replace(file=file) for one in writers))
    first = remedy.format(file)
    assert [fault.remedy.partition("; or sudo")[0] for fault in udev.contested.judge(host)] == [first]


def test_nfsrahead_is_set_below_the_images_folder() -> None:
    host = replace(facts(superblock(15360, AZURE)), udev=(PACKAGED,))
    snapshot = replace(host.snapshot, root="/img/")
    (fault,) = udev.contested.judge(replace(host, snapshot=snapshot, has=host.has | {Need.IMAGE}))
    place = "/img/etc/nfs.conf.d/99-nfstuned.conf"
    assert fault.remedy.startswith(f"write nfs4=15360 below [nfsrahead] in {place}")


@pytest.mark.parametrize("policy", [POLICY, BUILTIN])
def test_nfsrahead_cannot_have_two_values_for_one_version(policy: Policy) -> None:
    """A server without a number shall keep the kernel's."""
    host = facts(superblock(15360, AZURE), superblock(1024, NFS)._replace(device="0:47"), policy=policy)
    (fault,) = udev.contested.judge(replace(host, udev=(PACKAGED,)))
    assert "/dev/null" in fault.remedy


def test_nfsrahead_keeps_its_value_for_a_version_of_servers_without_a_number() -> None:
    host = replace(facts(superblock(15360, AZURE), OLD, policy=BUILTIN), udev=(PACKAGED,))
    (fault,) = udev.contested.judge(host)
    assert fault.remedy.startswith(f"write nfs=128 and nfs4=15360 {DROP_IN}")


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ([("nfs4", "15360")], []),
        ([("NFS4", "16384 KiB")], []),
        ([("nfs4", "16388")], ["/f:0"]),
        ([("nfs", "15360")], [RULE_1]),
        ([("default", "15360")], []),
        ([("nfs4", "128"), ("nfs4", "15360")], []),
        ([("nfs4", "15360"), ("default", "1"), ("nfs4", "x")], ["/f:2"]),
    ],
)
def test_the_last_line_for_a_version_counts(settings: list[tuple[str, str]], found: list[str]) -> None:
    writers = tuple(setting(NFSRAHEAD, *pair, line) for line, pair in enumerate(settings))
    host = replace(facts(superblock(15360, AZURE)), udev=(PACKAGED,), writers=writers)
    assert subjects(udev.contested.judge(host)) == found


def guarded(jump: str, text: str, path: str = "/r") -> UdevFile:
    """Return a file that passes over its rules where a jump is taken."""
    return UdevFile(path, f'{jump}, GOTO="end"\n{text}LABEL="end"\n')


CLOSED, OPEN = 'SUBSYSTEM!="bdi"', 'TEST=="/run/nowhere"'
LOW = ONE_LINE.replace("15360", "1024")
FINDS = 'PROGRAM="/bin/grep -q %k /proc/fs/nfsfs/volumes", '
RUN = f"{FINDS}RUN+=\"/bin/sh -c 'echo 1024 > /sys/class/bdi/%k/read_ahead_kb'\"\n"


@pytest.mark.parametrize("text", [LOW, NFS_UTILS, RUN, FINDS + 'ATTR{read_ahead_kb}="1024"\n'])
def test_a_jump_makes_only_the_rules_uncertain_that_it_may_pass_over(text: str) -> None:
    host = facts(superblock(15360, AZURE))
    assert subjects(udev.contested.judge(replace(host, udev=(guarded(CLOSED, text),)))) == ["/r:2"]
    assert not list(udev.contested.judge(replace(host, udev=(guarded(OPEN, text),))))
    beside = UdevFile("/r", f'{OPEN}, GOTO="end"\nLABEL="end"\n{text}')
    assert subjects(udev.contested.judge(replace(host, udev=(beside,)))) == ["/r:3"]


@pytest.mark.parametrize(
    "condition",
    [
        'TEST=="/run/x", PROGRAM="/usr/libexec/nfsrahead %k", ATTR{read_ahead_kb}="%c"\n',
        'PROGRAM!="/bin/grep -q %k /proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="1024"\n',
        'PROGRAM="/opt/a", PROGRAM="/bin/cat /proc/fs/nfsfs/volumes", ATTR{read_ahead_kb}="1024"\n',
    ],
)
def test_a_program_that_finds_nfs_does_not_decide_alone(condition: str) -> None:
    host = replace(facts(superblock(15360, AZURE)), udev=(UdevFile("/r", condition),))
    assert not list(udev.contested.judge(host))


def test_more_than_is_wanted_is_no_contest_where_the_policy_only_raises() -> None:
    rule = UdevFile("/r", f'SUBSYSTEM=="bdi", {FINDS}ATTR{{read_ahead_kb}}="15360"\n')
    assert not list(udev.contested.judge(replace(facts(superblock(15360, NFS)), udev=(rule,))))
    lowering = facts(superblock(15360, NFS, NFS), policy=small("small"))
    silent = facts(superblock(15360, NFS), policy=replace(POLICY, assignments=(_all("silent"),)))
    only = facts(superblock(15360, NFS), policy=replace(POLICY, assignments=(_all("small"),)))
    assert not list(udev.contested.judge(replace(silent, udev=(rule,))))
    assert subjects(udev.contested.judge(replace(only, udev=(rule,)))) == ["/r:1"]
    assert not list(udev.contested.judge(replace(lowering, udev=(rule,))))


def _all(profile: str) -> Assignment:
    return Assignment(Match(), profile, "")


@pytest.mark.parametrize(("value", "found"), [("1024", []), ("16384", []), ("20480", ["/f:1"])])
def test_aznfs_only_raises(value: str, found: list[str]) -> None:
    requests = [Request(AZURE, "/0", "", "/etc/fstab", 1, fstype="aznfs")]
    writers = (setting(AZNFS, "AZNFS_READ_AHEAD_KB", value),)
    host = replace(facts(superblock(15360, AZURE), requests=requests), writers=writers)
    assert subjects(udev.contested.judge(host)) == found
    assert not list(udev.contested.judge(replace(facts(superblock(15360, AZURE)), writers=writers)))


@pytest.mark.parametrize(("value", "found"), [("true", ["/f:1"]), ("false", [])])
def test_efs_utils_writes_15_times_the_rsize_of_its_own_mounts(value: str, found: list[str]) -> None:
    writers = (setting(EFS_UTILS, "optimize_readahead", value),)
    assert not list(udev.contested.judge(replace(facts(superblock(15360, EFS)), writers=writers)))
    host = facts(superblock(15360, EFS), policy=replace(POLICY, assignments=(_all("small"),)))
    assert subjects(udev.contested.judge(replace(host, writers=writers))) == found
    assert not list(udev.contested.judge(replace(facts(superblock(15360, NFS)), writers=writers)))


def test_a_rule_is_outrun_by_a_later_one_with_another_value() -> None:
    host, outrun = replace(facts(), udev=(EARLY, PACKAGED)), [f"{EARLY.path}:1"]
    assert subjects(udev.outrun.judge(host)) == outrun
    assert not list(udev.outrun.judge(replace(host, udev=(EARLY, PACKAGED, LATE))))
    assert not list(udev.outrun.judge(replace(host, udev=(EARLY, LATE))))
    both, one = ((setting(NFSRAHEAD, name, "15360"),) for name in ("default", "nfs4"))
    assert not list(udev.outrun.judge(replace(host, writers=both)))
    assert subjects(udev.outrun.judge(replace(host, writers=one))) == outrun
    mounted = replace(facts(superblock(15360, AZURE)), udev=host.udev, writers=one)
    assert not list(udev.outrun.judge(mounted))


@pytest.mark.parametrize(("jump", "found"), [(CLOSED, True), (OPEN, False)])
def test_a_rule_is_outrun_unless_an_open_jump_passes_over_either(jump: str, *, found: bool) -> None:
    early, late = guarded(jump, ONE_LINE, EARLY.path), guarded(jump, NFS_UTILS, PACKAGED.path)
    assert bool(list(udev.outrun.judge(replace(facts(), udev=(early, PACKAGED))))) is found
    assert bool(list(udev.outrun.judge(replace(facts(), udev=(EARLY, late))))) is found


@pytest.mark.parametrize(
    ("name", "text", "hides", "found"),
    [
        ("99-nfs.rules", ONE_LINE, "/usr/lib/x", False),
        ("99-nfs.rules", ONE_LINE.replace("PROGRAM", 'ENV{A}=="b", PROGRAM'), "/usr/lib/x", True),
        ("99-nfs.rules", "# nothing\n", "/lib/x", False),
        ("99-nfs.rules", ONE_LINE, "/run/x", False),
        ("60-a.rules", ONE_LINE, "/usr/lib/x", True),
        ("60-a.rules", 'SUBSYSTEM=="block"\n', "/usr/lib/x", False),
        ("99-nfs.rules", "", "/usr/lib/x", False),
        # As the service's mask says to keep it in force, or a link to it.
        ("99-nfs.rules", PACKAGED.text, "/usr/lib/x", False),
        ("99-nfs.rules", PACKAGED.text + ONE_LINE, "/usr/lib/x", False),
    ],
)
def test_a_masked_file_is_missed_where_it_is_ours(name: str, text: str, hides: str, *, found: bool) -> None:
    file = UdevFile(f"/etc/udev/rules.d/{name}", text, (hides,))
    assert subjects(udev.masking.judge(replace(facts(), udev=(file,)))) == ([file.path] if found else [])


def test_a_mask_is_reported_where_nfs_conf_needs_the_hidden_rule() -> None:
    file = UdevFile("/etc/udev/rules.d/99-nfs.rules", "", (PACKAGED.path,))
    host = replace(facts(), udev=(file,), writers=(setting(NFSRAHEAD, "nfs4", "15360"),))
    (fault,) = udev.masking.judge(host)
    assert (fault.subject, fault.remedy) == (file.path, f"sudo rm {file.path}, {RELOAD}")
    for daemon, found in ((Unit(installed=True), 1), (Unit(enabled=True), 0), (Unit(active=True), 0)):
        assert len(list(udev.masking.judge(replace(host, system=System(daemon=daemon))))) == found


def test_of_a_file_that_was_not_read_nothing_is_claimed() -> None:
    file = UdevFile("/etc/udev/rules.d/99-nfs.rules", "", (PACKAGED.path,), unread=True)
    settings = (setting(NFSRAHEAD, "nfs4", "15360"),)
    host = replace(facts(superblock(15360, AZURE)), udev=(file,), writers=settings)
    assert not [*udev.masking.judge(host), *nfs1.not_persistent.judge(host)]


def test_each_outrun_file_gets_a_name_of_its_own_that_sorts_last() -> None:
    paths = ("/usr/lib/udev/rules.d/80-b.rules", EARLY.path)
    files = tuple(UdevFile(path, ONE_LINE) for path in paths)
    assert [fault.remedy for fault in udev.outrun.judge(replace(facts(), udev=(*files, PACKAGED)))] == [
        f"sudo cp -n {paths[0]} /etc/udev/rules.d/99-read-ahead-80-b.rules, {RELOAD}",
        f"sudo mv -n {paths[1]} /etc/udev/rules.d/99-read-ahead-90-a.rules, {RELOAD}",
    ]


@pytest.mark.slow
def test_many_rules_that_are_broken_and_outrun_are_reported_in_time() -> None:
    """As an image may have them; a file that is read has up to eight times as many."""
    text = 'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}="1"\n' * 10_000
    host = replace(facts(), udev=(UdevFile("/etc/udev/rules.d/60-a.rules", text), PACKAGED))
    start = time.process_time()
    assert (len(list(udev.broken.judge(host))), list(udev.outrun.judge(host))) == (10_000, [])
    assert time.process_time() - start < 20


def test_a_name_is_one_word_of_the_remedys_command() -> None:
    hostile = "/etc/udev/rules.d/60-a; reboot.rules"
    moved = "'/etc/udev/rules.d/99-read-ahead-60-a; reboot.rules'"
    outran = replace(facts(), udev=(UdevFile(hostile, ONE_LINE), PACKAGED))
    hiding = replace(facts(), udev=(UdevFile(hostile, ONE_LINE, ("/usr/lib/udev/rules.d/x.rules",)),))
    for fault in (*udev.outrun.judge(outran), *udev.masking.judge(hiding)):
        assert fault.remedy == f"sudo mv -n '{hostile}' {moved}, {RELOAD}"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("99-nfs.rule", "99-read-ahead-99-nfs.rules"),
        ("60-a.rules.conf", "99-read-ahead-60-a.rules"),
        ("99-nfs-readahead.rule", "99-read-ahead-99-nfs-readahead.rules"),
        ("99-zz.rule", "99-zz.rules"),
    ],
)
def test_an_unread_file_gets_a_name_that_hides_nothing_and_is_not_outrun(name: str, wanted: str) -> None:
    folder = "/etc/udev/rules.d"
    host = replace(facts(), udev=(PACKAGED,), udev_unread=(UdevFile(f"{folder}/{name}", ONE_LINE),))
    (fault,) = udev.unread.judge(host)
    assert fault.remedy.startswith(f"sudo mv -n {folder}/{name} {folder}/{wanted}, {RELOAD}")
    renamed = replace(host, udev=(PACKAGED, UdevFile(f"{folder}/{wanted}", ONE_LINE)))
    assert not list(udev.outrun.judge(renamed))


def sample(ratio: float | None, mib: int, kb: int) -> Sample:
    transport = TransportRate("g", 1, None, None)
    sent = mib * 2.0**20 / 8
    rates = (sent / ratio if ratio else 0.0, 0.0, sent, 0.0)
    return Sample(
        *(0.0, 8.0, "0:46", ("/0",), AZURE, *rates),
        over_fetch_ratio=ratio,
        ops=MappingProxyType({}),
        transport=transport,
        read_ahead_kb=kb,
    )


def test_a_right_value_that_nothing_sets_is_named() -> None:
    host = facts(superblock(15360, AZURE))
    (fault,) = nfs1.not_persistent.judge(host)
    assert (fault.subject, fault.remedy) == ("/0", "sudo systemctl enable --now nfstuned.service")
    masked = System(daemon=Unit(installed=True, masked=True))
    (fault,) = nfs1.not_persistent.judge(replace(host, system=masked))
    started = "sudo systemctl unmask nfstuned.service && sudo systemctl enable --now nfstuned"
    assert fault.remedy.startswith(started)
    (fault,) = nfs1.low_read_ahead.judge(replace(facts(superblock(128, AZURE)), system=masked))
    assert f", and {started}" in fault.remedy
    assert not list(nfs1.not_persistent.judge(facts(superblock(128, AZURE))))
    low = replace(POLICY, assignments=(_all("low"),), profiles=(Profile("low", ReadAhead(kb=128)),))
    assert not list(nfs1.not_persistent.judge(facts(superblock(128, AZURE), policy=low)))


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (ONE_LINE, []),
        (ONE_LINE.replace("15360", "1024"), ["/0"]),
        ('SUBSYSTEM=="bdi", PROGRAM="/usr/local/bin/ask %k", ATTR{read_ahead_kb}="%c"\n', []),
        ('SUBSYSTEM=="bdi", PROGRAM="/usr/local/bin/ask %k", ATTR{read_ahead_kb}="1024"\n', []),
        ('SUBSYSTEM=="bdi", ACTION=="add", RUN+="/usr/local/sbin/nfs-read-ahead %k"\n', []),
        ('SUBSYSTEM!="bdi", GOTO="end"\nPROGRAM="/usr/local/sbin/set %k"\nLABEL="end"\n', []),
        ('SUBSYSTEM=="bdi", TAG+="systemd", ENV{SYSTEMD_WANTS}+="ra@%k.service"\n', []),
        ('SUBSYSTEM=="bdi", ENV{SYSTEMD_READY}="1"\n', ["/0"]),
        ('SUBSYSTEM=="bdi", KERNEL=="8:0", RUN+="/usr/local/sbin/disk %k"\n', ["/0"]),
        ('SUBSYSTEM=="block", RUN+="/usr/local/sbin/disk %k"\n', ["/0"]),
        ('SUBSYSTEM=="bdi", RUN+="sh -c /usr/local/sbin/nfs-read-ahead"\n', ["/0"]),
        ('# no bdi\nSUBSYSTEM=="net", RUN{builtin}+="kmod load"\n', ["/0"]),
        (PACKAGED.text, ["/0"]),
    ],
)
def test_a_value_that_a_rule_sets_or_may_set_is_persistent(rule: str, found: list[str]) -> None:
    host = replace(facts(superblock(15360, AZURE)), udev=(UdevFile("/r", rule),))
    assert subjects(nfs1.not_persistent.judge(host)) == found


def test_a_rule_that_never_acts_is_reported_instead_of_the_mount_without_its_value() -> None:
    for rule in (
        ONE_LINE.replace("/usr/bin/awk", "<absolute_path>/awk"),
        ONE_LINE.replace("15360", "15M"),
        ONE_LINE.replace("}=", "}=="),
        ONE_LINE.replace("add", "change"),
        VENDOR.replace("\\\n", "\\ "),
    ):
        file = UdevFile("/etc/udev/rules.d/99-z.rules", rule)
        host = replace(facts(superblock(128, AZURE)), udev=(file,))
        rules = (udev.broken, nfs1.low_read_ahead, udev.contested)
        (fault,) = (fault for rule in rules for fault in rule.judge(host))
        assert fault.subject == f"{file.path}:1"
        assert fault.remedy.endswith("sudo nfstuned apply")
        # The same by hand: the rule is the reason why nothing keeps it.
        right = replace(facts(superblock(15360, AZURE)), udev=(file,))
        assert len([f for rule in (udev.broken, nfs1.not_persistent) for f in rule.judge(right)]) == 1
        # Another value than the policy's would not mend the mount.
        less = file._replace(text=rule.replace("15360", "64").replace("15M", "64K"))
        host = replace(host, udev=(less,))
        assert subjects(nfs1.low_read_ahead.judge(host)) != []


def test_the_remedy_of_a_wasted_read_ahead_adds_to_the_configuration(tmp_path: Path) -> None:
    points = ('/mnt/a "b" %s', "/mnt/[c]*", "/mnt/d\\e", "/mnt/it's", "/mnt/a\nb\x7fB\udcfcro")
    orders = [(points[:1], ""), (points[1:3], "mine"), (points[3:], "")]
    for mounts, profile in orders:
        command = give_workload({"mount_point": mounts}, profile, RANDOM)
        assert command.endswith("| sudo tee -a /etc/nfstuned/conf.d/workloads.toml")
        assert printable(command) == command
        shell = command.replace("sudo ", "").replace("/etc/nfstuned", f"{tmp_path}/etc/nfstuned")
        subprocess.run(["sh", "-c", shell], check=True, stdout=subprocess.DEVNULL)
    mine = tmp_path / "etc/nfstuned/conf.d/mine.toml"
    mine.write_text("[profile.mine]\nread_ahead_kb = 2048\n")
    entries = read_configuration(Root(str(tmp_path))).assignments
    found = [(entry.profile, entry.workload) for entry in entries]
    assert found == [("", "random"), ("mine", "random"), ("", "random")]
    for entry, (mounts, _) in zip(entries, orders, strict=True):
        for point, pattern in zip(mounts, entry.match.mount_point, strict=True):
            assert fnmatchcase(point, pattern)
            assert not fnmatchcase(point.replace("/mnt", "/srv"), pattern)


@pytest.mark.parametrize("active", [True, False, None])
def test_a_service_reads_the_policy_before_a_wasted_read_ahead_is_lowered(*, active: bool | None) -> None:
    measured = Measured(8.0, (sample(3.0, 512, 15360),))
    system = System(daemon=Unit(installed=True, active=active))
    (fault,) = nfs1.wasted.judge(replace(facts(superblock(15360, AZURE)), measured=measured, system=system))
    reload = "then sudo systemctl reload nfstuned.service, then sudo nfstuned apply, and measure again"
    assert fault.remedy.endswith(reload) is bool(active)
    assert fault.remedy.endswith("sudo nfstuned apply, and measure again")


def test_the_remedy_names_all_mounts_of_the_superblock_and_keeps_a_profile_of_ones_own() -> None:
    both = superblock(15360, AZURE, AZURE)
    entry = Assignment(Match(), "small", "nfstuned.toml: policy[1]")
    for policy, profile in ((POLICY, ""), (replace(POLICY, assignments=(entry,)), "profile")):
        looked = sample(3.0, 512, 15360)
        (fault,) = nfs1.wasted.judge(replace(facts(both, policy=policy), measured=Measured(8.0, (looked,))))
        assert 'match={mount_point=["/0","/1"]}' in fault.remedy
        assert ('profile="small"' in fault.remedy) == bool(profile)
