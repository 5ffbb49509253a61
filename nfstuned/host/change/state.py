"""Records of changes in /run/nfstuned/read-ahead: a small file a superblock, written before the value is.

A crash can therefore leave a record without a change, never a change without its record. The folder is the
only truth: the daemon, `apply` and `undo` all read it afresh.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from nfstuned.host.files.write import FOR_ALL, make_folders
from nfstuned.host.root import Root
from nfstuned.model.mounts import Record

FOLDER = "run/nfstuned/read-ahead"
LENGTH = 96
"""Bytes of a record's file: four JSON values of at most 20 characters, and spaces."""


class State:
    """The records of a host."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._folder = root.path(FOLDER)

    def prepare(self) -> None:
        """Make the folder, which everyone may read whatever the umask is. Raises OSError."""
        make_folders(self._root.path, FOLDER)

    def get(self, device: str) -> Record | None:
        """Return the record of a device number; None where no record is whole. Raises OSError."""
        try:
            bdi, original, written, undone = json.loads(self._root.read(f"{FOLDER}/{device}"))
        except (FileNotFoundError, RecursionError, TypeError, ValueError):
            return None
        if not all(type(value) is int for value in (bdi, original, written)):
            return None
        return Record(device, bdi, original, written, undone is True)

    def all(self) -> dict[str, Record]:
        """Return every record by its device number. Raises OSError."""
        try:
            names = self._root.listing(FOLDER)
        except FileNotFoundError:
            names = []
        return {name: record for name in names if (record := self.get(name)) is not None}

    def put(self, record: Record) -> None:
        """Keep a record. Raises OSError.

        A single write(2) of always the same length replaces the record before it: whenever a reader looks or
        the daemon is killed, there is the old record, the new record, or (instead of the first) none.
        """
        values = [record.bdi, record.original_kb, record.written_kb, record.undone]
        fd = self._open(record.device)
        try:
            os.write(fd, json.dumps(values).ljust(LENGTH).encode())
        finally:
            os.close(fd)

    def _open(self, device: str) -> int:
        name, flags = f"{self._folder}/{device}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            fd = os.open(name, flags, FOR_ALL)
        except FileNotFoundError:
            # Somebody has removed the folder: its records are lost, and tuning goes on.
            self.prepare()
            fd = os.open(name, flags, FOR_ALL)
        os.fchmod(fd, FOR_ALL)
        return fd

    def drop(self, device: str) -> None:
        """Forget a device number; it is no error when nothing is known of it."""
        with suppress(FileNotFoundError):
            os.unlink(f"{self._folder}/{device}")
