"""Make a file that is not there yet: whoever looks, and whenever power fails, there is none or all of it."""

from __future__ import annotations

import os
from contextlib import suppress

from nfstuned.host.files.replace import CREATE, NEW, locked, said, write_all

_MODE, _FOLDER_MODE = 0o644, 0o755
"""Whatever the umask is: this is configuration, which everyone may read."""


def create(path: str, data: bytes, lock: str) -> str:
    """Make a file, and its folder where there is none; return what was in the way, "" where nothing was.

    `lock` is the file whose lock keeps others away who change files (host.replace). A file that somebody
    else made meanwhile stays as it is. A kill leaves no file or the whole one, and perhaps one that ends
    with ".nfstuned-new", which the next call takes away.
    """
    folder, name = os.path.split(path)
    try:
        with locked(lock):
            _make_folder(folder)
            place = _open(folder)
            try:
                return _create(place, name, data, path)
            finally:
                os.close(place)
    except BlockingIOError:
        return f"another nfstuned is changing a file: try again ({lock} is locked)"
    except OSError as error:
        return said(error, path, lock)


def _make_folder(folder: str) -> None:
    """Make the folder, but not the one that it lies in. Raises OSError."""
    try:
        os.mkdir(folder, _FOLDER_MODE)
    except FileExistsError:
        return
    os.chmod(folder, _FOLDER_MODE)
    parent = _open(os.path.dirname(folder))
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _create(place: int, name: str, data: bytes, path: str) -> str:
    """Write the text beside its place, and give it the name unless somebody else has it. Raises OSError."""
    new = f".{name}{NEW}"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=place)
    try:
        fd = os.open(new, CREATE, 0o600, dir_fd=place)
        try:
            write_all(fd, data)
            os.fchmod(fd, _MODE)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.link(new, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
    except FileExistsError:
        return f"{path} was made meanwhile: look again"
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=place)
    try:
        os.fsync(place)
    except OSError as error:
        return f"{path} was made, but may not outlive a power failure: {os.strerror(error.errno or 0)}"
    return ""


def _open(folder: str) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
