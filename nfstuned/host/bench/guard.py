"""A process that outlives bench for a moment, to put back bench's changes: also after kill -9.

It also makes bench's own mounts, in a mount namespace that no other program is in.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict

from nfstuned.host.bench import guard_child
from nfstuned.host.observe import observe_stanzas_of
from nfstuned.host.read_ahead import Bdi
from nfstuned.host.root import Root
from nfstuned.host.tools import run_tool
from nfstuned.model.bench import OwnMount
from nfstuned.model.kernel import Stanza

END_S = 60.0
"""For a mount, an unmount, or the removal of the files: a server may take its time for each."""
FOLDER = "run/nfstuned-bench"
_PREFIX = ".nfstuned-bench-"
_DONE = "ok"
"""The guard's answer to a line that is in its record, or done."""
_HOST_NAME_ENDING = "-nfstuned-bench"
_LONGEST_HOST_NAME = 64
"""__NEW_UTS_LEN."""


def record_folder(root: Root) -> str:
    """Return the folder of a user's records; the next bench reads them, also after a boot."""
    if os.geteuid() == 0:
        return root.path("var/lib/nfstuned/bench")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return f"{state}/nfstuned/bench"


class Guard:
    """The connection to the guard's process. Bench announces each change before it makes the change."""

    def __init__(self, folder: str, target: str) -> None:
        """Start it; `folder` is where records are and `target` the folder of the mount that is measured."""
        os.makedirs(folder, 0o700, exist_ok=True)
        name = self.name = f"{os.getpid()}-{secrets.token_hex(6)}"
        self.path = f"{target.rstrip('/')}/{_PREFIX}{name}"
        """The folder to measure in, which nobody has made yet."""
        self.record = f"{folder}/{name}.jsonl"
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [*_child("guard"), self.record],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # ^C is not for it
        )
        own, guard = os.getpid(), self.pid
        guards = {"guard": guard, "guard_began": guard_child.start_of(guard)}
        self.demand("owner", pid=own, began=guard_child.start_of(own), target=target, **guards)

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    def folder(self, point: str) -> None:
        """Have the folder removed from the mount on `point`; by the next start where the mount is gone."""
        self.demand("empty-folder", path=self.path, point=point)

    def files(self, inode: int) -> None:
        """Have bench's files removed from the folder, if it is still the one with this inode."""
        self.demand("files", path=self.path, inode=inode)

    def read_ahead(self, bdi: Bdi, kb: int) -> None:
        """Have a superblock's read-ahead set back."""
        self.demand("read-ahead", file=bdi.name, inode=bdi.inode, kb=kb)

    def program(self, pid: int) -> None:
        """Have a program ended."""
        self.demand("program", pid=pid, began=guard_child.start_of(pid))

    def demand(self, kind: str, **item: object) -> None:
        """Send a line, wait for its answer. Raises OSError unless it is done: nothing may be changed then."""
        answer = self.ask(kind, **item)
        if answer != _DONE:
            raise OSError(f"{self.record}: {answer}")

    def ask(self, kind: str, **item: object) -> str:
        """Send a line; return the answer, which is a reason unless the line is done."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        with suppress(BrokenPipeError):  # a guard that could not write its record gives the reason and ends
            self._process.stdin.write(json.dumps({"kind": kind, **item}) + "\n")
            self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], END_S)[0]:
            return f"no answer within {END_S:g} s"
        return self._process.stdout.readline().strip() or "the guard has ended"

    def end(self) -> tuple[str, ...]:
        """Let everything be put back; return the rest, which the next start tries again.

        A guard that was killed has put nothing back, and has no answer.
        """
        try:
            answers, _ = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            return (f"the server has not answered for {END_S:g} s; {self.path} is removed when it does",)
        # After ^C there may be an answer that nobody read.
        left = tuple(line for line in answers.splitlines() if line != _DONE)
        if self._process.returncode and not left:
            later = "the next bench of the same folder puts them back"
            return (f"the changes in {self.record}: the guard has ended, and {later}",)
        return left


class OwnMountError(Exception):
    """Why a mount could not be made, or unmounted."""


class OwnMounts:
    """Mounts of bench's own, one at a time, on a folder below /run; they end with the guard's process."""

    def __init__(self, root: Root, keeper: Guard) -> None:
        """Give the guard namespaces of its own. Raises OSError, and OwnMountError where that is forbidden."""
        self._root = root
        self._keeper = keeper
        self._mounted: OwnMount | None = None
        self.point = root.path(f"{FOLDER}/{keeper.name}")
        # The name is the same at each measurement: a server remembers a client for some time.
        name = os.uname().nodename[: _LONGEST_HOST_NAME - len(_HOST_NAME_ENDING)] + _HOST_NAME_ENDING
        keeper.demand("point", path=self.point)
        os.makedirs(os.path.dirname(self.point), 0o700, exist_ok=True)
        os.mkdir(self.point, 0o700)
        self._demand("a mount namespace of its own", "separate", name=name)

    @property
    def path(self) -> str:
        """The mount's root, for processes that may look into the guard's namespace."""
        return f"/proc/{self._keeper.pid}/root{self.point}"

    def have(self, wanted: OwnMount | None) -> None:
        """Have this mount, and no other; None for no mount. Raises OwnMountError."""
        if wanted == self._mounted:
            return
        if self._mounted is not None:
            self._demand(f"unmounting {self._mounted.source}", "unmount")
            self._mounted = None
        if wanted is not None:
            about = f"mounting {wanted.source} with {wanted.options}"
            self._demand(about, "mount", point=self.point, **asdict(wanted))
            self._mounted = wanted

    def stanza(self) -> Stanza | None:
        """Return the counters of the mount; None where they cannot be read."""
        stanzas = observe_stanzas_of(self._root, self._keeper.pid)
        return next((stanza for stanza in stanzas if stanza.point == self.point), None)

    def _demand(self, about: str, kind: str, **item: object) -> None:
        answer = self._keeper.ask(kind, **item)
        if answer != _DONE:
            raise OwnMountError(f"{about}: {answer}")


def leftovers(folder: str, target: str) -> Iterator[str]:
    """Yield the records of a folder without a bench process; the guard may still be at work."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            record = f"{folder}/{name}"
            try:
                with open(record, encoding="utf-8") as file:
                    owner = json.loads(file.readline())
                mine = owner["target"] == target
                alive = guard_child.start_of(int(owner["pid"])) == owner["began"]
            except (OSError, KeyError, TypeError, ValueError):
                continue
            if mine and not alive:
                yield record


def clean_up(record: str) -> str:
    """Put back everything that a record names; return the rest, which is all while its guard still runs."""
    with open(record, encoding="utf-8") as file:
        owner = json.loads(file.readline())
    if "guard" in owner and guard_child.start_of(int(owner["guard"])) == owner["guard_began"]:
        process = f"its guard (process {owner['guard']})"
        return f"{process} still puts back the changes in {record}: try again later"
    done = run_tool([*_child("sweep"), record], END_S)
    return done.problem or done.output.strip()


def ask(word: str, folder: str, seconds: float) -> tuple[str, str]:
    """Let a child look at a folder or make it (guard_child); return its output, and the problem."""
    done = run_tool([*_child(word), folder], seconds)
    # The child's own words are enough.
    return done.output, done.problem.partition("; ")[0] if done.problem else ""


def _child(word: str) -> list[str]:
    return [sys.executable, "-I", "-S", guard_child.__file__, word]
