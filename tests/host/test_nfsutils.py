"""The installed mount.nfs is read where mount(8) finds it."""

from __future__ import annotations

from pathlib import Path

from nfstuned.host.root import Root
from nfstuned.model.system import NfsUtils
from nfstuned.parse.etc.nfsmount import read_nfs_utils

PROGRAM = b"\x7fELF\0%s: (linux nfs-utils 2.6.2)\n\0conf_init_dir: %s\0"


def put(tree: Path, name: str, data: bytes) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_bytes(data)


def test_it_is_that_of_sbin(tmp_path: Path) -> None:
    put(tmp_path, "usr/sbin/mount.nfs", PROGRAM)
    assert read_nfs_utils(Root(str(tmp_path))) == NfsUtils((2, 6, 2), drop_ins=True)
    put(tmp_path, "sbin/mount.nfs", PROGRAM.replace(b"2.6.2", b"2.8.3"))
    assert read_nfs_utils(Root(str(tmp_path))) == NfsUtils((2, 8, 3), drop_ins=True)


def test_without_one_nothing_is_known(tmp_path: Path) -> None:
    assert read_nfs_utils(Root(str(tmp_path))) is None
    (tmp_path / "sbin/mount.nfs").mkdir(parents=True)
    assert read_nfs_utils(Root(str(tmp_path))) is None
