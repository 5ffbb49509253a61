"""An installation is made once for all who ask."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.lab import recipe, roots

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
    assert [file.suffix for file in (tmp_path / "roots").iterdir()] in (
        [".tar", ".lock"], [".lock", ".tar"],
    )  # fmt: skip
