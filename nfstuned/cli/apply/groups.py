"""A change of transport groups: look, show the plans, ask, carry them out, print what came of it."""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import click

from nfstuned.cli import talk
from nfstuned.cli.apply.read_ahead import ALL_DONE, COULD_NOT_TRY, REFUSED, print_outcomes
from nfstuned.cli.talk import Patient, can_ask, show
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect.busy import names, servers
from nfstuned.core.nconnect.case import Case
from nfstuned.core.nconnect.remount import cases, members
from nfstuned.host.change.remount import uninterrupted
from nfstuned.host.files.replace import locked
from nfstuned.host.look.host import observe
from nfstuned.host.network.ask import Outside, Questions
from nfstuned.host.root import Root
from nfstuned.model.connections import Ended, Left, MountNode, Sight
from nfstuned.model.facts import Facts, Network
from nfstuned.model.finding import Need
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.view.change import left, remount_document, remount_summary
from nfstuned.view.words import to_json


class Candidates(NamedTuple):
    """Groups that should have another number of connections, before anybody looks closer at them."""

    facts: Facts
    """They hold whether the servers of the groups answer."""
    sight: Sight
    cases: tuple[Case, ...] = ()


def candidates(
    root: Root, policy: Policy, outside: Outside, nodes: tuple[MountNode, ...], place: str | None
) -> Candidates | None:
    """Look at the mounts of this host and ask the servers of such groups; `nodes` are all its mounts.

    Of all groups, or of that of the mount at `place` alone; None where no NFS mount is there.
    """
    facts, sight = _facts(root, policy), Sight(nodes=nodes)
    if place is not None and not members(facts, sight, place):
        return None
    found = cases(facts, sight, place)
    if not found:
        return Candidates(facts, sight)
    facts = replace(facts, network=_ask_servers(outside, found))
    return Candidates(facts, sight, cases(facts, sight, place))


def _facts(root: Root, policy: Policy) -> Facts:
    snapshot = observe(root)
    talk.unreadable_lines(snapshot.problems)
    return Facts(frozenset({Need.LIVE}), snapshot, policy, targets(snapshot, policy))


def _ask_servers(outside: Outside, found: Sequence[Case]) -> Network:
    wanted = Questions(
        names=tuple(dict.fromkeys(name for case in found for name in names(case))),
        servers=tuple(dict.fromkeys(server for case in found for server in servers(case))),
    )
    network, unknown = Patient(outside).ask(wanted, offline=False)
    for line in unknown:
        talk.note(line)
    return network


ALL = "--all"
_NOBODY = "nothing was changed: there is no terminal to ask on; --yes does it without a question"
_CHANGED = "the host has changed since this was shown: nothing was done; try again"
Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class GroupWish:
    """What the user asked for: the group of the mount at `point`, or all where it is ALL."""

    point: str
    form: str = "text"
    dry_run: bool = False
    yes: bool = False

    @property
    def place(self) -> str | None:
        """The mount point, as the kernel writes it; None for all."""
        return None if self.point == ALL else posixpath.normpath(self.point)


@dataclass(frozen=True, slots=True)
class GroupPlans(Generic[Plan]):
    """What is to be done to each group, and what is left as it is."""

    plans: tuple[Plan, ...]
    lefts: tuple[Left, ...]


class GroupChange(Protocol[Plan]):
    """What one command does to groups."""

    kind: ClassVar[str]
    """Of its actions in JSON."""
    question: ClassVar[str]
    nothing: ClassVar[str]
    """What is said where nothing is to be done."""

    def obstacle(self) -> str:
        """Return why nothing can be done from here, "" where it can."""

    def look(self, place: str | None) -> GroupPlans[Plan] | None:
        """Return what is to be done; None where there is no such mount."""

    def same(self, plan: Plan) -> object:
        """Return what must not change between a question and its answer."""

    def lines(self, plan: Plan) -> Iterable[str]:
        """Return what will happen, for people."""

    def untouched(self, plan: Plan, result: Result, reason: str = "") -> Iterable[Ended]:
        """Return the mounts of a plan that was not carried out."""

    def carry_out(self, plan: Plan, signals: Sequence[int]) -> Iterable[Ended]:
        """Do it, and return what came of each mount; `signals` holds what wants it to end."""

    def cells(self, one: Ended) -> tuple[str, ...]:
        """Return a mount's line, in the columns of `outcome_cells`."""

    def afterwards(self, plans: Sequence[Plan], ended: Sequence[Ended]) -> Iterable[str]:
        """Return what people are to know of what was done."""


