"""What goes to stderr: problems of the host, of the configuration, and what was not for this user to read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from nfstuned.core.render import printable
from nfstuned.errors import ParseError
from nfstuned.host.root import Root, WitnessRoot

_NOT_MISSED = re.compile(r"proc/(?!1/)\d+/|etc/nfstuned/|etc/fstab$")
"""Other processes' files, of which there are many, and those that are a problem of their own."""


def note(line: str) -> None:
    """Print one line for people."""
    print(printable(line), file=sys.stderr)  # noqa: T201 - stderr is where the command talks


def unreadable_lines(problems: Iterable[ParseError]) -> None:
    """Name each line of a kernel file that was not understood; the same one only once."""
    for line in dict.fromkeys(str(problem) for problem in problems):
        note(line)


def denied(root: Root, *, harmless: Iterable[str] = ()) -> None:
    """Name the files that this user may not read; `harmless` are those that were not missed."""
    if not isinstance(root, WitnessRoot):
        return
    for name in root.denied:
        if name not in harmless and not _NOT_MISSED.match(name):
            note(f"/{name}: permission denied; root can read it")
