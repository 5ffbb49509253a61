"""A proposed fstab, which is judged in the place of the host's own (see Root.propose)."""

from __future__ import annotations

import sys

FSTAB = "etc/fstab"
STDIN = "-"


def read_proposal(name: str) -> str:
    """Return a proposed file's text, `-` for the standard input. Raises OSError."""
    if name == STDIN:
        data = sys.stdin.buffer.read()
    else:
        with open(name, "rb") as file:
            data = file.read()
    return data.decode("utf-8", "surrogateescape")
