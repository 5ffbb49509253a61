"""A second name for a file that is about to lose its first: the backup is the old file, and no copy of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

BACKUP = ".nfstuned-backup"
"""What a backup's name ends with: nothing that mount.nfs or systemd takes for one of its files."""
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Kept:
    """The name under which the old text is kept."""

    name: str
    made: bool
    """It was made for this; else it was there, with the same text."""
    file: os.stat_result
    """The file that had the first name then."""


def keep(place: int, name: str, data: bytes) -> Kept:
    """Give a file of the folder `place`, whose text is `data`, a second name. Raises OSError.

    A backup that is there already stays, unless it has the same text: the next free number is used.
    """
    for backup in _names(name + BACKUP):
        try:
            os.link(name, backup, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
        except FileExistsError:
            if _text(place, backup) == data:
                return Kept(backup, made=False, file=_status(place, name))
            continue
        return Kept(backup, made=True, file=_status(place, backup))
    raise AssertionError("numbers have no end")


def forget(place: int, name: str, kept: Kept) -> bool:
    """Take back a backup that was made for a change that did not come; return whether it did not come.

    Whatever was said of the change: while the old file has its first name it needs no second, and without
    the first the second is all that is left of it.
    """
    try:
        still = os.path.samestat(_status(place, name), kept.file)
    except OSError:
        return False
    if still and kept.made:
        os.unlink(kept.name, dir_fd=place)
    return still


def content(fd: int) -> bytes:
    """Return what a descriptor has to read. Raises OSError."""
    chunks = []
    while chunk := os.read(fd, 1 << 18):
        chunks.append(chunk)
    return b"".join(chunks)


def _status(place: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=place, follow_symlinks=False)


def _names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}.{number}"
        number += 1


def _text(place: int, name: str) -> bytes | None:
    """Return what a backup holds; None for one that cannot be one."""
    try:
        fd = os.open(name, READ, dir_fd=place)
    except OSError:
        return None
    try:
        return content(fd) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)
