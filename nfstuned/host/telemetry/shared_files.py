"""Files that the service replaces for other processes: its metrics, and the superblocks that wait."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable
from posixpath import dirname

from nfstuned.host.files.write import make_folders, refresh
from nfstuned.host.root import Root, demand_local
from nfstuned.model.samples import Stall, Stalled

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
                import traceback  # noqa: PLC0415 - it is slow to load, and the service has it

                os.write(_STDERR, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(code)


_FOLDER, _STALLED = "run/nfstuned", "stalled.json"
LATE_S = 30.0
"""A look that is due for longer does not come: the daemon was stopped."""


def write_stalls(root: Root, stalled: Stalled, next_s: float) -> None:
    """Replace the look before by this; `next_s` is when the next is due. Raises OSError.

    Times are of CLOCK_MONOTONIC, which every process shares and which no setting of the clock moves.
    """
    rows = [[*identity, *stall] for identity, stall in stalled.stalls.items()]
    text = json.dumps({"looked_s": stalled.now_s, "next_s": next_s, "stalled": rows})
    make_folders(root.path, _FOLDER)
    refresh(root.path(f"{_FOLDER}/{_STALLED}"), text.encode())


def read_stalls(root: Root) -> Stalled | None:
    """Return the superblocks that wait; None without a daemon that samples."""
    now_s = time.monotonic()
    try:
        found = json.loads(root.read_or_empty(f"{_FOLDER}/{_STALLED}"))
        if not found["looked_s"] <= now_s <= found["next_s"] + LATE_S:
            return None
        stalls = {(device, bdi): _stall(*rest) for device, bdi, *rest in found["stalled"]}
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return Stalled(now_s, stalls)


def _stall(since_s: float, requests: int | None, operations: list[str], *recovering: object) -> Stall:
    return Stall(float(since_s), requests, tuple(map(str, operations)), recovering == (True,))
