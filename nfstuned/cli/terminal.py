"""How wide the terminal is."""

from __future__ import annotations


def terminal_width() -> int:
    """Return the columns of the terminal behind stdout, or what COLUMNS says; 80 where neither tells."""
    from shutil import get_terminal_size  # noqa: PLC0415 - it loads three compression libraries

    return get_terminal_size().columns
