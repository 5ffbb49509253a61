"""New files: under their name there is a whole file or the one before, also after a kill.

A new file is written next to its place and takes the name in a single step: link(2) where the name must be
free, rename(2) or an exchange where an old file has it. All files that nfstuned puts somewhere are made here:
`replace` keeps an administrator's file and its attributes, `ledger` writes into an image.

A file that a user names is reached through links of this user and root alone. A folder that others may write
to can have a link, a pipe or another name of somebody's file under any name (the kernel's
fs.protected_symlinks and its neighbours answer that in sticky folders, where they are on).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate

from nfstuned.host.walk import FOLDER, Walk
from nfstuned.model.change import Content, Link

NEW = ".nfstuned-new"
"""The end of a new file's name until it has its own."""
FOR_ALL, FOLDER_FOR_ALL = 0o644, 0o755
"""Whatever the umask is: these are configuration and metrics, which everyone may read."""
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PRIVATE = 0o600
"""Until a file has its own mode, or the mode of the file that it replaces."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_NAMELESS = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
_FDS = "/proc/self/fd"
_TEMPORARY = re.compile(rf"\.[0-9a-f]{{16}}{re.escape(NEW)}")
_RENAME_EXCHANGE = 2
_UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL})
"""A kernel without the call, and a file system (NFS for example) that cannot exchange."""


@dataclass(slots=True, eq=False)
class NewFile:
    """A file that is being written in the folder with the descriptor `folder`."""

    folder: int
    fd: int
    _name: str
    _named: bool

    def write(self, data: bytes) -> None:
        """Write all of the data. Raises OSError."""
        write_all(self.fd, data)

    def name(self) -> str:
        """Return its temporary name in the folder, which it gets at the first call. Raises OSError."""
        if not self._named:
            os.link(f"{_FDS}/{self.fd}", self._name, dst_dir_fd=self.folder, follow_symlinks=True)
            self._named = True
        return self._name

    def take(self, name: str) -> None:
        """Take a name from the file that has it, which is gone then. Raises OSError."""
        rename(self.folder, self.name(), name)


@contextmanager
def temporary_file(folder: int, mode: int = _PRIVATE) -> Iterator[NewFile]:
    """Yield a new file in a folder; it is removed afterwards unless it has taken a name. Raises OSError.

    A kill while it is written leaves none: the file has no name (O_TMPFILE). A file on a file system that
    cannot do that, or between its temporary and its own name, has a name that nobody guesses, and a lock; the
    next call removes such files without a lock.
    """
    with _temporary_name(folder) as name:
        fd: int | None = None
        if os.path.isdir(_FDS):  # else it could not get a name later
            with suppress(OSError):
                fd = os.open(".", _NAMELESS, mode, dir_fd=folder)
        named = fd is None
        if fd is None:
            fd = os.open(name, _CREATE, mode, dir_fd=folder)
        try:
            with suppress(OSError):  # without locks `remove_leftovers` removes nothing
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield NewFile(folder, fd, name, named)
        finally:
            os.close(fd)


@contextmanager
def finished(folder: int, content: Content) -> Iterator[str]:
    """Yield the temporary name of a synced file that everyone may read, or of a link. Raises OSError.

    Its final name outlives a power failure once the caller has synced the folder.
    """
    if isinstance(content, Link):
        with _temporary_name(folder) as name:
            os.symlink(content.target, name, dir_fd=folder)
            yield name
        return
    with temporary_file(folder) as new:
        new.write(content)
        os.fchmod(new.fd, FOR_ALL)
        os.fsync(new.fd)
        yield new.name()


@contextmanager
def _temporary_name(folder: int) -> Iterator[str]:
    """Yield a name that nothing in the folder has before and afterwards.

    mount.nfs and udev read no file that begins with a dot.
    """
    remove_leftovers(folder)
    name = f".{os.urandom(8).hex()}{NEW}"
    try:
        yield name
    finally:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def remove_leftovers(folder: int) -> None:
    """Remove the temporary files and links in a folder that killed writers left; a link has no lock."""
    try:
        with opened_folder(".", folder) as fd:
            names = [name for name in os.listdir(fd) if _TEMPORARY.fullmatch(name)]
    except OSError:  # a folder may be for writing alone
        return
    for name in names:
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                os.unlink(name, dir_fd=folder)
            elif stat.S_ISREG(status.st_mode):
                # NFS gives an exclusive lock only to a file that is open for writing.
                with open(os.open(name, READ | os.O_RDWR, dir_fd=folder), "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)


def make_folder(path: str) -> bool:
    """Make a folder that everyone may read; return whether nothing had its name. Raises OSError."""
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    os.chmod(path, FOLDER_FOR_ALL)
    return True


def make_folders(path_of: Callable[[str], str], name: str) -> None:
    """Make a folder and those above it; `path_of` returns their paths. Raises OSError."""
    for folder in accumulate(name.split("/"), "{}/{}".format):
        make_folder(path_of(folder))


@contextmanager
def opened_folder(path: str, above: int | None = None) -> Iterator[int]:
    """Open a folder and yield its descriptor, for fsync(2) and for names in it. Raises OSError.

    A relative `path` starts at the folder with the descriptor `above`.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of the data. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def link_name(folder: int, new: str, name: str) -> None:
    """Give a file a name that is free. Raises FileExistsError where it is not, and OSError."""
    os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


def rename(folder: int, new: str, name: str) -> None:
    """Give a file the name of an old file, which is gone then. Raises OSError."""
    os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def exchange(folder: int, new: str, name: str) -> bool:
    """Exchange two names in a folder; return False where that is not possible. Raises OSError."""
    import ctypes  # noqa: PLC0415 - udev's masks do without, and mounts at boot wait for them

    libc = ctypes.CDLL(None, use_errno=True)
    try:
        call = libc.renameat2
    except AttributeError:  # glibc before 2.28, musl before 1.2.6
        return False
    if call(folder, os.fsencode(new), folder, os.fsencode(name), ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), name)


_MODE = 0o666
"""Less the umask, as for every file that a program makes."""
_MODES = 0o777
_WRITE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY
_PROC = "/proc"


class _UserWalk(Walk):
    """A way through links of root and of this user."""

    def target(self, part: str, fd: int, status: os.stat_result) -> str | None:
        """Raise OSError for a link of another user; a descriptor's link in /proc stays the end."""
        if status.st_uid not in {0, os.geteuid()}:
            reason = f"a symbolic link of another user ({status.st_uid}) leads there: name its target"
            raise OSError(errno.ELOOP, reason, self.path)
        try:
            in_proc = status.st_dev == os.stat(_PROC).st_dev
        except OSError:
            in_proc = False
        if not in_proc:
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
    """Raise OSError where no file of this name can be written, as far as that is known beforehand."""
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
        reason = (
            f"it exists already and belongs to another user ({old.st_uid}), in a folder that others write to"
        )
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
