from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.mounts import ConfInclude, Setting
from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc import settings
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
    assert settings.parse_nfsmount(REAL) == (
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
    assert settings.parse_nfsmount(f"[s]\n{line}\nb=1\n") == (setting("a", value, 2), after)


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
        ("a = # 4", "an assignment without a value has no effect: 'a = # 4'"),
    ],
)
def test_what_mount_nfs_passes_over_is_located_and_the_rest_survives(line: str, message: str) -> None:
    found = shown(settings.parse_nfsmount(f"[s]\na=1\n{line}\n[s]\nb=2\n"))
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
def test_an_unended_last_line_or_one_outside_sections_is_not_read(text: str, line: int, problem: str) -> None:
    *others, error = settings.parse_nfsmount(text)
    assert others == [setting("a", "1", 2)][: line - 1]
    assert isinstance(error, ParseError)
    assert (error.line, problem in error.message) == (line, True)


def test_nothing_after_a_nul_is_read() -> None:
    assert settings.parse_nfsmount("[s]\na=1\n\0b=2\n") == (setting("a", "1", 2),)


def test_an_included_file_starts_in_the_section_that_names_it_and_does_not_leave_the_root() -> None:
    text = '[ Server "nas" ]\ninclude = more.conf\nINCLUDE=-/run/x\ninclude=../../../x\n'
    found = [row for row in settings.parse_nfsmount(text) if isinstance(row, ConfInclude)]
    assert [(settings.included(row), row.optional, row.line) for row in found] == [
        ("/etc/more.conf", False, 2),
        ("/run/x", True, 3),
        ("/x", False, 4),
    ]
    inner = settings.parse_nfsmount("a=1\n", FILE, found[0].section, found[0].argument)
    assert inner == (setting("a", "1", 1, "server", "nas"),)


def test_drop_ins_are_read_in_the_order_of_versions() -> None:
    names = ["10-a.conf", "9-a.conf", ".conf", ".9.conf", "9.conf.bak", "README", "é.conf"]
    assert settings.drop_ins(names) == ["9-a.conf", "10-a.conf", "é.conf"]


def test_numbers_in_names_count_as_numbers_and_leading_zeros_as_fractions() -> None:
    names = ["10-a", "9-a", "1", "01", "09", "010", "000", "00", "0", "a2", "a10", "a2", "a"]
    assert settings.in_version_order(names) == [
        *("000", "00", "01", "010", "09", "0", "1"),
        *("9-a", "10-a", "a", "a2", "a2", "a10"),
    ]


Parts = tuple[int, ...] | None
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
def test_the_program_has_its_version_and_the_function_for_drop_ins(said: bytes, version: Parts) -> None:
    assert settings.parse_mount_nfs(BEFORE + said + AFTER) == NfsUtils(version, drop_ins=True)
    assert settings.parse_mount_nfs(BEFORE + said) == NfsUtils(version)
    assert settings.parse_mount_nfs(b"#!/bin/sh\nexec /opt/mount.nfs\n") == NfsUtils()


def test_the_first_that_keeps_sections_apart_is_2_8_3() -> None:
    versions = (2, 6, 2), (2, 8), (2, 8, 2), (2, 8, 3), (2, 9), (2, 10, 1), (3, 0)
    assert tuple(one for one in versions if NfsUtils(one).keeps_sections_apart) == versions[3:]
    assert not NfsUtils(None).keeps_sections_apart
    assert (NfsUtils((2, 6, 2)).name, NfsUtils().name) == ("mount.nfs 2.6.2", "mount.nfs")


PROGRAM = b"\x7fELF\0%s: (linux nfs-utils 2.6.2)\n\0conf_init_dir: %s\0"


def test_it_is_that_of_sbin_or_none(tmp_path: Path) -> None:
    folder = tmp_path / "sbin/mount.nfs"
    assert settings.read_nfs_utils(Root(str(tmp_path))) is None
    folder.mkdir(parents=True)
    assert settings.read_nfs_utils(Root(str(tmp_path))) is None
    folder.rmdir()
    put(tmp_path / "usr/sbin/mount.nfs", PROGRAM)
    assert settings.read_nfs_utils(Root(str(tmp_path))) == NfsUtils((2, 6, 2), drop_ins=True)
    put(folder, PROGRAM.replace(b"2.6.2", b"2.8.3"))
    assert settings.read_nfs_utils(Root(str(tmp_path))) == NfsUtils((2, 8, 3), drop_ins=True)


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


SEVERAL = f"{NAME}=1\n{NAME}='2'\n#{NAME}=3\nMY_{NAME}=4\n"


def test_assignments_keep_their_section_their_case_and_their_line() -> None:
    assert tuple(settings.parse_ini(f"a=b\n{TUNED}word\nx==y=z\n", "/f")) == (
        Setting("main", None, "include", "throughput-performance", "/f", 3),
        Setting("sysfs", None, "/sys/class/bdi/0:*/read_ahead_kb", "4096", "/f", 7),
        Setting("disk", None, "readahead", ">4096", "/f", 9),
        Setting("disk", None, "x", "=y=z", "/f", 12),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [(AZNFS, ("16384", 2)), (SEVERAL, ("2", 2)), (f"{NAME}=big\n{NAME}=\n", None)],
)
def test_of_aznfs_the_last_number_counts_and_no_comment(text: str, found: tuple[str, int] | None) -> None:
    setting = Setting("aznfs", None, NAME, found[0], "/f", found[1]) if found else None
    assert settings.parse_aznfs(text, "/f", "aznfs") == setting


