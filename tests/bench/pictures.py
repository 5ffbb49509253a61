"""Draw the pictures of docs/pictures from a guest's files, as `sh dev/lab newest pictures` does.

They are `top.ansi`, a screen that `nfstuned top` drew on a terminal, `status.ansi`, the output of `nfstuned
status`, and `report.html`, a page that `nfstuned report` wrote, or some of them.
Outputs on a terminal become SVGs; the PNG of the page needs Chromium, and a message reports its absence.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.lab.kit.screen import COLUMNS, PAGE, SCREEN, STATUS

WINDOW = "1200,900"
"""The part of a page that is shown: its beginning, as wide as a laptop's screen."""
BROWSERS = ("chromium", "chromium-headless-shell", "google-chrome")
# Root has no sandbox there; the pages are our own, and load nothing.
FLAGS = ("--headless", "--no-sandbox", "--hide-scrollbars")
REMOTE_FONTS = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)
"""rich's pictures would load a font from the network; without, the reader's own monospace is taken."""


def drawn(screen: bytes, command: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.replace(b"\r", b"").decode()), crop=True, no_wrap=True)
    form = REMOTE_FONTS.sub("", CONSOLE_SVG_FORMAT)
    # The same screen is the same file: a random id in it would be a change.
    return console.export_svg(title=f"nfstuned {command}", code_format=form, unique_id=command)


def draw(folder: Path, target: Path) -> list[Path]:
    """Draw the files of a folder, and return the pictures; SystemExit where there are none."""
    target.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for name in (SCREEN, STATUS):
        if (folder / name).exists():
            made.append(target / f"{Path(name).stem}.svg")
            made[-1].write_text(drawn((folder / name).read_bytes(), Path(name).stem))
    if (folder / PAGE).exists():
        made += _photographed(folder / PAGE, target / "report.png")
    if not made:
        raise SystemExit(
            f"pictures: none of {SCREEN}, {STATUS}, {PAGE} is in {folder}, or there is no Chromium"
        )
    return made


def _photographed(source: Path, target: Path) -> list[Path]:
    """Have a browser without a window take a picture; none where there is no browser, which is said."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"pictures: {target.name} needs Chromium, one of {', '.join(BROWSERS)}", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as profile:
        place = (f"--user-data-dir={profile}", f"--window-size={WINDOW}")
        shot = f"--screenshot={target.absolute()}"
        done = subprocess.run(
            [browser, *FLAGS, *place, shot, source.absolute().as_uri()],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"pictures: {browser}: status {done.returncode}\n{done.stderr}")
    return [target]
