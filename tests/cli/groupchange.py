"""The two commands that change transport groups, `apply --live` and `apply --remount`, seen from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
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
