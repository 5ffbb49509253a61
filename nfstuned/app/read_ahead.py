"""Set every read-ahead of a host as its profile asks, and undo that: the plans, and carrying them out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from nfstuned.app.change import Dialog, Ended, Host, Plan, Way
from nfstuned.core.policy.plan import forget_holds, name_targets, plan_read_aheads, plan_undo
from nfstuned.host.observe import observe_host
from nfstuned.host.read_ahead import State, apply_action, undo
from nfstuned.host.root import Root
from nfstuned.model.change import Change, ChangeKind
from nfstuned.model.mounts import Outcome, Result, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.parse.fields import count


def plan_without_holds(snapshot: Snapshot, policy: Policy) -> tuple[Outcome, ...]:
    """Return the changes as if the service left no superblock alone (Record.hold)."""
    return plan_read_aheads(forget_holds(snapshot), policy)


def carry_out(root: Root, planned: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """Carry out the planned changes; return the outcome of each, and the other outcomes as they are."""
    state = State(root)
    # Where the folder of the records cannot be made, each apply_action() fails as well, with the reason.
    with suppress(OSError):
        if planned:
            state.prepare()
    return tuple(
        apply_action(root, state, outcome.action) if outcome.result is Result.PLANNED else outcome
        for outcome in planned
    )


class ReadAheadWay(Way[tuple[Outcome, ...]]):
    """Set every read-ahead that is not as its profile asks."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def look(self) -> Plan[tuple[Outcome, ...]]:
        """Return the read-aheads to set; all have failed where a file that decides could not be read."""
        snapshot = _observe_and_tell(self._host.root, self._host.dialog)
        outcomes = plan_without_holds(snapshot, self._host.policy)
        mounts = count(sum(len(superblock.mounts) for superblock in snapshot.superblocks), "mount")
        as_asked = f"Nothing to do: {mounts} with the right read-ahead."
        nothing = as_asked if snapshot.superblocks else "No NFS mounts."
        if unread := sum(1 for superblock in snapshot.superblocks if superblock.read_ahead_kb is None):
            nothing = f"Nothing was done: the read-ahead of {count(unread, 'superblock')} could not be read."
        if snapshot.faults:
            nothing = "Nothing was done: files with settings of the read-ahead could not be read."
        return Plan(_changes(outcomes), outcomes, nothing, todo=bool(outcomes))

    def carry_out(self, plan: Plan[tuple[Outcome, ...]]) -> Ended:
        """Set each, and read it back."""
        return Ended(_changes(carry_out(self._host.root, plan.detail)))


class UndoWay(Way[Snapshot]):
    """Put back each read-ahead that nfstuned set."""

    def __init__(self, root: Root, dialog: Dialog) -> None:
        self._root = root
        self._dialog = dialog

    def look(self) -> Plan[Snapshot]:
        """Return the values to put back; undo() has records also of superblocks that are gone."""
        snapshot = _observe_and_tell(self._root, self._dialog)
        return Plan(_changes(plan_undo(snapshot)), snapshot, "Nothing to put back.", todo=True)

    def carry_out(self, plan: Plan[Snapshot]) -> Ended:
        """Put back each value that nobody else has changed since."""
        return Ended(_changes(name_targets(undo(self._root, State(self._root)), plan.detail)))


def _observe_and_tell(root: Root, dialog: Dialog) -> Snapshot:
    """Return the snapshot of the host; name to the user the lines and files that could not be read."""
    snapshot = observe_host(root)
    dialog.unreadable_lines(snapshot.problems)
    dialog.unreadable_lines(root.faults.denied((f"{root.view}/mountstats",)))
    return snapshot


def _changes(outcomes: Sequence[Outcome]) -> tuple[Change, ...]:
    return tuple(
        Change(
            ChangeKind.READ_AHEAD,
            outcome.action.target,
            outcome.action.old_kb,
            outcome.action.new_kb,
            outcome.result,
            outcome.reason,
        )
        for outcome in outcomes
    )
