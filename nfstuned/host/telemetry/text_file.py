"""The metrics as a file for node_exporter's textfile collector, written by a child.

A disk can be slow, and a folder can turn out to be on a server that is dead: the child waits for them, and
nobody waits for the child.
"""

from __future__ import annotations

import errno
import os
import signal
import traceback
from collections.abc import Callable

from nfstuned.host.files.destination import refresh

_STDERR, _FIRST_FD = 2, 3
_MOST_FDS = 4096
_MISTAKE = 255
"""The status of a child that failed by an error of nfstuned's own, which it prints: no errno is so large."""


class TextfileWriter:
    """Replaces a file again and again, a single child at a time."""

    def __init__(self) -> None:
        self._child = 0

    def write(self, path: str, make: Callable[[], bytes]) -> None:
        """Start to write what `make` returns, in a child; the last write must be `finished`.

        Raises OSError where no child can be had.
        """
        self._child = os.fork()
        if self._child == 0:
            _run(path, make)

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
            return "an error in nfstuned; please report what the process that wrote it printed"
        hint = "; the service's sandbox needs nfstuned-metrics.conf, see nfstuned(8)"
        return os.strerror(code) + (hint if code == errno.EROFS else "")


def _run(path: str, make: Callable[[], bytes]) -> None:
    """Be the child: write, and end with the error's number."""
    code = _MISTAKE
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        # The daemon's sockets: a scraper must not wait for this process to see that they were closed.
        os.closerange(_FIRST_FD, _MOST_FDS)
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
