"""What the program mount.nfs tells of itself."""

from __future__ import annotations

import pytest

from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc.nfsmount import parse_mount_nfs

BEFORE = b"\x7fELF\x02\x01/etc/nfsmount.conf\0%s: "
AFTER = b"\0fhnrVvwo:s\0conf_init_dir: scandir %s: %s\0"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (b"(linux nfs-utils 2.6.2)\n", (2, 6, 2)),
        (b"(linux nfs-utils 2.8.3)\n", (2, 8, 3)),
        (b"(linux nfs-utils 2.8.3-rc1)\n", (2, 8, 3)),
        (b"(linux nfs-utils 2.10)\n", (2, 10)),
        (b"(linux nfs-utils)\n", None),
        (b"(linux nfs-utils 2)\n", None),
        (b"since nfs-utils version 1.0.x\n", None),
    ],
)
def test_the_version_is_that_which_it_prints(said: bytes, version: tuple[int, ...] | None) -> None:
    assert parse_mount_nfs(BEFORE + said + AFTER) == NfsUtils(version, drop_ins=True)


def test_one_without_the_function_reads_no_drop_ins() -> None:
    assert parse_mount_nfs(BEFORE + b"(linux nfs-utils 2.3.3)\n") == NfsUtils((2, 3, 3))


def test_another_program_tells_nothing() -> None:
    assert parse_mount_nfs(b"#!/bin/sh\nexec /opt/mount.nfs\n") == NfsUtils()


def test_the_first_that_keeps_sections_apart_is_2_8_3() -> None:
    versions = [(2, 6, 2), (2, 8), (2, 8, 2), (2, 8, 3), (2, 9), (2, 10, 1), (3, 0)]
    apart = [one for one in versions if NfsUtils(one).keeps_sections_apart]
    assert apart == [(2, 8, 3), (2, 9), (2, 10, 1), (3, 0)]
    assert not NfsUtils(None).keeps_sections_apart


def test_its_name_is_for_people() -> None:
    assert (NfsUtils((2, 6, 2)).name, NfsUtils().name) == ("mount.nfs 2.6.2", "mount.nfs")
