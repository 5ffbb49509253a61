"""The two commands that change transport groups, `apply --live` and `apply --remount`, seen from outside."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jsonschema

from tests.cli import living, remounting
from tests.cli.conftest import REPOSITORY


class HostOnDisk(Protocol):
    """A host on which such a command runs."""

    @property
    def tree(self) -> Path: ...

    @property
    def ground(self) -> living.Ground | remounting.Ground: ...

    def run(self, point: str = ..., form: str = ..., *, dry_run: bool = ..., yes: bool = ...) -> int:
        """Run the command; return its exit status."""
        ...


@dataclass(frozen=True)
class Command:
    """One of them: the module that runs it in a process of its own, its host, and what it asks."""

    module: str
    prepare: Callable[[Path], HostOnDisk]
    question: str


COMMANDS = (
    Command(living.__name__, living.prepare, "Add them? [y/N]"),
    Command(remounting.__name__, remounting.prepare, "Unmount them and mount them again? [y/N]"),
)


def actions(text: str) -> list[dict[str, Any]]:
    """Return the actions of what `apply --format json` printed, which must be as its schema says."""
    document = json.loads(text)
    jsonschema.validate(document, json.loads((REPOSITORY / "docs/schema/nfstuned.apply.1.json").read_text()))
    found: list[dict[str, Any]] = document["actions"]
    return found


def on_a_terminal(module: str, tree: Path, answer: bytes, more: Sequence[str] = ()) -> tuple[int, str, str]:
    """Run a command on a terminal that answers; return its status, its output, and what it said."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", module, str(tree), "json", *more],
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=side,
        cwd=REPOSITORY,
    )
    os.close(side)
    os.write(main, answer)
    out, _ = process.communicate(timeout=60)
    talk = b""
    with suppress(OSError):  # EIO: all is read, and nobody has the other side any more
        while part := os.read(main, 1 << 16):  # one read may be less than what is there
            talk += part
    os.close(main)
    return process.returncode, out.decode(), talk.decode().replace("\r\n", "\n")
