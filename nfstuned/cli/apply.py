"""`nfstuned apply` and `nfstuned undo`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nfstuned.app import read_ahead
from nfstuned.cli import talk as notes
from nfstuned.cli.policy import usable_policy
from nfstuned.core.readahead.plan import named
from nfstuned.host.change.read_ahead import undo
from nfstuned.host.change.state import State
from nfstuned.host.look.host import observe
from nfstuned.host.root import Root
from nfstuned.model.mounts import Outcome, Result, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.parse.fields import count
from nfstuned.view.words import apply_document, outcome_cells, summary, to_json

ALL_DONE, REFUSED, COULD_NOT_TRY = 0, 1, 2


def preview(root: Root, form: str) -> int:
    """Print what `carry_out` would do, and change nothing."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    snapshot, outcomes = _planned(root, policy)
    return _report(root, form, outcomes, nothing=_nothing(snapshot))


def carry_out(root: Root, form: str) -> int:
    """Set every read-ahead that is not as its profile asks, and print what came of it."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    snapshot, planned = _planned(root, policy)
    return _report(root, form, read_ahead.carry_out(root, planned), nothing=_nothing(snapshot))


def take_back(root: Root, form: str) -> int:
    """Put back what nfstuned changed, and print what came of it."""
    snapshot = observe(root)
    notes.unreadable_lines(snapshot.problems)
    outcomes = named(undo(root, State(root)), snapshot)
    return _report(root, form, outcomes, nothing="Nothing to put back.")


def _planned(root: Root, policy: Policy) -> tuple[Snapshot, tuple[Outcome, ...]]:
    snapshot = observe(root)
    notes.unreadable_lines(snapshot.problems)
    return snapshot, read_ahead.plan_anew(snapshot, policy)


def _nothing(snapshot: Snapshot) -> str:
    if not snapshot.superblocks:
        return "No NFS mounts."
    mounts = count(sum(len(superblock.mounts) for superblock in snapshot.superblocks), "mount")
    return f"Nothing to do: {mounts} as the profiles ask."


def _report(root: Root, form: str, outcomes: tuple[Outcome, ...], *, nothing: str) -> int:
    notes.denied(root, harmless=(f"{root.view}/mountstats",))
    if form == "json":
        sys.stdout.write(to_json(apply_document(outcomes)) + "\n")
    elif outcomes:
        print_outcomes([outcome_cells(outcome) for outcome in outcomes], summary(outcomes))
    else:
        sys.stdout.write(nothing + "\n")
    failed = any(outcome.result is Result.FAILED for outcome in outcomes)
    return REFUSED if failed else ALL_DONE


def print_outcomes(rows: Sequence[Sequence[str]], total: str) -> None:
    """Print one line for each outcome and their counts: what, the change, what came of it, why."""
    from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

    print_table((Column(), Column(), Column(coloured=True), Column()), rows)
    sys.stdout.write(total + "\n")
