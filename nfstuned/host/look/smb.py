"""SMB mounts and their sessions, as the kernel's cifs shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.host.files.local import demand_local
from nfstuned.host.root import Root
from nfstuned.model.facts import SmbOps, SmbSession
from nfstuned.model.kernel import Mount
from nfstuned.parse.proc.cifs import parse_debug_data, parse_stats
from nfstuned.parse.proc.mountinfo import SMB, parse_mountinfo

FOLDER = "proc/fs/cifs"
_HALF = 1 << 31


def observe_smb_mounts(root: Root) -> tuple[tuple[Mount, ...], tuple[ParseError, ...]]:
    """Return the live SMB mounts, and what of them could not be understood."""
    name = f"{root.view}/mountinfo"
    rows = parse_mountinfo(root.read_or_empty(name), f"/{name}", SMB)
    mounts = tuple(row for row in rows if isinstance(row, Mount))
    return mounts, tuple(row for row in rows if isinstance(row, ParseError))


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
        SmbOps(now.share, _grown(then.metadata, now.metadata), _grown(then.data, now.data))
        for now in after
        if (then := earlier.get(now.share)) is not None
    )
    return tuple(growth for growth in growths if growth.metadata >= 0 and growth.data >= 0)


def _grown(before: int, now: int) -> int:
    """Return how much a sum of counters of 32 bits grew, also where some wrapped; negative: it fell."""
    return (now - before + _HALF) % (2 * _HALF) - _HALF


def observe_modes(root: Root, paths: Iterable[str], *, image: bool) -> Mapping[str, int]:
    """Return the permissions of files by their paths; without those of which a server may have to be asked.

    Their text is not read.
    """
    found: dict[str, int] = {}
    for path in paths:
        if not image:
            try:
                demand_local(root, path, root.view)
            except OSError:
                continue
        mode = root.mode(path.lstrip("/"))
        if mode is not None:
            found[path] = mode
    return MappingProxyType(found)
