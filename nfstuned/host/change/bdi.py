"""A superblock's read-ahead in sysfs (Documentation/ABI/testing/sysfs-class-bdi)."""

from __future__ import annotations

import errno
import os
from types import TracebackType
from typing import TYPE_CHECKING

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.parse.proc.superblocks import is_device_number, parse_read_ahead

if TYPE_CHECKING:
    from typing_extensions import Self

FOLDER = "sys/class/bdi"
GONE = (errno.ENOENT, errno.ENODEV)
"""The kernel's errors for a bdi that was removed: before it was opened, and after."""
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
"""The kernel keeps a read-ahead in whole pages of this many KiB, rounded down."""


def bdi_file(root: Root, device: str) -> str:
    """Return the path of a device's read_ahead_kb."""
    return f"{root.prefix}{FOLDER}/{device}/read_ahead_kb"


def identity(root: Root, device: str) -> int | None:
    """Return the inode of the device's read_ahead_kb; None without such a bdi, or in `root.faults`.

    Device numbers are given to the next mount at once; sysfs hands out inodes cyclically, so that the same
    number with the same inode is the same superblock. Looking it up never touches the mount.
    """
    return root.inode(f"{FOLDER}/{device}/read_ahead_kb")


def identities(root: Root) -> dict[str, int]:
    """Return every bdi that is named by an anonymous device number (NFS, FUSE, …) with its identity.

    Those that could not be looked up are in `root.faults`.
    """
    names = (name for name in root.names(FOLDER) if name.startswith("0:") and is_device_number(name))
    return {name: inode for name in names if (inode := identity(root, name)) is not None}


class Bdi:
    """An open read_ahead_kb: whatever becomes of the device number, reads and writes reach this bdi or none.

    Open it before reading facts about the device: they are then about this bdi, or the bdi is gone and the
    write fails with ENODEV.
    """

    __slots__ = ("_fd", "device", "inode", "name")

    def __init__(self, root: Root, device: str) -> None:
        self.device = device
        self.name = bdi_file(root, device)
        self._fd = os.open(self.name, os.O_RDWR | os.O_CLOEXEC)
        self.inode = os.fstat(self._fd).st_ino

    def read_kb(self) -> int:
        """Return the read-ahead in KiB. Raises OSError when the bdi is gone, ParseError for nonsense."""
        text = os.pread(self._fd, 64, 0)
        if not text:
            raise ParseError(self.name, 1, "the file is empty")
        return parse_read_ahead(text.decode("ascii", "replace"), self.name)

    def write_kb(self, value: int) -> None:
        """Set the read-ahead in KiB. Raises OSError."""
        os.pwrite(self._fd, b"%d\n" % value, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)
