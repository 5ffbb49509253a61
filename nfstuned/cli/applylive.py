"""`nfstuned apply --live`: add connections to mounts that stay mounted, where that was proven to be safe."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import click

from nfstuned.cli import notes
from nfstuned.cli.apply import ALL_DONE, COULD_NOT_TRY, REFUSED, print_outcomes
from nfstuned.cli.groupwork import NOBODY, ask_servers, can_ask, facts_of, live_outside, show
from nfstuned.cli.policy import usable_policy
from nfstuned.core.live import plan_live
from nfstuned.core.livesteps import carry_out
from nfstuned.core.remount import cases, members
from nfstuned.core.remountcase import Case
from nfstuned.core.remountservers import unanswered
from nfstuned.core.render import to_json
from nfstuned.core.render_live import lasting, live_cells, plan_lines, planned
from nfstuned.core.render_remount import left, remount_document, remount_summary
from nfstuned.errors import ParseError
from nfstuned.host.live import LiveGround
from nfstuned.host.lock import locked
from nfstuned.host.outside import Outside
from nfstuned.host.remount import LOCK, uninterrupted
from nfstuned.host.root import Root
from nfstuned.model.live import KIND, LiveHands, LivePlan, SwitchSeen
from nfstuned.model.policy import Policy
from nfstuned.model.remount import Ended, Left, Node, Sight
from nfstuned.model.work import Result

ALL = "--all"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for: the connections of the mount at `point`, or all where it is ALL."""

    point: str
    form: str = "text"
    dry_run: bool = False
    yes: bool = False

    @property
    def place(self) -> str | None:
        """The mount point, as the kernel writes it; None for all."""
        return None if self.point == ALL else posixpath.normpath(self.point)


class Ground(Protocol):
    """The host beyond the files that every command reads. A test has one of its own."""

    def obstacle(self) -> str:
        """Return why no connection can be added from here, "" where one can."""

    def nodes(self) -> tuple[Node, ...]:
        """Return all mounts of this mount namespace."""

    def switches(self, devices: frozenset[str]) -> Mapping[str, SwitchSeen | ParseError | None]:
        """Return the connections of superblocks."""

    def hands(self, plan: LivePlan, signals: Sequence[int]) -> LiveHands:
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
    """What is to be done to each group."""

    plans: tuple[LivePlan, ...]
    lefts: tuple[Left, ...]

    @property
    def same(self) -> tuple[object, ...]:
        """What must not change between a question and its answer."""
        return tuple(plan.same for plan in self.plans)


def live(root: Root, wish: Wish, ground: Ground | None = None, outside: Outside | None = None) -> int:
    """Show the plan, ask, carry it out, and print what came of it.

    A test answers as `ground` and `outside`.
    """
    if wish.point != ALL and not wish.point.startswith("/"):
        raise click.UsageError(
            "--live takes a mount point, which begins with a slash, or nothing for all mounts"
        )
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
    """Return what is to be done; None where there is no such mount."""
    facts, sight = facts_of(world.root, world.policy), Sight(nodes=world.ground.nodes())
    if wish.place is not None and not members(facts, sight, wish.place):
        return None
    found = cases(facts, sight, wish.place)
    if not found:
        return _Found((), ())
    network = ask_servers(world.outside, found)
    switches = world.ground.switches(frozenset[str]().union(*(case.devices for case in found)))
    drawn = [
        plan_live(case, switches, unanswered(case, network))
        for case in cases(replace(facts, network=network), sight, wish.place)
        if wish.place is not None or _raises(case)
    ]
    return _Found(
        tuple(plan for plan in drawn if isinstance(plan, LivePlan)),
        tuple(plan for plan in drawn if isinstance(plan, Left)),
    )


def _raises(case: Case) -> bool:
    return case.goal.new > case.goal.old


def _settle(world: _World, found: _Found, wish: Wish) -> int:
    """Show the plans, and carry them out where that is wanted; return the exit status."""
    lefts = [ended for one in found.lefts for ended in left(one)]
    before = [ended for plan in found.plans for ended in planned(plan)]
    show((line for plan in found.plans for line in plan_lines(plan)), wish.form)
    if wish.dry_run or not found.plans:
        return _end([*before, *lefts], wish)
    if wish.yes:
        return _do(world, found, lefts, wish)
    if not can_ask(wish.form):
        notes.note(NOBODY)
        return _end([*before, *lefts], wish, COULD_NOT_TRY)
    if not click.confirm("Add them?", err=True):
        return _end([*_unchanged(found, Result.SKIPPED, "not wanted"), *lefts], wish, REFUSED)
    again = _look(world, wish)
    if again is None or again.same != found.same:
        reason = "the host has changed since this was shown: nothing was done; try again"
        return _end([*_unchanged(found, Result.FAILED, reason), *lefts], wish)
    return _do(world, again, lefts, wish)


def _do(world: _World, found: _Found, lefts: Sequence[Ended], wish: Wish) -> int:
    try:
        with locked(world.root.path(LOCK)), uninterrupted() as signals:
            ended = [
                one for plan in found.plans for one in carry_out(plan, world.ground.hands(plan, signals))
            ]
    except OSError as error:
        busy = isinstance(error, BlockingIOError)
        why = "another nfstuned is at it" if busy else f"{world.root.path(LOCK)}: {error.strerror}"
        return _end([*_unchanged(found, Result.FAILED, f"nothing was done: {why}"), *lefts], wish)
    status = _end([*ended, *lefts], wish)
    if wish.form == "text":
        done = {one.point for one in ended if one.result is Result.DONE}
        lines = lasting([plan for plan in found.plans if done & set(plan.points)])
        sys.stdout.write("".join(line + "\n" for line in lines))
    return status


def _unchanged(found: _Found, result: Result, reason: str) -> list[Ended]:
    return [ended for plan in found.plans for ended in planned(plan, result, reason)]


def _end(ended: Sequence[Ended], wish: Wish, status: int = ALL_DONE) -> int:
    """Print what came of it; return the exit status, REFUSED at the least where something was refused."""
    if wish.form == "json":
        sys.stdout.write(to_json(remount_document(ended, KIND)) + "\n")
    elif ended:
        print_outcomes([live_cells(one) for one in ended], remount_summary(ended))
    else:
        sys.stdout.write(
            "Nothing to do: the mounts have the connections that their profiles and files ask for.\n"
        )
    refused = any(one.result is Result.FAILED for one in ended)
    return max(status, REFUSED) if refused else status
