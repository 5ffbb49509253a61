"""The script of the pictures: a real screen of top becomes one, and missing programs are reported."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.bench import pictures
from tests.check import hosts
from tests.cli.test_top import SCRIPT, TREE, read_more
from tests.lab.kit import screen
from tests.lab.kit.screen import PAGE, capture

DOCUMENTED = Path(__file__).parents[2] / "docs/pictures"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return hosts.load(TREE).build(tmp_path / "host")


def captured(tree: Path) -> bytes:
    """Capture top over a host whose counters grow; it counts no operations, only bytes."""
    over = threading.Event()

    def grow() -> None:
        while not over.wait(0.2):
            read_more(tree, seconds=0)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        return capture([sys.executable, "-c", SCRIPT, str(tree), "top", "--interval", "0.5"])
    finally:
        over.set()
        thread.join()


def test_a_screen_of_top_is_drawn_as_it_was(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "OPENED", re.compile(b"no operation ended"))
    seen = captured(tree)
    svg = pictures.drawn(seen)
    words = "".join(ET.fromstring(svg).itertext()).replace("\xa0", " ")  # noqa: S314 - our own text
    assert "/mnt/2 and 1 more" in words
    assert "sa1.file.core.windows.net:/a  0:46  read-ahead 128 KiB" in words
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    )
    assert svg == pictures.drawn(seen)


@pytest.mark.slow
def test_without_a_mount_in_use_there_is_no_picture(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "WATCH_S", 2.0)
    with pytest.raises(SystemExit, match="is a mount in use"):
        capture([sys.executable, "-c", SCRIPT, str(tree), "top", "--interval", "0.5"])


def test_without_a_browser_the_page_is_not_drawn_and_a_message_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "BROWSERS", ("no-such-browser",))
    (tmp_path / PAGE).write_text("<p>page</p>")
    with pytest.raises(SystemExit, match="no Chromium"):
        pictures.draw(tmp_path, tmp_path / "to")
    assert "report.png needs Chromium" in capsys.readouterr().err


@pytest.mark.skipif(not any(map(shutil.which, pictures.BROWSERS)), reason="needs Chromium")
def test_a_page_is_photographed(tmp_path: Path) -> None:
    (tmp_path / PAGE).write_text("<p>page</p>")
    (picture,) = pictures.draw(tmp_path, tmp_path / "to")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_pictures_of_the_documentation_are_small() -> None:
    sizes = {picture.name: picture.stat().st_size for picture in DOCUMENTED.iterdir()}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > 200_000} == {}
