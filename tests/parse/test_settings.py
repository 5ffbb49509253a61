from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.mounts import ConfInclude, Setting
from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc.settings import (
    drop_ins,
    in_version_order,
    included,
    parse_aznfs,
    parse_ini,
    parse_mount_nfs,
    parse_nfsmount,
    read_nfs_utils,
    read_writers,
)
from tests.parse.rows import shown
from tests.tree import Tree, put

FILE = "/etc/nfsmount.conf"
CRASH = "a section without a name makes mount.nfs crash: "
# The examples of nfs-utils' own nfsmount.conf, its comments apart.
REAL = """\
# see nfsmount.conf(5) for details
 [ MountPoint "/export/home" ]
   background=True
; the servers
[ Server "nfsserver.foo.com" ]
   rsize=32k
   wsize=32k
#
[ NFSMount_Global_Options ]
# Defaultvers=4
 Defaultvers=4
Proto=tcp
\tSec=sys
"""


def setting(name: str, value: str, line: int, section: str = "s", argument: str | None = None) -> Setting:
    return Setting(section, argument, name, value, FILE, line)


def test_each_assignment_has_its_section_its_name_and_its_line() -> None:
    options = "nfsmount_global_options"
    assert parse_nfsmount(REAL) == (
        setting("background", "True", 3, "mountpoint", "/export/home"),
        setting("rsize", "32k", 6, "server", "nfsserver.foo.com"),
        setting("wsize", "32k", 7, "server", "nfsserver.foo.com"),
        setting("Defaultvers", "4", 11, options),
        setting("Proto", "tcp", 12, options),
        setting("Sec", "sys", 13, options),
    )


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a = 4", "4"),
        ("a=4 # four", "4"),
        ("a=4;four", "4"),
        ("a = \t4 \r", "4"),
        ('a = " 4#; " rest', " 4#; "),
        ("a='4 \"' # x", '4 "'),
        ("a=b=c", "b=c"),
        ("a=rw\\\n  ,ro", "rw    ,ro"),
    ],
)
def test_a_value_ends_where_mount_nfs_ends_it(line: str, value: str) -> None:
    after = setting("b", "1", 3 + line.count("\n"))
    assert parse_nfsmount(f"[s]\n{line}\nb=1\n") == (setting("a", value, 2), after)


@pytest.mark.parametrize(
    ("header", "section", "argument"),
    [
        ('[ Server  "nas" ] rest', "server", "nas"),
        ('[SERVER "Nas"]', "server", "Nas"),
        ("[ Server nas ]", "server nas", None),
        ('[ Server "[fd00" ]', "server", "[fd00"),
        ('[ Server "" ]', "server", ""),
    ],
)
def test_the_name_of_a_section_stands_in_quotes(header: str, section: str, argument: str | None) -> None:
    assert parse_nfsmount(f"{header}\na=1\n") == (setting("a", "1", 2, section, argument),)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[ Server", "a section without a closing bracket: '[ Server'"),
        ("[ Server ]", f"{CRASH}'[ Server ]'"),
        ("[ MountPoint ]", f"{CRASH}'[ MountPoint ]'"),
        ('[ Server "[fd00::10]" ]', f"{CRASH}'[ Server \"[fd00::10]'"),
        ('[ Other "x ]', "a section's name without a closing quote: '[ Other \"x ]'"),
        ("nconnect 4", "neither a section nor an assignment: 'nconnect 4'"),
        ('a="4', "a quote that does not close: '\"4'"),
        ("= 4", "a value without a name: '= 4'"),
        ("a = # 4", "an assignment without a value does not count: 'a = # 4'"),
    ],
)
def test_what_mount_nfs_passes_over_is_located_and_the_rest_survives(line: str, message: str) -> None:
    found = shown(parse_nfsmount(f"[s]\na=1\n{line}\n[s]\nb=2\n"))
    assert found == [setting("a", "1", 2), f"{FILE}:3: {message}", setting("b", "2", 5)]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a=1\n", 1, "outside of a section"),
        ("[s]\na=1\nb=2", 3, "does not end"),
        ("[s]\na=1\nb=2 \\\n", 3, "does not end"),
        ("[s]\na=1\n[t", 3, "does not end"),
    ],
)
def test_a_last_line_without_an_end_and_what_stands_outside_of_a_section_do_not_count(
    text: str, line: int, problem: str
) -> None:
    *others, error = parse_nfsmount(text)
    assert others == [setting("a", "1", 2)][: line - 1]
    assert isinstance(error, ParseError)
    assert (error.line, problem in error.message) == (line, True)


