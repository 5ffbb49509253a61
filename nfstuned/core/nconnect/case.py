"""A transport group that is to be mounted again, what is known of it, and the number it should reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nfstuned.core.mounts import requests as intent
from nfstuned.core.nconnect.first_mount import bound
from nfstuned.core.nconnect.groups import Groups, carrying, highest, pending_kerberos
from nfstuned.model.connections import Sight
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import MountNode
from nfstuned.parse.etc.units import unit_name


@dataclass(frozen=True, slots=True)
class Goal:
    """A number of connections, and who says so."""

    old: int
    new: int
    reason: str


def goal(group: Sequence[Target], facts: Facts, known: Groups) -> Goal | None:
    """Return what a group of live mounts should have instead; None where it is as it should be.

    As for fstab (core/nconnect/fstab.py): the most that a profile recommends or that a mount asks for, within
    what every profile allows. More than was asked for is only taken away where a mount asked for a number.
    """
    old = max([carrying(target) or 1 for target in group])
    waiting = [line for target in group for line in pending_kerberos(target, facts, known)]
    most = min(bound(target) for target in (*group, *waiting))
    named = [(target.profile.nconnect, target.profile.name) for target in group]
    asked = [(wanted(target, facts), target.origin or f"the mount at {target.point}") for target in group]
    number = highest((number for number, _ in named), (number for number, _ in asked), most)
    new = min(number or old, most)
    if new == old or (new < old <= most and not any(number and number <= most for number, _ in asked)):
        return None
    reason = f"no more than nconnect={most} is allowed"
    if new == number:
        who = next(who for asked_number, who in (*named, *asked) if asked_number == number)
        reason = f"{who} asks for nconnect={number}"
    return Goal(old, new, reason)


def wanted(target: Target, facts: Facts) -> int | None:
    """Return the number that a mount asks for; what it was made with where no file makes it."""
    if target.request is None:
        return target.wanted.number("nconnect")
    asked = intent.requested(target.request, facts.snapshot.settings, facts.snapshot.stand_ins)
    return intent.options(asked).number("nconnect")


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A group: all its live mounts, and those of them that are to be unmounted and mounted again."""

    facts: Facts
    sight: Sight
    group: tuple[Target, ...]
    parts: tuple[Target, ...]
    """In this mount namespace, the outermost first."""
    own: tuple[Target, ...]
    """What the kernel mounts by itself where a server has a file system in another, and unmounts."""
    goal: Goal

    @property
    def devices(self) -> frozenset[str]:
        """The superblocks of the group."""
        return frozenset(target.live.device for target in self.group if target.live is not None)

    @property
    def units(self) -> tuple[str, ...]:
        """The names of the mount units that files ask for."""
        return tuple(unit_name(target.point) for target in self.parts if target.request is not None)

    def node(self, target: Target) -> MountNode | None:
        """Return a mount's line in the tree."""
        return node_of(target, self.sight)


def makes(case: Case, target: Target) -> bool:
    """Return whether a mount would ask for the number when it is made again; by hand it is told to."""
    return target.request is None or (wanted(target, case.facts) or 1) == case.goal.new


def node_of(target: Target, sight: Sight) -> MountNode | None:
    """Return a live mount's line in the tree of this mount namespace; None where it is another's."""
    if target.live is None:
        return None
    identity = (target.live.mount_id, target.point)
    return next((node for node in sight.nodes if (node.mount_id, node.point) == identity), None)


def in_sight(target: Target, sight: Sight) -> bool:
    """Return whether a live mount is in this mount namespace."""
    return node_of(target, sight) is not None


def automatic(target: Target, group: Sequence[Target], sight: Sight) -> bool:
    """Return whether the kernel itself made a mount: a file system within the server's own tree.

    Nobody asked for it, it lies in another of the group as it does on the server, and it is not the same
    superblock again (mount --bind). It goes with the outer one when nothing uses it (fs/namespace.c,
    shrink_submounts), and comes back when somebody goes there.
    """
    node = node_of(target, sight)
    if node is None or target.asked or target.request is not None:
        return False
    outer = next((mount for mount in group if mount.live and mount.live.mount_id == node.parent_id), None)
    if outer is None or outer.live is None or outer.live.device == node.device:
        return False
    below = target.point.removeprefix(outer.point.rstrip("/"))
    return target.source == outer.source.rstrip("/") + below
