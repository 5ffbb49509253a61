"""Comments in files that accept findings: `# nfstuned: ignore NFS307 the data can be made again`."""

from __future__ import annotations

import re

from nfstuned.model.facts import Ignore

_MARK = re.compile(r"(?:#|;|//|--)[ \t]*nfstuned:[ \t]*ignore\b[ \t]*([\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)?")
_ALONE = re.compile(r"[ \t]*(?:#|;|//|--|\r?$)")
MOST_IGNORES = 10_000
"""Of a file."""


def parse_ignores(text: str, file: str) -> tuple[Ignore, ...]:
    """Return the comments of a text; alone on its line, a comment is for the next other line."""
    found: list[Ignore] = []
    if "nfstuned:" not in text:
        return ()
    lines, below = text.split("\n"), 0
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        alone = _ALONE.match(line) is not None
        match = _MARK.search(line)
        if match and len(found) < MOST_IGNORES:
            words = tuple(re.findall(r"[\w-]+", match[1] or ""))
            found.append(Ignore(file, number, below if alone and below else number, words))
        below = below if alone else number
    return tuple(reversed(found))
