"""Put a new text in the place of a file, or make the file: it is whole at any moment, and after power failed.

The new text is written beside the file and takes its name in a single step (rename(2)); the old file keeps a
name as the backup. Owner, mode, ACL, SELinux label and other attributes stay.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nfstuned.host.files.whole import (
    CREATE,
    exchange,
    link_name,
    make_folder,
    opened_folder,
    rename,
    temporary_name,
    write_all,
    write_new,
)
from nfstuned.host.root import demand_text

LOCK = "run/nfstuned/replace.lock"
"""Below a root; only root may write into the folder, which systemd keeps when the service ends."""
BACKUP = ".nfstuned-backup"
"""What a backup's name ends with: nothing that mount.nfs or systemd takes for a file of its own."""
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_MEASURED = frozenset({"security.ima", "security.evm"})
"""What the kernel computes of a file's content; those of the old text would make the new text unreadable."""
_ACCESS_LIST = "system.posix_acl_access"
_HINTS = {
    errno.EPERM: "it may be immutable, which lsattr shows and chattr -i takes away",
    errno.EROFS: "mount -o remount,rw makes it writable, where it should be",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EXDEV: "it is a mount point of its own, as in a container",
}


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


@dataclass(frozen=True, slots=True)
class _Backup:
    """The name under which the old text is kept."""

    name: str
    made: bool
    """It was made for this; else it was there, with the same text."""
    file: os.stat_result
    """The file that had the first name then."""


def _make_backup(folder_fd: int, name: str, data: bytes) -> _Backup:
    """Give a file of the folder `folder_fd`, whose text is `data`, a second name. Raises OSError.

    A backup that is there already stays, unless it has the same text: the next free number is used.
    """
    second = name + BACKUP
    number = 1
    while True:
        try:
            link_name(folder_fd, name, second)
        except FileExistsError:
            if _backup_text(folder_fd, second) == data:
                return _Backup(second, made=False, file=_status(folder_fd, name))
        else:
            return _Backup(second, made=True, file=_status(folder_fd, second))
        number += 1
        second = f"{name}{BACKUP}.{number}"


def _drop_backup(folder_fd: int, name: str, backup: _Backup) -> bool:
    """Take back a backup that was made for a change that did not come; return whether it did not come.

    Whatever was said of the change: while the old file has its first name it needs no second, and without
    the first the second is all that is left of it.
    """
    try:
        still = os.path.samestat(_status(folder_fd, name), backup.file)
    except OSError:
        return False
    if still and backup.made:
        os.unlink(backup.name, dir_fd=folder_fd)
    return still


def content(fd: int) -> bytes:
    """Return what a descriptor has to read. Raises OSError."""
    chunks = []
    while chunk := os.read(fd, 1 << 18):
        chunks.append(chunk)
    return b"".join(chunks)


def _status(folder_fd: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)


