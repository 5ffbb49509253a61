"""What the daemon asks of nfstuned-persist.service: a file in memory, which its path unit waits for."""

from __future__ import annotations

import os

from nfstuned.host.root import Root

FILE = "run/nfstuned/persist"
"""As in systemd/nfstuned-persist.path; the service takes it away when it begins."""


def request_persist(root: Root) -> None:
    """Ask; once more before it was served is the same. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(root.path(FILE), flags, 0o600))
