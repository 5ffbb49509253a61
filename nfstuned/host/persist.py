"""nfstuned's own drop-in of nfsmount.conf, read and written as a whole."""

from __future__ import annotations

import os
from contextlib import suppress

from nfstuned.host.create import create
from nfstuned.host.lock import LOCK
from nfstuned.host.replace import Original, load, replace
from nfstuned.host.root import Root
from nfstuned.parse.nfsmount import PERSISTED

PATH = PERSISTED.lstrip("/")
"""Below a root."""


def load_persisted(root: Root) -> Original | None:
    """Return the file as it is; None where there is none.

    Raises OSError: LinkError for a symbolic link, UnusableError for what is no regular file.
    """
    try:
        return load(root.path(PATH))
    except FileNotFoundError:
        return None


def write_persisted(root: Root, original: Original | None, text: str) -> str:
    """Put a text in the place of the file as it was read; return what was in the way, "" where nothing was.

    No backup stays: only a text that nfstuned wrote may be replaced, so that nobody's words are in it.
    """
    data, lock = text.encode(), root.path(LOCK)
    if original is None:
        return create(root.path(PATH), data, lock)
    done = replace(original, data, lock)
    if not done.problem and done.backup is not None:
        with suppress(OSError):
            os.unlink(done.backup)
    return done.problem
