"""A lock that only root can hold; on a folder that others may read, any of them could hold it for ever."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

LOCK = "run/nfstuned/replace.lock"
"""Below a root; only root may write into the folder, which systemd keeps when the service ends."""


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold a lock, which ends with the process. Raises BlockingIOError where it is held, and OSError."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)
