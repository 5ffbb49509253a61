"""The plan for each superblock's read-ahead, and the end of a contest with another writer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nfstuned.core.policy.decision import decide
from nfstuned.model.kernel import whole_pages
from nfstuned.model.mounts import Action, Decision, Hold, Outcome, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy

TRIES = 3
WINDOW_S = 60.0
_HELD = {
    Hold.UNDONE: "undone by the administrator; `nfstuned apply` sets it again",
    Hold.EXISTING: "mounted before nfstuned was installed; `nfstuned apply` or the next boot sets it",
}
UNREAD = "files with settings for it could not be read"


@dataclass(frozen=True, slots=True)
class Contest:
    """The times of repeated writes to a superblock, and whether its value is left to another writer."""

    times: tuple[float, ...] = ()
    left: bool = False
    count: int = 0
    """How often another writer set it."""
    back_s: float | None = None
    """Since when the value of a superblock that is left is back; None where it is not."""

    def continued(self, now: float, late: int = 0) -> Contest:
        """Return the contest after another change at `now` (monotonic seconds).

        A fourth change within 60 s ends it; `left` then stays until the value is back for 60 s. `late`
        more changes are allowed: a delayed udev runs the rules of that many earlier superblocks with
        this number, which write to this one.
        """
        recent = tuple(time for time in self.times if now - time < WINDOW_S)
        if self.left or len(recent) >= TRIES + late:
            return Contest((now,), left=True, count=self.count + 1)
        return Contest((*recent, now), count=self.count + 1)

    def lasting(self) -> Contest:
        """Return the contest where the other writer's value still stands: that is no other write."""
        return replace(self, back_s=None)

    def after(self, now: float) -> Contest:
        """Return the contest where the value is back at `now`: after 60 s of that it is not left any more."""
        if not self.left:
            return self
        if self.back_s is None:
            return replace(self, back_s=now)
        return Contest(count=self.count) if now - self.back_s >= WINDOW_S else self


def plan_read_aheads(snapshot: Snapshot, policy: Policy) -> tuple[Outcome, ...]:
    """Return the planned changes, and those that are left out on purpose (skipped).

    Where a file on which values depend could not be read, all have failed, skipped changes too.
    """
    planned = (
        plan_superblock(superblock, decide(policy, superblock, snapshot), snapshot.page_kb)
        for superblock in snapshot.superblocks
    )
    outcomes = tuple(outcome for outcome in planned if outcome is not None)
    if snapshot.faults:
        return tuple(replace(outcome, result=Result.FAILED, reason=UNREAD) for outcome in outcomes)
    return outcomes


def plan_superblock(superblock: Superblock, decision: Decision, page_kb: int) -> Outcome | None:
    """Return the change that brings one superblock to its decision; None where its value is right.

    The value is only raised unless the profile allows less. But a value that nfstuned itself raised too far,
    before it knew the mount or under an older policy, is lowered, down to the original value.
    """
    current, bdi, record = superblock.read_ahead_kb, superblock.bdi, superblock.record
    if current is None or bdi is None:
        return None
    original = record.original_kb if record is not None and current == record.written_kb else current
    if (
        record is not None
        and decision.adapted_kb is not None
        and not decision.by_need
        and current <= (decision.most_kb or 0)
    ):
        # Another program that writes the profile's number again does not end the loop.
        original = record.original_kb
    new = original
    if decision.target_kb is not None:
        new = whole_pages(decision.target_kb, page_kb)
        new = new if decision.lower else max(new, original)
    if new == current:
        return None
    target = superblock_name(superblock)
    action = Action("read-ahead", superblock.device, bdi, target, current, new, decision.why)
    if record is not None and record.hold is not None:
        return Outcome(action, Result.SKIPPED, _HELD[record.hold])
    return Outcome(action, Result.PLANNED, decision.why)


def plan_undo(snapshot: Snapshot) -> tuple[Outcome, ...]:
    """Return the values to put back, and those that somebody else has changed since (skipped)."""
    outcomes = []
    for superblock in snapshot.superblocks:
        record, current = superblock.record, superblock.read_ahead_kb
        if record is None or record.hold is not None:
            continue
        target, kbs = superblock_name(superblock), (record.written_kb, record.original_kb)
        action = Action("read-ahead", record.device, record.bdi, target, *kbs, "undo")
        if changed_by_another(superblock):
            changed = f"changed to {current} by another writer since"
            reason = "its value cannot be read" if current is None else changed
            outcomes.append(Outcome(action, Result.SKIPPED, reason))
        else:
            outcomes.append(Outcome(action, Result.PLANNED, "the value before nfstuned"))
    return tuple(outcomes)


def forget_holds(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without a hold on a superblock, for an administrator's new apply."""
    superblocks = tuple(
        superblock._replace(record=superblock.record._replace(hold=None))
        if superblock.record is not None
        else superblock
        for superblock in snapshot.superblocks
    )
    return replace(snapshot, superblocks=superblocks)


def changed_by_another(superblock: Superblock) -> bool:
    """Return whether the value is no longer the one that nfstuned wrote."""
    record = superblock.record
    return record is not None and record.hold is None and superblock.read_ahead_kb != record.written_kb


def name_targets(outcomes: tuple[Outcome, ...], snapshot: Snapshot) -> tuple[Outcome, ...]:
    """Return the outcomes with each target's present mount point.

    Where another superblock has the device number by now, the target keeps its name.
    """
    names = {superblock.key: superblock_name(superblock) for superblock in snapshot.superblocks}
    actions = (outcome.action for outcome in outcomes)
    renamed = (
        replace(action, target=names.get((action.device, action.bdi), action.target)) for action in actions
    )
    return tuple(replace(outcome, action=action) for outcome, action in zip(outcomes, renamed, strict=True))


def superblock_name(superblock: Superblock) -> str:
    """Return a superblock's name for people: its first mount point, else its device number."""
    return superblock.mounts[0].point if superblock.mounts else superblock.device
