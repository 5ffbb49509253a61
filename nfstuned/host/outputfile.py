"""A file that a person asked for, written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

_MODE = 0o666
"""Less what the umask says, as for every file that a program makes."""


def write_file(path: str, lines: Iterable[str]) -> None:
    """Write lines to a file, in UTF-8; until all are written, what was there under the name stays.

    What is there and is no regular file, such as a pipe or a terminal, is written to. Raises OSError; nothing
    is left behind then.
    """
    if _is_special(path):
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
        return
    # A link keeps leading to its file, which gets the new text.
    path = os.path.realpath(path)
    aside = f"{path}.{os.getpid()}.new"
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


def demand_place(path: str) -> None:
    """Raise OSError where no file of this name can be written, before anybody works for it."""
    if _is_special(path):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode)
