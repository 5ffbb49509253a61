"""Files below a prefix: `/` on a live host, a tree of real kernel files in a test."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import BinaryIO

from nfstuned.parse.tree import FSTAB, ReadFaults

VIEWS = ("proc/1", "proc/self")
LARGEST = 4_000_000
"""In bytes: no file that a person or a distribution writes is near it."""
LARGEST_MADE = 64_000_000
"""In bytes, of a file that the kernel makes; its size shows when it is read: 300,000 mounts have it. Users
make a mountinfo of any size, with bind mounts on long names in a namespace of their own."""
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
_ADDED = ("opt/", "usr/local/")
"""Where a host's own programs are, which a site may have on a server."""
_SYSTEM = ("/", "/usr")
"""Where these are on a server, the system is that server's, and waits for it anyway."""
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENAMETOOLONG})
"""The errors of a file that is not there, of a bdi that went, and of an impossible name."""
_DENIED = frozenset({errno.EACCES, errno.EPERM})
_ENDED = frozenset({errno.ESRCH, errno.EINVAL})
"""The errors of a process that ends: it is gone, or has no namespaces any more."""
_PROCESS = re.compile(r"proc/(?!1/)\d+/")
_GUARDED = re.compile(r"proc/\d+/(?!net/|mountinfo)")
"""Files of a process that the kernel gives to whom it pleases, also in a container of root's."""


class UnusableError(OSError):
    """The file is no text to be read: it is not regular, or far too large for a text."""


