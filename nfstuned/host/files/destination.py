"""Where a file is to be written: no link of another user leads there, and no half file stays.

A folder that others may write to can have a link, a pipe or another name of somebody's file under any name
(the kernel's fs.protected_symlinks and its neighbours answer that in sticky folders, where they are on).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from nfstuned.host.files.whole import CREATE, FOR_ALL, NEW, rename, write_all

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NAMELESS = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
_PROC, _FDS = "/proc", "/proc/self/fd"
_MOST_LINKS = 40
"""As in the kernel (MAXSYMLINKS)."""
_ASIDE = re.compile(rf"\.[0-9a-f]{{16}}{re.escape(NEW)}")
"""The name of a new file until it has its own."""


@contextmanager
def destination(path: str) -> Iterator[tuple[int, str]]:
    """Yield the descriptor of a folder, and the name in it to which a path leads; there need be nothing.

    Links of root and of this user are followed, those of others raise OSError. What the name has is no link,
    unless it is a descriptor's in /proc. Nobody can put a link into the way meanwhile.
    """
    route = _Route(path)
    try:
        yield route.end()
    finally:
        os.close(route.folder)


class _Route:
    """A way through folders, of which the last is open. Raises OSError."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._links = 0
        self._left: list[str] = []
        """The components still to go, the next at the end."""
        self.folder = os.open("/" if path.startswith("/") else ".", _FOLDER)
        self._go(path)

    def _go(self, path: str) -> None:
        self._left += [part for part in reversed(path.split("/")) if part not in {"", "."}]

    def end(self) -> tuple[int, str]:
        """Return the folder in which the way ends, and the name there; "." for the folder itself."""
        while self._left:
            part = self._left.pop()
            if self._left and self._enter_folder(part):
                continue
            try:
                fd = os.open(part, _STEP, dir_fd=self.folder)
            except FileNotFoundError:
                if self._left:
                    raise
                return self.folder, part
            try:
                status = os.fstat(fd)
                if not stat.S_ISLNK(status.st_mode):
                    if self._left:
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self._path)
                    return self.folder, part
                self._demand_own(status)
                target = os.readlink("", dir_fd=fd)
            finally:
                os.close(fd)
            if _is_procs(status):
                # Where it leads, only the kernel knows: the text of a pipe's link is no path.
                if not self._left:
                    return self.folder, part
                self._enter(os.open(part, _FOLDER, dir_fd=self.folder))
                continue
            if target.startswith("/"):
                self._enter(os.open("/", _FOLDER))
            self._go(target)
        return self.folder, "."

    def _enter_folder(self, part: str) -> bool:
        """Enter a folder; return False where it is none. O_DIRECTORY has autofs mount what belongs there."""
        try:
            self._enter(os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=self.folder))
        except NotADirectoryError:
            return False
        return True

    def _enter(self, folder: int) -> None:
        os.close(self.folder)
        self.folder = folder

    def _demand_own(self, link: os.stat_result) -> None:
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self._path)
        if link.st_uid not in {0, os.geteuid()}:
            reason = f"a symbolic link of another user ({link.st_uid}) leads there: name what it leads to"
            raise OSError(errno.ELOOP, reason, self._path)


def _is_procs(link: os.stat_result) -> bool:
    try:
        return link.st_dev == os.stat(_PROC).st_dev
    except OSError:
        return False


def is_own_descriptor(folder: int) -> bool:
    """Return whether the names in a folder are the descriptors of this process."""
    try:
        return os.path.samestat(os.fstat(folder), os.stat(_FDS))
    except OSError:
        return False


@contextmanager
def new_file(folder: int, name: str, mode: int) -> Iterator[int]:
    """Yield the descriptor of a new file; when the block ends well, it takes the name. Raises OSError.

    Until then a kill leaves what was there: the file has no name (O_TMPFILE), or where the file system cannot
    do that a name that nobody guesses, and a lock. The next call removes such files that nobody holds.
    """
    _sweep(folder)
    aside = f".{os.urandom(8).hex()}{NEW}"
    fd = _nameless(folder, mode)
    named = fd is None
    if fd is None:
        fd = os.open(aside, CREATE, mode, dir_fd=folder)
    try:
        with suppress(OSError):  # without locks nothing is swept
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield fd
        if not named:
            os.link(f"{_FDS}/{fd}", aside, dst_dir_fd=folder, follow_symlinks=True)
        rename(folder, aside, name)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise
    finally:
        os.close(fd)


def _nameless(folder: int, mode: int) -> int | None:
    """Return the descriptor of a file without a name; None where it cannot be had, or get a name later."""
    if not os.path.isdir(_FDS):
        return None
    try:
        return os.open(".", _NAMELESS, mode, dir_fd=folder)
    except OSError:
        return None


def _sweep(folder: int) -> None:
    """Remove the new files in a folder whose writers were killed."""
    try:
        fd = os.open(".", _LIST, dir_fd=folder)
    except OSError:  # a folder may be for writing alone
        return
    try:
        names = [name for name in os.listdir(fd) if _ASIDE.fullmatch(name)]
    finally:
        os.close(fd)
    for name in names:
        with suppress(OSError):
            _remove_unheld(folder, name)


def _remove_unheld(folder: int, name: str) -> None:
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return
    fd = os.open(name, _READ, dir_fd=folder)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder)
    finally:
        os.close(fd)


def refresh(path: str, data: bytes) -> None:
    """Put a text in the place of an old text, for everyone to read. It waits for no disk. Raises OSError."""
    with destination(path) as (folder, name), new_file(folder, name, FOR_ALL) as fd:
        write_all(fd, data)
        os.fchmod(fd, FOR_ALL)
