"""Errors in a file: the kernel's, or an administrator's."""

from __future__ import annotations


class ParseError(Exception):
    """A part of a file that its parser does not understand; the other entries still count.

    `file` is the path for people (`/proc/self/mountinfo`), `line` counts from 1; 0 is the whole file.
    """

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")
        self.file = file
        self.line = line
        self.message = message


class MapError(ParseError):
    """A part of the automounter's maps that automount(8) does not take: its mounts are not judged."""
