"""The documents of measurements: a file for each, and the newest stay.

They name servers, mounts and options, and are for their user alone.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone

from nfstuned.errors import ParseError
from nfstuned.host.bench.guard import record_folder
from nfstuned.host.files.write import temporary_file
from nfstuned.host.root import Root

MOST = 100
"""Documents that stay."""
MOST_BYTES = 32 << 20
"""Of all documents; the newest stays, however large it is."""
LARGEST = 16_000_000
"""Bytes of a document that is read: 100 repeats of eight jobs take less than a tenth of it."""
_FOLDER, _FILE = 0o700, 0o600
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.json")


def result_folder(root: Root) -> str:
    """Return where a user's documents are, next to the guard's records."""
    return record_folder(root) + "-results"


def save(folder: str, moment: float, text: str) -> str:
    """Keep a document of a measurement that began at `moment`, and return its path. Raises OSError.

    The oldest documents go where there are more than MOST, or more than MOST_BYTES.
    """
    began = datetime.fromtimestamp(moment, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    name = f"{began}-{secrets.token_hex(4)}.json"
    os.makedirs(folder, _FOLDER, exist_ok=True)
    with _opened(folder) as place:
        os.fchmod(place, _FOLDER)
        with temporary_file(place, _FILE) as new:
            new.write(text.encode("utf-8", "backslashreplace"))
            new.take(name)
        _bound(place, name)
    return f"{folder}/{name}"


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    """Yield a folder's descriptor. Raises OSError for a link, and for another user's folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if (owner := os.fstat(fd).st_uid) != os.geteuid():
            raise PermissionError(errno.EACCES, f"the folder is another user's ({owner})", folder)
        yield fd
    finally:
        os.close(fd)


def _names(place: int) -> list[str]:
    """Return the names of the documents, the newest first."""
    return sorted((name for name in os.listdir(place) if _NAME.fullmatch(name)), reverse=True)


def _bound(place: int, new: str) -> None:
    total = 0
    for number, name in enumerate(_names(place), 1):
        with suppress(FileNotFoundError):  # another bench has removed it
            total += os.stat(name, dir_fd=place, follow_symlinks=False).st_size
            if name != new and (number > MOST or total > MOST_BYTES):
                os.unlink(name, dir_fd=place)


def newest(folder: str) -> Iterator[str]:
    """Yield the paths of the documents, the newest first. Raises OSError."""
    try:
        with _opened(folder) as place:
            names = _names(place)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in names)


def read_document(path: str) -> str:
    """Return the text of a document. Raises OSError, and ParseError where it is too large or no text."""
    with open(path, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ParseError(path, 0, f"more than {LARGEST // 10**6} MB, which is no document of bench")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ParseError(path, 0, "not UTF-8: no document of bench") from None
