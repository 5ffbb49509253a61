"""Which transport groups are to be mounted again, in which order, and what follows when a step fails.

The first mount of a group decides the number of connections for all of them, so that all must go first. A
group of which anything is not certain is left as it is, as a whole.

All mounts go, then the connections must be gone, then all come back. When something fails before that, what
is gone comes back as it was; when something fails after that, everything else comes back all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nfstuned.core.nconnect.busy import apart, obstacle
from nfstuned.core.nconnect.case import Case, automatic, goal, in_sight, makes
from nfstuned.core.nconnect.first_mount import depth, lies_in, making, options_again
from nfstuned.core.nconnect.groups import groups, was_recorded
from nfstuned.model.change import Change, ChangeKind, ShellCommand
from nfstuned.model.connections import Connections, Hands, Left, Part, RemountPlan, Sight
from nfstuned.model.facts import Facts, Target
from nfstuned.model.mounts import Maker, Result
from nfstuned.parse.etc.units import unit_name
from nfstuned.parse.fields import some


def cases(facts: Facts, sight: Sight, point: str | None = None) -> tuple[Case, ...]:
    """Return the groups that should have another number; only the one of the mount at `point` if given."""
    known, wrong = groups(facts), []
    for group in known.live.values():
        seen = tuple(target for target in group if in_sight(target, sight))
        wanted = goal(group, facts, known)
        if not seen or wanted is None or not (point is None or _is_at(point, group, sight)):
            continue
        own = tuple(target for target in seen if automatic(target, seen, sight))
        parts = tuple(sorted((target for target in seen if target not in own), key=depth))
        wrong.append(Case(facts, sight, group, parts, own, wanted))
    return tuple(wrong)


def members(facts: Facts, sight: Sight, point: str) -> tuple[Target, ...]:
    """Return the live mounts that share the connections of the mount at `point`; none where none is there."""
    target_groups = (group for group in groups(facts).live.values() if _is_at(point, group, sight))
    return next(target_groups, ())


def plan_remount(case: Case, unanswered: str = "") -> RemountPlan | Left:
    """Return what is done to a group, or why it is left alone.

    `unanswered` says which server does not answer and how; "" where all do.
    """
    if why := apart(case):
        return _left(case, why, Result.SKIPPED)
    if why := unanswered or obstacle(case):
        return _left(case, why, Result.FAILED)
    chief = _chief(case)
    lines = [part.origin for part in case.parts if part.request and not makes(case, part)]
    disagreeing = some(list(dict.fromkeys(lines)))
    if chief is not None:
        return _plan(case, chief, disagreeing)
    fstab = any(part.request and part.request.maker is Maker.MOUNT for part in case.parts)
    how = " (sudo nfstuned apply --fstab)" if fstab else ""
    why = (
        f"no mount of the server would be made with nconnect={case.goal.new}: put it into {disagreeing}{how}"
    )
    return _left(case, why, Result.FAILED)


def _is_at(point: str, group: Sequence[Target], sight: Sight) -> bool:
    return any(target.point == point and in_sight(target, sight) for target in group)


def _left(case: Case, reason: str, result: Result) -> Left:
    points = tuple(target.point for target in case.parts or case.group)
    return Left(points, case.goal.old, case.goal.new, reason, result)


def _plan(case: Case, chief: Target, disagreeing: str) -> RemountPlan:
    """Return the steps; `chief` comes first, which makes up this time for the lines that say otherwise."""
    others = [target for target in case.parts if target is not chief]
    parts = {target.identity: _part(case, target) for target in case.parts}
    units = (case.sight.units.get(part.unit) for part in parts.values() if part.unit)
    advice = f"; put it also into {disagreeing}, or the next boot decides anew" if disagreeing else ""
    return RemountPlan(
        old=case.goal.old,
        new=case.goal.new,
        reason=case.goal.reason + advice,
        going=tuple(parts[target.identity] for target in reversed(case.parts)),
        coming=tuple(parts[target.identity] for target in making(chief, others)),
        connections=_connections(case),
        reload=any(unit is not None and (unit.stale or not unit.fragment) for unit in units),
    )


def _part(case: Case, target: Target) -> Part:
    request, mount_id = target.request, target.live.mount_id if target.live else 0
    before = _by_hand(target, None) if was_recorded(target, case.facts) else None
    if request is None:
        make = _by_hand(target, case.goal.new)
        return Part(target.point, mount_id, _umount(target.point), make, before)
    if case.sight.systemd:
        unit = unit_name(target.point)
        # Without its dependencies: systemd would also stop what requires the mount, and not start it again.
        leave = ShellCommand(("systemctl", "stop", "--job-mode=ignore-dependencies", "--", unit))
        make = ShellCommand(("systemctl", "start", "--", unit))
        return Part(target.point, mount_id, leave, make, before, unit, True)
    make = ShellCommand(("mount", "--", target.point))
    return Part(target.point, mount_id, _umount(target.point), make, before, from_file=True)


def _umount(point: str) -> ShellCommand:
    """Return umount(8) as systemd calls it: it is not to look the path up on the mount itself."""
    return ShellCommand(("umount", "-c", "--", point))


def _by_hand(target: Target, count: int | None) -> ShellCommand:
    options = options_again(target, count)
    words = ("-o", options) if options else ()
    return ShellCommand(("mount", "-t", target.fstype, *words, "--", target.source, target.point))


def _chief(case: Case) -> Target | None:
    """Return the mount that is to be made first, of those that lie in no other: it gets what all will have.

    One that a file makes shows that the next boot does the same.
    """
    outer = [part for part in case.parts if not any(lies_in(part.point, other.point) for other in case.parts)]
    able = [target for target in outer if makes(case, target)]
    return next((target for target in able if target.request is not None), able[0] if able else None)


def _connections(case: Case) -> Connections:
    block = next(
        (target.superblock for target in case.group if target.superblock and target.superblock.volume), None
    )
    inodes = {
        (target.superblock.device, target.superblock.bdi)
        for target in case.group
        if target.superblock is not None and target.superblock.bdi is not None
    }
    known = Connections(
        0, "", 0, 0, tuple(sorted((device, bdi) for device, bdi in inodes if bdi is not None))
    )
    if block is None or block.volume is None:
        return known
    volume = block.volume
    mine = (volume.version, volume.address, volume.port)
    clients = sum(1 for row in block.servers if (row.version, row.address, row.port) == mine)
    return replace(known, version=mine[0], address=mine[1], port=mine[2], clients=clients)


@dataclass(slots=True, eq=False)
class _RemountRun:
    """A plan under way."""

    plan: RemountPlan
    hands: Hands
    problem: str = ""
    """The first thing that failed; from then on everything is to be as it was."""
    failures: dict[str, str] = field(default_factory=dict)
    """By mount point: what failed there."""


def carry_out(plan: RemountPlan, hands: Hands) -> tuple[Change, ...]:
    """Do what is planned, or put everything back; return what came of each mount, as it is now."""
    run = _RemountRun(plan, hands)
    _unmount_all(run)
    _mount_all(run)
    return tuple(_ended(part, run) for part in sorted(plan.coming, key=lambda part: part.point))


def _unmount_all(run: _RemountRun) -> None:
    run.problem = run.hands.reload(run.plan) if run.plan.reload else ""
    for part in run.plan.going:
        if run.problem:
            return
        error = run.hands.unmount(part)
        if run.hands.mounted(part.point):
            why = error or "it is still mounted, or somebody mounted it again at once"
            run.problem = f"{part.point} could not be unmounted: {why}"
    held = "" if run.problem else run.hands.held(run.plan)
    # An automount may have brought a mount back already, with the number that all are to have.
    right = held and any(run.hands.nconnect(part.point) == run.plan.new for part in run.plan.coming)
    run.problem = run.problem or ("" if right else held)


def _mount_all(run: _RemountRun) -> None:
    """Mount all that is not: a mount that fails is no reason to leave another one away."""
    for part in run.plan.coming:
        if run.hands.mounted(part.point):
            continue
        outer = (other.point for other in run.plan.coming if lies_in(part.point, other.point))
        missing = next((point for point in outer if not run.hands.mounted(point)), "")
        if missing:
            # It would be hidden, or end up in the folder below the outer mount.
            run.failures[part.point] = f"it lies in {missing}"
            continue
        commands = part.back if run.problem else (part.make, *([part.before] if part.before else []))
        why = _mount(part, commands, run.hands)
        if why:
            run.failures[part.point] = why
            run.problem = run.problem or f"{part.point} could not be mounted: {why}"


def _mount(part: Part, commands: Sequence[ShellCommand], hands: Hands) -> str:
    """Mount by the first command that does it; return why the first of all did not, "" where it did."""
    problem = ""
    for command in commands:
        why = hands.mount(command)
        if hands.mounted(part.point):
            break
        problem = problem or f"{command}: {why or 'it ended well, and nothing is mounted'}"
    return problem


def _ended(part: Part, run: _RemountRun) -> Change:
    own, change = run.failures.get(part.point, ""), _change(part, run.plan)
    if not run.hands.mounted(part.point):
        command = part.make if part.from_file or part.before is None else part.before
        reason = f"not mounted now: {own or 'it was unmounted since'}"
        return replace(change, result=Result.FAILED, reason=reason, mounted=False, command=command)
    count = run.hands.nconnect(part.point)
    if count == run.plan.new and not own:
        return replace(change, result=Result.DONE)
    again = "it is mounted, with the options from before" if own else "it is mounted"
    why = own or run.problem or "another mount of the server came first"
    return replace(change, result=Result.FAILED, reason=f"{why}; {again} and has nconnect={count}")


def planned(plan: RemountPlan) -> tuple[Change, ...]:
    """Return the mounts of a plan before it is carried out."""
    return tuple(_change(part, plan) for part in sorted(plan.coming, key=lambda part: part.point))


def _change(part: Part, plan: RemountPlan) -> Change:
    return Change(ChangeKind.REMOUNT, part.point, plan.old, plan.new, Result.PLANNED, plan.reason)
