"""SMB mounts and their sessions, as the kernel's cifs shows them."""

from __future__ import annotations

from nfstuned.host.root import Root
from nfstuned.model.facts import SmbOps, SmbSession
from nfstuned.model.kernel import Mount
from nfstuned.parse.proc.cifs import parse_debug_data, parse_stats
from nfstuned.parse.proc.mountinfo import SMB, parse_mountinfo

FOLDER = "proc/fs/cifs"


def observe_others(root: Root) -> tuple[Mount, ...]:
    """Return the live SMB mounts."""
    name = f"{root.view}/mountinfo"
    rows = parse_mountinfo(root.read_or_empty(name), f"/{name}", SMB)
    return tuple(row for row in rows if isinstance(row, Mount))


def observe_smb(root: Root) -> tuple[SmbSession, ...]:
    """Return the sessions of /proc/fs/cifs/DebugData; none for a user who may not read it.

    The kernel answers from its memory: a dead server does not hold this up.
    """
    return parse_debug_data(root.read_or_empty(f"{FOLDER}/DebugData"))


def observe_operations(root: Root) -> tuple[SmbOps, ...]:
    """Return what was sent to each share so far, from /proc/fs/cifs/Stats."""
    return parse_stats(root.read_or_empty(f"{FOLDER}/Stats"))


def operations_between(before: tuple[SmbOps, ...], after: tuple[SmbOps, ...]) -> tuple[SmbOps, ...]:
    """Return what was sent to each share between two looks; a share whose counters went back is left out."""
    earlier = {counters.share: counters for counters in before}
    growths = (
        SmbOps(now.share, now.metadata - then.metadata, now.data - then.data)
        for now in after
        if (then := earlier.get(now.share)) is not None
    )
    return tuple(growth for growth in growths if growth.metadata >= 0 and growth.data >= 0)
