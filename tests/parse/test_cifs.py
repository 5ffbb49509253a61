"""DebugData: the forms that its source has had, and what damage does to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.root import Root
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
from tests.tree import put

NEW = hosts.text("smb-clean", "proc/fs/cifs/DebugData")
HEAD = (
    "Display Internal CIFS Data Structures for Debugging\n"
    "---------------------------------------------------\n"
    "CIFS Version 2.28\n"
    "Features: DFS,FSCACHE,STATS,DEBUG,ALLOW_INSECURE_LEGACY,CIFS_POSIX,UPCALL(SPNEGO),XATTR,ACL\n"
    "CIFSMaxBufSize: 16384\n"
    "Active VFS Requests: 0\n"
)
# fs/cifs/cifs_debug.c of Linux 5.5 to 5.11: two servers, the first with a channel, which stands after it.
OLD = (
    HEAD
    + "Servers:\n"
    + "Number of credits: 8190 Dialect 0x311 signed\n"
    + "1) Name: 10.10.10.10 Uses: 1 Capability: 0x300067\tSession Status: 1 TCP status: 1 Instance: 1\n"
    + "\tLocal Users To Server: 1 SecMode: 0x1 Req On Wire: 0 In Send: 0 In MaxReq Wait: 0"
    + " SessionId: 0x5c0004200000d signed\n\n"
    + "\tExtra Channels: 1\n"
    + "\t\tChannel: 2 Number of credits: 8190 Dialect 0x311 TCP status: 1 Instance: 1"
    + " Local Users To Server: 1 SecMode: 0x1 Req On Wire: 0 In Send: 0 In MaxReq Wait: 0\n\n"
    + "\tShares:\n"
    + "\t0) IPC: \\\\sa1\\IPC$ Mounts: 1 DevInfo: 0x0 Attributes: 0x0\n"
    + "\tPathComponentMax: 0 Status: 1 type: 0 Serial Number: 0x0\n"
    + "\tShare Capabilities: None\tShare Flags: 0x30\n\ttid: 0x1\tMaximal Access: 0x11f01ff\n\n"
    + "\t1) \\\\sa1\\my share Mounts: 1 DevInfo: 0x20020 Attributes: 0x8500df\n"
    + "\tPathComponentMax: 255 Status: 1 type: DISK Serial Number: 0xa3c339a0\n\n"
    + "\tMIDs:\n\n"
    + "\tServer interfaces: 2\n"
    + "\t0)\tSpeed: 10000000000 bps\n\t\tCapabilities: rss \n\t\tIPv4: 10.10.10.10\n\t\t[CONNECTED]\n"
    + "\t1)\tSpeed: 10000000000 bps\n\t\tCapabilities: \n\t\tIPv4: 10.10.10.11\n"
    + "Number of credits: 8190 Dialect 0x311\n"
    + "Number of credits: 8190 Dialect 0x210\n"
    + "3) Name: 10.10.10.12 Uses: 1 Capability: 0x300067\tSession Status: 1 TCP status: 1 Instance: 1\n"
    + "\tLocal Users To Server: 1 SecMode: 0x1 Req On Wire: 0 SessionId: 0x10006c000019 encrypted\n"
    + "\tShares:\n"
    + "\t0) IPC: none\n\n"
    + "\t1) \\\\nas\\data Mounts: 1 Type: NTFS DevInfo: 0x20 Attributes: 0x1006f\n"
)


def only(text: str) -> SmbSession:
    (session,) = parse_debug_data(text)
    return session


def test_newer_kernels_name_server_and_address() -> None:
    assert only(NEW) == SmbSession(
        server="sa1.file.core.windows.net",
        address="10.10.10.10",
        dialect=0x311,
        channels=4,
        shares=(r"\\sa1.file.core.windows.net\smb",),
        signed=False,
        encrypted=False,
    )


def test_older_kernels_have_sessions_without_headings_and_channels_among_the_servers() -> None:
    first, second = parse_debug_data(OLD)
    assert first == SmbSession(
        "10.10.10.10", "10.10.10.10", 0x311, 2, (r"\\sa1\my share",), signed=True, encrypted=False
    )
    assert second == SmbSession(
        "10.10.10.12", "10.10.10.12", 0x210, 1, (r"\\nas\data",), signed=False, encrypted=True
    )


def test_a_channel_that_was_given_up_does_not_count() -> None:
    text = hosts.text("smb-channels-missing", "proc/fs/cifs/DebugData")
    assert "Extra Channels: 2" in text
    assert only(text).channels == 2


@pytest.mark.parametrize("flag", [" encrypted", " encrypted(gcm256)"])
def test_the_cipher_may_stand_behind_the_word(flag: str) -> None:
    session = only(NEW.replace("SessionId: 0x5c0004200000d", f"SessionId: 0x5c0004200000d{flag}"))
    assert (session.encrypted, session.signed) == (True, False)


def test_either_word_of_signing_counts() -> None:
    server = NEW.replace("Dialect 0x311\nServer cap", "Dialect 0x311 signed\nServer cap")
    session = NEW.replace("SessionId: 0x5c0004200000d", "SessionId: 0x5c0004200000d signed")
    assert server != NEW != session
    assert [only(text).signed for text in (server, session)] == [True, True]


def test_credits_are_one_number_or_three() -> None:
    one = NEW.replace("credits: 8190,1,1", "credits: 8190")
    assert one != NEW
    assert only(one) == only(NEW)


@pytest.mark.parametrize("text", ["", HEAD + "\nServers: \n\t[NONE]\n", HEAD])
def test_without_servers_there_are_no_sessions(text: str) -> None:
    assert parse_debug_data(text) == ()


# cifs_stats_proc_show and smb2_print_stats (fs/smb/client); newer kernels say "since" behind the SMBs.
SHARE = (
    "{head}\nSMBs: 120{since}\nBytes read: 8192  Bytes written: 4096\n"
    "Open files: 0 total (local), 0 open on server\n"
    "TreeConnects: 1 total 0 failed\nTreeDisconnects: 0 total 0 failed\nCreates: 40 total 3 failed\n"
    "Closes: 37 total 0 failed\nFlushes: 1 total 0 failed\n"
    "Reads: 2 total 0 failed\nWrites: 4 total 0 failed\n"
    "Locks: 0 total 0 failed\nIOCTLs: 1 total 1 failed\nQueryDirectories: 10 total 2 failed\n"
    "ChangeNotifies: 0 total 0 failed\nQueryInfos: 20 total 0 failed\nSetInfos: 3 total 0 failed\n"
    "OplockBreaks: 0 sent 0 failed"
)
STATS_HEAD = (
    "Resources in use\nCIFS Session: 1\nShare (unique mount targets): 2\n"
    "SMB Request/Response Buffer: 1 Pool size: 5\nSMB Small Req/Resp Buffer: 1 Pool size: 30\n"
    "Operations (MIDs): 0\n\n0 session 0 share reconnects\n"
    "Total vfs operations: 16 maximum at one time: 2\n\nMax requests in flight: 2\n"
)
OLD_STATS = STATS_HEAD + SHARE.format(head=r"1) \\sa1\smb", since="") + "\n"
NEW_STATS = STATS_HEAD + SHARE.format(
    head="1) \\\\sa1\\my share\tDISCONNECTED ", since=" since 2026-11-20 12:00:01 UTC"
)


def test_requests_are_counted_by_what_they_are_for() -> None:
    assert parse_stats(OLD_STATS) == (SmbOps(r"\\sa1\smb", metadata=110, data=6),)


def test_a_share_that_is_not_connected_keeps_its_name() -> None:
    assert parse_stats(NEW_STATS) == (SmbOps(r"\\sa1\my share", metadata=110, data=6),)


def test_sessions_to_one_share_are_added_up_and_others_kept_apart() -> None:
    text = (
        OLD_STATS
        + SHARE.format(head=r"2) \\sa1\smb", since="")
        + "\n"
        + SHARE.format(head=r"3) \\b\c", since="")
    )
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


def host(tmp_path: Path, **files: str) -> Root:
    for name, text in files.items():
        put(tmp_path / name.replace("__", "/"), text)
    return Root(str(tmp_path))


def test_smb_mounts_of_either_type_are_seen_and_no_others(tmp_path: Path) -> None:
    mounts, problems = read_smb_mounts(host(tmp_path, proc__1__mountinfo=ROWS))
    assert [(mount.point, mount.source) for mount in mounts] == [
        ("/mnt/smb", "//sa1/my share"),
        ("/mnt/smb3", "//sa1/b"),
    ]
    assert [str(problem) for problem in problems] == ["/proc/1/mountinfo:5: not a device number: '0:x'"]


def test_sessions_and_operations_are_the_kernels(tmp_path: Path) -> None:
    root = host(tmp_path, proc__fs__cifs__DebugData=NEW, proc__fs__cifs__Stats=OLD_STATS)
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