def test_nothing_after_a_nul_is_read() -> None:
    assert parse_nfsmount("[s]\na=1\n\0b=2\n") == (setting("a", "1", 2),)


def test_an_included_file_starts_in_the_section_that_names_it_and_does_not_leave_the_root() -> None:
    text = '[ Server "nas" ]\ninclude = more.conf\nINCLUDE=-/run/x\ninclude=../../../x\n'
    found = [row for row in parse_nfsmount(text) if isinstance(row, ConfInclude)]
    assert [(included(row), row.optional, row.line) for row in found] == [
        ("/etc/more.conf", False, 2),
        ("/run/x", True, 3),
        ("/x", False, 4),
    ]
    inner = parse_nfsmount("a=1\n", FILE, found[0].section, found[0].argument)
    assert inner == (setting("a", "1", 1, "server", "nas"),)


def test_drop_ins_are_read_in_the_order_of_versions() -> None:
    names = ["10-a.conf", "9-a.conf", ".conf", ".9.conf", "9.conf.bak", "README", "é.conf"]
    assert drop_ins(names) == ["9-a.conf", "10-a.conf", "é.conf"]


def test_numbers_in_names_count_as_numbers_and_leading_zeros_as_fractions() -> None:
    names = ["10-a", "9-a", "1", "01", "09", "010", "000", "00", "0", "a2", "a10", "a2", "a"]
    assert in_version_order(names) == [
        *("000", "00", "01", "010", "09", "0", "1"),
        *("9-a", "10-a", "a", "a2", "a2", "a10"),
    ]


BEFORE = b"\x7fELF\x02\x01/etc/nfsmount.conf\0%s: "
AFTER = b"\0fhnrVvwo:s\0conf_init_dir: scandir %s: %s\0"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (b"(linux nfs-utils 2.6.2)\n", (2, 6, 2)),
        (b"(linux nfs-utils 2.8.3-rc1)\n", (2, 8, 3)),
        (b"(linux nfs-utils 2.10)\n", (2, 10)),
        (b"(linux nfs-utils)\n", None),
        (b"(linux nfs-utils 2)\n", None),
        (b"since nfs-utils version 1.0.x\n", None),
    ],
)
def test_the_version_is_that_which_it_prints_and_it_reads_drop_ins_if_it_has_the_function(
    said: bytes, version: tuple[int, ...] | None
) -> None:
    assert parse_mount_nfs(BEFORE + said + AFTER) == NfsUtils(version, drop_ins=True)
    assert parse_mount_nfs(BEFORE + said) == NfsUtils(version)


def test_another_program_tells_nothing() -> None:
    assert parse_mount_nfs(b"#!/bin/sh\nexec /opt/mount.nfs\n") == NfsUtils()


def test_the_first_that_keeps_sections_apart_is_2_8_3() -> None:
    versions = (2, 6, 2), (2, 8), (2, 8, 2), (2, 8, 3), (2, 9), (2, 10, 1), (3, 0)
    assert tuple(one for one in versions if NfsUtils(one).keeps_sections_apart) == versions[3:]
    assert not NfsUtils(None).keeps_sections_apart
    assert (NfsUtils((2, 6, 2)).name, NfsUtils().name) == ("mount.nfs 2.6.2", "mount.nfs")


