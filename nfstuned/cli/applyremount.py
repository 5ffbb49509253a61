"""`nfstuned apply --remount`: mount the mounts of a server again, so that they get the right nconnect."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import click

from nfstuned.cli import notes
from nfstuned.cli.apply import ALL_DONE, COULD_NOT_TRY, REFUSED, print_outcomes
from nfstuned.cli.groupwork import NOBODY, ask_servers, can_ask, facts_of, live_outside, show
from nfstuned.cli.policy import usable_policy
from nfstuned.core.remount import cases, members, plan_remount
from nfstuned.core.remountservers import places, silent
from nfstuned.core.remountsteps import carry_out
from nfstuned.core.render import to_json
from nfstuned.core.render_remount import (
    finish_lines,
    left,
    plan_lines,
    planned,
    remount_cells,
    remount_document,
    remount_summary,
)
from nfstuned.host.lock import locked
from nfstuned.host.outside import Outside
from nfstuned.host.reach import Place
from nfstuned.host.remount import LOCK, LiveGround, uninterrupted
from nfstuned.host.root import Root
from nfstuned.model.policy import Policy
from nfstuned.model.remount import Ended, Hands, Left, Node, Plan, Sight
from nfstuned.model.work import Result

ALL = "--all"
_READ_AHEAD = "The service gives them their read-ahead; where it does not run: sudo nfstuned apply\n"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for: the mount at `point`, or all where it is ALL."""

    point: str
    form: str = "text"
    dry_run: bool = False
    yes: bool = False

    @property
    def place(self) -> str | None:
        """The mount point, as the kernel writes it; None for all."""
        return None if self.point == ALL else posixpath.normpath(self.point)


class Ground(Protocol):
    """The host beyond files. A test has one of its own."""

    def obstacle(self) -> str:
        """Return why nothing can be unmounted from here, "" where it can."""

    def nodes(self) -> tuple[Node, ...]:
        """Return all mounts of this mount namespace."""

    def sight(self, devices: frozenset[str], units: Sequence[str]) -> Sight:
        """Return who uses superblocks, and what systemd says of units."""

    def hands(self, places: Sequence[Place], signals: Sequence[int]) -> Hands:
        """Return who carries out a plan."""


@dataclass(frozen=True, slots=True)
class _World:
    """Where all this happens."""

    root: Root
    policy: Policy
    ground: Ground
    outside: Outside


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be done to each group, and where its server answers."""

    plans: tuple[tuple[Plan, tuple[Place, ...]], ...]
    lefts: tuple[Left, ...]

    @property
    def commands(self) -> tuple[object, ...]:
        """What must not change between a question and its answer."""
        return tuple((plan.going, plan.coming, plan.reload) for plan, _ in self.plans)


def remount(root: Root, wish: Wish, ground: Ground | None = None, outside: Outside | None = None) -> int:
    """Show the plan, ask, carry it out, and print what came of it.

    A test answers as `ground` and `outside`.
    """
    if wish.point != ALL and not wish.point.startswith("/"):
        raise click.UsageError(f"--remount takes a mount point, which begins with a slash, or {ALL}")
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    world = _World(root, policy, ground or LiveGround(root), outside or live_outside(root))
    obstacle = world.ground.obstacle()
    if obstacle:
        notes.note(obstacle if wish.dry_run else f"nothing was changed: {obstacle}")
        if not wish.dry_run:
            return COULD_NOT_TRY
    found = _look(world, wish)
    if found is None:
        notes.note(f"{wish.place}: no NFS mount is there, or the kernel does not tell its server")
        return COULD_NOT_TRY
    return _settle(world, found, wish)


def _look(world: _World, wish: Wish) -> _Found | None:
    """Return what is to be done; None where there is no such mount.

    Servers are asked before processes are looked at: one that waits for a dead server can hold up the reader.
    """
    facts, sight = facts_of(world.root, world.policy), Sight(nodes=world.ground.nodes())
    if wish.place is not None and not members(facts, sight, wish.place):
        return None
    found = cases(facts, sight, wish.place)
    if not found:
        return _Found((), ())
    network = ask_servers(world.outside, found)
    alive = [case for case in found if not silent(case, network)]
    if alive:
        devices = frozenset[str]().union(*(case.devices for case in alive))
        sight = world.ground.sight(devices, [name for case in alive for name in case.units])
    drawn = [
        (plan_remount(case, silent(case, network)), places(case, network))
        for case in cases(replace(facts, network=network), sight, wish.place)
    ]
    return _Found(
        tuple((plan, where) for plan, where in drawn if isinstance(plan, Plan)),
        tuple(plan for plan, _ in drawn if isinstance(plan, Left)),
    )


def _settle(world: _World, found: _Found, wish: Wish) -> int:
    """Show the plans, and carry them out where that is wanted; return the exit status."""
    lefts = [ended for one in found.lefts for ended in left(one)]
    before = [ended for plan, _ in found.plans for ended in planned(plan)]
    show((line for plan, _ in found.plans for line in plan_lines(plan)), wish.form)
    if wish.dry_run or not found.plans:
        return _end([*before, *lefts], wish)
    if wish.yes:
        return _do(world, found, lefts, wish)
    if not can_ask(wish.form):
        notes.note(NOBODY)
        return _end([*before, *lefts], wish, COULD_NOT_TRY)
    if not click.confirm("Unmount them and mount them again?", err=True):
        return _end([*_unchanged(found, Result.SKIPPED, "not wanted"), *lefts], wish, REFUSED)
    again = _look(world, wish)
    if again is None or again.commands != found.commands:
        reason = "the host has changed since this was shown: nothing was done; try again"
        return _end([*_unchanged(found, Result.FAILED, reason), *lefts], wish)
    return _do(world, again, lefts, wish)


def _do(world: _World, found: _Found, lefts: Sequence[Ended], wish: Wish) -> int:
    try:
        with locked(world.root.path(LOCK)), uninterrupted() as signals:
            ended = [
                one
                for plan, where in found.plans
                for one in carry_out(plan, world.ground.hands(where, signals))
            ]
    except OSError as error:
        busy = isinstance(error, BlockingIOError)
        why = "another nfstuned is at it" if busy else f"{world.root.path(LOCK)}: {error.strerror}"
        return _end([*_unchanged(found, Result.FAILED, f"nothing was done: {why}"), *lefts], wish)
    status = _end([*ended, *lefts], wish)
    if wish.form == "text":
        sys.stdout.write("".join(line + "\n" for line in finish_lines(ended)))
        sys.stdout.write(_READ_AHEAD if any(one.result is Result.DONE for one in ended) else "")
    return status


def _unchanged(found: _Found, result: Result, reason: str) -> list[Ended]:
    return [ended for plan, _ in found.plans for ended in planned(plan, result, reason)]


def _end(ended: Sequence[Ended], wish: Wish, status: int = ALL_DONE) -> int:
    """Print what came of it; return the exit status, REFUSED at the least where something failed.

    What is left alone on purpose is no failure, unless it is what was asked for by name.
    """
    if wish.form == "json":
        sys.stdout.write(to_json(remount_document(ended)) + "\n")
    elif ended:
        print_outcomes([remount_cells(one) for one in ended], remount_summary(ended))
    else:
        sys.stdout.write(
            "Nothing to do: the mounts have the nconnect that their profiles and files ask for.\n"
        )
    refused = {Result.FAILED} if wish.point == ALL else {Result.FAILED, Result.SKIPPED}
    return max(status, REFUSED) if any(one.result in refused for one in ended) else status
