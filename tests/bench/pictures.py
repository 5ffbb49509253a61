"""Draw `nfstuned top` and `nfstuned report`: python -m tests.bench.pictures FOLDER [SAMPLES].

FOLDER/top.svg is a screen of 100 columns while this host's mounts are in use, its first line opened; start a
load before. FOLDER/report.png is the page of SAMPLES, a file of JSON lines, as Chromium shows it.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
TOP = (sys.executable, "-m", "nfstuned", "top", "--interval", "2")
COLUMNS, ROWS = 100, 24
WATCH_S = 30.0
PAGE = "1440,2400"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FRAME = b"\x1b[H"
IN_USE = re.compile(rb"[1-9]\d* in use, mean of ")
OPENED = re.compile(rb"OPERATION")
REMOTE_FONTS = re.compile(r"\s*@font-face \{\{.*?\}\}", re.DOTALL)
"""rich's pictures would load a font from the network; without, the reader's own monospace is taken."""


def top(target: Path, command: Sequence[str] = TOP) -> None:
    """Run top on a terminal, open its first line when there are rates, and draw the screen after that."""
    end, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environ = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=terminal, stdout=terminal, start_new_session=True
    ) as process:
        try:
            _frame_with(end, IN_USE)
            os.write(end, b"\r")
            shown = _frame_with(end, OPENED)
        finally:
            process.terminate()
            process.wait()
            os.close(terminal)
            os.close(end)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown.replace(b"\r", b"").decode()), crop=True, no_wrap=True)
    form = REMOTE_FONTS.sub("", CONSOLE_SVG_FORMAT)
    target.write_text(console.export_svg(title="nfstuned top", code_format=form))


def _frame_with(end: int, text: re.Pattern[bytes]) -> bytes:
    """Return the first whole frame that has it; SystemExit where there is none in time."""
    seen, until = b"", time.monotonic() + WATCH_S
    while time.monotonic() < until:
        if select.select([end], [], [], 0.1)[0]:
            seen += os.read(end, 1 << 16)
        for frame in seen.split(FRAME)[1:-1]:
            if text.search(frame):
                return frame
    raise SystemExit(f"pictures: top showed no {text.pattern!r} within {WATCH_S:.0f} s: is a mount in use?")


def report(target: Path, samples: Path) -> None:
    """Write the page of a file of samples and have a browser without a window take its picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(
            f"pictures: {target.name} needs Chromium (apt-get install chromium), one of {BROWSERS}"
        )
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        nfstuned = [sys.executable, "-m", "nfstuned", "report", "--samples-only"]
        subprocess.run([*nfstuned, "--file", str(samples), "--output", str(page)], cwd=ROOT, check=True)
        # Root has no sandbox there; the page is our own, and loads nothing.
        flags = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={PAGE}"]
        subprocess.run([browser, *flags, f"--screenshot={target.absolute()}", page.as_uri()], check=True)


def main(arguments: Sequence[str]) -> None:
    """Draw what was asked for."""
    if len(arguments) not in {1, 2}:
        raise SystemExit("usage: python -m tests.bench.pictures FOLDER [SAMPLES]")
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    if arguments[1:]:
        report(folder / "report.png", Path(arguments[1]))
    top(folder / "top.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
