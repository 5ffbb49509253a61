"""Put a new text in the place of a file: whoever looks, and whenever power fails, it is the old or the new.

The new text is written beside the file and takes its name in one step (rename(2)); the old one keeps a name
as the backup. Owner, mode, ACL, SELinux label and other attributes stay.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from nfstuned.host.root import demand_text

BACKUP = ".nfstuned-backup"
"""What a backup's name ends with: nothing that mount.nfs or systemd takes for one of its files."""
_NEW = ".nfstuned-new"
_MODE = 0o644
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_MEASURED = frozenset({"security.ima", "security.evm"})
"""What the kernel computes of a file's content; those of the old text would make the new one unreadable."""
_HINTS = {
    errno.EPERM: "it may be immutable, which lsattr shows and chattr -i takes away",
    errno.EROFS: "mount -o remount,rw makes it writable, where it should be",
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EXDEV: "it is a mount point of its own, as in a container",
}


class LinkError(OSError):
    """The name is a symbolic link, and nobody said that it may be followed."""


@dataclass(frozen=True, slots=True)
class Original:
    """A file as it was read, or that there was none."""

    path: str
    """Where the file itself is, behind any link that was followed."""
    data: bytes = b""
    status: os.stat_result | None = None
    """None where there was no file."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What came of a replacement; `problem` says what was in the way, with the path and what to do."""

    problem: str = ""
    backup: str | None = None
    """Where the old text is; None where there was none, or where it is still in its place."""


def load(path: str, *, follow: bool = False) -> Original:
    """Read a file that is to be replaced; one that is not there is no error.

    Raises LinkError for a symbolic link unless it is to be followed, UnusableError for what is no regular
    file, and OSError.
    """
    if os.path.islink(path):
        if not follow:
            raise LinkError(errno.ELOOP, f"is a symbolic link to {os.readlink(path)}", path)
        path = os.path.realpath(path)
    try:
        fd = os.open(path, _READ)
    except FileNotFoundError:
        return Original(path)
    try:
        status = os.fstat(fd)
        demand_text(status, path)
        return Original(path, _content(fd), status)
    finally:
        os.close(fd)


def replace(original: Original, data: bytes, wrong: Callable[[str], str] | None = None) -> Replaced:
    """Put `data` in the place of a file that is still as it was read; a refusal is a result.

    `wrong` is called with the path of the new text before it counts, and says what is wrong with it, or "".
    Nobody else who uses this function can come between. A kill leaves the old file or the new one, and
    perhaps a backup or a file that ends with ".nfstuned-new", which the next call takes away.
    """
    folder, name = os.path.split(original.path)
    try:
        with _locked(folder) as place:
            return _replace(_Job(place, folder, name, original), data, wrong)
    except BlockingIOError:
        return Replaced(f"{folder}: another nfstuned is changing a file there: try again")
    except OSError as error:
        return Replaced(_said(error, original.path))


@dataclass(frozen=True, slots=True)
class _Job:
    """One replacement: the folder's descriptor and path, the name in it, and what was read there."""

    place: int
    folder: str
    name: str
    original: Original

    @property
    def new(self) -> str:
        """The name of the new text until it counts; mount.nfs reads no drop-in that begins with a dot."""
        return f".{self.name}{_NEW}"


