"""DebugData: the forms that its source has had, and what damage does to them."""

from __future__ import annotations

import pytest

from nfstuned.model.system import SmbOps, SmbSession
from nfstuned.parse.proc.cifs import (
    added_smb_operations,
    parse_debug_data,
    parse_stats,
    read_smb_mounts,
    read_smb_operations,
    read_smb_sessions,
)
from tests.check import hosts
from tests.parse.conftest import DATA
from tests.parse.rows import shown
from tests.tree import Tree

NEW = hosts.text("smb-clean", "proc/fs/cifs/DebugData")
SESSION = "SessionId: 0x5c0004200000d"
OLD = (DATA / "cifs-DebugData-5.5").read_text()
"""By fs/cifs/cifs_debug.c of Linux 5.5 to 5.11: two servers, the first with a channel after it."""
HEAD = OLD.partition("Servers:")[0]


def only(text: str) -> SmbSession:
    (session,) = parse_debug_data(text)
    return session


def test_newer_kernels_name_server_and_address() -> None:
    server, shares = "sa1.file.core.windows.net", (r"\\sa1.file.core.windows.net\smb",)
    assert only(NEW) == SmbSession(server, "10.10.10.10", 0x311, 4, shares, signed=False, encrypted=False)


def test_older_kernels_have_sessions_without_headings_and_channels_among_the_servers() -> None:
    first, second = ("10.10.10.10",) * 2, ("10.10.10.12",) * 2
    assert parse_debug_data(OLD) == (
        SmbSession(*first, 0x311, 2, (r"\\sa1\my share",), signed=True, encrypted=False),
        SmbSession(*second, 0x210, 1, (r"\\nas\data",), signed=False, encrypted=True),
    )


def test_a_channel_that_was_given_up_does_not_count() -> None:
    text = hosts.text("smb-channels-missing", "proc/fs/cifs/DebugData")
    assert "Extra Channels: 2" in text
    assert only(text).channels == 2


@pytest.mark.parametrize(
    ("old", "new", "signed", "encrypted"),
    [
        (SESSION, f"{SESSION} encrypted", False, True),
        (SESSION, f"{SESSION} encrypted(gcm256)", False, True),
        ("Serial Number: 0x", "Serial Number: 0x1 Encrypted\n\t0x", False, True),
        (SESSION, f"{SESSION} signed", True, False),
        ("Dialect 0x311\nServer cap", "Dialect 0x311 signed\nServer cap", True, False),
        ("credits: 8190,1,1", "credits: 8190", False, False),
    ],
)
def test_words_after_a_session_are_one_or_three(old: str, new: str, *, signed: bool, encrypted: bool) -> None:
    assert old in NEW
    assert only(NEW.replace(old, new)) == only(NEW)._replace(signed=signed, encrypted=encrypted)


@pytest.mark.parametrize("text", ["", HEAD + "\nServers: \n\t[NONE]\n", HEAD])
def test_without_servers_there_are_no_sessions(text: str) -> None:
    assert parse_debug_data(text) == ()


OLD_STATS = (DATA / "cifs-Stats-4.19").read_text()
"""By cifs_stats_proc_show and smb2_print_stats (fs/smb/client)."""
SHARE = OLD_STATS[OLD_STATS.index("1) ") + 3 :]
NEW_STATS = OLD_STATS.replace(r"\\sa1\smb", "\\\\sa1\\my share\tDISCONNECTED ")
NEW_STATS = NEW_STATS.replace("SMBs: 120", "SMBs: 120 since 2026-11-20 12:00:01 UTC")


def test_sessions_to_one_share_are_added_up_and_others_kept_apart() -> None:
    text = f"{OLD_STATS}2) {SHARE}3) {SHARE}".replace(r"3) \\sa1\smb", r"3) \\b\c")
    assert parse_stats(text) == (SmbOps(r"\\sa1\smb", 220, 12), SmbOps(r"\\b\c", 110, 6))


def test_counters_of_more_than_31_bits_are_printed_with_a_sign() -> None:
    text = OLD_STATS.replace("Reads: 2 total 0", "Reads: -2147483000 total -7")
    assert parse_stats(text) == (SmbOps(r"\\sa1\smb", metadata=110, data=(1 << 32) - 2147483000 + 4),)


ROWS = (
    "24 1 254:0 / / rw - ext4 /dev/vda rw\n"
    "60 24 0:46 / /mnt/nfs rw - nfs4 sa1:/a rw,vers=4.1\n"
    r"61 24 0:47 / /mnt/smb rw - cifs //sa1/my\040share rw,vers=3.1.1" + "\n"
    "62 24 0:48 / /mnt/smb3 rw - smb3 //sa1/b rw,vers=3.1.1\n"
    "63 24 0:x / /mnt/odd rw - cifs //sa1/c rw\n"
)


def test_smb_mounts_of_either_type_are_seen_and_no_others(tree: Tree) -> None:
    tree.write("proc/1/mountinfo", ROWS)
    mounts, problems = read_smb_mounts(tree.root)
    found = {mount.point: mount.source for mount in mounts}
    assert found == {"/mnt/smb": "//sa1/my share", "/mnt/smb3": "//sa1/b"}
    assert shown(problems) == ["/proc/1/mountinfo:5: not a device number: '0:x'"]


def test_sessions_and_operations_are_the_kernels_and_without_its_module_none(tree: Tree) -> None:
    root = tree.root
    assert (read_smb_mounts(root), read_smb_sessions(root), read_smb_operations(root)) == (((), ()), (), ())
    tree.write("proc/fs/cifs/DebugData", NEW)
    tree.write("proc/fs/cifs/Stats", OLD_STATS)
    assert [session.channels for session in read_smb_sessions(tree.root)] == [4]
    assert [one.data for one in read_smb_operations(tree.root)] == [6]


def test_shares_that_came_went_or_were_reset_have_no_difference_and_counters_of_32_bits_may_wrap() -> None:
    before = SmbOps("a", 10, 5), SmbOps("gone", 1, 1), SmbOps("reset", 100, 0)
    after = SmbOps("a", 30, 6), SmbOps("came", 1, 1), SmbOps("reset", 2, 0)
    assert added_smb_operations(before, after) == (SmbOps("a", 20, 1),)
    full = SmbOps("a", (1 << 32) - 5, (1 << 31) - 1), SmbOps("reset", (1 << 31) - 1, 0)
    wrapped = SmbOps("a", 15, (1 << 31) + 1), SmbOps("reset", 0, 0)
    assert added_smb_operations(full, wrapped) == (SmbOps("a", 20, 2),)
