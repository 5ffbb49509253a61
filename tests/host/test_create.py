"""A new file: its modes, refusals, and the files after a refusal."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nfstuned.host.files.replace import create
from tests.host.replacing import lock

TEXT = b"the text\n" * 50


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "conf.d" / "50-x.conf"


def test_it_is_made_with_its_folder_for_everyone_to_read(file: Path) -> None:
    """The lock's folder has the daemon's records, too, which `status` reads without rights."""
    locks = file.parents[1] / "run/nfstuned"
    old = os.umask(0o077)
    try:
        assert create(str(file), TEXT, str(locks / "replace.lock")) == ""
    finally:
        os.umask(old)
    assert file.read_bytes() == TEXT
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o755
    assert stat.S_IMODE(locks.stat().st_mode) == 0o755
    assert os.listdir(file.parent) == ["50-x.conf"]


def test_a_folder_that_is_there_stays_as_it_is(file: Path) -> None:
    file.parent.mkdir(mode=0o700)
    assert create(str(file), TEXT, lock(file)) == ""
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_folder_above_is_not_made(file: Path) -> None:
    far = file.parent / "more" / "x.conf"
    assert create(str(far), TEXT, f"{file.parent.parent}/lock") == (
        f"{far}: No such file or directory, so that it is as it was"
    )
    assert not file.parent.exists()


@pytest.mark.parametrize("other", ["file", "link", "folder"])
def test_a_file_that_somebody_else_made_meanwhile_stays(file: Path, other: str) -> None:
    file.parent.mkdir()
    if other == "file":
        file.write_bytes(b"mine\n")
    elif other == "link":
        file.symlink_to("/nowhere")
    else:
        file.mkdir()
    before = file.lstat()
    assert create(str(file), TEXT, lock(file)) == f"{file} was made meanwhile: look again"
    assert file.lstat() == before
    assert os.listdir(file.parent) == ["50-x.conf"]


def test_a_folder_that_leads_nowhere_is_reported(file: Path) -> None:
    file.parent.symlink_to("/nowhere/at/all")
    assert "No such file or directory" in create(str(file), TEXT, lock(file))
