"""Ways through folders by descriptors: nobody can put a link into the part that is already gone."""

from __future__ import annotations

import errno
import os
import stat

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_INTO = FOLDER | os.O_NOFOLLOW
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40
"""As in the kernel (MAXSYMLINKS)."""


class Walk:
    """A way that starts at a folder. Each component is opened by itself, and links are read here."""

    def __init__(self, start: str) -> None:
        self.folders = [os.open(start, FOLDER)]
        """The descriptors of the folders on the way; the last is the current folder."""
        self.left: list[str] = []
        """The components still to go, the next at the end."""
        self.path = ""
        self._links = 0

    def leave(self, depth: int = 0) -> None:
        """Leave the inner folders, until only so many are open."""
        while len(self.folders) > depth:
            os.close(self.folders.pop())

    def enter(self, part: str, flags: int = _INTO) -> None:
        """Enter a folder; O_DIRECTORY has autofs mount it. Raises OSError."""
        self.folders.append(os.open(part, flags, dir_fd=self.folders[-1]))

    def to(self, path: str, *, last: bool = True) -> tuple[int, str]:
        """Return the folder where a path ends, and the name there; "." for the folder itself.

        There need be nothing of that name. With `last` False a link at the end is not followed. Raises
        OSError.
        """
        self.path = path
        self._go(path)
        while self.left:
            part = self.left.pop()
            if self.skips(part):
                continue
            if self.left:
                try:
                    self.enter(part)
                except NotADirectoryError:
                    if not self._follow(part):
                        raise
            elif not last or not self._follow(part):
                return self.folders[-1], part
        return self.folders[-1], "."

    def _go(self, path: str) -> None:
        self.left += [part for part in reversed(path.split("/")) if part not in {"", "."}]

    def _follow(self, part: str) -> bool:
        """Go where a link leads; return False for anything else, and where there is nothing."""
        try:
            fd = os.open(part, _STEP, dir_fd=self.folders[-1])
        except FileNotFoundError:
            return False
        try:
            status = os.fstat(fd)
            if not stat.S_ISLNK(status.st_mode):
                return False
            self._links += 1
            if self._links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.path)
            target = self.target(part, fd, status)
        finally:
            os.close(fd)
        if target is None:
            return False
        if target.startswith("/"):
            self.restart()
        self._go(target)
        return True

    def skips(self, part: str) -> bool:
        """Return whether a component needs no step. May raise OSError."""
        del part
        return False

    def target(self, part: str, fd: int, status: os.stat_result) -> str | None:
        """Return the path in a link that is open; None for a link that stays the end. May raise OSError."""
        del part, status
        return os.readlink("", dir_fd=fd)

    def restart(self) -> None:
        """Go back to the folder where absolute links start."""
        self.leave(1)
