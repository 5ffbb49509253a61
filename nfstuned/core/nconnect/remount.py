"""Transport groups that are mounted again: which, in which order, and the way back when a step fails.

The first mount of a group decides the number of connections for all of them, so all are unmounted first. A
group stays as it is, as a whole, if anything about it is not certain.

All are unmounted, then the connections must be gone, then all are mounted. A failure before the mounting
brings back as they were the mounts that are gone; after a failure later, all others come back as planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nfstuned.core.nconnect.first_mount import depth, lies_in, mount_options, mount_order, next_nconnect
from nfstuned.core.nconnect.obstacles import Case, Goal, is_in_sight, reason_to_skip
from nfstuned.core.nconnect.server import Member, server_of
from nfstuned.core.nconnect.transport import (
    busy_connections,
    pending_kerberos,
    transport_groups,
    was_recorded,
)
from nfstuned.model.change import (
    Argv,
    Change,
    ChangeKind,
    Connections,
    Hands,
    LeftGroup,
    Part,
    RemountPlan,
    Sight,
)
from nfstuned.model.facts import Facts, Target
from nfstuned.model.mounts import Maker, Result
from nfstuned.parse.fields import shell_line, some, unit_name


def cases(facts: Facts, sight: Sight, point: str | None = None) -> tuple[Case, ...]:
    """Return the groups that should have another number; only the group of the mount at `point` if given."""
    wrong = []
    for group in transport_groups(facts).live.values():
        seen = tuple(target for target in group if is_in_sight(target, sight))
        wanted = goal(group, facts)
        if not seen or wanted is None or not (point is None or _is_at(point, group, sight)):
            continue
        own = tuple(target for target in seen if _is_automatic(target, seen, sight))
        parts = tuple(sorted((target for target in seen if target not in own), key=depth))
        wrong.append(Case(facts, sight, group, parts, own, wanted))
    return tuple(wrong)


def group_at(facts: Facts, sight: Sight, point: str) -> tuple[Target, ...]:
    """Return the live mounts that share the connections of the mount at `point`; () without a mount there."""
    return next((group for group in transport_groups(facts).live.values() if _is_at(point, group, sight)), ())


def goal(group: Sequence[Target], facts: Facts) -> Goal | None:
    """Return the number that a group of live mounts should have instead; None where it is right.

    As for fstab (core/nconnect/fstab.py): the most that a profile recommends or that a mount asks for, within
    the limits of every profile. A number within them is only lowered where a mount asks for a number.
    """
    old = max(busy_connections(target) or 1 for target in group)
    waiting = [line for target in group for line in pending_kerberos(target, facts)]
    members = [Member(target, next_nconnect(target, facts)) for target in group]
    server = server_of(members, limiting=[*group, *waiting])
    most = server.most
    new = min(server.nconnect or old, most)
    lowered = new < old <= most
    if new == old or (lowered and not any(member.asked and member.asked <= most for member in members)):
        return None
    named = [(target.profile.nconnect, target.profile.name) for target in group]
    asked = [(member.asked, member.target.origin or member.name) for member in members]
    who = next((who for number, who in (*named, *asked) if number == new), None)
    reason = f"{who} asks for nconnect={new}" if who else f"no more than nconnect={most} is allowed"
    return Goal(old, new, reason)


def _is_automatic(target: Target, group: Sequence[Target], sight: Sight) -> bool:
    """Return whether the kernel itself made a mount: a file system within the server's own tree.

    Nobody asked for it, it lies in another mount of the group as it does on the server, and it is not the
    same superblock again (mount --bind). It goes with the outer mount when nothing uses it (fs/namespace.c,
    shrink_submounts), and comes back when somebody goes there.
    """
    node = sight.node(target.live)
    if node is None or target.asked or target.request is not None:
        return False
    outer = next((mount for mount in group if mount.live and mount.live.mount_id == node.parent_id), None)
    if outer is None or outer.live is None or outer.live.device == node.device:
        return False
    below = target.point.removeprefix(outer.point.rstrip("/"))
    return target.source == outer.source.rstrip("/") + below


def plan_remount(case: Case, unanswered: str = "") -> RemountPlan | LeftGroup:
    """Return how a group is mounted again, or why it is left alone.

    `unanswered` is why no server could be reached; "" where all answer.
    """
    if why := reason_to_skip(case):
        return _left(case, why, Result.SKIPPED)
    if why := unanswered or case.remount_obstacle():
        return _left(case, why, Result.FAILED)
    chief = _chief(case)
    lines = [part.origin for part in case.parts if part.request and not _makes(case, part)]
    disagreeing = some(list(dict.fromkeys(lines)))
    if chief is not None:
        return _plan(case, chief, disagreeing)
    # `nconnect fstab` only acts where a profile names a number.
    named = any(part.profile.nconnect is not None for part in case.parts)
    fstab = named and any(part.request and part.request.maker is Maker.MOUNT for part in case.parts)
    how = " (sudo nfstuned nconnect fstab)" if fstab else ""
    why = (
        f"with these options no mount of the server gets nconnect={case.goal.new}: put it into "
        f"{disagreeing}{how}"
    )
    return _left(case, why, Result.FAILED)


def _is_at(point: str, group: Sequence[Target], sight: Sight) -> bool:
    return any(target.point == point and is_in_sight(target, sight) for target in group)


def _left(case: Case, reason: str, result: Result) -> LeftGroup:
    points = tuple(target.point for target in case.parts or case.group)
    return LeftGroup(points, case.goal.old, case.goal.new, reason, result)


def _plan(case: Case, chief: Target, disagreeing: str) -> RemountPlan:
    """Return the steps; `chief` comes first, so that lines with another number do not decide this time."""
    others = [target for target in case.parts if target is not chief]
    parts = {target.identity: _part(case, target) for target in case.parts}
    units = (case.sight.units.get(part.unit) for part in parts.values() if part.unit)
    advice = f"; put it also into {disagreeing}, or the next boot decides again" if disagreeing else ""
    return RemountPlan(
        old=case.goal.old,
        new=case.goal.new,
        reason=case.goal.reason + advice,
        going=tuple(parts[target.identity] for target in reversed(case.parts)),
        coming=tuple(parts[target.identity] for target in mount_order(chief, others)),
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
        # Without its dependencies: systemd would also stop the units that require the mount, for good.
        leave = ("systemctl", "stop", "--job-mode=ignore-dependencies", "--", unit)
        return Part(target.point, mount_id, leave, ("systemctl", "start", "--", unit), before, unit, True)
    make = ("mount", "--", target.point)
    return Part(target.point, mount_id, _umount(target.point), make, before, from_file=True)


def _umount(point: str) -> Argv:
    """Return umount(8) as systemd calls it: so it does not look the path up on the mount itself."""
    return ("umount", "-c", "--", point)


def _by_hand(target: Target, count: int | None) -> Argv:
    options = mount_options(target, count)
    words = ("-o", options) if options else ()
    return ("mount", "-t", target.fstype, *words, "--", target.source, target.point)


def _chief(case: Case) -> Target | None:
    """Return the mount to make first, of those that lie in no other: it decides the number of all.

    A mount that a file makes is better: the next boot then does the same.
    """
    outer = [part for part in case.parts if not any(lies_in(part.point, other.point) for other in case.parts)]
    able = [target for target in outer if _makes(case, target)]
    return next((target for target in able if target.request is not None), able[0] if able else None)


def _makes(case: Case, target: Target) -> bool:
    """Return whether a mount asks for the goal when it is made; a mount made by hand gets it as an option."""
    return target.request is None or (next_nconnect(target, case.facts) or 1) == case.goal.new


def _connections(case: Case) -> Connections:
    blocks = [target.superblock for target in case.group if target.superblock is not None]
    superblocks = sorted({(block.device, block.bdi) for block in blocks if block.bdi is not None})
    for block in blocks:
        volume = block.volume
        if volume is not None:
            mine = (volume.version, volume.address, volume.port)
            clients = sum(1 for row in block.servers if (row.version, row.address, row.port) == mine)
            return Connections(*mine, clients, tuple(superblocks))
    return Connections(0, "", 0, 0, tuple(superblocks))


@dataclass(slots=True, eq=False)
class _RemountRun:
    """A plan under way."""

    plan: RemountPlan
    hands: Hands
    problem: str = ""
    """The first failure; from then on everything is to be as it was."""
    failures: dict[str, str] = field(default_factory=dict)
    """By mount point: the failure there."""

    def unmount_all(self) -> None:
        """Unmount all; a mount or connection that is left is a problem."""
        self.problem = self.hands.reload(self.plan) if self.plan.reload else ""
        for part in self.plan.going:
            if self.problem:
                return
            error = self.hands.unmount(part)
            if self.hands.mounted(part.point):
                why = error or "it is still mounted, or was mounted again at once"
                self.problem = f"{part.point} could not be unmounted: {why}"
        held = "" if self.problem else self.hands.held(self.plan)
        # An automount may have brought a mount back already, with the number that all are to have.
        right = held and any(self.hands.nconnect(part.point) == self.plan.new for part in self.plan.coming)
        self.problem = self.problem or ("" if right else held)

    def mount_all(self) -> None:
        """Mount all that is not mounted: a mount that fails is no reason to leave another out."""
        for part in self.plan.coming:
            if self.hands.mounted(part.point):
                continue
            outer = (other.point for other in self.plan.coming if lies_in(part.point, other.point))
            absent = next((point for point in outer if not self.hands.mounted(point)), "")
            if absent:
                # It would be hidden, or end up in the folder below the outer mount.
                self.failures[part.point] = f"it lies in {absent}"
                continue
            commands = part.back if self.problem else (part.make, *([part.before] if part.before else []))
            why = self._mount(part, commands)
            if why:
                self.failures[part.point] = why
                self.problem = self.problem or f"{part.point} could not be mounted: {why}"

    def _mount(self, part: Part, commands: Sequence[Argv]) -> str:
        """Mount by the first command that works; return why the very first did not, "" where it did."""
        problem = ""
        for command in commands:
            why = self.hands.mount(command)
            if self.hands.mounted(part.point):
                break
            problem = problem or f"{shell_line(command)}: {why or 'it ended well, and nothing is mounted'}"
        return problem

    def end(self, part: Part) -> Change:
        """Return the change of a mount, as it is now."""
        own, change = self.failures.get(part.point, ""), _change(part, self.plan)
        if not self.hands.mounted(part.point):
            command = part.make if part.from_file or part.before is None else part.before
            reason = f"not mounted now: {own or 'it was unmounted since'}"
            return replace(change, result=Result.FAILED, reason=reason, mounted=False, command=command)
        count = self.hands.nconnect(part.point)
        if count == self.plan.new and not own:
            return replace(change, result=Result.DONE)
        state = "it is mounted, with the options from before" if own else "it is mounted"
        why = own or self.problem or "another mount of the server came first"
        return replace(change, result=Result.FAILED, reason=f"{why}; {state} and has nconnect={count}")


def remount(plan: RemountPlan, hands: Hands) -> tuple[Change, ...]:
    """Carry out a plan, or put everything back; return the change of each mount, as it is now."""
    run = _RemountRun(plan, hands)
    run.unmount_all()
    run.mount_all()
    return tuple(run.end(part) for part in sorted(plan.coming, key=lambda part: part.point))


def planned(plan: RemountPlan) -> tuple[Change, ...]:
    """Return the mounts of a plan before it is carried out."""
    return tuple(_change(part, plan) for part in sorted(plan.coming, key=lambda part: part.point))


def _change(part: Part, plan: RemountPlan) -> Change:
    return Change(ChangeKind.REMOUNT, part.point, plan.old, plan.new, Result.PLANNED, plan.reason)