PROGRAM = b"\x7fELF\0%s: (linux nfs-utils 2.6.2)\n\0conf_init_dir: %s\0"


def test_it_is_that_of_sbin_or_none(tmp_path: Path) -> None:
    folder = tmp_path / "sbin/mount.nfs"
    assert read_nfs_utils(Root(str(tmp_path))) is None
    folder.mkdir(parents=True)
    assert read_nfs_utils(Root(str(tmp_path))) is None
    folder.rmdir()
    put(tmp_path / "usr/sbin/mount.nfs", PROGRAM)
    assert read_nfs_utils(Root(str(tmp_path))) == NfsUtils((2, 6, 2), drop_ins=True)
    put(folder, PROGRAM.replace(b"2.6.2", b"2.8.3"))
    assert read_nfs_utils(Root(str(tmp_path))) == NfsUtils((2, 8, 3), drop_ins=True)


TUNED = """\
[main]
include=throughput-performance

# all of them
[sysfs]
/sys/class/bdi/0:*/read_ahead_kb = 4096 # KiB
[disk]
readahead=>4096
; nothing
"""
NAME = "AZNFS_READ_AHEAD_KB"
AZNFS = '# Read ahead size in KB defaults to 16384.\nAZNFS_READ_AHEAD_KB="${AZNFS_READ_AHEAD_KB:-16384}"\n'


def test_assignments_keep_their_section_their_case_and_their_line() -> None:
    assert tuple(parse_ini(f"a=b\n{TUNED}word\nx==y=z\n", "/f")) == (
        Setting("main", None, "include", "throughput-performance", "/f", 3),
        Setting("sysfs", None, "/sys/class/bdi/0:*/read_ahead_kb", "4096", "/f", 7),
        Setting("disk", None, "readahead", ">4096", "/f", 9),
        Setting("disk", None, "x", "=y=z", "/f", 12),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (AZNFS, ("16384", 2)),
        (f"{NAME}=1\n{NAME}='2'\n#{NAME}=3\nMY_{NAME}=4\n", ("2", 2)),
        (f"{NAME}=big\n{NAME}=\n", None),
    ],
)
def test_of_aznfs_the_last_number_counts_and_comments_do_not(
    text: str, found: tuple[str, int] | None
) -> None:
    setting = Setting("aznfs", None, NAME, found[0], "/f", found[1]) if found else None
    assert parse_aznfs(text, "/f", "aznfs") == setting


class Host(Tree):
    def writers(self, *mounted: str) -> list[tuple[str, str, str, str]]:
        return [
            (one.section, one.name, one.value, f"{one.file}:{one.line}")
            for one in read_writers(self.root, mounted)
        ]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_host_without_such_programs_has_no_writers(host: Host) -> None:
    assert host.writers() == []


def test_nfs_conf_is_read_in_the_order_of_nfs_utils(host: Host) -> None:
    host.write("usr/etc/nfs.conf", "[nfsrahead]\nnfs=1\n")
    host.write("etc/nfs.conf", "[general]\nnfs=0\n[NFSrahead]\nnfs=2\n")
    host.write("etc/nfs.conf.d/9.conf", "[nfsrahead]\nnfs4=3\n")
    host.write("etc/nfs.conf.d/10.conf", '[nfsrahead "x"]\nnfs=0\n[nfsrahead]\nnfs4=4\n')
    assert host.writers() == [
        ("nfsrahead", "nfs", "2", "/etc/nfs.conf:4"),
        ("nfsrahead", "nfs4", "3", "/etc/nfs.conf.d/9.conf:2"),
        ("nfsrahead", "nfs4", "4", "/etc/nfs.conf.d/10.conf:4"),
    ]


