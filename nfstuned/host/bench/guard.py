"""A process that outlives bench for a moment, to put back what bench changed: also after kill -9."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

from nfstuned.host.bench import guard_child
from nfstuned.host.change.bdi import Bdi
from nfstuned.host.command import run
from nfstuned.host.root import Root

END_S = 60.0
"""For removing the files, which a server may take its time for."""
_PREFIX = ".nfstuned-bench-"
_WRITTEN = "ok"
"""What the guard answers when a line is in its record."""


def record_folder(root: Root) -> str:
    """Return the folder of a user's records; the next bench reads them, also after a boot."""
    if os.geteuid() == 0:
        return root.path("var/lib/nfstuned/bench")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return f"{state}/nfstuned/bench"


class Guard:
    """The connection to the guard's process. Bench tells it of each change before it makes the change."""

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
        own, guard = os.getpid(), self._process.pid
        guards = {"guard": guard, "guard_began": guard_child.start_of(guard)}
        self._tell("owner", pid=own, began=guard_child.start_of(own), target=target, **guards)

    def folder(self, point: str) -> None:
        """Have the folder removed from the mount on `point`; by the next start where the mount is gone."""
        self._tell("empty-folder", path=self.path, point=point)

    def files(self, inode: int) -> None:
        """Have bench's files removed from the folder, if it is still the one with this inode."""
        self._tell("files", path=self.path, inode=inode)

    def read_ahead(self, bdi: Bdi, kb: int) -> None:
        """Have a superblock's read-ahead set back."""
        self._tell("read-ahead", file=bdi.name, inode=bdi.inode, kb=kb)

    def program(self, pid: int) -> None:
        """Have a program ended."""
        self._tell("program", pid=pid, began=guard_child.start_of(pid))

    def mount_holder(self, pid: int, source: str, point: str) -> None:
        """Have a process ended whose namespace holds a mount of `source`, which ends with it.

        `point` is the folder that the mount will be on, and is removed.
        """
        self._tell("point", path=point)
        self._tell("mount", pid=pid, began=guard_child.start_of(pid), source=source)

    def _tell(self, what: str, **item: object) -> None:
        """Send a line, wait for its answer. Raises OSError without one: nothing may be changed then."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError
        with suppress(BrokenPipeError):  # a guard that could not write its record says so before it ends
            self._process.stdin.write(json.dumps({"what": what, **item}) + "\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if answer != _WRITTEN:
            raise OSError(f"{self.record}: {answer or 'the guard has ended'}")

    def end(self) -> tuple[str, ...]:
        """Let everything be put back, and return what could not be, which the next start tries again.

        A guard that was killed has put nothing back, and says nothing.
        """
        try:
            said, _ = self._process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            return (f"the server has not answered for {END_S:g} s; {self.path} is removed when it does",)
        # After ^C an answer may be there that nobody read.
        left = tuple(line for line in said.splitlines() if line != _WRITTEN)
        if self._process.returncode and not left:
            again = "the next bench of the same folder puts it back"
            return (f"what {self.record} names: the guard has ended, and {again}",)
        return left


def leftovers(folder: str, target: str) -> Iterator[str]:
    """Yield the records of a folder's measurements whose bench has ended; the guard may still be at work."""
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


def sweep(record: str) -> str:
    """Put back what a record names; return what could not be, which is all while its guard still runs."""
    with open(record, encoding="utf-8") as file:
        owner = json.loads(file.readline())
    if "guard" in owner and guard_child.start_of(int(owner["guard"])) == owner["guard_began"]:
        return f"its guard still puts back what {record} names (process {owner['guard']}): try again later"
    done = run([*_child("sweep"), record], END_S)
    return done.problem or done.output.strip()


def ask(word: str, folder: str, seconds: float) -> tuple[str, str]:
    """Let a child look at a folder or make it (guard_child); return what it says, and what went wrong."""
    done = run([*_child(word), folder], seconds)
    # The child's own words are enough.
    return done.output, done.problem.partition("; ")[0] if done.problem else ""


def _child(word: str) -> list[str]:
    return [sys.executable, "-I", "-S", guard_child.__file__, word]
