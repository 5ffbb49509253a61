from __future__ import annotations

from pathlib import Path

from nfstuned.host.root import Root
from nfstuned.model.facts import SmbOps
from nfstuned.parse.proc.cifs import (
    added_smb_operations,
    read_smb_mounts,
    read_smb_operations,
    read_smb_sessions,
)
from tests.parse.test_cifs import NEW
from tests.parse.test_cifsstats import OLD

ROWS = (
    "24 1 254:0 / / rw - ext4 /dev/vda rw\n"
    "60 24 0:46 / /mnt/nfs rw - nfs4 sa1:/a rw,vers=4.1\n"
    r"61 24 0:47 / /mnt/smb rw - cifs //sa1/my\040share rw,vers=3.1.1" + "\n"
    "62 24 0:48 / /mnt/smb3 rw - smb3 //sa1/b rw,vers=3.1.1\n"
    "63 24 0:x / /mnt/odd rw - cifs //sa1/c rw\n"
)


def host(tmp_path: Path, **files: str) -> Root:
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Root(str(tmp_path))


def test_smb_mounts_of_either_type_are_seen_and_no_others(tmp_path: Path) -> None:
    mounts, problems = read_smb_mounts(host(tmp_path, proc__1__mountinfo=ROWS))
    assert [(mount.point, mount.source) for mount in mounts] == [
        ("/mnt/smb", "//sa1/my share"),
        ("/mnt/smb3", "//sa1/b"),
    ]
    assert [str(problem) for problem in problems] == ["/proc/1/mountinfo:5: not a device number: '0:x'"]


def test_sessions_and_operations_are_the_kernels(tmp_path: Path) -> None:
    root = host(tmp_path, proc__fs__cifs__DebugData=NEW, proc__fs__cifs__Stats=OLD)
    assert [session.channels for session in read_smb_sessions(root)] == [4]
    assert [one.data for one in read_smb_operations(root)] == [6]


def test_without_the_kernels_module_nothing_is_seen(tmp_path: Path) -> None:
    root = host(tmp_path)
    assert (read_smb_mounts(root), read_smb_sessions(root), read_smb_operations(root)) == (((), ()), (), ())


def test_shares_that_came_went_or_were_reset_have_no_difference() -> None:
    before = (SmbOps("a", 10, 5), SmbOps("gone", 1, 1), SmbOps("reset", 100, 0))
    after = (SmbOps("a", 30, 6), SmbOps("came", 1, 1), SmbOps("reset", 2, 0))
    assert added_smb_operations(before, after) == (SmbOps("a", 20, 1),)


def test_a_difference_is_right_where_counters_of_32_bits_wrapped_in_between() -> None:
    before = SmbOps("a", (1 << 32) - 5, (1 << 31) - 1), SmbOps("reset", (1 << 31) - 1, 0)
    after = SmbOps("a", 15, (1 << 31) + 1), SmbOps("reset", 0, 0)
    assert added_smb_operations(before, after) == (SmbOps("a", 20, 2),)
