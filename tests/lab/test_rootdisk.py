"""An installation is made once for all who ask, and the fingerprints of a tree see each kind of change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab import recipe, roots
from tests.tree import differences, fingerprints

CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda path: (path / "file").write_bytes(b"b"),
    "mode": lambda path: (path / "file").chmod(0o600),
    "time": lambda path: os.utime(path / "file", (0, 0)),
    "hard link": lambda path: (path / "other").hardlink_to(path / "file"),
    "gone": lambda path: (path / "file").unlink(),
    "folder": lambda path: (path / "new").mkdir(),
    "folder's mode": lambda path: (path / "folder").chmod(0o700),
    "link": lambda path: (path / "link").rename(path / "file"),
    "owner": lambda path: os.chown(path / "file", 1, 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_kind_of_change_is_seen(change: str, tmp_path: Path) -> None:
    if change == "owner" and os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    (tmp_path / "folder").mkdir(mode=0o755)
    (tmp_path / "file").write_bytes(b"a")
    (tmp_path / "link").symlink_to("file")
    before = fingerprints(tmp_path)
    assert differences(before, fingerprints(tmp_path)) == []
    CHANGES[change](tmp_path)
    assert differences(before, fingerprints(tmp_path))


def test_several_that_ask_at_once_get_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(_suite: str, _packages: tuple[str, ...], target: Path) -> None:
        made.append(target)
        target.write_text("half")
        time.sleep(0.2)
        target.write_text("whole")

    monkeypatch.setattr(recipe, "cache", lambda: tmp_path)
    monkeypatch.setattr(roots, "_make", make)
    with ThreadPoolExecutor(3) as pool:
        archives = list(pool.map(lambda _: roots.archive("trixie").read_text(), range(3)))
    assert (archives, len(made)) == (["whole"] * 3, 1)
    assert {file.suffix for file in (tmp_path / "roots").iterdir()} == {".tar", ".lock"}
