from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from nfstuned.host.root import LARGEST, PART, Root, UnusableError, parts_of


def test_a_file_comes_in_parts_that_are_all_of_it(tmp_path: Path) -> None:
    data = bytes(range(256)) * (PART // 100)
    (tmp_path / "file").write_bytes(data)
    parts = list(Root(str(tmp_path)).read_parts("file"))
    assert b"".join(parts) == data
    assert max(map(len, parts)) <= PART
    assert len(parts) == -(-len(data) // PART)
    (tmp_path / "empty").touch()
    assert list(Root(str(tmp_path)).read_parts("empty")) == []


def test_what_the_kernel_gives_in_small_pieces_is_put_together() -> None:
    """A pipe gives what was written to it so far, as a file of /proc gives one entry after the other."""
    reader, writer = os.pipe()

    def write() -> None:
        for _ in range(100):
            os.write(writer, b"x" * 4096)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        parts = list(parts_of(reader, "pipe"))
    finally:
        os.close(reader)
        thread.join()
    assert [len(part) for part in parts] == [PART, 100 * 4096 - PART]


def test_what_is_no_text_is_not_read_in_parts_either(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    root = Root(str(tmp_path))
    for name in ("folder", "fifo", "large"):
        with pytest.raises(UnusableError):
            next(root.read_parts(name))
    assert [error.file for error in root.faults] == ["/folder", "/fifo", "/large"]
    with pytest.raises(FileNotFoundError):
        next(root.read_parts("absent"))


def test_what_the_kernel_makes_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfstuned.host.root.LARGEST_MADE", 2 * PART)
    (tmp_path / "mountinfo").write_bytes(b"x" * (3 * PART))
    root = Root(str(tmp_path))
    for read in (root.read_bytes, lambda name: list(root.read_parts(name))):
        root.faults.clear()
        with pytest.raises(UnusableError, match="more than"):
            read("mountinfo")
        assert [error.file for error in root.faults] == ["/mountinfo"]


def test_what_cannot_be_read_is_kept_and_what_is_absent_is_not(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    root = Root(str(tmp_path))
    assert (root.read_or_empty("absent"), root.names("absent"), root.exists("absent")) == ("", [], False)
    assert root.link("absent") is None
    assert not root.faults
    with root.faults.block() as faults:
        assert root.read_or_empty("loop") == ""
        assert [str(error) for error in faults.values()] == ["/loop: Too many levels of symbolic links"]
    assert [error.file for error in root.faults] == ["/loop"]
    assert [error.file for error in root.faults.unreported()] == ["/loop"]
    assert root.faults.unreported() == ()


def test_a_fault_of_an_inner_block_is_the_outer_blocks_too(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    root = Root(str(tmp_path))
    with root.faults.block() as outer:
        with root.faults.block() as inner:
            root.read_or_empty("loop")
        assert list(inner) == list(outer) == ["loop"]
    assert [error.file for error in root.faults] == ["/loop"]


def test_descriptors_are_closed_where_nobody_wants_the_rest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * (2 * PART))
    before = os.listdir("/proc/self/fd")
    parts = Root(str(tmp_path)).read_parts("file")
    next(parts)
    parts.close()  # type: ignore[attr-defined]  # a generator, which the contract does not say
    assert os.listdir("/proc/self/fd") == before
