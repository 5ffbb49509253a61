"""A host's files as readers see them: the operations that `host` gives to `read_x(root)`.

A reader stands next to the parser of its format and gets the tree as an argument, so that only `host` opens
files. Names have no leading slash. The contracts of the methods are those of `nfstuned.host.root.Root`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from nfstuned.errors import ParseError

FSTAB = "etc/fstab"


class FileTree(Protocol):
    """The files below a root: a live host's, an image's or a test's."""

    faults: dict[str, str]
    """By name: why a file that is there could not be read."""

    @property
    def view(self) -> str:
        """The folder of the process whose mounts count."""

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

    def watched(self) -> AbstractContextManager[Callable[[], tuple[ParseError, ...]]]:
        """Return a block that yields a function; the function returns the faults of the block."""
