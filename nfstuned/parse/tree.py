"""A host's files as readers see them: the operations that `host` gives to `read_x(root)`.

A reader stands next to the parser of its format and gets the tree as an argument, so that only `host` opens
files. Names have no leading slash. The contracts of the methods are those of `nfstuned.host.root.Root`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from nfstuned.errors import ParseError

FSTAB = "etc/fstab"
ELF = "\x7fELF"
"""The first characters of a compiled program."""
_NOT_MISSED = re.compile(r"proc/(?!1/)\d+/|etc/nfstuned/|etc/fstab$")
"""The many files of other processes, and files for which their readers report the denial."""


class ReadFaults:
    """The files of a tree that are there and could not be read; iteration yields an error for each.

    An absent file is no fault. A file that this user may not read is kept apart, in `denied`: root can read
    it. A caller that decides by files asks here before it takes a file for absent.
    """

    def __init__(self) -> None:
        self._errors: dict[str, ParseError] = {}
        self._reported: set[str] = set()
        self._denied: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    def __iter__(self) -> Iterator[ParseError]:
        return iter(tuple(self._errors.values()))

    def add(self, name: str, reason: str) -> None:
        """Add a file that could not be read."""
        self._errors[name] = ParseError("/" + name, 0, reason)

    def add_denied(self, name: str) -> None:
        """Add a file that this user may not read."""
        self._denied[name] = None

    def forget(self, name: str) -> None:
        """Drop the fault of a file that is gone."""
        self._errors.pop(name, None)

    def clear(self) -> None:
        """Drop all faults: they were reported."""
        self._errors.clear()
        self._denied.clear()

    def unreported(self) -> tuple[ParseError, ...]:
        """Return the faults that were not returned here before."""
        new = {name: error for name, error in self._errors.items() if name not in self._reported}
        self._reported.update(new)
        return tuple(new.values())

    def denied(self, harmless: Container[str] = ()) -> tuple[ParseError, ...]:
        """Return the files that this user may not read, without `harmless` ones and those nobody misses."""
        names = (name for name in self._denied if name not in harmless and not _NOT_MISSED.match(name))
        return tuple(ParseError("/" + name, 0, "permission denied; root can read it") for name in names)

    @contextmanager
    def block(self) -> Iterator[Mapping[str, ParseError]]:
        """Yield the faults of this block by name, also those of a file that had failed before.

        A block within another has its faults in both.
        """
        outer, self._errors = self._errors, {}
        try:
            yield self._errors
        finally:
            outer.update(self._errors)
            self._errors = outer


class FileTree(Protocol):
    """The files below a root: a live host's, an image's or a test's."""

    @property
    def faults(self) -> ReadFaults:
        """The files that could not be read so far."""

    @property
    def view(self) -> str:
        """The folder of the process that has the mounts that count."""

    def shown(self, name: str) -> str:
        """Return the name of a file as people on that host know it."""

    def read(self, name: str) -> str:
        """Return a file's text. Raises OSError."""

    def read_or_empty(self, name: str) -> str:
        """Return a file's text, or "" where it cannot be read."""

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes. Raises OSError."""

    def read_start(self, name: str, size: int) -> bytes:
        """Return the first bytes of a file. Raises OSError."""

    def read_end(self, name: str, size: int) -> bytes:
        """Return the last bytes of a regular file. Raises OSError."""

    def read_parts(self, name: str) -> Iterator[bytes]:
        """Yield a file in parts. Raises OSError."""

    def executable(self, name: str) -> bool:
        """Return whether a name is a regular file's that its owner may execute."""

    def exists(self, name: str) -> bool:
        """Return whether there is anything of this name."""

    def demand_existence(self, name: str) -> bool:
        """Return whether there is anything of this name. Raises OSError where that is not known."""

    def link(self, name: str) -> str | None:
        """Return the target of a symbolic link; None for anything else."""

    def same(self, name: str, other: str) -> bool:
        """Return whether two names lead to the same file."""

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none where it cannot be read."""

    def listing(self, folder: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