@dataclass(frozen=True, slots=True)
class _Task(Generic[Plan]):
    """One call of a command."""

    change: GroupChange[Plan]
    wish: GroupWish
    lock: str

    def begin(self) -> int:
        """Look, and go on as far as is wanted; return the exit status."""
        obstacle = self.change.obstacle()
        if obstacle:
            talk.note(obstacle if self.wish.dry_run else f"nothing was changed: {obstacle}")
            if not self.wish.dry_run:
                return COULD_NOT_TRY
        found = self.change.look(self.wish.place)
        if found is None:
            talk.note(f"{self.wish.place}: no NFS mount is there, or the kernel does not tell its server")
            return COULD_NOT_TRY
        return self._settle(found)

    def _settle(self, found: GroupPlans[Plan]) -> int:
        """Show the plans, and carry them out where that is wanted; return the exit status."""
        show((line for plan in found.plans for line in self.change.lines(plan)), self.wish.form)
        if self.wish.dry_run or not found.plans:
            return self._leave(found, Result.PLANNED)
        if self.wish.yes:
            return self._do(found)
        if not can_ask(self.wish.form):
            talk.note(_NOBODY)
            return self._leave(found, Result.PLANNED, status=COULD_NOT_TRY)
        if not click.confirm(self.change.question, err=True):
            return self._leave(found, Result.SKIPPED, "not wanted", REFUSED)
        again = self.change.look(self.wish.place)
        if again is None or self._same(again) != self._same(found):
            return self._leave(found, Result.FAILED, _CHANGED)
        return self._do(again)

    def _same(self, found: GroupPlans[Plan]) -> list[object]:
        return [self.change.same(plan) for plan in found.plans]

    def _do(self, found: GroupPlans[Plan]) -> int:
        try:
            with locked(self.lock), uninterrupted() as signals:
                ended = [one for plan in found.plans for one in self.change.carry_out(plan, signals)]
        except OSError as error:
            busy = isinstance(error, BlockingIOError)
            why = "another nfstuned is at it" if busy else f"{self.lock}: {error.strerror}"
            return self._leave(found, Result.FAILED, f"nothing was done: {why}")
        status = self._end(ended, found.lefts)
        if self.wish.form == "text":
            sys.stdout.write("".join(line + "\n" for line in self.change.afterwards(found.plans, ended)))
        return status

    def _leave(
        self, found: GroupPlans[Plan], result: Result, reason: str = "", status: int = ALL_DONE
    ) -> int:
        ended = [one for plan in found.plans for one in self.change.untouched(plan, result, reason)]
        return self._end(ended, found.lefts, status)

    def _end(self, changed: Sequence[Ended], lefts: Iterable[Left], status: int = ALL_DONE) -> int:
        """Print what came of it; return the exit status, REFUSED at the least where something failed.

        What is left alone on purpose is no failure, unless it is what was asked for by name.
        """
        ended = [*changed, *(one for found in lefts for one in left(found))]
        if self.wish.form == "json":
            sys.stdout.write(to_json(remount_document(ended, self.change.kind)) + "\n")
        elif ended:
            print_outcomes([self.change.cells(one) for one in ended], remount_summary(ended))
        else:
            sys.stdout.write(self.change.nothing + "\n")
        refused = {Result.FAILED} if self.wish.point == ALL else {Result.FAILED, Result.SKIPPED}
        return max(status, REFUSED) if any(one.result in refused for one in ended) else status


def change_groups(change: GroupChange[Plan], wish: GroupWish, lock: str) -> int:
    """Show the plans, ask, carry them out, and print what came of it; return the exit status.

    `lock` is the file that one such command at a time holds (`host.remount.LOCK`).
    """
    return _Task(change, wish, lock).begin()
