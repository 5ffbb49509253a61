"""The files of a check before a deployment: those that are read, and those that cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host import sources
from nfstuned.host.root import LARGEST
from nfstuned.host.sources import read_files
from tests.tree import put
from tests.users import NOBODY, rights_of


def names(*paths: Path) -> list[str]:
    found = read_files([str(path) for path in paths])
    return [f"{item.file}: {item.message}" if isinstance(item, ParseError) else item.name for item in found]


def test_of_a_folder_the_texts_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b/z.yaml", "b/a.yaml", "c", ".git/config", "node_modules/x.yaml", ".hidden.yaml"):
        put(tmp_path / name, "text")
    (tmp_path / "binary").write_bytes(b"a\0b")
    put(tmp_path / "empty", "")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGEST + 1)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to("absent")
    (tmp_path / "again").symlink_to("c")
    (tmp_path / "b/up").symlink_to("..")
    read = [os.path.relpath(name, tmp_path) for name in names(tmp_path)]
    assert read == [".hidden.yaml", "again", "c", "b/a.yaml", "b/z.yaml"]


def test_what_cannot_be_read_is_an_error_each(readable: Path) -> None:
    put(readable / "open.yaml", "text")
    for name in ("closed.yaml", "folder/x.yaml"):
        put(readable / name, "text")
    (readable / "closed.yaml").chmod(0)
    (readable / "folder").chmod(0)
    with rights_of(NOBODY):
        found = names(readable, readable / "absent")
    (readable / "folder").chmod(0o755)
    assert found == [
        f"{readable}/closed.yaml: Permission denied",
        f"{readable}/open.yaml",
        f"{readable}/folder: Permission denied",
        f"{readable}/absent: No such file or directory",
    ]


def test_a_folder_of_too_many_files_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_FILES", 2)
    for name in "abc":
        put(tmp_path / name, "text")
    assert names(tmp_path)[2:] == [
        f"{tmp_path}: more than 2 files: {tmp_path}/c and all after it were not read"
    ]