def _replace(job: _Job, data: bytes, wrong: Callable[[str], str] | None) -> Replaced:
    """Write, check, keep the old text, and change the name, in this order. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(job.new, dir_fd=job.place)
    kept = None
    try:
        _write(job, data)
        problem = wrong(os.path.join(job.folder, job.new)) if wrong is not None else ""
        if problem:
            return Replaced(problem)
        kept = _keep(job)
        problem = _changed(job)
        if not problem:
            _switch(job)
    except BaseException:
        _forget(job, kept)
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(job.new, dir_fd=job.place)
    if problem:
        _forget(job, kept)
        return Replaced(problem)
    return _durable(job, os.path.join(job.folder, kept.name) if kept is not None else None)


def _durable(job: _Job, backup: str | None) -> Replaced:
    """Write the names down, so that power can fail."""
    try:
        os.fsync(job.place)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        return Replaced(
            f"{job.original.path} is changed, but may not outlive a power failure: {reason}", backup
        )
    return Replaced(backup=backup)


def _write(job: _Job, data: bytes) -> None:
    """Make the new file with all that belongs to the old one but its text."""
    fd = os.open(job.new, _CREATE, 0o600, dir_fd=job.place)
    try:
        written = 0
        while written < len(data):
            written += os.write(fd, data[written:])
        status = job.original.status
        if status is None:
            os.fchmod(fd, _MODE)
        else:
            # In this order: a change of owner takes mode bits away.
            os.fchown(fd, status.st_uid, status.st_gid)
            os.fchmod(fd, stat.S_IMODE(status.st_mode))
            _copy_attributes(job, fd)
        os.fsync(fd)
    finally:
        os.close(fd)


def _copy_attributes(job: _Job, new: int) -> None:
    """Give the new file the extended attributes of the old one: ACL, SELinux label, the user's own."""
    old = os.open(job.name, _READ, dir_fd=job.place)
    try:
        for name in _attributes(old):
            os.setxattr(new, name, os.getxattr(old, name))
    finally:
        os.close(old)


def _attributes(fd: int) -> list[str]:
    try:
        return [name for name in os.listxattr(fd) if name not in _MEASURED]
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return []
        raise


def _changed(job: _Job) -> str:
    """Return why the file is not the one that was read; "" where it is."""
    before = job.original
    try:
        fd = os.open(job.name, _READ, dir_fd=job.place)
    except FileNotFoundError:
        return "" if before.status is None else f"{before.path} was removed meanwhile: look again"
    try:
        now = os.fstat(fd)
        same = before.status is not None and _identity(now) == _identity(before.status)
        same = same and _content(fd) == before.data
    finally:
        os.close(fd)
    return "" if same else f"{before.path} was changed meanwhile: look again"


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_gid, status.st_size


@dataclass(frozen=True, slots=True)
class _Kept:
    """The name under which the old text is kept, and whether it was made for it."""

    name: str
    made: bool


def _keep(job: _Job) -> _Kept | None:
    """Give the old file a second name, which it keeps when it loses its first: there is no copy to be half.

    A backup that is there already stays, unless it has the same text: the next free number is used.
    """
    if job.original.status is None:
        return None
    for name in _names(job.name + BACKUP):
        try:
            os.link(job.name, name, src_dir_fd=job.place, dst_dir_fd=job.place, follow_symlinks=False)
        except FileExistsError:
            if _text(job, name) == job.original.data:
                return _Kept(name, made=False)
            continue
        return _Kept(name, made=True)
    raise AssertionError("numbers have no end")


def _names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}.{number}"
        number += 1


def _text(job: _Job, name: str) -> bytes | None:
    """Return what a backup holds; None for one that cannot be one."""
    try:
        fd = os.open(name, _READ, dir_fd=job.place)
    except OSError:
        return None
    try:
        return _content(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def _switch(job: _Job) -> None:
    """Let the new file have the name; one that appeared meanwhile is not overwritten where none was."""
    if job.original.status is None:
        os.link(job.new, job.name, src_dir_fd=job.place, dst_dir_fd=job.place, follow_symlinks=False)
    else:
        os.rename(job.new, job.name, src_dir_fd=job.place, dst_dir_fd=job.place)


def _forget(job: _Job, kept: _Kept | None) -> None:
    """Take a backup back that was made for a change that did not come."""
    if kept is not None and kept.made:
        with suppress(OSError):
            os.unlink(kept.name, dir_fd=job.place)


@contextmanager
def _locked(folder: str) -> Iterator[int]:
    """Yield the folder's descriptor; the lock on it ends with the process. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield fd
    finally:
        os.close(fd)


def _content(fd: int) -> bytes:
    chunks = []
    while chunk := os.read(fd, 1 << 18):
        chunks.append(chunk)
    return b"".join(chunks)


def _said(error: OSError, path: str) -> str:
    """Return what was refused, and what to do about it."""
    code = error.errno or 0
    hint = (
        "run it as root"
        if os.geteuid() != 0 and code in {errno.EACCES, errno.EPERM}
        else _HINTS.get(code, "")
    )
    reason = f"{path}: {os.strerror(code)}, so that it is as it was"
    return f"{reason}; {hint}" if hint else reason
