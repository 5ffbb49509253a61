"""Tests under another user's rights, where they run as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator

ROOT, NOBODY = 0, 65534


@contextlib.contextmanager
def rights_of(user: int) -> Iterator[None]:
    """Have a user's rights while the block runs; who is not root has no choice."""
    if os.getuid() != ROOT:
        yield
        return
    before = os.geteuid()
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(before)


def may_unshare() -> bool:
    """Whether this user may make a mount namespace."""
    able = os.geteuid() == 0 and shutil.which("unshare") is not None
    return able and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0
