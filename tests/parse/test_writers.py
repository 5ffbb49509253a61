from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.model.mounts import Setting
from nfstuned.parse.etc.settings import parse_aznfs, parse_ini, read_writers
from tests.tree import Tree

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
AZNFS = '# Read ahead size in KB defaults to 16384.\nAZNFS_READ_AHEAD_KB="${AZNFS_READ_AHEAD_KB:-16384}"\n'


def test_assignments_keep_their_section_their_case_and_their_line() -> None:
    assert tuple(parse_ini(TUNED, "/f")) == (
        Setting("main", None, "include", "throughput-performance", "/f", 2),
        Setting("sysfs", None, "/sys/class/bdi/0:*/read_ahead_kb", "4096", "/f", 6),
        Setting("disk", None, "readahead", ">4096", "/f", 8),
    )


def test_what_stands_before_a_section_and_what_assigns_nothing_is_left_out() -> None:
    assert tuple(parse_ini("a=b\n[s]\nword\nx==y=z\n", "/f")) == (Setting("s", None, "x", "=y=z", "/f", 4),)


def test_the_default_of_aznfs_is_found_with_its_line() -> None:
    expected = Setting("aznfs", None, "AZNFS_READ_AHEAD_KB", "16384", "/f", 2)
    assert parse_aznfs(AZNFS, "/f", "aznfs") == expected


def test_of_an_environment_the_last_line_counts_and_comments_do_not() -> None:
    text = (
        "AZNFS_READ_AHEAD_KB=1\nAZNFS_READ_AHEAD_KB='2'\n#AZNFS_READ_AHEAD_KB=3\nMY_AZNFS_READ_AHEAD_KB=4\n"
    )
    found = parse_aznfs(text, "/etc/environment", "aznfs")
    assert found is not None
    assert (found.value, found.line) == ("2", 2)


def test_what_is_no_number_is_no_setting() -> None:
    assert parse_aznfs("AZNFS_READ_AHEAD_KB=big\nAZNFS_READ_AHEAD_KB=\n", "/f", "aznfs") is None


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
