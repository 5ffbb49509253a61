"""First mount wins: which mounts did not get the nconnect that they asked for, and what mends that."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Sequence

from nfstuned.core.backports import V4_0_SINCE
from nfstuned.core.groups import Groups, effective, members, protocol, requested, version, was_recorded
from nfstuned.core.intent import find
from nfstuned.model.facts import Facts, Target
from nfstuned.model.intent import Asked

_FSTAB = "/etc/fstab"
_UNIT = ".mount"
_MOST = 16
"""NFS_MAX_CONNECTIONS."""
_OWN = ("addr", "clientaddr")
"""What mount.nfs adds by itself."""


def contradicted(target: Target, facts: Facts, known: Groups) -> Asked | None:
    """Return the nconnect that a mount asks for where other mounts of its server gave it another one.

    A mount that asks for none has nothing to lose. Without a record of what mount.nfs was given, the files
    may be newer than the mount: then another mount must be there that asked for what both have.
    """
    asked, wanted, got = (
        find(target.asked, "nconnect"),
        requested(target),
        effective(target, facts, known),
    )
    if asked is None or wanted is None or got in {None, wanted} or _ignored(target, facts):
        return None
    others = rivals(target, facts, known)
    if target.live is None or was_recorded(target, facts):
        return asked
    return asked if any(requested(other) == got for other in others) else None


def rivals(target: Target, facts: Facts, known: Groups) -> tuple[Target, ...]:
    """Return the other live mounts of its transport group."""
    return tuple(other for other in members(target, facts, known) if other is not target)


def decider(target: Target, facts: Facts, known: Groups) -> str:
    """Return which mount decided, for people: who came first is said only where the ages tell it.

    A superblock's age is what the kernel says; mount ids are reused, so that they say nothing.
    """
    got, others = effective(target, facts, known), rivals(target, facts, known)
    if not others:
        return "another mount of the same server decided it, which is gone or cannot be seen from here"
    oldest = _oldest((target, *others) if target.live is not None else others)
    if oldest is not None and oldest is not target and requested(oldest) in {None, got}:
        return f"{oldest.point} came first and decided it"
    likely = [other.point for other in others if requested(other) == got] or [one.point for one in others]
    return f"another mount of the same server decided it ({_some(likely)})"


def mend(target: Target, facts: Facts, known: Groups, count: int) -> str:
    """Return the commands that give a mount `count` connections.

    All mounts of the group go, the innermost first; then it comes first, but for what it lies in. Where the
    profile of another mount forbids so many, it must ask for fewer instead.
    """
    others = rivals(target, facts, known)
    strict = next((one for one in others if (one.profile.nconnect_max or _MOST) < count), None)
    if strict is not None:
        most = strict.profile.nconnect_max
        return f"ask for at most {most}: {strict.point} is of the same server, and its profile allows no more"
    live = sorted((target, *others) if target.live is not None else others, key=_depth)
    points = [shlex.quote(one.point) for one in reversed(live)]
    above = [one for one in live if target.point.startswith(one.point.rstrip("/") + "/")]
    made = [
        *map(_command, above),
        _command(target, count),
        *(_command(one) for one in live if one is not target),
    ]
    steps = [
        *(["sudo umount " + " ".join(points)] if points else []),
        *dict.fromkeys(command for command in made if command),
    ]
    return _agree(others, count) + " && ".join(steps) + _held(live, facts)


def _depth(target: Target) -> tuple[int, str]:
    return (posixpath.normpath(target.point).count("/") if target.point != "/" else 0, target.point)


def _agree(others: Iterable[Target], count: int) -> str:
    """Name the lines that must say the same, or the next boot decides anew."""
    lines = dict.fromkeys(one.origin for one in others if one.origin and requested(one) not in {None, count})
    return f"put nconnect={count} also into {_some(list(lines))}, then " if lines else ""


def _held(live: Sequence[Target], facts: Facts) -> str:
    """Name superblocks of the same servers that no mount shows: they keep the connections."""
    servers = {
        (one.superblock.volume.address, one.superblock.volume.port)
        for one in live
        if one.superblock and one.superblock.volume
    }
    hidden = [
        superblock.device
        for superblock in facts.snapshot.superblocks
        if not superblock.mounts
        and superblock.volume
        and (superblock.volume.address, superblock.volume.port) in servers
    ]
    return f" (first end what still uses {_some(hidden)}, which umount -l left behind)" if hidden else ""


def _command(target: Target, count: int | None = None) -> str:
    """Return how a mount is made again, with `count` connections where its options stand in the command.

    "" for what comes by itself, and for what nothing tells.
    """
    point = shlex.quote(target.point)
    if target.request is not None:
        if target.request.file == _FSTAB:
            return f"sudo mount {point}"
        name = posixpath.basename(target.request.file)
        return f"sudo systemctl start {shlex.quote(name)}" if name.endswith(_UNIT) else ""
    if not target.asked:
        return ""
    pairs = [(one.name, one.value) for one in target.asked if one.name not in _OWN]
    if count is not None:
        pairs = [*((name, value) for name, value in pairs if name != "nconnect"), ("nconnect", str(count))]
    words = ",".join(name if value is None else f"{name}={value}" for name, value in pairs)
    options = f"-o {shlex.quote(words)} " if words else ""
    return f"sudo mount -t {target.fstype} {options}{shlex.quote(target.source)} {point}"


def _oldest(mounts: Sequence[Target]) -> Target | None:
    """Return the one whose superblock is older than all others'; None where that is not certain."""
    ages = [(mount.stats.age_s, mount) for mount in mounts if mount.stats and mount.stats.age_s is not None]
    most = max((age for age, _ in ages), default=None)
    first = [mount for age, mount in ages if age == most]
    return first[0] if len(ages) == len(mounts) and len(first) == 1 else None


def _ignored(target: Target, facts: Facts) -> bool:
    """Whether the kernel may ignore the option for this version or protocol: then nobody came first."""
    release = facts.snapshot.kernel
    old = release is None or release.version < V4_0_SINCE
    return protocol(target) != "tcp" or (old and version(target) in {None, "4", "4.0"})


def _some(names: Sequence[str]) -> str:
    shown = 3
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
