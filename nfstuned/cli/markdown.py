"""A page of Markdown on a terminal."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.markdown import Markdown


def print_markdown(text: str) -> None:
    """Print it at the terminal's width, in colour unless NO_COLOR asks for none."""
    console = Console(file=sys.stdout, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    console.print(Markdown(text, hyperlinks=False))
