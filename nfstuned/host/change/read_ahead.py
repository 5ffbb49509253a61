"""Set read-aheads and put them back: every write keeps the old value first and is read back after."""

from __future__ import annotations

import os

from nfstuned.errors import ParseError
from nfstuned.host.change.bdi import GONE, Bdi
from nfstuned.host.change.state import State
from nfstuned.host.root import Root
from nfstuned.model.mounts import Action, Outcome, Record, Result


def apply_action(root: Root, state: State, action: Action) -> Outcome:
    """Carry out an action; a refusal is an outcome, never an exception."""
    try:
        with Bdi(root, action.device) as bdi:
            if bdi.inode != action.bdi:
                return Outcome(action, Result.SKIPPED, "unmounted meanwhile; its device number is another's")
            return write(bdi, state, action)
    except (OSError, ParseError) as error:
        return refused(action, error)


def write(bdi: Bdi, state: State, action: Action) -> Outcome:
    """Write a value to an open bdi, its record first. Raises OSError and ParseError.

    A value that is another when it is read back is another writer's: the record stays nfstuned's own.
    """
    known = state.get(action.device)
    original = known.original_kb if known is not None and known.bdi == bdi.inode else action.old_kb
    state.put(Record(action.device, bdi.inode, original, action.new_kb))
    bdi.write_kb(action.new_kb)
    value = bdi.read_kb()
    if value != action.new_kb:
        return Outcome(action, Result.FAILED, f"it was {value} KiB when it was read back")
    return Outcome(action, Result.DONE, action.why)


def undo(root: Root, state: State) -> tuple[Outcome, ...]:
    """Put back every value that nfstuned changed, unless somebody has changed it since."""
    records = sorted(state.all().values(), key=lambda record: int(record.device.partition(":")[2] or 0))
    return tuple(_undo(root, state, record) for record in records if not record.undone)


def restore(root: Root, state: State) -> tuple[Outcome, ...]:
    """Put back what undo() would, without a memory of it: whoever tunes next meets untouched superblocks."""
    outcomes = undo(root, state)
    for outcome in outcomes:
        if outcome.result is Result.DONE:
            state.drop(outcome.action.device)
    return outcomes


def _undo(root: Root, state: State, record: Record) -> Outcome:
    """Put back the value of a record; a refusal is an outcome."""
    action = Action(
        "read-ahead", record.device, record.bdi, record.device, record.written_kb, record.original_kb, "undo"
    )
    try:
        with Bdi(root, record.device) as bdi:
            if bdi.inode != record.bdi:
                state.drop(record.device)
                return Outcome(action, Result.SKIPPED, "unmounted since")
            value = bdi.read_kb()
            if value != record.written_kb:
                return Outcome(action, Result.SKIPPED, f"changed to {value} by another writer since")
            state.put(Record(record.device, record.bdi, record.original_kb, record.original_kb, undone=True))
            bdi.write_kb(record.original_kb)
            return Outcome(action, Result.DONE, "the value before nfstuned")
    except (OSError, ParseError) as error:
        return refused(action, error)


def refused(action: Action, error: OSError | ParseError) -> Outcome:
    """Return the outcome of an action that the kernel refused."""
    if isinstance(error, ParseError):
        return Outcome(action, Result.FAILED, str(error))
    if error.errno in GONE:
        return Outcome(action, Result.SKIPPED, "unmounted meanwhile")
    reason = f"{error.filename or action.device}: {os.strerror(error.errno or 0)}"
    if isinstance(error, PermissionError) and os.geteuid() != 0:
        reason += "; run it as root"
    return Outcome(action, Result.FAILED, reason)
