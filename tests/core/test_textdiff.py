"""Unified diffs for people: as diff -u, and harmless to a terminal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nfstuned.view.change import diff_lines


def test_equal_texts_have_no_difference() -> None:
    assert list(diff_lines("a\nb", "a\nb", "f")) == []


@pytest.mark.skipif(shutil.which("diff") is None, reason="no diff")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nB"),
        ("a\nb", "a\nb\n"),
        ("-- a\n", "++ a\n"),
        ("a", ""),
        ("", "a\n"),
        ("a\tb\n" * 20 + "x", "a\tb\n" * 20 + "y"),
    ],
)
def test_it_is_what_diff_prints(old: str, new: str, tmp_path: Path) -> None:
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["diff", "-u", "old", "new"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert list(diff_lines(old, new, "f"))[2:] == done.stdout.splitlines()[2:]


def test_control_characters_and_stray_bytes_are_escapes_but_tabs_stay() -> None:
    lines = list(diff_lines("a\t\x1b[2J\udcff\r\n", "b\n", "f"))
    assert lines[3:] == ["-a\t\\x1b[2J\\xff\\r", "+b"]
