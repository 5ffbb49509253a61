"""An administrator's file with a new text, or made: whole at any moment, also after a power failure.

The new file takes the name in a single step; the old file keeps a name as the backup. Owner, mode, ACL,
SELinux label and other attributes stay.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from nfstuned.host.files.write import (
    READ,
    NewFile,
    exchange,
    finished,
    link_name,
    make_folder,
    opened_folder,
    rename,
    temporary_file,
)
from nfstuned.host.root import demand_text, parts_of

LOCK = "run/nfstuned/replace.lock"
"""Below a root; only root may write into the folder, which systemd keeps when the service ends."""
BACKUP = ".nfstuned-backup"
"""The end of a backup's name: mount.nfs and systemd read no such file."""
_MEASURED = frozenset({"security.ima", "security.evm"})
"""Computed by the kernel from the content; those of the old text would make the new text unreadable."""
_ACCESS_LIST = "system.posix_acl_access"
_HINTS = {
    errno.EPERM: "it may be immutable: lsattr shows that, and chattr -i removes it",
    errno.EROFS: "mount -o remount,rw makes it writable, if it should be",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EXDEV: "it is a mount point of its own, as in a container",
}


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was read."""

    path: str
    """The path of the file itself, behind any link that was followed."""
    data: bytes
    status: os.stat_result


@dataclass(frozen=True, slots=True)
class Replaced:
    """The result of a replacement; `problem` names the path, the obstacle and the remedy."""

    problem: str = ""
    backup: str | None = None
    """The path of the old text; None where it is still in its place."""


class LinkError(OSError):
    """The name is a symbolic link, which may not be followed."""


def read_original(path: str, *, follow: bool = False) -> Original:
    """Read a file that is to be replaced.

    Raises LinkError for a symbolic link unless it is to be followed, UnusableError for anything else that is
    no regular file, and OSError.
    """
    if os.path.islink(path):
        if not follow:
            raise LinkError(errno.ELOOP, f"is a symbolic link to {os.readlink(path)}", path)
        path = os.path.realpath(path)
    fd = os.open(path, READ)
    try:
        status = os.fstat(fd)
        demand_text(status, path)
        return Original(path, _text(fd), status)
    finally:
        os.close(fd)


def replace_file(
    original: Original, data: bytes, lock: str, objection: Callable[[str], str] | None = None
) -> Replaced:
    """Give a file that is still as it was read the text `data`; a refusal is a result.

    The lock of the file `lock` keeps other callers away: without it nothing is changed. `objection` is
    called with the path of the new text before it counts, and returns the reason against it, or "". A kill
    leaves the old file or the new file, perhaps a backup, and at worst a temporary file, which the next call
    removes.
    """
    folder, name = os.path.split(original.path)

    def change() -> Replaced:
        with opened_folder(folder) as folder_fd, temporary_file(folder_fd) as new:
            new.write(data)
            _copy_attributes(new, name, original.status)
            os.fsync(new.fd)
            if objection is not None and (problem := objection(os.path.join(folder, new.name()))):
                return Replaced(problem)
            return _take_over(new, name, original)

    return _with_lock(lock, original.path, change)


def create(path: str, data: bytes, lock: str) -> str:
    """Make a file and its missing folder; return the obstacle, "" without one.

    The folder above must be there. `lock` is as for `replace_file`. A file that somebody else made meanwhile
    stays as it is. A kill leaves no file or the whole file.
    """
    folder, name = os.path.split(path)

    def change() -> Replaced:
        if make_folder(folder):
            with opened_folder(os.path.dirname(folder)) as above:
                os.fsync(above)
        with opened_folder(folder) as folder_fd:
            try:
                with finished(folder_fd, data) as new:
                    link_name(folder_fd, new, name)
            except FileExistsError:
                return Replaced(f"{path} was made meanwhile: look again")
            try:
                os.fsync(folder_fd)
            except OSError as error:
                reason = os.strerror(error.errno or 0)
                return Replaced(f"{path} was made, but may not outlive a power failure: {reason}")
        return Replaced()

    return _with_lock(lock, path, change).problem


def read_own_file(path: str) -> Original | None:
    """Return a file of nfstuned's own as it is; None for an absent file.

    Raises OSError: LinkError for a symbolic link, UnusableError for anything but a regular file.
    """
    try:
        return read_original(path)
    except FileNotFoundError:
        return None


def write_own_file(path: str, original: Original | None, text: str, lock: str) -> str:
    """Replace the file that was read by a text, or make it; return the obstacle, "" without one.

    No backup stays: only a text that nfstuned wrote may be replaced, so that nobody's words are in it.
    """
    data = text.encode("utf-8", "surrogateescape")
    if original is None:
        return create(path, data, lock)
    done = replace_file(original, data, lock)
    if not done.problem and done.backup is not None:
        with suppress(OSError):
            os.unlink(done.backup)
    return done.problem


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold a lock, which ends with the process. Raises BlockingIOError where it is held, and OSError."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    make_folder(folder)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _with_lock(lock: str, path: str, change: Callable[[], Replaced]) -> Replaced:
    """Return the result of a change of `path` under the lock; an OSError is a refusal."""
    try:
        with locked(lock):
            return change()
    except BlockingIOError:
        return Replaced(f"another nfstuned changes a file: try again ({lock} is locked)")
    except OSError as error:
        code = error.errno or 0
        denied = os.geteuid() != 0 and code in {errno.EACCES, errno.EPERM}
        hint = "run it as root" if denied else _HINTS.get(code, "")
        failed = lock if lock.startswith(str(error.filename)) else path
        reason = f"{failed}: {os.strerror(code)}, so that {'it' if failed == path else path} is as it was"
        return Replaced(f"{reason}; {hint}" if hint else reason)


def _take_over(new: NewFile, name: str, original: Original) -> Replaced:
    """Keep the old text, let the new file have the name, and return where each is. Raises OSError.

    An error does not prove that nothing was done: a server of NFS may have lost its answer, and Ctrl-C may
    come late.
    """
    backup = _make_backup(new.folder, name, original.data)
    path = os.path.join(os.path.dirname(original.path), backup.name)
    try:
        problem = _changed(new.folder, name, original) or _switch(new, name, original)
        if problem and _drop_backup(new.folder, name, backup):
            return Replaced(problem)
        if problem:
            return Replaced(f"{problem}; the old file is {path}", path)
        os.fsync(new.folder)
    except BaseException as error:
        expected = isinstance(error, (OSError, KeyboardInterrupt))
        if _drop_backup(new.folder, name, backup) or not expected:
            raise
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else "it was interrupted"
        problem = f"{original.path} was changed, but may not outlive a power failure: {reason}"
        return Replaced(f"{problem}; the old file is {path}", path)
    return Replaced(backup=path)


def _switch(new: NewFile, name: str, original: Original) -> str:
    """Let the new file have the name; return why it could not stay, "" where it did. Raises OSError.

    The file that had the name comes out, so that one which an editor put there at the last moment goes back.
    """
    if not exchange(new.folder, new.name(), name):
        rename(new.folder, new.name(), name)
        return ""
    problem = "not known"
    try:
        problem = _changed(new.folder, new.name(), original)
    finally:
        if problem:
            exchange(new.folder, new.name(), name)
    return problem


def _changed(folder: int, name: str, original: Original) -> str:
    """Return why a name's file is not the same that was read; "" where it is. Raises OSError."""
    try:
        fd = os.open(name, READ, dir_fd=folder)
    except FileNotFoundError:
        return f"{original.path} was removed meanwhile: look again"
    try:
        same = _identity(os.fstat(fd)) == _identity(original.status) and _text(fd) == original.data
    finally:
        os.close(fd)
    return "" if same else f"{original.path} was changed meanwhile: look again"


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size


