"""The service's files: samples, one a line; metrics; stalls; seen reads; the request to persist nconnect.

Samples are on a disk that other programs fill, in a file that others may move or remove. It is opened for
each batch and closed after it: a file that was moved (logrotate) or removed is simply made again, and nothing
keeps its file system from being unmounted. Every line is a single write(2) to the end (O_APPEND). Where a
full disk cuts a line short, the written part is removed; a line that a crash cut short gets its line break
with the next, so that it never spoils a good line. The other files are replaced.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from posixpath import dirname

from nfstuned.host.files.write import destination, make_folders, refresh, rename
from nfstuned.host.root import Root, demand_local
from nfstuned.model.effect import Seen, seen_to_json
from nfstuned.model.mounts import SEEN_READS
from nfstuned.model.samples import Appended, SampleFile, SuperblockKey
from nfstuned.model.stalls import STALLED, Stalled, stalled_to_json

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_MODE = 0o644
"""A sample shows no more than /proc/mounts and /proc/self/mountstats, which everybody may read."""
_NO_PROGRAM = 0o666
"""The bits of a mode that are copied: no program, and no setuid."""


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
            # A short write does not show which is full, the disk or the quota.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._break = b""

    def put_aside(self, keep: int) -> None:
        """Begin a new file with the mode of this one; keep `keep` old files, `.1` the newest.

        The old file may be another user's, with any mode: the new one is the service's.
        """
        mode = os.fstat(self._fd).st_mode & _NO_PROGRAM
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
                # The owner of the folder may have linked anybody's file there.
                raise OSError(errno.EMLINK, "it has a second name (a hard link)")  # noqa: TRY301 - as above
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


EXPORTED = "/run/nfstuned/metrics.prom"
"""The file that `nfstuned exporter` serves."""
_STDERR = 2
_OWN_ERROR = 255
"""The status of a child that an error in nfstuned ended, after its traceback; no errno is so large."""
_SANDBOX = (
    "; the service may write only below /run/nfstuned: use that folder and link to the file, see nfstuned(8)"
)


class MetricsFile:
    """Replaces a file again and again, a single child at a time; `path` is absolute."""

    def __init__(self, root: Root, path: str) -> None:
        self.path = path
        self._root = root
        self._child = 0
        self._began_s = 0.0

    def write(self, make: Callable[[], bytes]) -> None:
        """Start to write the text that `make` returns in a child; the last write must be `finished`.

        Raises OSError where the path may be on a server, and where fork(2) fails.
        """
        demand_local(self._root, dirname(self.path))
        self._began_s = time.monotonic()
        self._child = os.fork()
        if self._child == 0:
            _be_the_child(self._root.path(self.path[1:]), make)

    @property
    def writing(self) -> bool:
        """Whether a write began that was not seen to end."""
        return self._child != 0

    @property
    def age_s(self) -> float:
        """Return how long ago the last write began."""
        return time.monotonic() - self._began_s

    def finished(self) -> str | None:
        """Return "" when the last write succeeded (or none began), why it failed, None while it goes on.

        It must be asked after each write, or the child that ended stays a zombie.
        """
        if self._child == 0:
            return ""
        try:
            pid, status = os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:  # somebody else reaped it: its status is lost
            pid, status = self._child, 0
        if pid == 0:
            return None
        self._child = 0
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        if code < 0:
            return f"signal {-code} ended the process that wrote it"
        if code == _OWN_ERROR:
            return "an error in nfstuned; please report the traceback that it printed"
        return os.strerror(code) + (_SANDBOX if code == errno.EROFS else "")


def _be_the_child(path: str, make: Callable[[], bytes]) -> None:
    """Write, and end with the error's number."""
    code = _OWN_ERROR
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        refresh(path, make())
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        try:
            if code == _OWN_ERROR:
                import traceback  # noqa: PLC0415 - slow to load; the service has it loaded already

                os.write(_STDERR, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)


def write_stalls(root: Root, stalled: Stalled, next_s: float) -> None:
    """Replace the file by the stalls of this look; the next look is due at `next_s`. Raises OSError.

    Times are of CLOCK_MONOTONIC, which every process shares and which no setting of the clock moves.
    """
    make_folders(root.path, dirname(STALLED))
    refresh(root.path(STALLED), stalled_to_json(stalled, next_s).encode())


def write_seen(root: Root, seen: Mapping[SuperblockKey, Seen]) -> None:
    """Replace the file by the present knowledge of reads. Raises OSError."""
    make_folders(root.path, dirname(SEEN_READS))
    refresh(root.path(SEEN_READS), seen_to_json(seen).encode())


REQUEST = "run/nfstuned/persist"
"""As in systemd/nfstuned-persist.path; the service takes it away when it begins."""


def request_persist(root: Root) -> None:
    """Ask nfstuned-persist.service to write the drop-in of nfsmount.conf. Raises OSError.

    A second request before the service begins changes nothing.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(root.path(REQUEST), flags, 0o600))
