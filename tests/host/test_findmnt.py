"""findmnt --verify, asked for real: only errors that are new count, and it cannot hold anybody up."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from nfstuned.host.change.findmnt import new_errors

pytestmark = pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")
ENTRY = "srv:/x /nowhere/at/all nfs {} 0 0\n"
TRACED = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1))  # PR_SET_PTRACER: anybody
me = os.getpid()
tracer = os.fork()
if tracer:
    time.sleep(60)
os.setsid()
libc.ptrace(0x4206, me, None, None)  # PTRACE_SEIZE
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
time.sleep(60)
"""
"""Its end shows to nobody before its tracer has waited for it (ptrace(2)), which it never does."""


def write(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def test_errors_that_were_there_before_do_not_count(tmp_path: Path) -> None:
    old = write(tmp_path, "old", ENTRY.format("defaults") + "what is this\n")
    new = write(tmp_path, "new", ENTRY.format("defaults,nconnect=4") + "what is this\n")
    assert new_errors(old, new) == ""


def test_an_error_that_is_new_is_told(tmp_path: Path) -> None:
    old = write(tmp_path, "old", ENTRY.format("defaults"))
    new = write(tmp_path, "new", ENTRY.format("defaults 0 x y"))
    assert new_errors(old, new) == "findmnt --verify refuses the new text: parse error at line 1"


def test_without_findmnt_there_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    file = write(tmp_path, "old", "")
    assert "not installed" in new_errors(file, file)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 60", "no answer within 0.2 s"),
        ("echo \"findmnt: unrecognized option '--verify'\" >&2; exit 1", "unrecognized option"),
        ("exit 3", "findmnt ended with status 3"),
        ("head -c 1000001 /dev/zero", "prints more than can be read"),
    ],
)
def test_a_findmnt_that_does_not_do_its_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    stand_in(tmp_path, monkeypatch, script)
    file = write(tmp_path, "old", "")
    assert said in new_errors(file, file, 0.2 if "sleep" in script else 10.0)


# Python says so of a child that is left behind.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_what_does_not_end_when_it_is_killed_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it waits in the kernel for a server."""
    pid = tmp_path / "pid"
    stand_in(tmp_path, monkeypatch, f"exec {sys.executable} -I -S -c '{TRACED}' {pid}")
    file = write(tmp_path, "old", "")
    began = time.monotonic()
    try:
        assert "no answer within 3 s" in new_errors(file, file, 3.0)
        assert time.monotonic() - began < 30
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put another findmnt before that of the system."""
    fake = folder / "findmnt"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
