"""A file that a person asked for, written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from nfstuned.host.files.destination import destination, is_own_descriptor, new_file
from nfstuned.host.files.whole import write_all

_MODE = 0o666
"""Less what the umask says, as for every file that a program makes."""
_MODES = 0o777
_PRIVATE = 0o600
"""Until a file has the mode of the file that it replaces."""
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY


def write_file(path: str, lines: Iterable[str] | bytes) -> None:
    """Write lines in UTF-8, or bytes, to a file; until all are written, what was there stays.

    What is there and is no regular file, such as a pipe or a terminal, is written to; a file that is there
    keeps its mode, and its owner where that may be given. Links of this user and of root keep leading to
    their files; what another user put there is refused as `destination` and `_demand_own` say. Raises
    OSError; nothing is left behind then.
    """
    with destination(path) as (folder, name):
        had = _status(folder, name)
        if had is None:
            with new_file(folder, name, _MODE) as fd:
                _write(fd, lines)
            return
        _demand_own(folder, had, path)
        if not stat.S_ISREG(had.st_mode):
            fd = _open_special(folder, name, had)
            try:
                _write(fd, lines)
            finally:
                os.close(fd)
            return
        with new_file(folder, name, _PRIVATE) as fd:
            # As far as the user and the file system can.
            for owner, group in ((had.st_uid, -1), (-1, had.st_gid)):
                with suppress(OSError):
                    os.fchown(fd, owner, group)
            with suppress(OSError):
                os.fchmod(fd, had.st_mode & _MODES)
            _write(fd, lines)


def demand_place(path: str) -> None:
    """Raise OSError where no file of this name can be written, before anybody works for it."""
    with destination(path) as (folder, name):
        had = _status(folder, name)
        if had is not None:
            _demand_own(folder, had, path)
            if not stat.S_ISREG(had.st_mode):
                if stat.S_ISDIR(had.st_mode):
                    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                return
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _write(fd: int, lines: Iterable[str] | bytes) -> None:
    if isinstance(lines, bytes):
        write_all(fd, lines)
        return
    with open(fd, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as file:
        file.writelines(f"{line}\n" for line in lines)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _demand_own(folder: int, had: os.stat_result, path: str) -> None:
    """Raise OSError for what another user put into a sticky folder of everybody's, as the kernel does.

    fs.protected_regular and fs.protected_fifos of proc_sys_fs(5), whatever they are set to.
    """
    above = os.fstat(folder)
    shared = above.st_mode & stat.S_ISVTX and above.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if shared and had.st_uid not in {0, os.geteuid(), above.st_uid}:
        reason = f"it is there already, and another user's ({had.st_uid}), in a folder that others write to"
        raise PermissionError(errno.EACCES, reason, path)


def _open_special(folder: int, name: str, had: os.stat_result) -> int:
    """Open what is no regular file. Raises OSError."""
    if stat.S_ISLNK(had.st_mode):  # of /proc
        if is_own_descriptor(folder):
            return os.dup(int(name))
        return os.open(name, _WRITE | os.O_TRUNC, dir_fd=folder)
    fd = os.open(name, _WRITE | os.O_NOFOLLOW, dir_fd=folder)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EBUSY, "it was changed meanwhile: try again", name)
    return fd