def _text(fd: int) -> bytes:
    return b"".join(parts_of(fd))


def _copy_attributes(new: NewFile, name: str, status: os.stat_result) -> None:
    """Give a new file the owner, the mode and the extended attributes of the file with the name."""
    # In this order: a change of owner takes mode bits away, and with the access list that the folder gives to
    # new files the mode would let in whom that list names.
    os.fchown(new.fd, status.st_uid, status.st_gid)
    try:
        os.removexattr(new.fd, _ACCESS_LIST)
    except OSError as error:
        if error.errno not in {errno.ENODATA, errno.ENOTSUP}:
            raise
    os.fchmod(new.fd, stat.S_IMODE(status.st_mode))
    old = os.open(name, READ, dir_fd=new.folder)
    try:
        try:
            names = [attribute for attribute in os.listxattr(old) if attribute not in _MEASURED]
        except OSError as error:
            if error.errno != errno.ENOTSUP:  # a file system without attributes
                raise
            names = []
        for attribute in names:
            os.setxattr(new.fd, attribute, os.getxattr(old, attribute))
    finally:
        os.close(old)


@dataclass(frozen=True, slots=True)
class _Backup:
    """The name under which the old text is kept."""

    name: str
    made: bool
    """It was made for this; else it was there, with the same text."""
    file: os.stat_result
    """The file that had the first name then."""


def _make_backup(folder: int, name: str, data: bytes) -> _Backup:
    """Give a file with the text `data` a second name in its folder. Raises OSError.

    A backup that is there already stays, unless it has the same text: the next free number is used.
    """
    second = name + BACKUP
    number = 1
    while True:
        try:
            link_name(folder, name, second)
        except FileExistsError:
            if _backup_text(folder, second) == data:
                return _Backup(second, made=False, file=_status(folder, name))
        else:
            return _Backup(second, made=True, file=_status(folder, second))
        number += 1
        second = f"{name}{BACKUP}.{number}"


def _drop_backup(folder: int, name: str, backup: _Backup) -> bool:
    """Take back a backup that was made for a change that did not come; return whether it did not come.

    While the old file has its first name it needs no second; without the first, the second is all that is
    left of it.
    """
    try:
        still = os.path.samestat(_status(folder, name), backup.file)
    except OSError:
        return False
    if still and backup.made:
        os.unlink(backup.name, dir_fd=folder)
    return still


def _backup_text(folder: int, name: str) -> bytes | None:
    """Return the text of a backup; None for anything that cannot be a backup."""
    try:
        fd = os.open(name, READ, dir_fd=folder)
    except OSError:
        return None
    try:
        return _text(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def _status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)