def test_the_vendors_nfs_conf_counts_where_there_is_no_other(host: Host) -> None:
    host.write("usr/etc/nfs.conf", "[nfsrahead]\nnfs=1\n")
    host.write("usr/etc/nfs.conf.d/a.conf", "[nfsrahead]\nnfs=2\n")
    assert [writer[3] for writer in host.writers()] == ["/usr/etc/nfs.conf:2", "/usr/etc/nfs.conf.d/a.conf:2"]


def test_an_include_is_followed_but_never_below_a_mount(host: Host) -> None:
    host.write("etc/nfs.conf", "[nfsrahead]\ninclude=-/srv/nfs.conf\n")
    host.write("srv/nfs.conf", "nfs=5\n")
    assert host.writers() == [("nfsrahead", "nfs", "5", "/srv/nfs.conf:1")]
    assert host.writers("/srv") == []


def test_aznfs_counts_where_its_helper_and_its_value_are(host: Host) -> None:
    host.write("opt/microsoft/aznfs/common.sh", '#\nAZNFS_READ_AHEAD_KB="${AZNFS_READ_AHEAD_KB:-16384}"\n')
    assert host.writers() == []
    host.write("sbin/mount.aznfs", "", 0o755)
    place = "/opt/microsoft/aznfs/common.sh:2"
    assert host.writers() == [("aznfs", "AZNFS_READ_AHEAD_KB", "16384", place)]
    host.write("etc/environment", "A=b\n#AZNFS_READ_AHEAD_KB=1\nexport AZNFS_READ_AHEAD_KB='20480'\n")
    assert host.writers() == [("aznfs", "AZNFS_READ_AHEAD_KB", "20480", "/etc/environment:3")]


def test_an_aznfs_that_knows_no_read_ahead_writes_none(host: Host) -> None:
    host.write("usr/sbin/mount.aznfs", "", 0o755)
    host.write("opt/microsoft/aznfs/common.sh", 'APPNAME="aznfs"\n')
    host.write("etc/environment", "AZNFS_READ_AHEAD_KB=20480\n")
    assert host.writers() == []


def test_efs_utils_setting_is_found(host: Host) -> None:
    host.write(
        "etc/amazon/efs/efs-utils.conf", "[DEFAULT]\n[mount]\n# Linux 5.4+\noptimize_readahead = true\n"
    )
    assert host.writers() == [("efs-utils", "optimize_readahead", "true", "/etc/amazon/efs/efs-utils.conf:4")]


def test_of_tuned_the_active_profile_counts_with_what_it_includes(host: Host) -> None:
    bdi = "/sys/class/bdi/0:*/read_ahead_kb"
    host.write("etc/tuned/active_profile", "mine\n")
    host.write(
        "usr/lib/tuned/profiles/base/tuned.conf", f"[sysfs]\n{bdi}=1\n/sys/class/bdi//*/read_ahead_kb=2\n"
    )
    host.write("usr/lib/tuned/other/tuned.conf", f"[sysfs]\n{bdi}=9\n")
    host.write("usr/lib/tuned/mine/tuned.conf", f"[sysfs]\n{bdi}=9\n")
    host.write("etc/tuned/mine/tuned.conf", f"[main]\ninclude = base, absent, mine\n[sysfs]\n{bdi}=3 # KiB\n")
    assert sorted(host.writers()) == [
        ("tuned", "/sys/class/bdi/*/read_ahead_kb", "2", "/usr/lib/tuned/profiles/base/tuned.conf:3"),
        ("tuned", bdi, "3", "/etc/tuned/mine/tuned.conf:4"),
    ]


def test_tuned_sections_of_other_plugins_do_not_count(host: Host) -> None:
    host.write("etc/tuned/active_profile", "mine ../../x\n")
    host.write(
        "etc/tuned/mine/tuned.conf",
        "[a]\ntype=script\n/sys/class/bdi/0:1/read_ahead_kb=1\n[sysfs]\n/sys/block/sda/queue/read_ahead_kb=2\n",
    )
    assert host.writers() == []
