"""Files below one prefix: `/` on a live host, a tree of real kernel files in a test."""

from __future__ import annotations

import os
import stat

VIEWS = ("proc/1", "proc/self")


class Root:
    """A live host's files. Paths are given without a leading slash.

    The view of mounts and of nfsfs is init's where it can be read: it is right inside a sandboxed service,
    whose mount namespace is its own, and in a container that shares the host's PID namespace.
    """

    def __init__(self, prefix: str = "/") -> None:
        self.prefix = prefix if prefix.endswith("/") else prefix + "/"
        self._proposed: dict[str, tuple[str, str]] = {}
        self.view = next((v for v in VIEWS if self._readable(f"{v}/mountinfo")), VIEWS[-1])

    def path(self, name: str) -> str:
        """Return the path of `name` on this machine."""
        return self.prefix + name

    def shown(self, name: str) -> str:
        """Return the name of a file as a person on that host would use it; of a proposal its own."""
        return self._proposed[name][0] if name in self._proposed else "/" + name

    def propose(self, name: str, shown: str, text: str) -> None:
        """Read `text` in the place of a file from now on; people know it as `shown`."""
        self._proposed[name] = (shown, text)

    def read(self, name: str) -> str:
        """Return a file's text; bytes that are not UTF-8 become surrogate escapes. Raises OSError."""
        if name in self._proposed:
            return self._proposed[name][1]
        fd = os.open(self.prefix + name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            chunks = []
            while chunk := os.read(fd, 1 << 18):
                chunks.append(chunk)
        finally:
            os.close(fd)
        return b"".join(chunks).decode("utf-8", "surrogateescape")

    def read_or_empty(self, name: str) -> str:
        """Return a file's text, or "" where it is absent or not for this user to read."""
        try:
            return self.read(name)
        except OSError:
            return ""

    def executable(self, name: str) -> bool:
        """Return whether a file is one that its owner may execute."""
        try:
            mode = os.stat(self.prefix + name).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR)

    def link(self, name: str) -> str | None:
        """Return where a symbolic link leads, as it is written; None where there is none."""
        try:
            return os.readlink(self.prefix + name)
        except OSError:
            return None

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none where it is absent."""
        try:
            return sorted(os.listdir(self.prefix + folder))
        except OSError:
            return []

    def _readable(self, name: str) -> bool:
        return os.access(self.prefix + name, os.R_OK)


class WitnessRoot(Root):
    """A root that remembers which files were there but not for this user to read."""

    def __init__(self, prefix: str = "/") -> None:
        super().__init__(prefix)
        self.denied: dict[str, None] = {}

    def read(self, name: str) -> str:
        """Return a file's text like Root.read, and remember a name that was denied. Raises OSError."""
        try:
            return super().read(name)
        except PermissionError:
            self.denied[name] = None
            raise
