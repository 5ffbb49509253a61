"""Whom a command that changes something asks: the world beyond files, and the person at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from nfstuned.host.outside import Outside
from nfstuned.host.root import Root


def live_outside(root: Root) -> Outside:
    """Return the world beyond files."""
    from nfstuned.host.world import LiveOutside  # noqa: PLC0415 - only what asks names or servers needs it

    return LiveOutside(root)


def can_ask(form: str) -> bool:
    """Return whether somebody sees the plan and the question, and can answer."""
    seen = sys.stderr.isatty() and (form == "json" or sys.stdout.isatty())
    return seen and sys.stdin.isatty()


def show(lines: Iterable[str], form: str) -> None:
    """Print a plan: beside the document where the output is one."""
    stream = sys.stderr if form == "json" else sys.stdout
    for line in lines:
        stream.write(line + "\n")
    stream.flush()
