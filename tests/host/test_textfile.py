from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from nfstuned.host.files.whole import NEW
from nfstuned.host.telemetry.text_file import TextfileWriter


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


def test_a_link_in_the_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    path, victim = tmp_path / "nfstuned.prom", tmp_path / "victim"
    victim.write_text("mine")
    Path(str(path) + NEW).symlink_to(victim)
    writer = TextfileWriter()
    writer.write(str(path), lambda: b"x")
    assert written(writer) == "Too many levels of symbolic links"
    assert victim.read_text() == "mine"


def test_a_write_that_hangs_holds_nobody_up_and_goes_on_being_one(tmp_path: Path) -> None:
    """A fifo without a reader stands for a server that does not answer."""
    path = tmp_path / "nfstuned.prom"
    fifo = str(path) + NEW
    os.mkfifo(fifo)
    writer = TextfileWriter()
    began = time.monotonic()
    writer.write(str(path), lambda: b"x")
    assert writer.finished() is None
    assert time.monotonic() - began < 1
    with open(fifo, "rb") as reader:  # it wakes up
        assert reader.read() == b"x"
    written(writer)


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
