"""First mount wins: which mounts did not get the nconnect that they asked for, and what mends that."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Sequence

from nfstuned.core.mounts.kernels import V4_0_SINCE
from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.mounts.requests import find, is_version, options, requested
from nfstuned.core.nconnect.groups import (
    Groups,
    allowed,
    carrying,
    effective_nconnect,
    members,
    protocol,
    requested_nconnect,
    rivals,
    version,
    was_recorded,
)
from nfstuned.model.facts import Facts, Identity, Target
from nfstuned.model.mounts import Maker
from nfstuned.model.requests import Asked
from nfstuned.model.shell import RELOAD_UNITS, quote
from nfstuned.parse.etc.units import unit_name
from nfstuned.parse.fields import some

_OWN = ("addr", "clientaddr", "mountaddr")
"""What mount.nfs adds by itself."""
_GENERIC = ("ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "sync", "dirsync")
"""What mount(8) makes flags of, which utab does not keep."""


def depth(target: Target) -> tuple[int, str]:
    """Return the key that sorts a mount before all mounts that lie in it."""
    return (posixpath.normpath(target.point).count("/") if target.point != "/" else 0, target.point)


def lies_in(inner: str, outer: str) -> bool:
    """Return whether a mount point is below another."""
    return inner.startswith(outer.rstrip("/") + "/")


def making(chief: Target, others: Sequence[Target]) -> tuple[Target, ...]:
    """Return the order of mounting: the mounts that `chief` lies in, then `chief`, then all other mounts.

    `others` keep their order.
    """
    above = [other for other in others if lies_in(chief.point, other.point)]
    return (*above, chief, *(other for other in others if other not in above))


def options_again(target: Target, count: int | None) -> str:
    """Return the options that make a live mount as it was asked for, with `count` connections if given."""
    left = {*_OWN, *_GENERIC, *(() if count is None else ("nconnect",))}
    own = [option for option in target.asked if option.name not in left]
    versions = [option for option in own if is_version(option.name) and option.name != "minorversion"]
    if len(versions) > 1:
        # Of vers=4,minorversion=1 utab has vers=4,vers=4.1, which mount.nfs adds, and does not take again.
        own = [option for option in own if not is_version(option.name) or option is versions[-1]]
    words = [option.name if option.value is None else f"{option.name}={option.value}" for option in own]
    if target.live is not None:
        # By itself, or with its superblock.
        flags = target.live.flags.split(",")
        words += [name for name in _GENERIC if name in flags or name in target.live.options]
    return ",".join([*words, *([] if count is None else [f"nconnect={count}"])])


_FSTAB = "/etc/fstab"
_RELOAD = f"sudo {RELOAD_UNITS}"
_BY_HAND = "mount "
"""How a step begins that is no command."""


def contradicted(target: Target, facts: Facts, known: Groups) -> Asked | None:
    """Return the nconnect that a mount asks for where other mounts of its server gave it another.

    A mount that asks for none has nothing to lose. Without a record of what mount.nfs was given, the files
    may be newer than the mount: then another mount must be there that asked for what both have. A proposal is
    newer than every mount that it has a line for.
    """
    asked, wanted = find(target.asked, "nconnect"), requested_nconnect(target)
    got = effective_nconnect(target, facts, known)
    if asked is None or wanted is None or got in {None, wanted} or _may_be_ignored(target, facts):
        return None
    if (got or 1) < wanted <= (carrying(target) or 0):
        return None
    if target.live is None or was_recorded(target, facts):
        return asked
    if target.identity in known.after:
        return None
    others = (other for other in rivals(target, facts, known) if other.identity not in known.after)
    return asked if any(requested_nconnect(other) == got for other in others) else None


def decider(target: Target, facts: Facts, known: Groups) -> str:
    """Return which mount decided, for people: who came first is said only where the ages tell it.

    A superblock's age is what the kernel says; mount ids are reused, so that they say nothing.
    """
    got, others = effective_nconnect(target, facts, known), rivals(target, facts, known)
    if not others:
        return "another mount of the same server decided it, which is gone or cannot be seen from here"
    oldest = _oldest((target, *others) if target.live is not None else others)
    if oldest is not None and oldest is not target and requested_nconnect(oldest) in {None, got}:
        return f"{oldest.point} came first and decided it"
    likely = [other.point for other in others if requested_nconnect(other) == got] or [
        mount.point for mount in others
    ]
    return f"another mount of the same server decided it ({some(likely)})"


def bound(target: Target) -> int:
    """Return the most connections that a mount is good for: with Kerberos it is one (NFS207)."""
    return 1 if has_kerberos(target.options) else allowed(target)


def planned(target: Target, facts: Facts) -> int | None:
    """Return the nconnect that a mount's next making asks for: its files may be newer than what it had."""
    if target.request is None:
        return requested_nconnect(target)
    snapshot = facts.snapshot
    asked = find(requested(target.request, snapshot.settings, snapshot.stand_ins), "nconnect")
    return 1 if asked is None else options([asked]).number("nconnect")


