"""Files below a prefix: `/` on a live host, a tree of real kernel files in a test."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from functools import cached_property

from nfstuned.errors import ParseError

VIEWS = ("proc/1", "proc/self")
LARGEST = 4_000_000
"""In bytes: no file that a person or a distribution writes is near it, and what the kernel makes says 0."""
PART = 256 * 1024
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}
_NULL = os.makedev(1, 3)
_NOT_MISSED = re.compile(r"proc/(?!1/)\d+/|etc/nfstuned/|etc/fstab$")
"""Other processes' files, of which there are many, and those that are a problem of their own."""


class UnusableError(OSError):
    """What is there is no text to be read: not a regular file, or far too large for a text."""


class Root:
    """A live host's files. Paths are given without a leading slash.

    The view of mounts and of nfsfs is init's where it can be read: it is right inside a sandboxed service,
    whose mount namespace is its own, and in a container that shares the host's PID namespace.
    """

    def __init__(self, prefix: str = "/") -> None:
        self.prefix = prefix if prefix.endswith("/") else prefix + "/"
        self._proposed: dict[str, tuple[str, str]] = {}

    @cached_property
    def view(self) -> str:
        """The folder of the process whose view of mounts counts."""
        return next((v for v in VIEWS if self._readable(f"{v}/mountinfo")), VIEWS[-1])

    def path(self, name: str) -> str:
        """Return the path of `name` as a person is to read it; on a host it is also the path to open."""
        return self.prefix + name

    def shown(self, name: str) -> str:
        """Return the name of a file as a person on that host would use it; of a proposal its own."""
        return self._proposed[name][0] if name in self._proposed else "/" + name

    def propose(self, name: str, shown: str, text: str) -> None:
        """Read `text` in the place of a file from now on; people know it as `shown`."""
        self._proposed[name] = (shown, text)

    def read(self, name: str) -> str:
        """Return a file's text; bytes that are not UTF-8 become surrogate escapes. It never waits.

        Raises OSError, which is an UnusableError for what is no regular file or larger than LARGEST.
        """
        if name in self._proposed:
            return self._proposed[name][1]
        return self.read_bytes(name).decode("utf-8", "surrogateescape")

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes, like `read`: of a large file there is then a single copy. Raises OSError."""
        fd = self._open(name)
        try:
            status = os.fstat(fd)
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL:
                return b""
            demand_text(status, name)
            with open(fd, "rb", buffering=0, closefd=False) as file:
                return file.read()
        finally:
            os.close(fd)

    def read_parts(self, name: str) -> Iterator[bytes]:
        """Yield a file in parts of at most PART bytes: never are all of them in memory. Raises OSError."""
        fd = self._open(name)
        try:
            demand_text(os.fstat(fd), name)
            yield from parts_of(fd)
        finally:
            os.close(fd)

    def read_or_empty(self, name: str) -> str:
        """Return a file's text, or "" where it is absent, unusable or not for this user to read."""
        try:
            return self.read(name)
        except OSError:
            return ""

    def executable(self, name: str) -> bool:
        """Return whether a name is a regular file's that its owner may execute."""
        try:
            mode = self._status(name).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR)

    def exists(self, name: str) -> bool:
        """Return whether there is anything of this name, also a link to nowhere."""
        try:
            os.lstat(self._full(name))
        except OSError:
            return False
        return True

    def link(self, name: str) -> str | None:
        """Return where a symbolic link leads, as it is written; None where there is none."""
        try:
            return os.readlink(self._full(name))
        except OSError:
            return None

    def same(self, name: str, other: str) -> bool:
        """Return whether two names lead to the same file, as /lib and /usr/lib nearly everywhere."""
        try:
            return os.path.samestat(self._status(name), self._status(other))
        except OSError:
            return False

    def listing(self, folder: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        return sorted(os.listdir(self._full(folder)))

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none where it is absent."""
        try:
            return self.listing(folder)
        except OSError:
            return []

    def _open(self, name: str) -> int:
        """Return a descriptor to read from; a pipe without a writer does not hold it up."""
        try:
            return os.open(self._full(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket cannot even be opened
                raise UnusableError(errno.ENXIO, _misplaced(stat.S_IFSOCK), name) from None
            raise

    def _status(self, name: str) -> os.stat_result:
        return os.stat(self._full(name))

    def _readable(self, name: str) -> bool:
        return os.access(self.prefix + name, os.R_OK)

    def _full(self, name: str) -> str:
        demand_name(name)
        return self.prefix + name


class WitnessRoot(Root):
    """A root that remembers which files were there but not for this user, or not for anyone, to read."""

    def __init__(self, prefix: str = "/") -> None:
        super().__init__(prefix)
        self.denied: dict[str, None] = {}
        self.unusable: dict[str, str] = {}
        """By name: why it is no text to be read."""

    def read_bytes(self, name: str) -> bytes:
        """Return a file like Root.read_bytes, and remember a name that was denied. Raises OSError."""
        with self._remembered(name):
            return super().read_bytes(name)

    def read_parts(self, name: str) -> Iterator[bytes]:
        """Yield a file like Root.read_parts, and remember a name that was denied. Raises OSError."""
        with self._remembered(name):
            yield from super().read_parts(name)

    @contextmanager
    def _remembered(self, name: str) -> Iterator[None]:
        try:
            yield
        except PermissionError:
            self.denied[name] = None
            raise
        except UnusableError as error:
            self.unusable[name] = error.strerror or str(error)
            raise

    def problems(self) -> tuple[ParseError, ...]:
        """Return what is no text where a text should be, in the order in which it was met."""
        return tuple(ParseError("/" + name, 0, why) for name, why in self.unusable.items())

    def missed(self, harmless: Container[str] = ()) -> tuple[ParseError, ...]:
        """Return which files this user may not read, but for `harmless` ones and those that nobody misses."""
        names = (name for name in self.denied if name not in harmless and not _NOT_MISSED.match(name))
        return tuple(ParseError("/" + name, 0, "permission denied; root can read it") for name in names)


def parts_of(fd: int) -> Iterator[bytes]:
    """Yield what is to be read in parts of about PART bytes. Raises OSError.

    The kernel gives a file that it makes a few kilobytes at a time: those are put together.
    """
    while True:
        pieces: list[bytes] = []
        size = 0
        while size < PART and (piece := os.read(fd, PART - size)):
            pieces.append(piece)
            size += len(piece)
        if not pieces:
            return
        yield b"".join(pieces)


def demand_text(status: os.stat_result, name: str) -> None:
    """Raise UnusableError for what is no regular file, or larger than LARGEST."""
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise UnusableError(errno.EINVAL, _misplaced(kind), name)
    if status.st_size > LARGEST:
        size, most = status.st_size / 1e6, LARGEST / 1e6
        raise UnusableError(errno.EFBIG, f"is {size:.3g} MB, more than {most:.3g} MB: not read", name)


def demand_folder(path: str) -> None:
    """Raise OSError where `path` is no folder."""
    os.close(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))


def demand_name(name: str) -> None:
    """Raise FileNotFoundError for a name that no file can have; a damaged map may hold such a name."""
    if "\0" in name:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _misplaced(kind: int) -> str:
    return f"{_KINDS.get(kind, 'something else')} where a file should be: not read"


FSTAB = "etc/fstab"
STDIN = "-"


def read_proposal(name: str) -> str:
    """Return a proposed text, `-` for the standard input. Raises OSError, also where it is too long."""
    if name == STDIN:
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with open(name, "rb") as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST / 1e6:g} MB, which is no fstab")
    return data.decode("utf-8", "surrogateescape")
