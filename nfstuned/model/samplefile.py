"""The file that samples are appended to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Where lines go: an absolute path, the size at which the file is put aside, and how many are kept so."""

    path: str
    most_bytes: int
    """0 leaves it to another program to put the file aside."""
    keep: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What came of an attempt to append lines: how many are there whole, and why the others are not."""

    lines: int
    reason: str = ""
    """Empty when all are there."""
