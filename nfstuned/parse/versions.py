"""The order of names with numbers in them, as strverscmp(3) has it, and that of kernel releases."""

from __future__ import annotations

import re
from functools import cmp_to_key

_DIGITS = "0123456789"


def newest_last(releases: list[str]) -> list[str]:
    """Return kernel releases from the oldest to the newest.

    As rpm and dpkg see them: 5.10.0-9 is before 5.10.0-10, 5.14.0-362.el9 before 5.14.0-362.8.1.el9, and a
    release candidate before its release.
    """
    return sorted(releases, key=_release_key)


def _release_key(release: str) -> list[tuple[int, int, str]]:
    """Return a key that sorts: candidates, then the end, then words, then numbers."""
    parts = re.findall(r"[0-9]+|[A-Za-z]+", release)
    key = [
        (3, int(part), "") if part[0] in _DIGITS else (0 if part == "rc" else 2, 0, part) for part in parts
    ]
    return [*key, (1, 0, "")]


def in_version_order(names: list[str]) -> list[str]:
    """Return the names sorted as glibc's versionsort does: "9-a" before "10-a", "01" before "1"."""
    return sorted(names, key=cmp_to_key(_compare))


def _compare(left: str, right: str) -> int:
    first, second = _bytes(left), _bytes(right)
    place = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if place is None:
        place = min(len(first), len(second))
    if first[place:] == second[place:]:
        return 0
    return _by_number(first, second, place) or (-1 if first[place:] < second[place:] else 1)


def _bytes(name: str) -> str:
    """Return a character for each byte: C compares bytes."""
    return name.encode("utf-8", "surrogateescape").decode("latin-1")


def _by_number(first: str, second: str, place: int) -> int:
    """Return what the numbers around the first difference say; 0 where the characters decide."""
    before = first[:place]
    common = before[len(before.rstrip(_DIGITS)) :]
    left, right = _digits(first[place:]), _digits(second[place:])
    if common and not common.strip("0"):
        # Zeros only: the name that goes on with a digit is the smaller fraction.
        return (not left) - (not right) if bool(left) != bool(right) else 0
    if common.startswith("0"):
        return 0
    if not common and (left[:1] in ("", "0") or right[:1] in ("", "0")):
        return 0  # a fraction, or no number
    return (len(left) > len(right)) - (len(left) < len(right))


def _digits(text: str) -> str:
    return text[: len(text) - len(text.lstrip(_DIGITS))]
