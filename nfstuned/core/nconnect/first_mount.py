"""First mount wins: which mounts did not get the nconnect that they asked for, and what mends that."""

from __future__ import annotations

import itertools
import posixpath
import shlex
from collections.abc import Iterable, Sequence

from nfstuned.core.mounts.kernels import V4_0_SINCE
from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.mounts.requests import find, options
from nfstuned.core.mounts.requests import requested as next_asked
from nfstuned.core.nconnect.connections import carrying
from nfstuned.core.nconnect.groups import (
    Groups,
    allowed,
    awaited,
    effective,
    members,
    protocol,
    requested,
    rivals,
    version,
    was_recorded,
)
from nfstuned.model.facts import Facts, Target
from nfstuned.model.mounts import Maker
from nfstuned.model.requests import Asked
from nfstuned.parse.etc.units import unit_name

_OWN = ("addr", "clientaddr", "mountaddr")
"""What mount.nfs adds by itself."""
_GENERIC = ("ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "sync", "dirsync")
"""What mount(8) makes flags of, which utab does not keep."""


def depth(target: Target) -> tuple[int, str]:
    """Return what sorts mounts so that the outer one comes before what lies in it."""
    return (posixpath.normpath(target.point).count("/") if target.point != "/" else 0, target.point)


def lies_in(inner: Target, outer: Target) -> bool:
    """Return whether one mount point is below another."""
    return inner.point.startswith(outer.point.rstrip("/") + "/")


def making(chief: Target, others: Sequence[Target]) -> tuple[Target, ...]:
    """Return the order of mounting: `chief` first, but for what it lies in; `others` as they stand."""
    above = [other for other in others if lies_in(chief, other)]
    return (*above, chief, *(other for other in others if other not in above))


def options_again(target: Target, count: int | None) -> str:
    """Return the options that make a live mount as it was asked for, with `count` connections if given."""
    left = {*_OWN, *_GENERIC, *(() if count is None else ("nconnect",))}
    own = (option for option in target.asked if option.name not in left)
    words = [option.name if option.value is None else f"{option.name}={option.value}" for option in own]
    number = [] if count is None else [f"nconnect={count}"]
    return ",".join([*words, *_flags(target), *number])


def _flags(target: Target) -> list[str]:
    """Return the generic options that a live mount has, by itself or with its superblock."""
    if target.live is None:
        return []
    flags = target.live.flags.split(",")
    return [name for name in _GENERIC if name in flags or name in target.live.options]


_FSTAB = "/etc/fstab"
_RELOAD = "sudo systemctl daemon-reload"
_BY_HAND = "mount "
"""How a step begins that is no command."""


def contradicted(target: Target, facts: Facts, known: Groups) -> Asked | None:
    """Return the nconnect that a mount asks for where other mounts of its server gave it another.

    A mount that asks for none has nothing to lose. Without a record of what mount.nfs was given, the files
    may be newer than the mount: then another mount must be there that asked for what both have. A proposal is
    newer than every mount that it has a line for.
    """
    asked, wanted, got = (
        find(target.asked, "nconnect"),
        requested(target),
        effective(target, facts, known),
    )
    if asked is None or wanted is None or got in {None, wanted} or _ignored(target, facts):
        return None
    if (got or 1) < wanted <= (carrying(target) or 0):
        return None
    if target.live is None or was_recorded(target, facts):
        return asked
    if target.identity in known.after:
        return None
    others = (other for other in rivals(target, facts, known) if other.identity not in known.after)
    return asked if any(requested(other) == got for other in others) else None


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
    likely = [other.point for other in others if requested(other) == got] or [mount.point for mount in others]
    return f"another mount of the same server decided it ({some(likely)})"


def strictest(target: Target, facts: Facts, known: Groups) -> Target:
    """Return the mount of the group that is good for the fewest connections: they are all mounts'."""
    return min((target, *rivals(target, facts, known), *awaited(target, facts, known)), key=bound)


def bound(target: Target) -> int:
    """Return the most connections that a mount is good for: with Kerberos it is one (NFS207)."""
    return 1 if has_kerberos(target.options) else allowed(target)


def planned(target: Target, facts: Facts) -> int | None:
    """Return the nconnect that a mount's next making asks for: its files may be newer than what it had."""
    if target.request is None:
        return requested(target)
    asked = find(next_asked(target.request, facts.snapshot.settings), "nconnect")
    return 1 if asked is None else options([asked]).number("nconnect")


def mend(target: Target, facts: Facts, known: Groups, count: int) -> str:
    """Return the commands that give a mount `count` connections; "" where nothing is mounted that must go.

    The innermost go first; then it comes first, but for what it lies in. What a proposal has a line for comes
    back as that line says.
    """
    live = _going(target, facts, known, count)
    if not live:
        return ""
    chief = known.after.get(target.identity, target)
    others = [
        mount for mount in (known.after.get(mount.identity, mount) for mount in live) if mount is not chief
    ]
    made = [_command(mount, count) for mount in making(chief, others)]
    units = any(step.startswith("sudo systemctl start ") for step in made)
    steps = [
        "sudo umount " + " ".join(shlex.quote(mount.point) for mount in reversed(live)),
        *([_RELOAD] if units else []),
        *dict.fromkeys(made),
    ]
    before = _agree(others, count, facts) + _put([chief, *others], facts)
    return before + _sequence(steps) + _held(live, facts)


def _going(target: Target, facts: Facts, known: Groups, count: int) -> list[Target]:
    """Return the live mounts that must go, the outermost first: all of the group.

    Where the group has `count` already, only a mount of which utab says that it asked for another number.
    """
    if effective(target, facts, known) == count:
        recorded = target.live is not None and was_recorded(target, facts)
        inner = (
            member for member in members(target, facts, known) if member is target or lies_in(member, target)
        )
        return sorted(inner, key=depth) if recorded else []
    group = {
        mount.identity: mount for mount in (*members(target, facts, known), *_before(target, facts, known))
    }
    return sorted(group.values(), key=depth)


def _before(target: Target, facts: Facts, known: Groups) -> list[Target]:
    """Return the live mount in whose place a proposed line would be mounted."""
    return [mount for mount in facts.nfs if known.after.get(mount.identity) is target]


def _agree(others: Iterable[Target], count: int, facts: Facts) -> str:
    """Name the lines that must say the same, or the next boot decides anew."""
    lines = dict.fromkeys(other.origin for other in others if other.origin and planned(other, facts) != count)
    return f"put nconnect={count} also into {some(list(lines))}, then " if lines else ""


def _put(lines: Iterable[Target], facts: Facts) -> str:
    """Name the proposed lines, which mount(8) does not know before they are in fstab."""
    proposed = [
        line.origin for line in lines if line.request and line.request.file == facts.proposal != _FSTAB
    ]
    return f"put {some(proposed)} into {_FSTAB}, then " if proposed else ""


def _sequence(steps: Sequence[str]) -> str:
    """Return commands as one line to paste, as far as all of them are commands."""
    text = steps[0]
    for before, step in itertools.pairwise(steps):
        words = before.startswith(_BY_HAND) or step.startswith(_BY_HAND)
        text += (", then " if words else " && ") + step
    return text


def _held(live: Sequence[Target], facts: Facts) -> str:
    """Name superblocks of the same servers that no mount shows: they keep the connections."""
    servers = {
        (target.superblock.volume.address, target.superblock.volume.port)
        for target in live
        if target.superblock and target.superblock.volume
    }
    hidden = [
        superblock.device
        for superblock in facts.snapshot.superblocks
        if not superblock.mounts
        and superblock.volume
        and (superblock.volume.address, superblock.volume.port) in servers
    ]
    return f" (first end what still uses {some(hidden)}, which umount -l left behind)" if hidden else ""


def _command(target: Target, count: int) -> str:
    """Return how a mount is made again, with `count` connections where its options stand in the command.

    In words where nothing tells its options: what the kernel shows leaves some out.
    """
    if target.request is not None:
        return _as_requested(target.point, target.request.maker)
    point = shlex.quote(target.point)
    if not target.asked:
        return f"{_BY_HAND}{point} again with nconnect={count} and otherwise the options that it had"
    options = shlex.quote(options_again(target, count))
    return f"sudo mount -t {target.fstype} -o {options} {shlex.quote(target.source)} {point}"


def _as_requested(point: str, maker: Maker) -> str:
    """Return how a mount is made that a file asks for; KEY stands for any key of an autofs map."""
    if maker is Maker.AUTOFS:
        return f"ls {shlex.quote(point.replace('*', 'KEY') + '/')} >/dev/null"
    if maker is Maker.MOUNT:
        return f"sudo mount {shlex.quote(point)}"
    return f"sudo systemctl start {shlex.quote(unit_name(point))}"


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


def some(names: Sequence[str]) -> str:
    """Name the first few, and say how many more there are."""
    shown = 3
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