BDI = "/sys/class/bdi/0:*/read_ahead_kb"
COMMON = "opt/microsoft/aznfs/common.sh"
HELPER = {"sbin/mount.aznfs": "", COMMON: AZNFS}
WRITERS: dict[str, tuple[dict[str, str], list[str]]] = {
    "no such program": ({}, []),
    "the order of nfs-utils": (
        {
            "usr/etc/nfs.conf": "[nfsrahead]\nnfs=1\n",
            "etc/nfs.conf": "[general]\nnfs=0\n[NFSrahead]\nnfs=2\n",
            "etc/nfs.conf.d/9.conf": "[nfsrahead]\nnfs4=3\n",
            "etc/nfs.conf.d/10.conf": '[nfsrahead "x"]\nnfs=0\n[nfsrahead]\nnfs4=4\n',
        },
        [
            "nfsrahead nfs=2 /etc/nfs.conf:4",
            "nfsrahead nfs4=3 /etc/nfs.conf.d/9.conf:2",
            "nfsrahead nfs4=4 /etc/nfs.conf.d/10.conf:4",
        ],
    ),
    "the vendor's nfs.conf where there is no other": (
        {"usr/etc/nfs.conf": "[nfsrahead]\nnfs=1\n", "usr/etc/nfs.conf.d/a.conf": "[nfsrahead]\nnfs=2\n"},
        ["nfsrahead nfs=1 /usr/etc/nfs.conf:2", "nfsrahead nfs=2 /usr/etc/nfs.conf.d/a.conf:2"],
    ),
    "an include": (
        {"etc/nfs.conf": "[nfsrahead]\ninclude=-/srv/nfs.conf\n", "srv/nfs.conf": "nfs=5\n"},
        ["nfsrahead nfs=5 /srv/nfs.conf:1"],
    ),
    "an include below a mount": ({"etc/nfs.conf": "[nfsrahead]\ninclude=-/mnt/a\n", "mnt/a": "nfs=5\n"}, []),
    "aznfs without its helper": ({COMMON: AZNFS}, []),
    "aznfs": (HELPER, [f"aznfs {NAME}=16384 /{COMMON}:2"]),
    "aznfs with an environment": (
        HELPER | {"etc/environment": f"A=b\n#{NAME}=1\nexport {NAME}='20480'\n"},
        [f"aznfs {NAME}=20480 /etc/environment:3"],
    ),
    "an aznfs that knows no read-ahead": (
        {"usr/sbin/mount.aznfs": "", COMMON: 'APPNAME="aznfs"\n', "etc/environment": f"{NAME}=20480\n"},
        [],
    ),
    "efs-utils": (
        {"etc/amazon/efs/efs-utils.conf": "[DEFAULT]\n[mount]\n# Linux 5.4+\noptimize_readahead = true\n"},
        ["efs-utils optimize_readahead=true /etc/amazon/efs/efs-utils.conf:4"],
    ),
    "tuned's active profile with its includes": (
        {
            "etc/tuned/active_profile": "mine\n",
            "usr/lib/tuned/profiles/a/tuned.conf": f"[sysfs]\n{BDI}=1\n/sys/class/bdi//*/read_ahead_kb=2\n",
            "usr/lib/tuned/other/tuned.conf": f"[sysfs]\n{BDI}=9\n",
            "usr/lib/tuned/mine/tuned.conf": f"[sysfs]\n{BDI}=9\n",
            "etc/tuned/mine/tuned.conf": f"[main]\ninclude = a, absent, mine\n[sysfs]\n{BDI}=3 # KiB\n",
        },
        [
            f"tuned {BDI}=3 /etc/tuned/mine/tuned.conf:4",
            "tuned /sys/class/bdi/*/read_ahead_kb=2 /usr/lib/tuned/profiles/a/tuned.conf:3",
        ],
    ),
    "sections of tuned's other plugins": (
        {
            "etc/tuned/active_profile": "mine ../../x\n",
            "etc/tuned/mine/tuned.conf": f"[a]\ntype=x\n{BDI}=1\n[sysfs]\n/sys/block/a/read_ahead_kb=2\n",
        },
        [],
    ),
}


@pytest.mark.parametrize("case", WRITERS)
def test_the_settings_of_programs_that_write_read_aheads_have_their_places(tree: Tree, case: str) -> None:
    files, expected = WRITERS[case]
    for name, text in files.items():
        tree.write(name, text, 0o755 if "sbin" in name else None)
    found = settings.read_writers(tree.root, ("/mnt",))
    assert [f"{one.section} {one.name}={one.value} {one.file}:{one.line}" for one in found] == expected
