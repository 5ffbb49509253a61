"""SMB mounts and their sessions, as the kernel's cifs shows them."""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.model.facts import SmbSession
from nfstuned.model.kernel import Mount


def observe_others(root: Root) -> tuple[Mount, ...]:
    """Return the live SMB mounts."""
    del root
    return ()


def observe_smb(root: Root) -> tuple[SmbSession, ...]:
    """Return the sessions of /proc/fs/cifs/DebugData; none for a user who may not read it."""
    del root
    return ()
