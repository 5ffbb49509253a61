from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from nfstuned.core.samples.sample import to_fields
from nfstuned.host.telemetry import journal
from nfstuned.host.telemetry.journal import Journal, Message, Priority, send_by_socket, stderr_is_journal
from nfstuned.parse import fields
from tests.parse.test_samples import SAMPLE

ROOT = Path(__file__).parents[2]


def entry_of(message: Message, text: str, **fields: object) -> dict[bytes, bytes]:
    written: list[bytes] = []
    Journal(lambda *entry: written.extend(entry)).send(message, text, Priority.INFO, **fields)
    return dict(field.split(b"=", 1) for field in written)


def test_an_entry_has_its_id_its_priority_and_its_fields_but_none_without_a_value() -> None:
    entry = entry_of(Message.STARTED, "started", version="1", mounts=3, file=None)
    assert entry == {
        b"MESSAGE": b"started",
        b"MESSAGE_ID": Message.STARTED.id.encode(),
        b"PRIORITY": b"6",
        b"SYSLOG_IDENTIFIER": b"nfstuned",
        b"NFSTUNED_VERSION": b"1",
        b"NFSTUNED_MOUNTS": b"3",
    }


def test_a_promised_field_is_never_absent() -> None:
    entry = entry_of(Message.READ_AHEAD_LEFT, "left", writer=None)
    promised = {f"NFSTUNED_{name.upper()}".encode() for name in Message.READ_AHEAD_LEFT.fields}
    assert {name: entry.get(name) for name in promised} == dict.fromkeys(promised, b"unknown")


def test_secrets_are_masked_in_an_entry_and_its_figures_stay() -> None:
    """Figures are not searched for secrets: one that looked like a key would be no JSON any more."""
    ops = MappingProxyType({"TOKEN=hunter2": SAMPLE.ops["READ"], "token": SAMPLE.ops["READ"]})
    sample = replace(SAMPLE, source="//user:hunter2@server/share", mount_points=("/a,password=b",), ops=ops)
    entry = entry_of(Message.SAMPLE, "password=hunter2,rw", **to_fields(sample))
    assert entry[b"MESSAGE"] == b"password=****,rw"
    assert entry[b"NFSTUNED_SOURCE"] == b"//user:****@server/share"
    assert entry[b"NFSTUNED_MOUNT_POINT"] == b"/a,password=****"
    assert entry[b"NFSTUNED_MOUNT_POINTS"] == b'["/a,password=****"]'
    figures = SAMPLE.ops["READ"]._asdict()
    assert json.loads(entry[b"NFSTUNED_OPS"]) == {"TOKEN=****": figures, "token": figures}
    assert json.loads(entry[b"NFSTUNED_KINDS"])["other"]["per_s"] == 2 * figures["per_s"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two\\nlines"),
        ("é \x1b]0;title\x07 \x9b2J \r \udc9b \u202e", "é \\x1b]0;title\\x07 \\x9b2J \\r \\x9b \\u202e"),
    ],
)
def test_stderr_gets_no_escape_sequence(text: str, shown: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A server names its exports, and root may run the daemon on a terminal."""
    Journal().send(Message.CONFIG_INVALID, text, Priority.ERROR, file="a.toml")
    assert capfd.readouterr().err == f"<3>{shown}\n"


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
GUARD = r"""
import sys
from types import SimpleNamespace
from nfstuned.daemon.loop import Daemon
from nfstuned.daemon.reporter import Reporter
from nfstuned.host.telemetry.journal import Journal
assert sys.getfilesystemencoding() != "utf-8"
daemon = Daemon.__new__(Daemon)
daemon._reporter = Reporter(Journal())
daemon._tuner = SimpleNamespace(must_look=False)
def step():
    raise RuntimeError("/srv/\u00e9 \udcff \ud800")
daemon._guard(step)
print(daemon._tuner.must_look)
"""


def in_ascii(code: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program where the locale can show ASCII alone."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=os.environ | ASCII, capture_output=True, check=False, cwd=ROOT)


def test_names_that_the_locale_cannot_show_do_not_end_the_loop() -> None:
    done, text = in_ascii(GUARD), "RuntimeError: /srv/é \\udcff \\ud800"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (0, b"True\n", f"<3>{text}\n")


def test_a_path_arrives_byte_for_byte_whatever_the_locale_is() -> None:
    code = (
        "from nfstuned.host.telemetry.journal import *\n"
        "Journal(lambda *entry: print(entry)).send(Message.SAMPLE, 'x', 6, mount_point='/\\xe9\\udcff')\n"
    )
    assert b"NFSTUNED_MOUNT_POINT=/\\xc3\\xa9\\xff" in in_ascii(code).stdout


def test_a_journal_that_refuses_is_no_reason_to_stop(capfd: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: bytes) -> None:
        raise OSError(105, "No buffer space available")

    Journal(refuse).send(Message.STARTED, "started", Priority.INFO)
    assert "<6>started (not in the journal: [Errno 105] No buffer space available)" in capfd.readouterr().err


def test_an_entry_that_cannot_be_masked_is_kept_back(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def no_descriptor() -> tuple[str, str]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(fields, "load_secrets", no_descriptor)
    Journal(lambda *_: None).send(Message.STOPPED, "password=hunter2", Priority.INFO, reason="SIGTERM")
    shown = "an entry STOPPED without its text, which may hold a secret (not in the journal: [Errno 24]"
    assert f"<6>{shown} Too many open files)" in capfd.readouterr().err


@pytest.fixture
def journald(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Return the socket on which a journal listens."""
    monkeypatch.setattr(journal, "SOCKET", str(tmp_path / "socket"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(journal.SOCKET)
        sock.setblocking(False)
        yield sock


def test_without_the_library_an_entry_is_a_datagram_of_the_journals_protocol(journald: socket.socket) -> None:
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


def test_only_the_journals_own_stderr_counts_as_connected() -> None:
    stream = os.fstat(2)
    assert stderr_is_journal({"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}"})
    assert not stderr_is_journal({"JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino + 1}"})
    assert not stderr_is_journal({})


@pytest.mark.parametrize("module", ["telemetry.journal", "process"])
def test_the_library_is_not_needed_and_our_own_systemd_folder_is_not_taken_for_it(module: str) -> None:
    without = (
        f"import nfstuned.host.{module} as m; print(m.sendv if hasattr(m, 'sendv') else m._library_notify)"
    )
    command = [sys.executable, "-S", "-c", without]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
