"""A file that a person asked for, written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from nfstuned.host.files.whole import CREATE

_MODE = 0o666
"""Less what the umask says, as for every file that a program makes."""
_MODES = 0o777
_PRIVATE = 0o600
"""Until a file has the mode of the file that it replaces."""


def write_file(path: str, lines: Iterable[str]) -> None:
    """Write lines to a file, in UTF-8; until all are written, what was there under the name stays.

    What is there and is no regular file, such as a pipe or a terminal, is written to; a file that is there
    keeps its mode, and its owner where that may be given. Raises OSError; nothing is left behind then.
    """
    if _is_special(path):
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
        return
    # A link keeps leading to its file, which gets the new text.
    path = os.path.realpath(path)
    aside = f"{path}.{os.getpid()}.new"
    had = _status(path)
    mode = _MODE if had is None else _PRIVATE
    fd = os.open(aside, CREATE, mode)
    try:
        with open(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
            if had is not None:
                # As far as the user and the file system can.
                for owner, group in ((had.st_uid, -1), (-1, had.st_gid)):
                    with suppress(OSError):
                        os.fchown(fd, owner, group)
                with suppress(OSError):
                    os.fchmod(fd, had.st_mode & _MODES)
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
    had = _status(path)
    return had is not None and not stat.S_ISREG(had.st_mode)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None
