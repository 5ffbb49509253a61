"""The file of metrics: replaced whole, by a child for which nobody waits."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from nfstuned.host.files.write import NEW
from nfstuned.host.root import Root
from nfstuned.host.telemetry.shared_files import MetricsFile
from tests.tree import put
from tests.users import NOBODY


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host whose mountinfo shows no network file system, and its folder /srv."""
    put(tmp_path / "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (tmp_path / "srv").mkdir()
    return tmp_path


def made(host: Path) -> MetricsFile:
    return MetricsFile(Root(str(host)), "/srv/nfstuned.prom")


def end_of(file: MetricsFile) -> str:
    end = time.monotonic() + 10
    while (reason := file.finished()) is None:
        assert time.monotonic() < end, "it was not written in time"
        time.sleep(0.005)
    return reason


def written(host: Path, data: bytes = b"x") -> str:
    file = made(host)
    file.write(lambda: data)
    return end_of(file)


def test_a_file_is_replaced_whole_and_everybody_may_read_it(host: Path) -> None:
    path, data = host / "srv/nfstuned.prom", b"nfstuned_mounts 1\n" * 100_000
    path.write_text("old")
    umask = os.umask(0o077)
    try:
        assert written(host, data) == ""
    finally:
        os.umask(umask)
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(path.parent) == ["nfstuned.prom"]


def test_a_folder_that_is_not_there_is_the_reason(host: Path) -> None:
    (host / "srv").rmdir()
    assert written(host) == "No such file or directory"


@pytest.mark.parametrize("kind", ["link", "second name", "pipe", "folder"])
def test_files_next_to_it_are_neither_written_to_nor_waited_for(host: Path, kind: str) -> None:
    """Whoever may write to the folder can put them there: root's file under a second name, for example."""
    victim = host / "victim"
    victim.write_text("mine")
    for name in (f"nfstuned.prom{NEW}", f".nfstuned.prom{NEW}"):
        other = host / "srv" / name
        if kind == "link":
            other.symlink_to(victim)
        elif kind == "second name":
            os.link(victim, other)
        elif kind == "pipe":
            os.mkfifo(other)
        else:
            other.mkdir()
    assert written(host) == ""
    assert (host / "srv/nfstuned.prom").read_text() == "x"
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("kind", ["link", "second name"])
def test_the_name_itself_leads_to_no_other_file(host: Path, kind: str) -> None:
    path, victim = host / "srv/nfstuned.prom", host / "victim"
    victim.write_text("mine")
    if kind == "link":
        path.symlink_to(victim)
        if os.geteuid() != 0:
            pytest.skip("only root may give a link away")
        os.lchown(path, NOBODY, NOBODY)
    else:
        os.link(victim, path)
    assert written(host) == ("Too many levels of symbolic links" if kind == "link" else "")
    assert victim.read_text() == "mine"


def test_a_write_that_hangs_holds_nobody_up_and_can_still_end(host: Path) -> None:
    """A fifo without a writer stands for a disk that does not answer."""
    file, fifo = made(host), host / "fifo"
    os.mkfifo(fifo)
    began = time.monotonic()
    file.write(fifo.read_bytes)
    assert file.finished() is None
    assert time.monotonic() - began < 1
    fifo.write_bytes(b"x")  # the disk answers
    assert end_of(file) == ""
    assert (host / "srv/nfstuned.prom").read_bytes() == b"x"


def test_a_mistake_of_nfstuned_is_called_one_and_leaves_the_old_file(
    host: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (host / "srv/nfstuned.prom").write_text("old")
    file = made(host)
    file.write(lambda: bytes(1 // int("0")))
    assert end_of(file).startswith("an error in nfstuned; ")
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert (host / "srv/nfstuned.prom").read_text() == "old"
