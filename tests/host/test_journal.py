from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nfstuned.host.telemetry import journal
from nfstuned.host.telemetry.journal import Journal, Message, Priority, connected, send_by_socket

ROOT = Path(__file__).parents[2]


def entry_of(message: Message, text: str, **fields: object) -> dict[bytes, bytes]:
    written: list[bytes] = []
    Journal(lambda *entry: written.extend(entry)).send(message, text, Priority.INFO, **fields)
    return dict(field.split(b"=", 1) for field in written)


def test_an_entry_has_its_id_its_priority_and_its_fields() -> None:
    entry = entry_of(Message.READ_AHEAD_SET, "raised", device="0:43", old_kb=128, new_kb=15360)
    assert entry[b"MESSAGE"] == b"raised"
    assert entry[b"MESSAGE_ID"] == Message.READ_AHEAD_SET.id.encode()
    assert entry[b"PRIORITY"] == b"6"
    assert entry[b"SYSLOG_IDENTIFIER"] == b"nfstuned"
    assert entry[b"NFSTUNED_DEVICE"] == b"0:43"
    assert entry[b"NFSTUNED_NEW_KB"] == b"15360"


def test_a_promised_field_is_never_absent() -> None:
    entry = entry_of(Message.READ_AHEAD_LEFT, "left", writer=None)
    assert entry[b"NFSTUNED_WRITER"] == b"unknown"
    assert entry[b"NFSTUNED_MOUNT_POINT"] == b"unknown"


def test_a_field_beyond_the_promised_ones_is_sent_unless_it_is_none() -> None:
    entry = entry_of(Message.STARTED, "started", mounts=3, file=None)
    assert entry[b"NFSTUNED_MOUNTS"] == b"3"
    assert b"NFSTUNED_FILE" not in entry


def test_a_path_that_is_not_utf_8_arrives_byte_for_byte() -> None:
    entry = entry_of(Message.SAMPLE, "sample", mount_point=os.fsdecode(b"/mnt/\xff"))
    assert entry[b"NFSTUNED_MOUNT_POINT"] == b"/mnt/\xff"


def test_without_a_journal_the_text_goes_to_stderr_behind_a_level(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Journal().send(Message.CONFIG_INVALID, "two\nlines", Priority.ERROR, file="a.toml")
    assert capfd.readouterr().err == "<3>two\\nlines\n"


def test_a_journal_that_refuses_is_no_reason_to_stop(capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: bytes) -> None:
        raise OSError(105, "No buffer space available")

    Journal(refuse).send(Message.STARTED, "started", Priority.INFO)
    assert "started (not in the journal: [Errno 105] No buffer space available)" in capfd.readouterr().err


@pytest.fixture
def journald(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Return the socket on which a journal listens."""
    monkeypatch.setattr(journal, "SOCKET", str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(journal.SOCKET)
        sock.setblocking(False)
        yield sock


def test_without_the_library_an_entry_is_one_datagram_of_the_journals_protocol(
    journald: socket.socket,
) -> None:
    send_by_socket(b"MESSAGE=one", b"PATH=/a=b", b"TEXT=two\nlines")
    length = b"\x09\0\0\0\0\0\0\0"
    assert journald.recv(4096) == b"MESSAGE=one\nPATH=/a=b\nTEXT\n" + length + b"two\nlines\n"


def test_an_entry_that_is_too_large_for_a_datagram_comes_as_a_sealed_file(journald: socket.socket) -> None:
    value = b"x" * 3_000_000
    send_by_socket(b"MESSAGE=" + value)
    text, ancillary, _, _ = journald.recvmsg(4096, socket.CMSG_SPACE(4))
    ((_, kind, data),) = ancillary
    assert (text, kind) == (b"", socket.SCM_RIGHTS)
    with open(int.from_bytes(data, sys.byteorder), "rb") as file:
        assert fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
        file.seek(0)
        assert file.read() == b"MESSAGE=" + value + b"\n"


def test_a_journal_that_does_not_listen_is_an_error_for_the_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SOCKET", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError):
        send_by_socket(b"MESSAGE=one")


def test_only_the_journals_own_stderr_counts_as_connected() -> None:
    stream = os.fstat(2)
    assert connected({"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"})
    assert not connected({"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino + 1}"})
    assert not connected({})


@pytest.mark.parametrize("module", ["telemetry.journal", "service"])
def test_the_library_is_not_needed_and_our_own_systemd_folder_is_not_taken_for_it(module: str) -> None:
    without = (
        f"import nfstuned.host.{module} as m; print(m.sendv if hasattr(m, 'sendv') else m._library_notify)"
    )
    command = [sys.executable, "-S", "-c", without]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