class Root:
    """A live host's files. Paths are given without a leading slash.

    The view of mounts and of nfsfs is init's where it can be read: it is right inside a sandboxed service,
    which has a mount namespace of its own, and in a container that shares the host's PID namespace.

    All reads go through here. A file that is there and cannot be read is in `faults` afterwards, so that a
    caller does not take it for absent. Only a network's file at /opt or /usr/local counts as absent: a dead
    server must not hang the caller, nor be a fault of this host.
    """

    def __init__(self, prefix: str = "/") -> None:
        self.prefix = prefix if prefix.endswith("/") else prefix + "/"
        self.faults = ReadFaults()
        """Of files that are there and could not be read, or are no text. A process' own files that the kernel
        denies are no fault, nor are those of a process that has ended."""
        self._proposed: dict[str, tuple[str, str]] = {}
        self._mount_types: tuple[int, tuple[tuple[str, str], ...]] = (0, ())
        """The hash of the last mountinfo, and its mount points and types."""

    @cached_property
    def view(self) -> str:
        """The folder of the process that has the mounts that count. Raises OSError where none can be read."""
        return next((v for v in VIEWS if self._readable(f"{v}/mountinfo")), VIEWS[-1])

    def path(self, name: str) -> str:
        """Return the path of `name` as a person is to read it; on a host it is also the path to open."""
        return self.prefix + name

    def shown(self, name: str) -> str:
        """Return the name of a file as a person on that host would use it; of a proposal its own."""
        return self._proposed[name][0] if name in self._proposed else "/" + name

    def propose(self, shown: str, text: str) -> None:
        """Let `read` return `text` for fstab from now on, which people know as `shown`."""
        self._proposed[FSTAB] = (shown, text)

    def read(self, name: str) -> str:
        """Return a file's text; bytes that are not UTF-8 become surrogate escapes.

        It does not wait for a pipe's writer, but for the server of a network's file. The text of /dev/null
        is "". Raises OSError: UnusableError for a file that is not regular, or larger than LARGEST.
        """
        if name in self._proposed:
            return self._proposed[name][1]
        return self.read_bytes(name).decode("utf-8", "surrogateescape")

    def read_bytes(self, name: str) -> bytes:
        """Return a file's bytes, like `read` but for proposals; as text there would be another copy."""
        with self._opened(name) as fd:
            status = os.fstat(fd)
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == _NULL:
                return b""
            demand_text(status, name)
            return b"".join(parts_of(fd, name))

    def read_parts(self, name: str) -> Iterator[bytes]:
        """Yield a file in parts of at most PART bytes: never are all of them in memory. Raises OSError."""
        with self._opened(name) as fd:
            demand_text(os.fstat(fd), name)
            yield from parts_of(fd, name)

    def read_start(self, name: str, size: int) -> bytes:
        """Return the first bytes of a file, at most `size` of them. Raises OSError."""
        with self._opened(name) as fd:
            return os.read(fd, size)

    def read_end(self, name: str, size: int) -> bytes:
        """Return the last bytes of a regular file, at most `size` of them. Raises OSError."""
        with self._opened(name) as fd:
            status = os.fstat(fd)
            demand_regular(status, name)
            return os.pread(fd, size, max(0, status.st_size - size))

    def read_or_empty(self, name: str) -> str:
        """Return a file's text, or "" where it is absent, unusable or not for this user to read."""
        try:
            return self.read(name)
        except OSError:
            return ""

    def executable(self, name: str) -> bool:
        """Return whether a name is a regular file's that its owner may execute."""
        try:
            with self._noted(name):
                mode = self._status(name).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) and bool(mode & stat.S_IXUSR)

    def exists(self, name: str) -> bool:
        """Return whether there is anything of this name, also a link to nowhere."""
        try:
            return self.demand_existence(name)
        except OSError:
            return False

    def demand_existence(self, name: str) -> bool:
        """Return whether there is anything of this name. Raises OSError where that cannot be seen."""
        try:
            with self._noted(name):
                self._look_at(name)
        except OSError as error:
            if error.errno in _ABSENT:
                return False
            raise
        return True

    def link(self, name: str) -> str | None:
        """Return where a symbolic link leads, as it is written; None without a link, or if it is unread."""
        try:
            with self._noted(name):
                return self._read_link(name)
        except OSError:
            return None

    def same(self, name: str, other: str) -> bool:
        """Return whether two names lead to the same file, as /lib and /usr/lib nearly everywhere."""
        try:
            with self._noted(name):
                return os.path.samestat(self._status(name), self._status(other))
        except OSError:
            return False

    def has_fstab(self, path: str) -> bool:
        """Return whether its fstab is the file of a path of this process; "-" is standard input."""
        try:
            return path != STDIN and os.path.samestat(os.stat(path), self._status(FSTAB))
        except OSError:
            return False

    def inode(self, name: str) -> int | None:
        """Return the inode that a name leads to; None without a file, or where it is unread."""
        try:
            with self._noted(name):
                return self._status(name).st_ino
        except OSError:
            return None

    def mode(self, name: str) -> int | None:
        """Return the permissions of the file that a name leads to; None where they cannot be read."""
        try:
            with self._noted(name):
                return stat.S_IMODE(self._status(name).st_mode)
        except OSError:
            return None

    def listing(self, folder: str) -> list[str]:
        """Return the sorted names in a folder. Raises OSError."""
        with self._noted(folder):
            return sorted(self._list(folder))

    def each_name(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder as they come: never are all of them in memory. Raises OSError."""
        with self._opened(folder) as fd, os.scandir(fd) as entries:
            yield from (entry.name for entry in entries)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; none where it is absent or unread (`faults`)."""
        try:
            return self.listing(folder)
        except OSError:
            return []

    @contextmanager
    def _noted(self, name: str) -> Iterator[None]:
        """Keep why a name could not be read."""
        try:
            yield
        except OSError as error:
            self._note(name, error)
            raise

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """Open a file to read, and close it; keep why it could not be read."""
        try:
            fd = self._open(name)
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            self._note(name, error)
            raise

    def _note(self, name: str, error: OSError) -> None:
        ended = error.errno in _ENDED and is_of_process(name)
        # Root needs a file all the same that a security module or another machine refuses.
        denied = error.errno in _DENIED and (os.geteuid() != 0 or _GUARDED.match(name) is not None)
        if isinstance(error, UnusableError) or not (error.errno in _ABSENT or denied or ended):
            self.faults.add(name, error.strerror or str(error))
        elif isinstance(error, PermissionError):
            self.faults.add_denied(name)

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

    def _look_at(self, name: str) -> None:
        os.lstat(self._full(name))

    def _read_link(self, name: str) -> str | None:
        return link_target(self._full(name))

    def _list(self, folder: str) -> list[str]:
        return os.listdir(self._full(folder))

    def _readable(self, name: str) -> bool:
        try:
            os.close(self._open(name))
        except OSError as error:
            if error.errno in _ABSENT | _DENIED:
                return False
            self._note(name, error)
            raise
        return True

    def _full(self, name: str) -> str:
        demand_name(name)
        if name.startswith(_ADDED) and self._is_remote(name):
            raise FileNotFoundError(errno.ENOENT, "is on a network's file system: not read", name)
        return self.prefix + name

    def _is_remote(self, name: str) -> bool:
        """Return whether a server may have to be asked for a name; this asks none."""
        # Most names do not need it, and taking udev's masks back has to be quick.
        from nfstuned.parse.proc.mounts import follow_path  # noqa: PLC0415

        try:
            mounts = self.mount_types(self.view)
            _, remote = follow_path(mounts, name, lambda there: link_target(self.prefix + there[1:]), _SYSTEM)
        except OSError:  # to open the name fails in the same way
            return False
        return remote

    def mount_types(self, view: str) -> tuple[tuple[str, str], ...]:
        """Return the mount point and the type of every mount that a process sees. Raises OSError.

        mountinfo is read each time, and parsed where it has changed.
        """
        from nfstuned.parse.proc.mounts import parse_mount_types  # noqa: PLC0415 - as above

        text = self.read(f"{view}/mountinfo")
        if hash(text) != self._mount_types[0]:
            self._mount_types = (hash(text), parse_mount_types(text))
        return self._mount_types[1]


def parts_of(fd: int, name: str = "") -> Iterator[bytes]:
    """Yield the rest of a file in parts of at most PART bytes. Raises OSError, also above LARGEST_MADE bytes.

    The kernel gives a file that it makes a few kilobytes at a time: those are put together. `name` is for the
    error.
    """
    whole = 0
    while True:
        pieces: list[bytes] = []
        size = 0
        while size < PART and (piece := os.read(fd, PART - size)):
            pieces.append(piece)
            size += len(piece)
        if not pieces:
            return
        whole += size
        if whole > LARGEST_MADE:
            raise UnusableError(errno.EFBIG, f"has more than {LARGEST_MADE / 1e6:g} MB: not read", name)
        yield b"".join(pieces)


def is_of_process(name: str) -> bool:
    """Return whether a file is about a single process other than init."""
    return _PROCESS.match(name) is not None


def link_target(name: str, folder: int | None = None) -> str | None:
    """Return where a symbolic link leads; None for any other file. Raises OSError."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:  # readlink(2): not a link
            return None
        raise


def demand_text(status: os.stat_result, name: str) -> None:
    """Raise UnusableError for a file that is not regular, or larger than LARGEST."""
    demand_regular(status, name)
    if status.st_size > LARGEST:
        size, most = status.st_size / 1e6, LARGEST / 1e6
        raise UnusableError(errno.EFBIG, f"is {size:.3g} MB, more than {most:.3g} MB: not read", name)


def demand_regular(status: os.stat_result, name: str) -> None:
    """Raise UnusableError for a file that is not regular."""
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise UnusableError(errno.EINVAL, _misplaced(kind), name)


def demand_folder(path: str) -> None:
    """Raise OSError where `path` is no folder."""
    os.close(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))


def demand_name(name: str) -> None:
    """Raise FileNotFoundError for a name that no file can have; a damaged map may hold such a name."""
    if "\0" in name:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def _misplaced(kind: int) -> str:
    return f"{_KINDS.get(kind, 'something else')} instead of a file: not read"


STDIN = "-"


def standard_input() -> BinaryIO:
    """Return the standard input. Raises OSError where it is closed, which Python shows as None."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed")
    return sys.stdin.buffer


