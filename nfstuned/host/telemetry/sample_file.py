"""A file of lines on a disk that other programs fill, who may move or remove it.

It is opened for each batch and closed after it: a file that was moved (logrotate) or removed is simply made
again, and nothing keeps its file system from being unmounted. Every line is a single write(2) to the
end (O_APPEND). Of a line that is cut short, because the disk is full, the beginning is taken away again; a
line that a crash cut short gets its line break with the next, so that it never spoils a good line.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import closing, suppress

from nfstuned.host.files.write import destination, rename
from nfstuned.host.root import Root, demand_local
from nfstuned.model.samples import Appended, SampleFile

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_MODE = 0o644
"""A sample has no more of a mount than /proc/mounts shows to everybody."""


def append(root: Root, target: SampleFile, lines: Sequence[bytes]) -> Appended:
    """Append lines, each with its line break; put the file aside before a line that would make it too large.

    A fault is the result's reason, and ends the batch.
    """
    done = 0
    try:
        demand_local(root, target.path)
        path = root.path(target.path.lstrip("/"))
        with destination(path) as place, closing(_Tail(*place)) as tail:
            for line in lines:
                if tail.size and 0 < target.most_bytes < tail.size + len(line):
                    tail.put_aside(target.keep)
                tail.write(line)
                done += 1
    except OSError as error:
        return Appended(done, error.strerror or str(error))
    return Appended(done)


class _Tail:
    """The end of an open file in a folder. Raises OSError where there can be none."""

    def __init__(self, folder: int, name: str) -> None:
        self._folder = folder
        self._name = name
        self._fd = -1
        self._break = b""
        """The line break that the last line lacks where a crash cut it short."""
        self.size = 0
        self._open(_MODE)

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def write(self, line: bytes) -> None:
        """Append a line, whole or not at all."""
        text = self._break + line
        written = os.write(self._fd, text)
        self.size += written
        if written < len(text):
            self._take_back(written)
            # Only the next write would show which is full, a disk or a quota.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._break = b""

    def put_aside(self, keep: int) -> None:
        """Begin a new file with the mode of this; of the old files so many are kept, `.1` the newest."""
        mode = stat.S_IMODE(os.fstat(self._fd).st_mode)
        self.close()
        for number in range(keep, 0, -1):
            older = self._name if number == 1 else f"{self._name}.{number - 1}"
            with suppress(FileNotFoundError):
                rename(self._folder, older, f"{self._name}.{number}")
        with suppress(FileNotFoundError):
            if keep == 0:
                os.unlink(self._name, dir_fd=self._folder)
        # More were kept before the configuration was changed.
        with suppress(FileNotFoundError):
            for number in range(keep + 1, 1000):
                os.unlink(f"{self._name}.{number}", dir_fd=self._folder)
        self._open(mode)
        with suppress(OSError):
            os.fchmod(self._fd, mode)  # the umask may have taken some of it away

    def _open(self, mode: int) -> None:
        self._fd = os.open(self._name, _FLAGS, mode, dir_fd=self._folder)
        try:
            status = os.fstat(self._fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")  # noqa: TRY301 - the file is closed
            if status.st_nlink > 1:
                # In a folder of another user it may be anybody's file.
                raise OSError(errno.EMLINK, "it has another name as well (a hard link)")  # noqa: TRY301 - as above
            self.size = status.st_size
            last = os.pread(self._fd, 1, self.size - 1) if self.size else b""
        except OSError:
            self.close()
            raise
        self._break = b"" if last in {b"\n", b""} else b"\n"

    def _take_back(self, written: int) -> None:
        """Remove the beginning of a line, unless another program has written behind it."""
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        with suppress(OSError):
            if os.fstat(self._fd).st_size == end:
                os.ftruncate(self._fd, end - written)
                self.size = end - written
