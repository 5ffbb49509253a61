"""findmnt --verify, asked for real: only errors that are new count, and it cannot hold anybody up."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nfstuned.host.change.findmnt import new_errors

pytestmark = pytest.mark.skipif(shutil.which("findmnt") is None, reason="no findmnt")
ENTRY = "srv:/x /nowhere/at/all nfs {} 0 0\n"


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
        ("exit 3", "exit status 3"),
    ],
)
def test_a_findmnt_that_does_not_do_its_work_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    fake = tmp_path / "findmnt"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    file = write(tmp_path, "old", "")
    assert said in new_errors(file, file, 0.2 if "sleep" in script else 10.0)
