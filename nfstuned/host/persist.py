"""nfstuned's own drop-in of nfsmount.conf, and the daemon's request to have it written."""

from __future__ import annotations

import os
from contextlib import suppress

from nfstuned.host.files.replace import Original, create, read_original, replace_file
from nfstuned.host.root import Root
from nfstuned.parse.etc.settings import PERSISTED

PATH = PERSISTED.lstrip("/")
"""Below a root. An image's has to be found by who writes there: its links may lead out of it."""


def load_persisted(path: str) -> Original | None:
    """Return the file as it is; None for an absent file.

    Raises OSError: LinkError for a symbolic link, UnusableError for anything but a regular file.
    """
    try:
        return read_original(path)
    except FileNotFoundError:
        return None


def write_persisted(path: str, original: Original | None, text: str, lock: str) -> str:
    """Replace the file that was read by a text; return why it failed, "" where it did not.

    `lock` is as in `replace_file`. No backup stays: only a text that nfstuned wrote may be replaced, so that
    nobody's words are in it.
    """
    data = text.encode("utf-8", "surrogateescape")
    if original is None:
        return create(path, data, lock)
    done = replace_file(original, data, lock)
    if not done.problem and done.backup is not None:
        with suppress(OSError):
            os.unlink(done.backup)
    return done.problem


FILE = "run/nfstuned/persist"
"""As in systemd/nfstuned-persist.path; the service takes it away when it begins."""


def request_persist(root: Root) -> None:
    """Ask; once more before it was served is the same. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(root.path(FILE), flags, 0o600))
