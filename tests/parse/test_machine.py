from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Distribution
from nfstuned.parse.proc import machine
from tests.parse.conftest import Captured

SLABS = """\
slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> ...
nfs_inode_cache   1048576 1048590   1072   30    8 : tunables    0    0    0 : slabdata  34953  34953      0
nfs_direct_cache       0      0    352   23    2 : tunables    0    0    0 : slabdata      0      0      0
cut off
"""


SHELL = r"""
# a comment
not an assignment
ID="rocky"
ID_LIKE='rhel  centos fedora'
PRETTY_NAME="a \"b\" \$c \\ \`d\` \e"
VERSION_ID=9.4
BROKEN="x"""


def test_processors_are_counted() -> None:
    assert [machine.parse_cpu_list(text) for text in ("0\n", "0-3,7\n", "0-15")] == [1, 5, 16]
    assert [machine.parse_cpu_list(text) for text in ("", "x", "0-")] == [None] * 3


def test_the_inodes_are_the_active_objects_of_their_cache() -> None:
    assert machine.parse_nfs_inodes(SLABS) == 1048576
    assert machine.parse_nfs_inodes("") is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("5.10.0-32-cloud-amd64\n", (5, 10, 0)),
        ("4.18.0-394.el8.x86_64", (4, 18, 0)),
        ("6.12.107+deb13-cloud-amd64", (6, 12, 107)),
        ("6.17.8-rc1", (6, 17, 8)),
        ("6.8-custom", (6, 8, 0)),
        ("7", (7, 0, 0)),
        ("5.15.167.4-microsoft-standard-WSL2", (5, 15, 167)),
    ],
)
def test_a_release_starts_with_its_version(text: str, version: tuple[int, int, int]) -> None:
    release = machine.parse_release(text)
    assert release.version == version
    assert release.text == text.strip()


def test_the_release_is_the_folders_name(captured: Captured) -> None:
    release = machine.parse_release(captured("version").split()[2])
    assert release.text.startswith(captured.folder.name)
    assert release.version >= (5, 4, 0)


@pytest.mark.parametrize("text", ["", "linux", "-5.4", "\u0665.\u0664", "9" * 5000])
def test_a_text_without_a_version_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match=r"^/proc/sys/kernel/osrelease:1: not a kernel release: '"):
        machine.parse_release(text)


def test_a_real_distribution_is_read(captured: Captured) -> None:
    debian = Distribution("debian", "13", "Debian GNU/Linux 13 (trixie)")
    assert machine.parse_os_release(captured("os-release")) == debian


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SHELL, Distribution("rocky", "9.4", 'a "b" $c \\ `d` \\e', ("rhel", "centos", "fedora"))),
        ("PRETTY_NAME='a\\\\b'\nVERSION_ID=\nID=''\n", Distribution("", "", "a\\\\b")),
        ("", Distribution("linux", "", "Linux")),
    ],
)
def test_quotes_and_escapes_are_those_of_the_shell(text: str, expected: Distribution) -> None:
    assert machine.parse_os_release(text) == expected


@pytest.mark.parametrize(
    ("file", "name"),
    [
        *(("kernel/fs/nfs/nfs.ko", "nfs"), ("kernel/fs/nfs/nfsv4.ko.xz", "nfsv4"), ("nfsv3.ko.zst", "nfsv3")),
        ("/lib/modules/6.1.0/kernel/fs/cifs/cifs.ko.gz", "cifs"),
        ("rpcsec-gss-krb5.ko", "rpcsec_gss_krb5"),
        *((file, "") for file in ("nfs.ko.debug", "nfs", "nfs.ko/blocklayout", "")),
    ],
)
def test_a_module_is_known_by_its_file(file: str, name: str) -> None:
    assert machine.module_name(file) == name


@pytest.mark.parametrize(
    ("text", "modules"),
    [
        ("kernel/fs/nfs/nfs.ko.xz: kernel/fs/lockd/lockd.ko.xz\n", {"nfs": "kernel/fs/nfs/nfs.ko.xz"}),
        ("/lib/modules/5.4.0/updates/cifs.ko:\n", {"cifs": "/lib/modules/5.4.0/updates/cifs.ko"}),
        ("fs/nfs/nfsv4.ko\nfs/ext4.ko\n", {"nfsv4": "fs/nfs/nfsv4.ko", "ext4": "fs/ext4.ko"}),
        ("kernel/fs/nfs/nfs.ko: kernel/a.ko\nkernel/fs/nfs/nfsv4.k", {"nfs": "kernel/fs/nfs/nfs.ko"}),
        ("\0\udcff\n\n:\n", {}),
    ],
)
def test_modules_of_depmod_and_the_kernel_are_read_where_whole(text: str, modules: dict[str, str]) -> None:
    assert machine.parse_modules(text) == modules


def test_of_a_configuration_only_choices_count() -> None:
    text = (
        "#\n# Linux/x86 6.1.176 Kernel Configuration\n#\nCONFIG_NFS_FS=m\n# CONFIG_NFS_V2 is not set\n"
        'CONFIG_NFS_V4_1=y\nCONFIG_NFS_V4_1_IMPLEMENTATION_ID_DOMAIN="kernel.org"\nCONFIG_HZ=250\nCONFIG_X=y'
    )
    choices = {"CONFIG_NFS_FS": "m", "CONFIG_NFS_V4_1": "y", "CONFIG_X": "y"}
    assert machine.parse_kernel_config(text) == choices


@pytest.mark.parametrize(
    "releases",
    [
        "5.10.0-9-amd64 5.10.0-10-amd64 5.10.0-28-amd64",
        "5.9.0-1-amd64 5.10.0-1-amd64 6.1.0-1-amd64",
        "4.18.0-80.el8.x86_64 4.18.0-553.el8_10.x86_64",
        "5.14.0-70.el9.x86_64 5.14.0-362.el9.x86_64 5.14.0-362.8.1.el9_3.x86_64",
        "6.4.0-150600.21-default 6.4.0-150600.21.1-default 6.4.0-150600.23.7-default",
        "5.15.0-91-generic 5.15.0-1053-azure",
        "6.12.0-rc1 6.12.0-rc12 6.12.0 6.12.1-rc1 6.12.1 6.12.43+deb13-amd64 6.12.107+deb13-amd64",
        "7.0.0 10.0.0",
    ],
)
def test_kernels_are_sorted_by_age(releases: str) -> None:
    assert machine.newest_last(releases.split()[::-1]) == releases.split()
