"""Mounts of bench's own, one at a time, in a mount namespace that no other program is in."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING

from nfstuned.host.bench import mount_child
from nfstuned.host.bench.guard import Guard
from nfstuned.host.observe import observe_stanzas_of
from nfstuned.host.root import Root
from nfstuned.model.bench import OwnMount
from nfstuned.model.kernel import Stanza

if TYPE_CHECKING:
    from typing_extensions import Self

ANSWER_S = 60.0
"""For a mount or an unmount: a server may take its time for either."""
FOLDER = "run/nfstuned-bench"
_ENDING = "-nfstuned-bench"
_LONGEST_NAME = 64
"""__NEW_UTS_LEN."""


class OwnMountError(Exception):
    """Why a mount could not be made, or unmounted."""


class OwnMounts:
    """A process that mounts on a folder below /run, seen by nobody else; the guard knows of it before."""

    def __init__(self, root: Root, keeper: Guard, source: str) -> None:
        """Start it. Raises OSError, and OwnMountError where this user may not have namespaces."""
        self._root = root
        self._mounted: OwnMount | None = None
        self.point = root.path(f"{FOLDER}/{keeper.name}")
        # The name is the same at each measurement: a server remembers a client for some time.
        name = os.uname().nodename[: _LONGEST_NAME - len(_ENDING)] + _ENDING
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-I", "-S", mount_child.__file__, self.point, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # ^C is bench's, which ends it through its guard
            cwd="/",
        )
        keeper.mount_holder(self._process.pid, source, self.point)
        os.makedirs(os.path.dirname(self.point), 0o700, exist_ok=True)
        os.mkdir(self.point, 0o700)
        self._ask("go\n", "a mount namespace of its own")

    @property
    def path(self) -> str:
        """The mount's root, as every process can reach it that may look into that one's namespace."""
        return f"/proc/{self._process.pid}/root{self.point}"

    def have(self, wanted: OwnMount | None) -> None:
        """Have this mount, and no other; None for none. Raises OwnMountError."""
        if wanted == self._mounted:
            return
        if self._mounted is not None:
            self._ask("null\n", f"unmounting {self._mounted.source}")
            self._mounted = None
        if wanted is not None:
            self._ask(json.dumps(asdict(wanted)) + "\n", f"mounting {wanted.source} with {wanted.options}")
            self._mounted = wanted

    def stanza(self) -> Stanza | None:
        """Return the counters of the mount; None where they cannot be read."""
        stanzas = observe_stanzas_of(self._root, self._process.pid)
        return next((stanza for stanza in stanzas if stanza.point == self.point), None)

    def _ask(self, line: str, what: str) -> None:
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise OwnMountError(f"{what}: the process that does it has ended") from None
        if not select.select([self._process.stdout], [], [], ANSWER_S)[0]:
            raise OwnMountError(f"{what}: no answer within {ANSWER_S:g} s")
        answer = self._process.stdout.readline().strip()
        if answer != "ok":
            raise OwnMountError(f"{what}: {answer or 'the process that does it has ended'}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Have it unmount and end by itself; the guard sees to what is then still there.

        After ^C fio uses the mount until the guard ends it: nothing is waited for then.
        """
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # of a process that has ended, with a line that it did not take
                self._process.stdin.close()
        ordinary = kind is None or issubclass(kind, Exception)
        deadline = time.monotonic() + (mount_child.BUSY_S if ordinary else 0)
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if self._process.stdout is not None:
            self._process.stdout.close()
