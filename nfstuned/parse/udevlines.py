"""The lines of a udev rules file, joined where they continue (systemd: src/udev/udev-rules.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nfstuned.model.udev import UdevDefect

SPACE = " \t\n\r"
LIMIT = 16384
"""Bytes of a line (UDEV_LINE_SIZE), its continuations included."""
_ENDS = re.compile(r"(?:\r\n|\n\r|\n|\r)\0?|\0")
"""What ends a line for read_line_full() of src/basic/fileio.c, which udev reads with."""


@dataclass(frozen=True, slots=True)
class Line:
    """A rule's text on one line, without the space before each part."""

    first: int
    last: int
    text: str


class _Joiner:
    """The state of udev_rules_parse_file() between two lines."""

    def __init__(self) -> None:
        self.first = 0
        self._begun: str | None = None
        self._too_long = False

    @property
    def open(self) -> bool:
        return self._begun is not None

    def add(self, number: int, line: str) -> Line | UdevDefect | None:
        """Take one line; return what it ends."""
        if self._begun is None:
            self.first = number
        elif not self._too_long:
            self._too_long = _size(self._begun) + _size(line) >= LIMIT
            line = line if self._too_long else self._begun + line
        if line.endswith("\\"):
            if not self._too_long:
                self._begun = line[:-1]
            return None
        too_long, self._too_long, self._begun = self._too_long, False, None
        if too_long:
            return UdevDefect(self.first, number, "Line is too long, ignored.", dropped=True)
        return Line(self.first, number, line) if line else None


def join_lines(text: str) -> Iterator[Line | UdevDefect]:
    r"""Yield a file's rules, each on one line, as udev_rules_parse_file() joins them.

    A backslash joins only where nothing follows it: after `\ ` with a space the rule ends. Comments between
    joined lines are passed over, an empty line ends the rule. One physical line over the limit, be it a
    comment, costs the whole file. (systemd 252 keeps the rules before it, without their GOTOs.)
    """
    physical = _ENDS.split(text)
    if not physical[-1]:
        physical.pop()
    for number, line in enumerate(physical, 1):
        if _size(line) >= LIMIT:
            yield UdevDefect(number, number, "Line is too long, the file is ignored.", dropped=True)
            return
    joiner = _Joiner()
    for number, line in enumerate(physical, 1):
        stripped = line.lstrip(SPACE)
        joined = None if stripped.startswith("#") else joiner.add(number, stripped)
        if joined is not None:
            yield joined
    if joiner.open:
        message = "Unexpected EOF after line continuation, line ignored."
        yield UdevDefect(joiner.first, len(physical), message, dropped=True)


def _size(text: str) -> int:
    """Return a text's bytes: one that is not UTF-8 is one surrogate here."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