def mend(targets: Sequence[Target], facts: Facts, known: Groups, count: int) -> str:
    """Return the commands that give mounts of a server `count` connections; "" where nothing must go for it.

    The innermost go first; then the first of `targets` comes first, but for what it lies in. What a proposal
    has a line for comes back as that line says. Lines that asked for another number are changed by then. What
    other mount namespaces have is told in words: here something else may be mounted at the same place.
    """
    going = _going(targets, facts, known, count)
    live = [mount for mount in going if not mount.foreign]
    away = some(list(dict.fromkeys(mount.point for mount in going if mount.foreign)))
    if not live:
        unmount = f"unmount {away} in its own mount namespace, and mount it there again with nconnect={count}"
        return unmount if away else ""
    first = next(target for target in (*targets, *live) if not target.foreign)
    chief = known.after.get(first.identity, first)
    others = [
        mount for mount in (known.after.get(mount.identity, mount) for mount in live) if mount is not chief
    ]
    made = [_command(mount, count) for mount in making(chief, others)]
    units = any(step.startswith("sudo systemctl start ") for step in made)
    steps = [
        "sudo umount " + " ".join(quote(mount.point) for mount in reversed(live)),
        *([_RELOAD] if units else []),
        *dict.fromkeys(made),
    ]
    there = (
        f" (first unmount {away} in its own mount namespace, and mount it there again afterwards)"
        if away
        else ""
    )
    return _proposed_first((chief, *others), facts) + _sequence(steps) + there + _held(going, facts)


def _going(targets: Sequence[Target], facts: Facts, known: Groups, count: int) -> list[Target]:
    """Return the live mounts that must go, the outermost first: all of the group.

    Where the group has `count` already, only mounts of which utab says that they asked for another number.
    """
    going: dict[Identity, Target] = {}
    for target in targets:
        group = members(target, facts, known)
        if effective_nconnect(target, facts, known) == count:
            recorded = target.live is not None and was_recorded(target, facts)
            own = [mount for mount in group if mount is target or lies_in(mount.point, target.point)]
            going.update((mount.identity, mount) for mount in own if recorded)
            continue
        # A proposed line would be mounted in the place of a live mount.
        before = (mount for mount in facts.nfs if known.after.get(mount.identity) is target)
        going.update((mount.identity, mount) for mount in (*group, *before))
    return sorted(going.values(), key=depth)


def _proposed_first(mounts: Sequence[Target], facts: Facts) -> str:
    """Return which proposed lines have to be in fstab first: mount(8) knows nothing of them before."""
    proposed = [
        line.origin for line in mounts if line.request and line.request.file == facts.proposal != _FSTAB
    ]
    return f"put {', '.join(proposed)} into {_FSTAB}, then " if proposed else ""


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
    point = quote(target.point)
    if target.request is not None:
        if target.request.maker is Maker.AUTOFS:
            # KEY stands for any key of the map.
            return f"ls {quote(target.point.replace('*', 'KEY') + '/')} >/dev/null"
        if target.request.maker is Maker.MOUNT:
            return f"sudo mount {point}"
        return f"sudo systemctl start {quote(unit_name(target.point))}"
    if not target.asked:
        return f"{_BY_HAND}{point} again with nconnect={count} and otherwise the options that it had"
    options = quote(options_again(target, count))
    return f"sudo mount -t {target.fstype} -o {options} {quote(target.source)} {point}"


def _oldest(mounts: Sequence[Target]) -> Target | None:
    """Return the mount whose superblock is older than all others'; None where that is not certain."""
    ages = [(mount.stats.age_s, mount) for mount in mounts if mount.stats and mount.stats.age_s is not None]
    most = max((age for age, _ in ages), default=None)
    first = [mount for age, mount in ages if age == most]
    return first[0] if len(ages) == len(mounts) and len(first) == 1 else None


def _may_be_ignored(target: Target, facts: Facts) -> bool:
    """Whether the kernel may ignore the option for this version or protocol: then nobody came first."""
    release = facts.snapshot.kernel
    old = release is None or release.version < V4_0_SINCE
    return protocol(target) != "tcp" or (old and version(target) in {None, "4", "4.0"})