def read_proposal(name: str) -> str:
    """Return a proposed text, `-` for the standard input. Raises OSError, also where it is too long."""
    if name == STDIN:
        data = standard_input().read(LARGEST + 1)
    else:
        with open(name, "rb") as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST / 1e6:g} MB, too long to judge")
    return data.decode("utf-8", "surrogateescape")


def read_saved(name: str) -> bytes:
    """Return a saved copy of a file that the kernel makes, `-` for the standard input. Raises OSError."""
    if name == STDIN:
        return b"".join(parts_of(standard_input().fileno(), name))
    with open(name, "rb", buffering=0) as file:
        return b"".join(parts_of(file.fileno(), name))


def demand_local(root: Root, path: str, view: str = "proc/self") -> None:
    """Raise OSError for a path on a network file system, or through a symbolic link, which may lead there.

    Each component is checked before the next is looked up, because even an lstat(2) hangs at a dead server.
    `view` is the folder in /proc of the process with the mounts that count.
    """
    from nfstuned.parse.proc.mounts import remote_type  # noqa: PLC0415 - as in Root

    mounts = root.mount_types(view)
    parts = path.split("/")[1:]
    for depth in range(len(parts) + 1):
        part = "/" + "/".join(parts[:depth])
        if kind := remote_type(mounts, part):
            raise OSError(errno.EREMOTE, f"{part} is on {kind}, which may not answer; use a local folder")
        if depth and root.link(part.lstrip("/")) is not None:
            raise OSError(errno.ELOOP, f"{part} is a symbolic link; name its target")


def resolve_links(root: Root, path: str, view: str = "proc/self") -> str:
    """Return a path with its links resolved, as systemd-fstab-generator does; the target need not exist.

    A path on a network file system, or behind too many links, is returned as it is written. Raises OSError
    where mountinfo cannot be read.
    """
    from nfstuned.parse.proc.mounts import follow_path  # noqa: PLC0415 - as in Root

    return follow_path(root.mount_types(view), path, lambda link: root.link(link[1:]))[0]
