"""First mount wins: mounts that did not get the nconnect that they asked for, and the commands for it."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Sequence

from nfstuned.core.mounts.options import NCONNECT_V4_0_SINCE
from nfstuned.core.mounts.requests import asked_options, is_version, last_asked, requested
from nfstuned.core.mounts.targets import renewal
from nfstuned.core.nconnect.transport import (
    busy_connections,
    effective_nconnect,
    members,
    rivals,
    transport_groups,
    was_recorded,
)
from nfstuned.model.facts import Facts, Identity, Target
from nfstuned.model.mounts import Asked, Maker
from nfstuned.parse.fields import RELOAD_UNITS, quote, some, unit_name

_OWN = ("addr", "clientaddr", "mountaddr")
"""The options that mount.nfs adds by itself."""
_GENERIC = ("ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "sync", "dirsync")
"""The flags that a mount by hand gets again: utab keeps no flag. strictatime and lazytime are left out."""
_RELOAD_MAPS = "sudo systemctl reload autofs"
_BY_HAND = "mount "
"""The beginning of a step that is no command."""


def depth(target: Target) -> tuple[int, str]:
    """Return the key that sorts a mount before all mounts that lie in it."""
    return (posixpath.normpath(target.point).count("/") if target.point != "/" else 0, target.point)


def lies_in(inner: str, outer: str) -> bool:
    """Return whether a mount point is below another."""
    return inner.rstrip("/").startswith(outer.rstrip("/") + "/")


def mount_order(chief: Target, others: Sequence[Target]) -> tuple[Target, ...]:
    """Return the order of mounting: the mounts that `chief` lies in, then `chief`, then all other mounts.

    `others` keep their order.
    """
    above = [other for other in others if lies_in(chief.point, other.point)]
    return (*above, chief, *(other for other in others if other not in above))


def mount_options(target: Target, count: int | None) -> str:
    """Return the options that make a live mount as it was asked for, with `count` connections if given."""
    left = {*_OWN, *_GENERIC, *(() if count is None else ("nconnect",))}
    own = [option for option in target.asked if option.name not in left]
    versions = [option for option in own if is_version(option.name) and option.name != "minorversion"]
    if len(versions) > 1:
        # For vers=4,minorversion=1 mount.nfs writes vers=4,vers=4.1 to utab, and refuses both as options.
        own = [option for option in own if not is_version(option.name) or option is versions[-1]]
    parts = [option.name if option.value is None else f"{option.name}={option.value}" for option in own]
    if target.live is not None:
        # By itself, or with its superblock.
        flags = target.live.flags.split(",")
        parts += [name for name in _GENERIC if name in flags or name in target.live.options]
    return ",".join([*parts, *([] if count is None else [f"nconnect={count}"])])


def overruled(target: Target, facts: Facts) -> Asked | None:
    """Return the nconnect that a mount asks for where other mounts of its server gave it another number.

    A mount that asks for none has nothing to lose. Without a record of the options that mount.nfs was given,
    the files may be newer than the mount: then another mount must have asked for the number in effect. A
    proposal is newer than every mount that it has a line for.
    """
    asked, wanted = last_asked(target.asked, "nconnect"), target.asked_nconnect
    got = effective_nconnect(target, facts)
    release = facts.snapshot.kernel
    old = release is None or release.version < NCONNECT_V4_0_SINCE
    # The kernel may ignore the option for this version or protocol: then nobody came first.
    ignored = target.protocol != "tcp" or (old and target.version in {None, "4", "4.0"})
    if asked is None or wanted is None or got in {None, wanted} or ignored:
        return None
    if (got or 1) < wanted <= (busy_connections(target) or 0):
        return None
    if target.live is None or was_recorded(target, facts):
        return asked
    after = transport_groups(facts).after
    if target.identity in after:
        return None
    others = (other for other in rivals(target, facts) if other.identity not in after)
    return asked if any(other.asked_nconnect == got for other in others) else None


def decider(target: Target, facts: Facts) -> str:
    """Return which mount decided, for people: the first mount is named only where the ages show it."""
    got, others = effective_nconnect(target, facts), rivals(target, facts)
    if not others:
        return "an earlier mount of the same server decided, which is gone or cannot be seen from here"
    if (first := earliest(target, facts)) is not None:
        return f"{first.point} was mounted first"
    likely = [other.point for other in others if other.asked_nconnect == got]
    return (
        f"an earlier mount of the same server decided ({some(likely or [other.point for other in others])})"
    )


def earliest(target: Target, facts: Facts) -> Target | None:
    """Return the mount that came before a mount and decided its nconnect; None where ages do not show it.

    A superblock's age comes from the kernel; mount ids are reused, so that they prove nothing.
    """
    got, others = effective_nconnect(target, facts), rivals(target, facts)
    mounts = (target, *others) if target.live is not None else others
    ages = [(mount.stats.age_s, mount) for mount in mounts if mount.stats and mount.stats.age_s is not None]
    most = max((age for age, _ in ages), default=None)
    oldest = [mount for age, mount in ages if age == most]
    if len(ages) == len(mounts) and len(oldest) == 1 and oldest[0] is not target:
        first = oldest[0]
        if first.asked_nconnect in {None, got}:
            return first
    return None


def next_nconnect(target: Target, facts: Facts) -> int | None:
    """Return the nconnect that a mount asks for the next time: its files may be newer than its options.

    None where it asks for none; a mount that no file makes asks as it did.
    """
    if target.request is None:
        return target.wanted.number("nconnect")
    snapshot = facts.snapshot
    return asked_options(requested(target.request, snapshot.settings, snapshot.stand_ins)).number("nconnect")


def mount_commands(targets: Sequence[Target], facts: Facts, count: int) -> str:
    """Return the commands that give mounts of a server `count` connections; "" where nothing must go for it.

    The innermost go first; then the first of `targets` comes first, but for the mounts that it lies in. A
    mount that a proposal has a line for comes back as that line asks. The caller's text has lines with
    another number changed before. Mounts of other mount namespaces get no command: here something else may be
    mounted at the same place. Mounts that programs made get the programs' own step; where nothing is mounted
    and the automounter has lines, its maps are reloaded.
    """
    going = _going(targets, facts, count)
    live = [mount for mount in going if not mount.foreign]
    by_programs = renewal(live)
    live = [mount for mount in live if not mount.by_program]
    away = some(list(dict.fromkeys(mount.point for mount in going if mount.foreign)))
    if not live:
        unmount = f"unmount {away} in its own mount namespace, and mount it there again with nconnect={count}"
        unread = facts.running and any(target.maker is Maker.AUTOFS for target in targets)
        return by_programs or (unmount if away else _RELOAD_MAPS if unread else "")
    after = transport_groups(facts).after
    first = next(target for target in (*targets, *live) if not (target.foreign or target.by_program))
    chief = after.get(first.identity, first)
    others = [mount for mount in (after.get(mount.identity, mount) for mount in live) if mount is not chief]
    made = [_command(mount, count) for mount in mount_order(chief, others)]
    units = any(step.startswith("sudo systemctl start ") for step in made)
    # Before the mount goes: the next access may be anybody's.
    maps = any(step.startswith("ls ") for step in made)
    steps = [
        *([_RELOAD_MAPS] if maps else []),
        "sudo umount " + " ".join(quote(mount.point) for mount in reversed(live)),
        *([f"sudo {RELOAD_UNITS}"] if units else []),
        *dict.fromkeys(made),
    ]
    text = steps[0]
    for before, step in itertools.pairwise(steps):
        # Commands that follow each other are one line to paste.
        by_hand = before.startswith(_BY_HAND) or step.startswith(_BY_HAND)
        text += (", then " if by_hand else " && ") + step
    there = (
        f" (first unmount {away} in its own mount namespace, and mount it there again afterwards)"
        if away
        else ""
    )
    keys = ", with a key of the map for KEY" if any("/KEY" in step for step in made) else ""
    devices = list(unseen_superblocks(going, facts))
    unseen = f" (first end every use of {some(devices)}, which umount -l left behind)" if devices else ""
    return (f"{by_programs}; meanwhile " if by_programs else "") + text + keys + there + unseen


def _going(targets: Sequence[Target], facts: Facts, count: int) -> list[Target]:
    """Return the live mounts that must go, the outermost first: all of the group.

    Where the group has `count` already, only the mounts that asked for another number, by utab.
    """
    going: dict[Identity, Target] = {}
    for target in targets:
        group = members(target, facts)
        if effective_nconnect(target, facts) == count:
            recorded = target.live is not None and was_recorded(target, facts)
            own = [mount for mount in group if mount is target or lies_in(mount.point, target.point)]
            going.update((mount.identity, mount) for mount in own if recorded)
            continue
        # A proposed line would replace a live mount.
        before = (mount for mount in facts.nfs if transport_groups(facts).after.get(mount.identity) is target)
        going.update((mount.identity, mount) for mount in (*group, *before))
    return sorted(going.values(), key=depth)


def unseen_superblocks(mounts: Sequence[Target], facts: Facts) -> tuple[str, ...]:
    """Return the superblocks of the same servers that no mount shows: umount -l left them behind."""
    blocks = [target.superblock for target in mounts if target.superblock is not None]
    places = {
        (block.volume.version, block.volume.address, block.volume.port)
        for block in blocks
        if block.volume is not None
    }
    spaces = [block.servers for block in blocks]
    return tuple(
        block.device
        for block in facts.snapshot.superblocks
        if not block.mounts
        and block.volume is not None
        and (block.volume.version, block.volume.address, block.volume.port) in places
        and block.servers in spaces
    )


def _command(target: Target, count: int) -> str:
    """Return how a mount is made again, with `count` connections where the command has its options.

    In words where its options are not known: the kernel's list leaves some out.
    """
    point = quote(target.point)
    if target.maker is Maker.AUTOFS:
        point = quote(target.point.replace("*", "KEY") + "/")
        return f"ls {point} >/dev/null"
    if target.request is not None:
        if target.request.maker is Maker.MOUNT:
            return f"sudo mount {point}"
        return f"sudo systemctl start {quote(unit_name(target.point))}"
    if not target.asked:
        return f"{_BY_HAND}{point} again with nconnect={count} and otherwise its old options"
    options = quote(mount_options(target, count))
    return f"sudo mount -t {target.fstype} -o {options} {quote(target.source)} {point}"
