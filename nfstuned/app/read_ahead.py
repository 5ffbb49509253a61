"""Every read-ahead as its profile asks: what is to be done on a host, and that done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from nfstuned.core.readahead.plan import insist, plan
from nfstuned.host.change.read_ahead import apply
from nfstuned.host.change.state import State
from nfstuned.host.root import Root
from nfstuned.model.mounts import Outcome, Result, Snapshot
from nfstuned.model.policy import Policy


def plan_anew(snapshot: Snapshot, policy: Policy) -> tuple[Outcome, ...]:
    """Return what is to be done now that somebody asks for it, also where it was undone before."""
    return plan(insist(snapshot), policy)


def carry_out(root: Root, planned: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Do what is planned, and return what came of each; what is not planned stays as it is."""
    state = State(root)
    # Where this fails, each action fails after it, and says why.
    with suppress(OSError):
        if planned:
            state.prepare()
    return tuple(
        apply(root, state, outcome.action) if outcome.result is Result.PLANNED else outcome
        for outcome in planned
    )
