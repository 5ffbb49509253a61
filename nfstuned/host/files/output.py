"""Files that a user names, written whole or not at all: no link of another user leads there.

A folder that others may write to can have a link, a pipe or another name of somebody's file under any name
(the kernel's fs.protected_symlinks and its neighbours answer that in sticky folders, where they are on).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from nfstuned.host.files.write import FOR_ALL, temporary_file, write_all
from nfstuned.host.walk import FOLDER, Walk

_MODE = 0o666
"""Less the umask, as for every file that a program makes."""
_PRIVATE = 0o600
"""Until a file has the mode of the file that it replaces."""
_MODES = 0o777
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
_PROC, _FDS = "/proc", "/proc/self/fd"


class _UserWalk(Walk):
    """A way through links of root and of this user."""

    def target(self, part: str, fd: int, status: os.stat_result) -> str | None:
        """Raise OSError for a link of another user; a descriptor's link in /proc stays the end."""
        if status.st_uid not in {0, os.geteuid()}:
            reason = f"a symbolic link of another user ({status.st_uid}) leads there: name its target"
            raise OSError(errno.ELOOP, reason, self.path)
        if not _is_in_proc(status):
            return os.readlink("", dir_fd=fd)
        # Only the kernel can follow it: the text of a pipe's link is no path.
        if not self.left:
            return None
        self.enter(part, FOLDER)
        return ""

    def restart(self) -> None:
        """Go to the root of the host."""
        self.enter("/")


@contextmanager
def destination(path: str) -> Iterator[tuple[int, str]]:
    """Yield the descriptor of a folder, and the name in it to which a path leads; there need be nothing.

    Links of root and of this user are followed, those of others raise OSError. The name's file is no link,
    unless it is a descriptor in /proc. Nobody can put a link into the way meanwhile.
    """
    walk = _UserWalk("/" if path.startswith("/") else ".")
    try:
        yield walk.to(path)
    finally:
        walk.leave()


def _is_in_proc(link: os.stat_result) -> bool:
    try:
        return link.st_dev == os.stat(_PROC).st_dev
    except OSError:
        return False


def refresh(path: str, data: bytes) -> None:
    """Replace a text, for everyone to read. It waits for no disk. Raises OSError."""
    with destination(path) as (folder, name), temporary_file(folder) as new:
        new.write(data)
        os.fchmod(new.fd, FOR_ALL)
        new.take(name)


def write_file(path: str, lines: Iterable[str] | bytes) -> None:
    """Write lines in UTF-8, or bytes, to a file; until all are written, the old file stays.

    A pipe, a terminal or another special file is written to. A file that is there keeps its mode, and its
    owner where that may be given. Links of this user and of root keep leading to their files; links and files
    of other users are refused as `destination` and `_demand_own` describe. Raises OSError; nothing is left
    behind then.
    """
    with destination(path) as (folder, name):
        old = _status(folder, name)
        if old is not None:
            _demand_own(folder, old, path)
            if not stat.S_ISREG(old.st_mode):
                with open(_open_special(folder, name, old), "wb", buffering=0) as file:
                    _write(file.fileno(), lines)
                return
        with temporary_file(folder, _PRIVATE if old is not None else _MODE) as new:
            if old is not None:
                # As far as the user and the file system can.
                for owner, group in ((old.st_uid, -1), (-1, old.st_gid)):
                    with suppress(OSError):
                        os.fchown(new.fd, owner, group)
                with suppress(OSError):
                    os.fchmod(new.fd, old.st_mode & _MODES)
            _write(new.fd, lines)
            new.take(name)


def demand_place(path: str) -> None:
    """Raise OSError where no file of this name can be written, before anybody works for it."""
    with destination(path) as (folder, name):
        old = _status(folder, name)
        if old is not None:
            _demand_own(folder, old, path)
            if stat.S_ISDIR(old.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            if not stat.S_ISREG(old.st_mode):
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


def _demand_own(folder: int, old: os.stat_result, path: str) -> None:
    """Raise OSError for another user's file in a sticky folder that others write to, as the kernel does.

    fs.protected_regular and fs.protected_fifos of proc_sys_fs(5), whatever they are set to.
    """
    above = os.fstat(folder)
    shared = above.st_mode & stat.S_ISVTX and above.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if shared and old.st_uid not in {0, os.geteuid(), above.st_uid}:
        reason = f"it is there already, and another user's ({old.st_uid}), in a folder that others write to"
        raise PermissionError(errno.EACCES, reason, path)


def _open_special(folder: int, name: str, old: os.stat_result) -> int:
    """Open a file that is not regular. Raises OSError."""
    if stat.S_ISLNK(old.st_mode):  # of /proc
        with suppress(OSError):
            if os.path.samestat(os.fstat(folder), os.stat(_FDS)):
                return os.dup(int(name))
        return os.open(name, _WRITE | os.O_TRUNC, dir_fd=folder)
    fd = os.open(name, _WRITE | os.O_NOFOLLOW, dir_fd=folder)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EBUSY, "it was changed meanwhile: try again", name)
    return fd
