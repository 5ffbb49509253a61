"""Numbers of several lines at once, where they stand as every kernel prints them.

Most of what a number costs in Python is the call that reads it, not its digits. Here a few calls read all
numbers of a mount, and whatever is not plain digits and single spaces is left to parse/mountstats.py, which
knows what each line may be and says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from nfstuned.parse.fields import LARGEST

_BETWEEN = b"|"
_PLAIN = b"0123456789 " + _BETWEEN
_NAME = re.compile("[A-Z0-9_]+")
_MOST_NAMES = 256
"""No version of NFS has half as many operations."""


class Operations(NamedTuple):
    """The same operations at two moments: their names, and the numbers of one after the other."""

    names: list[str]
    earlier: list[int]
    later: list[int]


def plain_numbers(lines: Sequence[bytes]) -> list[int] | None:
    """Return the numbers of these lines, one line after the other; None where they are not plainly written.

    Each line has as many as the others.
    """
    text = b" | ".join(lines)
    if text.translate(None, _PLAIN):
        return None
    tokens = text.split(b" ")
    width = tokens.index(_BETWEEN) if len(lines) > 1 else len(tokens)
    if tokens[width :: width + 1] != [_BETWEEN] * (len(lines) - 1):
        return None
    del tokens[width :: width + 1]
    try:
        values = list(map(int, tokens))
    except ValueError:
        return None
    return values if len(values) == width * len(lines) and max(values) <= LARGEST else None


def plain_operations(earlier: list[bytes], later: list[bytes], without: frozenset[str]) -> Operations | None:
    """Return what these lines of the per-op statistics say, without some; None where it needs more care.

    Line for line both are about the same operation, and none is about the operation of another.
    """
    count = len(earlier)
    text = b"\n".join(earlier + later)
    # Each line begins with a tab: then none that has no name makes up for one that has two.
    if not text.startswith(b"\t") or text.count(b"\n\t") != 2 * count - 1:
        return None
    parts = text.replace(b": ", b"\n").split(b"\n")
    if len(parts) != 4 * count or parts[: 2 * count : 2] != parts[2 * count :: 2]:
        return None
    names, numbers = list(map(_name, parts[: 2 * count : 2])), parts[1::2]
    if "" in names or len(set(names)) != count:
        return None
    for name in without.intersection(names):
        at = names.index(name)
        del numbers[len(names) + at], numbers[at], names[at]
    values = plain_numbers(numbers) if names else []
    if values is None:
        return None
    half = len(values) // 2
    return Operations(names, values[:half], values[half:])


@lru_cache(_MOST_NAMES)
def _name(text: bytes) -> str:
    """Return the name of an operation, "" where it is none that a kernel would give it."""
    name = text.strip(b"\t ").decode("latin-1")
    return name if _NAME.fullmatch(name) else ""
