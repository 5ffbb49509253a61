"""Write the manual's pages of commands into docs/man:  python -m dev.manual."""

from __future__ import annotations

from pathlib import Path

from dev.manual.page import pages

FOLDER = Path(__file__).parents[2] / "docs/man"

for old in FOLDER.glob("*.1"):
    old.unlink()
for name, text in pages().items():
    (FOLDER / name).write_text(text)
