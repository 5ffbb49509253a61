"""A proposed fstab, which is judged in the place of the host's own (see Root.propose)."""

from __future__ import annotations

import errno
import sys

FSTAB = "etc/fstab"
STDIN = "-"
LARGEST = 4_000_000
"""In bytes; nobody writes a longer one."""


def read_proposal(name: str) -> str:
    """Return a proposed text, `-` for the standard input. Raises OSError, also where it is too long."""
    if name == STDIN:
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with open(name, "rb") as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST / 1e6:g} MB, which is no fstab")
    return data.decode("utf-8", "surrogateescape")
