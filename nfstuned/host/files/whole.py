"""Putting a whole file in its place: the steps that every writer of files takes.

A new file is written beside the place that it is for, and takes the name there in a single step: link(2)
where the name must be free, rename(2) or an exchange where an old file has it. Nobody sees half a file.

What differs between writers differs on purpose: `replace` keeps owner, attributes and a backup and looks at
the old file again; `create` and `link_name` never take a name that is in use; `destination` is for folders
that others may write to, and waits for no disk; `output` keeps what a person's own programs would keep.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate

NEW = ".nfstuned-new"
"""What a file's name ends with until it counts."""
FOR_ALL, FOLDER_FOR_ALL = 0o644, 0o755
"""Whatever the umask is: these are configuration and metrics, which everyone may read."""
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_RENAME_EXCHANGE = 2
_UNKNOWN = frozenset({errno.ENOSYS, errno.EINVAL})
"""A kernel without the call, and a file system (NFS is one) that cannot exchange."""


def make_folder(path: str) -> bool:
    """Make a folder that everyone may read; return whether there was none. Raises OSError."""
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    os.chmod(path, FOLDER_FOR_ALL)
    return True


def make_folders(path_of: Callable[[str], str], name: str) -> None:
    """Make a folder and those above it, of which `path_of` gives the paths. Raises OSError."""
    for folder in accumulate(name.split("/"), "{}/{}".format):
        make_folder(path_of(folder))


@contextmanager
def opened_folder(path: str, above: int | None = None) -> Iterator[int]:
    """Open a folder and yield its descriptor, for fsync(2) and for names in it. Raises OSError.

    A relative `path` starts at the folder whose descriptor is `above`.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def temporary_name(folder_fd: int, name: str) -> Iterator[str]:
    """Yield the name, in the folder `folder_fd`, that a new file has until it is called `name`.

    A file that a killed process left under it is removed before; nothing is left under it afterwards.
    mount.nfs and udev read no file that begins with a dot.
    """
    new = f".{name}{NEW}"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=folder_fd)
    try:
        yield new
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder_fd)


def write_new(folder_fd: int, new: str, data: bytes) -> None:
    """Make a file that everyone may read in the folder `folder_fd`, and sync its data. Raises OSError.

    Its name outlives a power failure once the caller has synced the folder.
    """
    fd = os.open(new, CREATE, 0o600, dir_fd=folder_fd)
    try:
        write_all(fd, data)
        os.fchmod(fd, FOR_ALL)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of the data. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def link_name(folder_fd: int, new: str, name: str) -> None:
    """Give a new file its name. Raises FileExistsError where somebody else has got it, and OSError."""
    os.link(new, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd, follow_symlinks=False)


def rename(folder_fd: int, new: str, name: str) -> None:
    """Give a new file the name of an old file, which is gone then. Raises OSError."""
    os.rename(new, name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)


def exchange(folder_fd: int, new: str, name: str) -> bool:
    """Exchange two names in a folder; return False where that is not possible. Raises OSError."""
    import ctypes  # noqa: PLC0415 - udev's masks do without, and mounts at boot wait for them

    libc = ctypes.CDLL(None, use_errno=True)
    try:
        call = libc.renameat2
    except AttributeError:  # glibc before 2.28, musl before 1.2.6
        return False
    if call(folder_fd, os.fsencode(new), folder_fd, os.fsencode(name), ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), name)
