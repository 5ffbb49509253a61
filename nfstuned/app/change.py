"""The steps of every change of a host or an image: look, show, ask, carry out, report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from nfstuned.errors import ParseError
from nfstuned.host.network.outside import Outside, Questions
from nfstuned.host.observe import deciding
from nfstuned.host.root import Root
from nfstuned.model.change import Change, settled
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.model.system import Network

ALL_DONE, NOT_DONE, COULD_NOT_TRY = 0, 1, 2
_CHANGED = "the host changed after the plan was shown: nothing was done; try again"
Detail = TypeVar("Detail")


@dataclass(frozen=True, slots=True)
class Wish:
    """How far the user wants to go."""

    dry_run: bool = False
    """Only show the plan."""
    yes: bool = False
    """Change without a question."""


class Dialog(Protocol):
    """The person or program at the other end of a change. A command has a terminal for it."""

    def note(self, line: str) -> None:
        """Print a line that is no part of the result."""

    def unreadable_lines(self, problems: Iterable[ParseError]) -> None:
        """Name each line of a file that was not understood."""

    def ask(self, outside: Outside, questions: Questions) -> Network:
        """Return the network's answers, and report each question that got no answer."""

    def show(self, lines: Iterable[str]) -> None:
        """Show the plan."""

    def can_ask(self) -> bool:
        """Return whether somebody sees the plan and the question, and can answer."""

    def confirm(self, question: str) -> bool:
        """Return a person's answer."""

    def result(self, changes: Sequence[Change], nothing: str) -> None:
        """Print the result; people read `nothing` where it is empty."""

    def hint(self, lines: Iterable[str]) -> None:
        """Print hints for people after the result."""


@dataclass(frozen=True, slots=True)
class Host:
    """The root of a change, its policy, and the ways to people and to the network."""

    root: Root
    policy: Policy
    dialog: Dialog
    outside: Outside


@dataclass(frozen=True, slots=True)
class Plan(Generic[Detail]):
    """The changes to make."""

    changes: tuple[Change, ...]
    """The planned changes, and the values that are left as they are."""
    detail: Detail
    """The input of `carry_out`."""
    nothing: str
    """The words for people where `changes` is empty."""
    todo: bool
    """There is something to carry out."""
    lines: tuple[str, ...] = ()
    """The plan in lines for people."""
    must_stay: object = None
    """The values that must not change between question and answer; None where `carry_out` checks that."""
    refusal: str = ""
    """Why nothing may be changed here; "" where it may."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The results of a plan, and hints for people."""

    changes: tuple[Change, ...]
    hints: tuple[str, ...] = ()
    failed: bool = False
    """Something failed that no change shows."""


class Way(ABC, Generic[Detail]):
    """One way to change a host or an image: how to plan it, and how to carry it out."""

    question: ClassVar[str] = ""
    """The question before it; "" for none."""
    yes_does: ClassVar[str] = "does it"
    """The verb for --yes in the sentence "--yes ... without a question"."""
    failures: frozenset[Result] = frozenset({Result.FAILED})
    """The results of changes that make the command fail."""

    @abstractmethod
    def look(self) -> Plan[Detail] | None:
        """Return the changes to make; None where they cannot be planned, which is reported."""

    @abstractmethod
    def carry_out(self, plan: Plan[Detail]) -> Ended | None:
        """Make the changes; None where nothing could be tried, which is reported."""


def run_way(way: Way[Detail], wish: Wish, dialog: Dialog) -> int:
    """Look, show, ask, carry out, and give the result, as far as is wanted; return the exit status."""
    plan = way.look()
    if plan is None:
        return COULD_NOT_TRY
    dialog.show(plan.lines)
    if plan.refusal:
        return _end(way, plan, settled(plan.changes, Result.FAILED, plan.refusal), dialog)
    if wish.dry_run or not plan.todo:
        return _end(way, plan, plan.changes, dialog)
    if way.question and not wish.yes:
        if not dialog.can_ask():
            dialog.note(
                f"nothing was changed: there is no terminal for the question; --yes {way.yes_does} without it"
            )
            return _end(way, plan, plan.changes, dialog, COULD_NOT_TRY)
        if not dialog.confirm(way.question):
            return _end(way, plan, settled(plan.changes, Result.SKIPPED, "not wanted"), dialog, NOT_DONE)
        now = plan if plan.must_stay is None else way.look()
        if now is None or now.refusal or now.must_stay != plan.must_stay:
            return _end(way, plan, settled(plan.changes, Result.FAILED, _CHANGED), dialog)
        plan = now
    ended = way.carry_out(plan)
    if ended is None:
        return COULD_NOT_TRY
    status = _end(way, plan, ended.changes, dialog)
    dialog.hint(ended.hints)
    return max(status, NOT_DONE) if ended.failed else status


def refusal_after(faults: Iterable[ParseError]) -> str:
    """Return why nothing may be changed after these faults of a look; "" where none can change the plan."""
    files = [fault.file for fault in deciding(faults)]
    return f"it may depend on {files[0]}, which could not be read" if files else ""


def _end(
    way: Way[Detail], plan: Plan[Detail], changes: Sequence[Change], dialog: Dialog, status: int = ALL_DONE
) -> int:
    """Give the result; return the exit status, NOT_DONE at the least where something failed."""
    dialog.result(changes, plan.nothing)
    failed = any(change.result in way.failures for change in changes)
    return max(status, NOT_DONE) if failed else status
