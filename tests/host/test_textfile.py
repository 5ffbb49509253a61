from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from nfstuned.host.files.whole import NEW
from nfstuned.host.telemetry.text_file import TextfileWriter
from tests.users import NOBODY


def written(writer: TextfileWriter) -> str:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        reason = writer.finished()
        if reason is not None:
            return reason
        time.sleep(0.005)
    raise AssertionError("it was not written in time")


def test_a_file_is_replaced_whole_and_everybody_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "nfstuned.prom"
    path.write_text("old")
    writer = TextfileWriter()
    data = b"nfstuned_mounts 1\n" * 100_000
    umask = os.umask(0o077)
    writer.write(str(path), lambda: data)
    os.umask(umask)
    assert written(writer) == ""
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["nfstuned.prom"]


def test_a_folder_that_is_not_there_is_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "absent/nfstuned.prom"
    writer = TextfileWriter()
    writer.write(str(path), lambda: b"x")
    assert written(writer) == "No such file or directory"


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_what_lies_beside_it_is_neither_written_to_nor_waited_for(tmp_path: Path, kind: str) -> None:
    """Whoever may write to the folder can put it there: root's file under a second name, for example."""
    path, victim = tmp_path / "nfstuned.prom", tmp_path / "victim"
    victim.write_text("mine")
    for name in (f"nfstuned.prom{NEW}", f".nfstuned.prom{NEW}"):
        beside = tmp_path / name
        if kind == "link":
            beside.symlink_to(victim)
        elif kind == "second name":
            os.link(victim, beside)
        elif kind == "pipe":
            os.mkfifo(beside)
        else:
            beside.mkdir()
    writer = TextfileWriter()
    writer.write(str(path), lambda: b"x")
    assert written(writer) == ""
    assert path.read_text() == "x"
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_the_name_itself_leads_to_no_other_file(tmp_path: Path, kind: str) -> None:
    path, victim = tmp_path / "nfstuned.prom", tmp_path / "victim"
    victim.write_text("mine")
    if kind == "link":
        path.symlink_to(victim)
        if os.geteuid() != 0:
            pytest.skip("only root may give a link away")
        os.lchown(path, NOBODY, NOBODY)
    else:
        os.link(victim, path)
    writer = TextfileWriter()
    writer.write(str(path), lambda: b"x")
    assert written(writer) == ("Too many levels of symbolic links" if kind == "link" else "")
    assert victim.read_text() == "mine"


def test_a_write_that_hangs_holds_nobody_up_and_goes_on_being_one(tmp_path: Path) -> None:
    """A fifo without a writer stands for a disk that does not answer."""
    path, fifo = tmp_path / "nfstuned.prom", tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = TextfileWriter()
    began = time.monotonic()
    writer.write(str(path), fifo.read_bytes)
    assert writer.finished() is None
    assert time.monotonic() - began < 1
    fifo.write_bytes(b"x")  # it wakes up
    assert written(writer) == ""
    assert path.read_bytes() == b"x"


def test_a_mistake_in_what_is_to_be_written_is_called_one_and_leaves_the_old_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nfstuned.prom"
    path.write_text("old")
    writer = TextfileWriter()
    writer.write(str(path), lambda: bytes(1 // int("0")))
    assert written(writer).startswith("an error in nfstuned; ")
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert path.read_text() == "old"
