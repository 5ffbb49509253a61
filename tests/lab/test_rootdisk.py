"""The fingerprints of a tree, which show whether an undo left it as it was, see each kind of change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.rootdisk import differences, fingerprints


def retouched(path: Path) -> None:
    os.utime(path, (0, 0))


def linked_twice(path: Path) -> None:
    path.with_name("other").hardlink_to(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda path: (path / "file").write_bytes(b"b"),
    "mode": lambda path: (path / "file").chmod(0o600),
    "time": lambda path: retouched(path / "file"),
    "hard link": lambda path: linked_twice(path / "file"),
    "gone": lambda path: (path / "file").unlink(),
    "folder": lambda path: (path / "new").mkdir(),
    "folder's mode": lambda path: (path / "folder").chmod(0o700),
    "link": lambda path: (path / "link").rename(path / "file"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_kind_of_change_is_seen(change: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "link").symlink_to("file")
    before = fingerprints(tmp_path)
    assert differences(before, fingerprints(tmp_path)) == []
    CHANGES[change](tmp_path)
    assert differences(before, fingerprints(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_another_owner_is_seen(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    before = fingerprints(tmp_path)
    os.chown(tmp_path / "file", 1, 1)
    assert differences(before, fingerprints(tmp_path)) == ["file"]
