"""A file of metrics, replaced by a child process: the service waits for no disk."""

from __future__ import annotations

import errno
import os
import signal
import traceback
from collections.abc import Callable
from posixpath import dirname

from nfstuned.host.files.output import refresh
from nfstuned.host.root import Root, demand_local

EXPORTED = "/run/nfstuned/metrics.prom"
"""The file that `nfstuned exporter` serves."""
_STDERR = 2
_MISTAKE = 255
"""The status of a child that an error of nfstuned's own ended, which it prints: no errno is so large."""
_SANDBOX = (
    "; the service may only write below /run/nfstuned: use that folder and link to the file, see nfstuned(8)"
)


class MetricsFile:
    """Replaces a file again and again, a single child at a time; `path` is absolute."""

    def __init__(self, root: Root, path: str) -> None:
        self.path = path
        self._root = root
        self._child = 0

    def write(self, make: Callable[[], bytes]) -> None:
        """Start to write the text that `make` returns in a child; the last write must be `finished`.

        Raises OSError where the path may be on a server, and where no child can be had.
        """
        demand_local(self._root, dirname(self.path))
        self._child = os.fork()
        if self._child == 0:
            _be_the_child(self._root.path(self.path[1:]), make)

    @property
    def writing(self) -> bool:
        """Whether a write began that was not seen to end."""
        return self._child != 0

    def finished(self) -> str | None:
        """Return "" when the last write succeeded (or none began), why it failed, None while it goes on.

        It must be asked after each write, or the child that ended stays a zombie.
        """
        if self._child == 0:
            return ""
        try:
            pid, status = os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:
            pid, status = self._child, 0
        if pid == 0:
            return None
        self._child = 0
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        if code < 0:
            return f"the process that wrote it was ended by signal {-code}"
        if code == _MISTAKE:
            return "an error in nfstuned; please report the traceback that it printed"
        return os.strerror(code) + (_SANDBOX if code == errno.EROFS else "")


def _be_the_child(path: str, make: Callable[[], bytes]) -> None:
    """Write, and end with the error's number."""
    code = _MISTAKE
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
            if code == _MISTAKE:
                os.write(_STDERR, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)
