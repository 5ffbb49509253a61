"""What should be done to each superblock's read-ahead, and for how long to insist against another writer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nfstuned.core.policy.decision import decide
from nfstuned.model.kernel import whole_pages
from nfstuned.model.mounts import Action, Decision, Outcome, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy

TRIES = 3
WINDOW_S = 60.0
UNREAD = "what its value depends on could not be read"


@dataclass(frozen=True, slots=True)
class Contest:
    """The times at which a superblock's value was set again, and whether it is left to another writer."""

    times: tuple[float, ...] = ()
    left: bool = False
    count: int = 0
    """How often another writer's value stood there."""

    def continued(self, now: float, late: int = 0) -> Contest:
        """Return the contest after another change at `now` (monotonic seconds).

        A fourth change within 60 s ends it; `left` then stays for as long as the superblock lives. `late` is
        how many more changes are allowed: where udev is behind, it runs the rules of so many earlier
        superblocks with this device number, and each of them writes to this superblock.
        """
        recent = tuple(time for time in self.times if now - time < WINDOW_S)
        if self.left or len(recent) >= TRIES + late:
            return Contest(recent, left=True, count=self.count + 1)
        return Contest((*recent, now), count=self.count + 1)


def plan(snapshot: Snapshot, policy: Policy) -> tuple[Outcome, ...]:
    """Return what is to be done (planned) or is left alone on purpose (skipped), not what is right.

    Where something that values depend on could not be read, nothing is to be done: each change has failed.
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
    """Return the change that brings one superblock to its decision, None when there is none to make."""
    current, bdi = superblock.read_ahead_kb, superblock.bdi
    if current is None or bdi is None:
        return None
    new = _wanted(superblock, decision, current, page_kb)
    if new == current:
        return None
    target = superblock_name(superblock)
    action = Action("read-ahead", superblock.device, bdi, target, current, new, decision.why)
    if superblock.record is not None and superblock.record.undone:
        return Outcome(action, Result.SKIPPED, "undone by the administrator; `nfstuned apply` sets it again")
    return Outcome(action, Result.PLANNED, decision.why)


def forget_undo(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with no superblock marked as undone.

    That is for an administrator who asks for the policy's values again.
    """
    superblocks = tuple(
        replace(superblock, record=replace(superblock.record, undone=False))
        if superblock.record is not None and superblock.record.undone
        else superblock
        for superblock in snapshot.superblocks
    )
    return replace(snapshot, superblocks=superblocks)


def changed_by_another(superblock: Superblock) -> bool:
    """Return whether the value is no longer the one that nfstuned wrote."""
    record = superblock.record
    return record is not None and not record.undone and superblock.read_ahead_kb != record.written_kb


def name_targets(outcomes: tuple[Outcome, ...], snapshot: Snapshot) -> tuple[Outcome, ...]:
    """Return the outcomes with each target called by its present mount point.

    Where a device number is another superblock's by now, the target keeps its name.
    """
    names = {
        (superblock.device, superblock.bdi): superblock_name(superblock)
        for superblock in snapshot.superblocks
    }
    actions = (outcome.action for outcome in outcomes)
    renamed = (
        replace(action, target=names.get((action.device, action.bdi), action.target)) for action in actions
    )
    return tuple(replace(outcome, action=action) for outcome, action in zip(outcomes, renamed, strict=True))


def superblock_name(superblock: Superblock) -> str:
    """Return what to call a superblock before people: its first mount point, else its device number."""
    return superblock.mounts[0].point if superblock.mounts else superblock.device


def _wanted(superblock: Superblock, decision: Decision, current: int, page_kb: int) -> int:
    """Return the value to end with.

    Only upwards unless the profile says otherwise; but what nfstuned itself raised too far, before it knew
    the mount or under an older policy, it takes back, down to what was there.
    """
    record = superblock.record
    ours = record is not None and current == record.written_kb
    original = record.original_kb if record is not None and ours else current
    if decision.kb is None:
        return original
    target = whole_pages(decision.kb, page_kb)
    return target if decision.lower else max(target, original)