def _backup_text(folder_fd: int, name: str) -> bytes | None:
    """Return what a backup holds; None for what cannot be a backup."""
    try:
        fd = os.open(name, _READ, dir_fd=folder_fd)
    except OSError:
        return None
    try:
        return content(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


class LinkError(OSError):
    """The name is a symbolic link, and nobody said that it may be followed."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was read."""

    path: str
    """Where the file itself is, behind any link that was followed."""
    data: bytes
    status: os.stat_result


@dataclass(frozen=True, slots=True)
class Replaced:
    """What came of a replacement; `problem` says what was in the way, with the path and what to do."""

    problem: str = ""
    backup: str | None = None
    """Where the old text is; None where it is still in its place."""


def load(path: str, *, follow: bool = False) -> Original:
    """Read a file that is to be replaced.

    Raises LinkError for a symbolic link unless it is to be followed, UnusableError for what is no regular
    file, and OSError.
    """
    if os.path.islink(path):
        if not follow:
            raise LinkError(errno.ELOOP, f"is a symbolic link to {os.readlink(path)}", path)
        path = os.path.realpath(path)
    fd = os.open(path, _READ)
    try:
        status = os.fstat(fd)
        demand_text(status, path)
        return Original(path, content(fd), status)
    finally:
        os.close(fd)


def replace(
    original: Original, data: bytes, lock: str, wrong: Callable[[str], str] | None = None
) -> Replaced:
    """Put `data` in the place of a file that is still as it was read; a refusal is a result.

    `lock` is the file whose lock keeps others who use this function away: without it nothing is changed.
    `wrong` is called with the path of the new text before it counts, and says what is wrong with it, or "".
    A kill leaves the old file or the new file, and perhaps a backup or a file that ends with ".nfstuned-new",
    which the next call takes away.
    """
    folder, name = os.path.split(original.path)
    try:
        with locked(lock), opened_folder(folder) as folder_fd, temporary_name(folder_fd, name) as new:
            job = _Job(folder_fd, new, name, original)
            _write(job, data)
            if wrong is not None and (problem := wrong(os.path.join(folder, new))):
                return Replaced(problem)
            return _take_over(job, folder)
    except BlockingIOError:
        return Replaced(f"another nfstuned is changing a file: try again ({lock} is locked)")
    except OSError as error:
        return Replaced(refusal(error, original.path, lock))


def create(path: str, data: bytes, lock: str) -> str:
    """Make a file, and its folder where there is none; return what was in the way, "" where nothing was.

    The folder above must be there. `lock` is the file whose lock keeps others away who change files.
    A file that somebody else made meanwhile stays as it is. A kill leaves no file or the
    whole file, and perhaps another that ends with ".nfstuned-new", which the next call takes away.
    """
    folder, name = os.path.split(path)
    try:
        with locked(lock):
            if make_folder(folder):
                with opened_folder(os.path.dirname(folder)) as above:
                    os.fsync(above)
            with opened_folder(folder) as folder_fd:
                try:
                    with temporary_name(folder_fd, name) as new:
                        write_new(folder_fd, new, data)
                        link_name(folder_fd, new, name)
                except FileExistsError:
                    return f"{path} was made meanwhile: look again"
                try:
                    os.fsync(folder_fd)
                except OSError as error:
                    reason = os.strerror(error.errno or 0)
                    return f"{path} was made, but may not outlive a power failure: {reason}"
                return ""
    except BlockingIOError:
        return f"another nfstuned is changing a file: try again ({lock} is locked)"
    except OSError as error:
        return refusal(error, path, lock)


@dataclass(frozen=True, slots=True)
class _Job:
    """A replacement: the folder's descriptor, the new file's name in it, the name to have, what was read."""

    folder_fd: int
    new: str
    name: str
    original: Original


def _take_over(job: _Job, folder: str) -> Replaced:
    """Keep the old text, let the new file have the name, and say what is where. Raises OSError.

    An error does not tell that nothing was done: a server of NFS may have lost its answer, and whoever
    presses Ctrl-C may press it late.
    """
    backup = _make_backup(job.folder_fd, job.name, job.original.data)
    path = os.path.join(folder, backup.name)
    try:
        problem = _changed(job, job.name) or _switch(job)
        if problem and _drop_backup(job.folder_fd, job.name, backup):
            return Replaced(problem)
        if problem:
            return Replaced(f"{problem}; the old file is {path}", path)
        os.fsync(job.folder_fd)
    except BaseException as error:
        expected = isinstance(error, (OSError, KeyboardInterrupt))
        if _drop_backup(job.folder_fd, job.name, backup) or not expected:
            raise
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else "it was interrupted"
        problem = f"{job.original.path} was changed, but may not outlive a power failure: {reason}"
        return Replaced(f"{problem}; the old file is {path}", path)
    return Replaced(backup=path)


def _write(job: _Job, data: bytes) -> None:
    """Make the new file with all that belongs to the old file but its text."""
    fd = os.open(job.new, CREATE, 0o600, dir_fd=job.folder_fd)
    try:
        write_all(fd, data)
        status = job.original.status
        # In this order: a change of owner takes mode bits away, and with the access list that the folder
        # gives to new files the mode would let in whom that list names.
        os.fchown(fd, status.st_uid, status.st_gid)
        try:
            os.removexattr(fd, _ACCESS_LIST)
        except OSError as error:
            if error.errno not in {errno.ENODATA, errno.ENOTSUP}:
                raise
        os.fchmod(fd, stat.S_IMODE(status.st_mode))
        _copy_attributes(job, fd)
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy_attributes(job: _Job, new: int) -> None:
    """Give the new file the extended attributes of the old file: ACL, SELinux label, the user's own."""
    old = os.open(job.name, _READ, dir_fd=job.folder_fd)
    try:
        for name in _attributes(old):
            os.setxattr(new, name, os.getxattr(old, name))
    finally:
        os.close(old)


def _attributes(fd: int) -> list[str]:
    """Return the names of the attributes to copy; none where the file system has none. Raises OSError."""
    try:
        return [name for name in os.listxattr(fd) if name not in _MEASURED]
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


def _changed(job: _Job, name: str) -> str:
    """Return why a name's file is not the same that was read; "" where it is. Raises OSError."""
    before = job.original
    try:
        fd = os.open(name, _READ, dir_fd=job.folder_fd)
    except FileNotFoundError:
        return f"{before.path} was removed meanwhile: look again"
    try:
        same = _identity(os.fstat(fd)) == _identity(before.status) and content(fd) == before.data
    finally:
        os.close(fd)
    return "" if same else f"{before.path} was changed meanwhile: look again"


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size


def _switch(job: _Job) -> str:
    """Let the new file have the name; return why it could not stay, "" where it did. Raises OSError.

    What the name had comes out, so that a file which an editor put there at the last moment goes back.
    """
    if not exchange(job.folder_fd, job.new, job.name):
        rename(job.folder_fd, job.new, job.name)
        return ""
    problem = "not known"
    try:
        problem = _changed(job, job.new)
    finally:
        if problem:
            exchange(job.folder_fd, job.new, job.name)
    return problem


def refusal(error: OSError, path: str, lock: str) -> str:
    """Return what was refused, and what to do about it."""
    code = error.errno or 0
    hint = (
        "run it as root"
        if os.geteuid() != 0 and code in {errno.EACCES, errno.EPERM}
        else _HINTS.get(code, "")
    )
    failed = lock if lock.startswith(str(error.filename)) else path
    reason = f"{failed}: {os.strerror(code)}, so that {'it' if failed == path else path} is as it was"
    return f"{reason}; {hint}" if hint else reason
