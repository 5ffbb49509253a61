from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nfstuned.model.facts import SmbOps
from nfstuned.parse.proc.cifs import parse_stats
from tests.parse.damage import any_text, damaged, tokens_damaged

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
HEAD = (
    "Resources in use\nCIFS Session: 1\nShare (unique mount targets): 2\n"
    "SMB Request/Response Buffer: 1 Pool size: 5\nSMB Small Req/Resp Buffer: 1 Pool size: 30\n"
    "Operations (MIDs): 0\n\n0 session 0 share reconnects\n"
    "Total vfs operations: 16 maximum at one time: 2\n\nMax requests in flight: 2\n"
)
OLD = HEAD + SHARE.format(head=r"1) \\sa1\smb", since="") + "\n"
NEW = HEAD + SHARE.format(head="1) \\\\sa1\\my share\tDISCONNECTED ", since=" since 2026-11-20 12:00:01 UTC")


def test_requests_are_counted_by_what_they_are_for() -> None:
    assert parse_stats(OLD) == (SmbOps(r"\\sa1\smb", metadata=110, data=6),)


def test_a_share_that_is_not_connected_keeps_its_name() -> None:
    assert parse_stats(NEW) == (SmbOps(r"\\sa1\my share", metadata=110, data=6),)


def test_sessions_to_one_share_are_added_up_and_others_kept_apart() -> None:
    text = (
        OLD + SHARE.format(head=r"2) \\sa1\smb", since="") + "\n" + SHARE.format(head=r"3) \\b\c", since="")
    )
    assert parse_stats(text) == (SmbOps(r"\\sa1\smb", 220, 12), SmbOps(r"\\b\c", 110, 6))


def test_counters_of_more_than_31_bits_are_printed_with_a_sign() -> None:
    text = OLD.replace("Reads: 2 total 0", "Reads: -2147483000 total -7")
    assert parse_stats(text) == (SmbOps(r"\\sa1\smb", metadata=110, data=(1 << 32) - 2147483000 + 4),)


@given(st.one_of(any_text, damaged(OLD), tokens_damaged(NEW)))
def test_any_text_is_read(text: str) -> None:
    assert all(one.metadata >= 0 and one.data >= 0 for one in parse_stats(text))
