"""A command on a terminal, with somebody who answers."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from tests.cli.conftest import REPOSITORY


def on_a_terminal(command: Sequence[str], answer: bytes) -> tuple[int, str, str]:
    """Run a command that talks and asks on a terminal; return its status, its output, and what it said."""
    main, side = pty.openpty()
    process = subprocess.Popen(command, stdin=side, stdout=subprocess.PIPE, stderr=side, cwd=REPOSITORY)
    os.close(side)
    os.write(main, answer)
    out, _ = process.communicate(timeout=60)
    dialog = b""
    with suppress(OSError):  # EIO: all is read, and nobody has the other side any more
        while part := os.read(main, 1 << 16):  # one read may be less than what is there
            dialog += part
    os.close(main)
    return process.returncode, out.decode(), dialog.decode().replace("\r\n", "\n")
