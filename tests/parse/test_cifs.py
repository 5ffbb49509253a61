"""DebugData: the forms that its source has had, and what damage does to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.model.facts import SmbSession
from nfstuned.parse.proc.cifs import parse_debug_data
from tests.check import hosts
from tests.parse.damage import any_text, damaged, tokens_damaged

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
        "10.10.10.10",
        "10.10.10.10",
        0x311,
        2,
        (r"\\sa1\my share",),
        signed=True,
        encrypted=False,
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


@given(st.one_of(any_text, damaged(NEW), damaged(OLD), tokens_damaged(NEW), tokens_damaged(OLD)))
def test_any_text_is_read(text: str) -> None:
    for session in parse_debug_data(text):
        assert session.channels >= 1
        assert session.address
