from __future__ import annotations

import pytest

from nfstuned.parse.proc.machine import module_name, newest_last, parse_kernel_config, parse_modules


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("kernel/fs/nfs/nfs.ko", "nfs"),
        ("kernel/fs/nfs/nfsv4.ko.xz", "nfsv4"),
        ("nfsv3.ko.zst", "nfsv3"),
        ("/lib/modules/6.1.0/kernel/fs/cifs/cifs.ko.gz", "cifs"),
        ("rpcsec-gss-krb5.ko", "rpcsec_gss_krb5"),
        ("nfs.ko.debug", ""),
        ("nfs", ""),
        ("nfs.ko/blocklayout", ""),
        ("", ""),
    ],
)
def test_a_module_is_known_by_its_file(file: str, name: str) -> None:
    assert module_name(file) == name


def test_modules_of_depmod_and_of_the_kernel_itself_are_read_alike() -> None:
    dep = (
        "kernel/fs/nfs/nfs.ko.xz: kernel/fs/lockd/lockd.ko.xz kernel/net/sunrpc/sunrpc.ko.xz\n"
        "/lib/modules/5.4.0/updates/dkms/cifs.ko:\n"
    )
    assert parse_modules(dep) == {
        "nfs": "kernel/fs/nfs/nfs.ko.xz",
        "cifs": "/lib/modules/5.4.0/updates/dkms/cifs.ko",
    }
    assert parse_modules("kernel/fs/nfs/nfsv4.ko\nkernel/fs/ext4/ext4.ko\n") == {
        "nfsv4": "kernel/fs/nfs/nfsv4.ko",
        "ext4": "kernel/fs/ext4/ext4.ko",
    }


def test_a_file_that_is_cut_off_or_damaged_gives_what_is_whole() -> None:
    assert parse_modules("kernel/fs/nfs/nfs.ko: kernel/a.ko\nkernel/fs/nfs/nfsv4.k") == {
        "nfs": "kernel/fs/nfs/nfs.ko"
    }
    assert parse_modules("\0\udcff\n\n:\n") == {}


def test_of_a_configuration_only_choices_count() -> None:
    text = (
        "#\n# Linux/x86 6.1.176 Kernel Configuration\n#\nCONFIG_NFS_FS=m\n# CONFIG_NFS_V2 is not set\n"
        'CONFIG_NFS_V4_1=y\nCONFIG_NFS_V4_1_IMPLEMENTATION_ID_DOMAIN="kernel.org"\nCONFIG_HZ=250\nCONFIG_X=y'
    )
    assert parse_kernel_config(text) == {"CONFIG_NFS_FS": "m", "CONFIG_NFS_V4_1": "y", "CONFIG_X": "y"}


@pytest.mark.parametrize(
    "releases",
    [
        ["5.10.0-9-amd64", "5.10.0-10-amd64", "5.10.0-28-amd64"],
        ["5.9.0-1-amd64", "5.10.0-1-amd64", "6.1.0-1-amd64"],
        ["5.14.0-70.el9.x86_64", "5.14.0-362.el9.x86_64", "5.14.0-362.8.1.el9_3.x86_64"],
        ["6.4.0-150600.21-default", "6.4.0-150600.21.1-default", "6.4.0-150600.23.7-default"],
        ["5.15.0-91-generic", "5.15.0-1053-azure"],
        ["6.12.0-rc1", "6.12.0-rc12", "6.12.0", "6.12.1-rc1", "6.12.1"],
        ["6.12.43+deb13-amd64", "6.12.107+deb13-amd64"],
        ["4.18.0-80.el8.x86_64", "4.18.0-553.el8_10.x86_64"],
        ["7.0.0", "10.0.0"],
    ],
)
def test_kernels_are_sorted_by_age(releases: list[str]) -> None:
    assert newest_last(releases[::-1]) == releases
