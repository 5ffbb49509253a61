"""An image as it was before somebody wrote some of its files."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection

from nfstuned.host.imageroot import ImageRoot


class BareRoot(ImageRoot):
    """An image in which some names are not there: what is planned from it does not hang on them."""

    def __init__(self, folder: str, hidden: Collection[str]) -> None:
        """Take the folder, and the names below it without a leading slash. Raises OSError."""
        super().__init__(folder)
        self._hidden = frozenset(hidden)

    def exists(self, name: str) -> bool:
        """Return whether there is anything of this name, also a link to nowhere."""
        return name not in self._hidden and super().exists(name)

    def link(self, name: str) -> str | None:
        """Return where a symbolic link leads, as it is written; None where there is none."""
        return None if name in self._hidden else super().link(name)

    def listing(self, folder: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        return [name for name in super().listing(folder) if f"{folder}/{name}" not in self._hidden]

    def _open(self, name: str) -> int:
        self._demand(name)
        return super()._open(name)

    def _status(self, name: str) -> os.stat_result:
        self._demand(name)
        return super()._status(name)

    def _demand(self, name: str) -> None:
        if name in self._hidden:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
