"""How many connections a transport group should have: what `apply --remount` is to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nfstuned.core import intent
from nfstuned.core.carrying import carrying
from nfstuned.core.groups import Groups, awaited
from nfstuned.core.inherited import bound
from nfstuned.model.facts import Facts, Target


@dataclass(frozen=True, slots=True)
class Goal:
    """A number of connections, and who says so."""

    old: int
    new: int
    reason: str


def goal(group: Sequence[Target], facts: Facts, known: Groups) -> Goal | None:
    """Return what a group of live mounts should have instead; None where it is as it should be.

    As for fstab (core/fstabplan.py): the most that a profile recommends or that a mount asks for, within
    what every profile allows. More than was asked for is only taken away where a mount asked for a number.
    """
    old = max([carrying(one) or 1 for one in group])
    waiting = [line for target in group for line in awaited(target, facts, known)]
    most = min(bound(target) for target in (*group, *waiting))
    asked = [(number, _asker(one)) for one in group if (number := wanted(one, facts)) and number <= most]
    named = [(one.profile.nconnect, one.profile.name) for one in group if one.profile.nconnect is not None]
    number, who = max((*named, *asked), key=lambda found: found[0], default=(old, ""))
    new = min(number, most)
    if new == old or (new < old <= most and not asked):
        return None
    reason = (
        f"{who} asks for nconnect={number}" if new == number else f"no more than nconnect={most} is allowed"
    )
    return Goal(old, new, reason)


def wanted(target: Target, facts: Facts) -> int | None:
    """Return the number that a mount asks for; what it was made with where no file makes it."""
    if target.request is None:
        return target.wanted.number("nconnect")
    asked = intent.requested(target.request, facts.snapshot.settings)
    return intent.options(asked).number("nconnect")


def _asker(target: Target) -> str:
    return target.origin or f"the mount at {target.point}"
