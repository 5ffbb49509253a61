"""What nfstuned did, in /run/nfstuned/read-ahead: one small file a superblock, written before the value is.

A crash can therefore leave a record without a change, never a change without its record. The folder is the
only truth: the daemon, `apply` and `undo` all read it afresh.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from nfstuned.host.root import Root
from nfstuned.model.work import Record

FOLDER = "run/nfstuned/read-ahead"


class State:
    """The records of one host."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._folder = root.path(FOLDER)

    def prepare(self) -> None:
        """Make the folder. Raises OSError."""
        os.makedirs(self._folder, mode=0o755, exist_ok=True)

    def get(self, device: str) -> Record | None:
        """Return the record of a device number; None when there is none, or none that is whole."""
        text = self._root.read_or_empty(f"{FOLDER}/{device}")
        return _record(device, text) if text else None

    def all(self) -> dict[str, Record]:
        """Return every record by its device number."""
        names = self._root.names(FOLDER)
        return {name: record for name in names if (record := self.get(name)) is not None}

    def put(self, record: Record) -> None:
        """Keep a record. Raises OSError.

        One write(2) of a few bytes: a reader sees all of it or an empty file, which counts as no record.
        """
        values = [record.bdi, record.original_kb, record.written_kb, record.undone]
        fd = os.open(
            f"{self._folder}/{record.device}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644
        )
        try:
            os.write(fd, json.dumps(values).encode())
        finally:
            os.close(fd)

    def drop(self, device: str) -> None:
        """Forget a device number; it is no error when nothing is known of it."""
        with suppress(FileNotFoundError):
            os.unlink(f"{self._folder}/{device}")


def _record(device: str, text: str) -> Record | None:
    try:
        bdi, original, written, undone = json.loads(text)
    except (TypeError, ValueError):
        return None
    if not all(type(value) is int for value in (bdi, original, written)):
        return None
    return Record(device, bdi, original, written, undone is True)
