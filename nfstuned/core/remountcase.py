"""One transport group that is to be mounted again, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nfstuned.core.remountgoal import Goal, wanted
from nfstuned.model.facts import Facts, Target
from nfstuned.model.remount import Node, Sight
from nfstuned.parse.units import unit_name


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A group: all its live mounts, and those of them that are to be unmounted and mounted again."""

    facts: Facts
    sight: Sight
    group: tuple[Target, ...]
    parts: tuple[Target, ...]
    """In this mount namespace, the outermost first."""
    own: tuple[Target, ...]
    """What the kernel mounts by itself where a server has a file system in another one, and unmounts."""
    goal: Goal

    @property
    def devices(self) -> frozenset[str]:
        """The superblocks of the group."""
        return frozenset(target.live.device for target in self.group if target.live is not None)

    @property
    def units(self) -> tuple[str, ...]:
        """The names of the mount units that files ask for."""
        return tuple(unit_name(target.point) for target in self.parts if target.request is not None)

    def node(self, target: Target) -> Node | None:
        """Return a mount's line in the tree."""
        return node_of(target, self.sight)


def makes(case: Case, target: Target) -> bool:
    """Return whether a mount would ask for the number when it is made again; by hand it is told to."""
    return target.request is None or (wanted(target, case.facts) or 1) == case.goal.new


def node_of(target: Target, sight: Sight) -> Node | None:
    """Return a live mount's line in the tree of this mount namespace; None where it is another one's."""
    if target.live is None:
        return None
    identity = (target.live.mount_id, target.point)
    return next((one for one in sight.nodes if (one.mount_id, one.point) == identity), None)


def in_sight(target: Target, sight: Sight) -> bool:
    """Return whether a live mount is in this mount namespace."""
    return node_of(target, sight) is not None


def automatic(target: Target, group: Sequence[Target], sight: Sight) -> bool:
    """Return whether the kernel itself made a mount: a file system within the server's own tree.

    Nobody asked for it, it lies in another one of the group as it does on the server, and it is not the same
    superblock again (mount --bind). It goes with the outer one when nothing uses it (fs/namespace.c,
    shrink_submounts), and comes back when somebody goes there.
    """
    node = node_of(target, sight)
    if node is None or target.asked or target.request is not None:
        return False
    outer = next((one for one in group if one.live and one.live.mount_id == node.parent_id), None)
    if outer is None or outer.live is None or outer.live.device == node.device:
        return False
    below = target.point.removeprefix(outer.point.rstrip("/"))
    return target.source == outer.source.rstrip("/") + below
