"""The script of the pictures: a real screen of top becomes one, and missing programs are reported."""

from __future__ import annotations

import re
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.bench import pictures
from tests.check import hosts
from tests.cli.conftest import CASE, PROGRAM
from tests.cli.test_top import read_more
from tests.lab.kit import screen
from tests.lab.kit.screen import capture

DOCUMENTED = Path(__file__).parents[2] / "docs/pictures"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return hosts.load(CASE).build(tmp_path / "host")


def captured(tree: Path) -> bytes:
    """Capture top over a host whose counters grow; it counts no operations, only bytes."""
    over = threading.Event()

    def grow() -> None:
        while not over.wait(0.2):
            read_more(tree, seconds=0)

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        return capture([sys.executable, "-c", PROGRAM, str(tree), "top", "--interval", "0.5"])
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_a_screen_of_top_is_drawn_as_it_was(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "OPENED", re.compile(b"no operation ended"))
    seen = captured(tree)
    svg = pictures.drawn(seen, "top")
    words = "".join(ET.fromstring(svg).itertext()).replace("\xa0", " ")  # noqa: S314 - our own text
    assert "/mnt/2 and 1 more" in words
    assert "sa1.file.core.windows.net:/a  0:46  read-ahead 128 KiB" in words
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    )
    assert svg == pictures.drawn(seen, "top")


def test_the_output_of_status_is_drawn_as_a_terminal_has_it(tree: Path) -> None:
    seen = screen.output([sys.executable, "-c", PROGRAM, str(tree), "status"])
    words = "".join(ET.fromstring(pictures.drawn(seen, "status")).itertext())  # noqa: S314 - our own text
    assert "nfstuned status" in words.replace("\xa0", " ")
    assert "azure-files" in words


def test_the_pictures_of_the_documentation_are_small() -> None:
    sizes = {picture.name: picture.stat().st_size for picture in DOCUMENTED.iterdir()}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > 200_000} == {}
