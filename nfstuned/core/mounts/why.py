"""The origins of a mount's read-ahead and nconnect: each place with a say, and why it counts or not.

`classify`, `status` and `Intents` judge; this names the places behind their judgement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from nfstuned.core.mounts.requests import Claim, Intents, last_asked
from nfstuned.core.mounts.status import StatusRow, StatusRules
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect.first_mount import decider, earliest, overruled
from nfstuned.core.policy.decision import (
    Choice,
    classify,
    join_decisions,
    matcher,
    matching_choices,
    read_ahead_kb,
)
from nfstuned.core.udev.writers import find_culprit
from nfstuned.model.facts import Facts, Need
from nfstuned.model.kernel import Mount
from nfstuned.model.mounts import UTAB, Hold, Snapshot, Superblock
from nfstuned.model.policy import KERNEL_KB, WORKLOAD_MARK, Policy, Profile, ReadAhead, Setter
from nfstuned.model.udev import RuleWriter

KERNEL = "the kernel"
_NFSTUNED = "nfstuned"
_READ_AHEAD, _NCONNECT = "read_ahead_kb", "nconnect"
_HELD = {
    Hold.UNDONE: ("nfstuned undo", "put back; the service leaves it alone until nfstuned apply"),
    Hold.EXISTING: (
        KERNEL,
        "from before the installation; the service leaves it alone until the next boot or nfstuned apply",
    ),
}


class Origin(NamedTuple):
    """A place with a say about a number."""

    value: int | None
    """None where it names no number, or the number is known only afterwards."""
    place: str
    """`file:line`, or words such as "the kernel"."""
    reason: str
    wins: bool = False
    """The number that counts now is from here."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A host's mounts, policy and udev rules."""

    snapshot: Snapshot
    policy: Policy
    builtin: Policy
    """The policy without an administrator's file."""
    writers: tuple[RuleWriter, ...]
    """The udev rules in force that write read-aheads."""
    rules: tuple[StatusRules, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """The origins of a mount's numbers."""

    row: StatusRow
    choice: Choice
    """Its profile, and why."""
    read_ahead: tuple[Origin, ...]
    nconnect: tuple[Origin, ...]
    wanted: str
    """The place of the policy's read-ahead; "" with an invalid configuration."""

    @property
    def profile(self) -> str | None:
        """The mount's own profile; None with an invalid configuration."""
        return None if self.row.profile is None else self.choice.profile.name

    @property
    def is_earlier(self) -> bool:
        """Whether an earlier decision of nfstuned set the read-ahead."""
        return any(origin.wins and origin.place == _NFSTUNED for origin in self.read_ahead)


def explain(row: StatusRow, mount: Mount, superblock: Superblock, scene: Scene) -> Why:
    """Return the origins of a mount's numbers, the number that counts first; `row` is the mount's status."""
    choice = classify(scene.policy, mount, superblock, scene.snapshot).choice
    asked = tuple(_nconnect_origins(row, mount, choice.profile, scene))
    wanted = tuple(_wanted(mount, superblock, scene)) if row.profile is not None else ()
    origins = _sorted(_read_ahead_origins(row, superblock, wanted, scene))
    return Why(row, choice, origins, _sorted(asked), wanted[0].place if wanted else "")


def _sorted(origins: Iterator[Origin] | tuple[Origin, ...]) -> tuple[Origin, ...]:
    return tuple(sorted(origins, key=lambda origin: not origin.wins))


def _read_ahead_origins(
    row: StatusRow, superblock: Superblock, wanted: tuple[Origin, ...], scene: Scene
) -> Iterator[Origin]:
    """Yield the places of a read-ahead; `wanted` are the policy's, () with an invalid one."""
    record = superblock.record
    is_set = row.read_ahead_kb == row.read_ahead_target_kb is not None
    culprit = _culprit(row, scene) if not is_set or record is None else None
    if is_set and culprit is not None and culprit.kb is None:  # the number of its program is not known
        culprit = None
    if not is_set:
        yield _present(row, culprit, superblock, scene)
    elif culprit is not None:
        place, reason = f"{culprit.file}:{culprit.line}", f"{_wrote(culprit)}, the same as the target"
        yield Origin(row.read_ahead_kb, place, reason, wins=True)
    ours = is_set and culprit is None
    if row.adapted:
        reason = "the service has moved it, by the mount's own reads: journalctl -u nfstuned"
        yield Origin(row.read_ahead_target_kb, "the mount's reads", reason, ours)
    for number, origin in enumerate(wanted):
        yield origin._replace(wins=ours and not row.adapted and number == 0)
    if is_set and record is not None and record.original_kb != row.read_ahead_kb:
        place = KERNEL if record.original_kb == KERNEL_KB else "another program"
        yield Origin(record.original_kb, place, "the value before nfstuned")
    yield from _rules(row, culprit, scene)


def _rules(row: StatusRow, culprit: RuleWriter | None, scene: Scene) -> Iterator[Origin]:
    """Yield the udev rules that write read-aheads, but for the culprit."""
    for rule in scene.rules:
        if rule.masked_by:
            yield Origin(None, rule.file, f"udev rule, masked while the service runs ({rule.masked_by})")
    for writer in scene.writers:
        if writer is not culprit:
            may = "" if writer.certain else "may "
            writes = f"udev rule: {may}write{'' if may else 's'} it after each mount; "
            yield Origin(writer.kb, f"{writer.file}:{writer.line}", writes + _answer(row, writer, scene))


def _answer(row: StatusRow, writer: RuleWriter, scene: Scene) -> str:
    """Return the service's answer to a udev rule's number."""
    target = row.read_ahead_target_kb
    if scene.policy.observes:
        return 'mode = "observe": the service writes none'
    if target is None:
        return "the profile names no number, so it stays"
    if writer.kb is not None and writer.kb > target and not row.lower:
        return "a number above the target stays"
    return "the service sets its own again"


def _culprit(row: StatusRow, scene: Scene) -> RuleWriter | None:
    """Return the udev rule that may have written a mount's number."""
    if row.read_ahead_kb is None or row.hold is Hold.UNDONE:
        return None
    return find_culprit(scene.writers, row.read_ahead_kb, scene.snapshot.page_kb)


def _wrote(culprit: RuleWriter) -> str:
    certain = culprit.certain and culprit.kb is not None
    return f"the udev rule {'wrote' if certain else 'may have written'} it"


def _present(row: StatusRow, culprit: RuleWriter | None, superblock: Superblock, scene: Scene) -> Origin:
    """Return the origin of a number that is not the target."""
    now, target, record = row.read_ahead_kb, row.read_ahead_target_kb, superblock.record
    if now is None:
        return Origin(None, KERNEL, "its number could not be read")
    first = now == KERNEL_KB or (record is not None and now == record.original_kb)
    place, wrote = KERNEL if first else "another program", ""
    if culprit is not None:
        place = f"{culprit.file}:{culprit.line}"
        wrote = f"{_wrote(culprit)}; "
    if row.profile is None:
        reason = "the configuration is invalid"
    elif record is not None and record.hold is None and now == record.written_kb:
        place, wrote = _NFSTUNED, ""
        reason = "an earlier decision set it; sudo nfstuned apply makes the new one"
    elif target is None:
        reason = "the profile names no number, so it stays"
    elif now > target and not row.lower:
        reason = "the mount has more than the profile's number, which is only raised (lower = false)"
    elif row.hold is not None:
        place, reason = _HELD[row.hold]
        place = f"{culprit.file}:{culprit.line}" if culprit else place
    elif scene.policy.observes:
        reason = f'mode = "observe" ({scene.policy.mode_place}): the service writes none'
    else:
        reason = "the service has not set the profile's: systemctl status nfstuned"
    return Origin(now, place, wrote + reason, wins=True)


def _wanted(mount: Mount, superblock: Superblock, scene: Scene) -> Iterator[Origin]:
    """Yield the numbers that the policy has for a superblock, the number that counts first."""
    own = [each for each in superblock.mounts if not each.foreign] or list(superblock.mounts)
    known = {each: classify(scene.policy, each, superblock, scene.snapshot) for each in {mount, *own}}
    asked = {each: join_decisions([(each, known[each])]).kb for each in own}
    most = max((kb for kb in asked.values() if kb is not None), default=None)
    equal = [each for each in own if asked[each] == most]
    chief = mount if mount in equal else equal[0]
    rsize = chief.options.number("rsize")
    first, *others = matching_choices(scene.policy, chief, known[chief].endpoint)
    numbers = _Numbers(scene, rsize)
    shared = "" if chief is mount else f"of {chief.point}, which shares the superblock; "
    mine = list(numbers.of(first.profile))
    yield from (origin._replace(reason=shared + origin.reason) for origin in mine)
    for choice in others:
        origin = next(numbers.of(choice.profile))
        if choice.place:
            reason = f"a [[policy]] that matches, too; {first.place} is tried first"
            yield origin._replace(place=choice.place, reason=f"profile {choice.profile.name}: {reason}")
        elif origin.value is not None and origin.place not in {each.place for each in mine}:
            yield origin._replace(reason=f"{choice.why}; {first.place} takes precedence")
    for each in dict.fromkeys(own):
        if each is not chief and asked[each] not in {None, most}:
            yield Origin(asked[each], each.point, "it shares the superblock: the largest number counts")


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The read-aheads of profiles for a mount with this rsize, with their places."""

    scene: Scene
    rsize: int | None

    def of(self, profile: Profile) -> Iterator[Origin]:
        """Yield a profile's number, and then the numbers that it replaces."""
        name, _, work = profile.name.partition(WORKLOAD_MARK)
        workload = self.scene.policy.workload(work)
        if workload is None or workload.read_ahead_kb is None:
            yield from self._of_profile(profile, name)
            return
        kb, place = self._kb(profile.read_ahead, profile), workload.place or f"built-in workload {work}"
        yield Origin(kb, place, f"read_ahead_kb of the workload {work}")
        for origin in self._of_profile(matcher(self.scene.policy).profile(name), name):
            if origin.value is not None:
                yield origin._replace(reason=f"the workload {work} replaces it")

    def _of_profile(self, profile: Profile, name: str) -> Iterator[Origin]:
        own = [setter for setter in profile.setters if setter.key == _READ_AHEAD]
        builtin, place = _builtin(profile, self.scene)
        if not own:
            yield Origin(self._kb(profile.read_ahead, profile), place, self._about(profile, _READ_AHEAD))
            return
        reason = f"read_ahead_kb of the profile {name}{self._times(profile.read_ahead)}"
        for setter in reversed(own):
            yield Origin(self._kb(_read_ahead(setter), profile), setter.place, reason)
            reason = f"{own[-1].place} replaces it"
        if builtin.read_ahead is not None:
            yield Origin(self._kb(builtin.read_ahead, builtin), place, reason)

    def _about(self, profile: Profile, key: str) -> str:
        source = next((source for source in profile.sources if key in source.keys), None)
        cited = f"{source.title}, read {source.read}" if source is not None else ""
        if profile.read_ahead is None:
            return f"it names no number{f': {cited}' if cited else ''}"
        return f"{cited}{self._times(profile.read_ahead)}"

    def _times(self, wanted: ReadAhead | None) -> str:
        if wanted is None or wanted.times_rsize is None:
            return ""
        return f", {wanted.times_rsize} times the rsize of {self.rsize} bytes"

    def _kb(self, wanted: ReadAhead | None, profile: Profile) -> int | None:
        return read_ahead_kb(wanted, self.rsize, profile.read_ahead_max_kb)


def _read_ahead(setter: Setter) -> ReadAhead:
    if isinstance(setter.value, int):
        return ReadAhead(kb=setter.value)
    return ReadAhead(times_rsize=int(setter.value.partition("*")[0]))


def _builtin(profile: Profile, scene: Scene) -> tuple[Profile, str]:
    """Return the built-in profile behind a profile, and its name as a place."""
    found = matcher(scene.builtin).find(profile.base.partition(WORKLOAD_MARK)[0]) or Profile(profile.name)
    return found, f"{'built-in ' if found.builtin else ''}profile {found.name}"


def _nconnect_origins(row: StatusRow, mount: Mount, profile: Profile, scene: Scene) -> Iterator[Origin]:
    """Yield the kernel's decision where a mount got another nconnect, who asks for it, and the target."""
    snapshot = scene.snapshot
    intents = Intents(snapshot.requests, snapshot.settings, snapshot.tunnels)
    asked, claims = last_asked(intents.of(mount), _NCONNECT), list(intents.claims(mount, _NCONNECT))
    wanted, carrying = row.nconnect_requested, max(row.nconnect, row.nconnect_carrying or 0)
    got_it = wanted is not None and row.nconnect <= wanted <= carrying
    if not got_it:
        yield Origin(row.nconnect, KERNEL, _decided(row, mount, scene), wins=True)
    of_utab = [claim for claim in claims if _is_utab(claim)]
    files = [claim for claim in claims if not _is_utab(claim)]
    coming = last_asked(intents.coming(mount), _NCONNECT)
    first = coming.origin if coming is not None else ""
    # Where a file asks for the number of utab, the file is named.
    newer = bool(of_utab and first) and (asked is None or asked.file == UTAB)
    for claim in (*of_utab, *files) if newer or (asked and asked.file == UTAB) else files:
        is_asked = asked is not None and claim.place == asked.origin
        own = "the options that mount.nfs got" if _is_utab(claim) else "the mount's own options"
        by = claim.section or own
        if is_asked:
            reason = by if got_it else f"{by}: asked for, and ignored"
        elif claim.value is None:
            reason = f"{by}: no nconnect"
        elif claim.replaced:
            reason = f"{by}: a later line replaces it"
        elif claim.place == first:
            reason = f"{by}: counts when it is mounted again"
        else:
            reason = f"{by}: {first} takes precedence"
        value = int(claim.value) if claim.value and claim.value.isdecimal() else None
        yield Origin(value, claim.place, reason, wins=is_asked and got_it)
    yield from _nconnect_target(row, profile, scene)


def _is_utab(claim: Claim) -> bool:
    return claim.place.startswith(f"{UTAB}:")


def _decided(row: StatusRow, mount: Mount, scene: Scene) -> str:
    """Return why a mount has another nconnect than it asked for."""
    if row.nconnect_requested is None and row.nconnect == 1:
        return "the mount asked for no number"
    snapshot = scene.snapshot
    facts = Facts(frozenset({Need.LIVE}), snapshot, scene.policy, targets(snapshot, scene.policy))
    target = next(each for each in facts.nfs if each.live is mount)
    if row.nconnect_requested is None:
        first = earliest(target, facts)
        unknown = "no file asks for it: the mount's maker did, or another mount of the server"
        return unknown if first is None else f"{first.point} was mounted first and decided"
    if overruled(target, facts):
        return decider(target, facts)
    return "the mount is older than the line that asks, or the kernel ignores nconnect for it"


def _nconnect_target(row: StatusRow, profile: Profile, scene: Scene) -> Iterator[Origin]:
    own = [setter for setter in profile.setters if setter.key == _NCONNECT]
    builtin, place = _builtin(profile, scene)
    set_at = own[-1].place if own else place
    most = "" if row.nconnect_max is None else f", at most {row.nconnect_max}"
    if row.nconnect_depends:
        yield Origin(None, place, f"the profile's number depends: {row.nconnect_depends}")
    elif row.nconnect_target is not None:
        yield Origin(row.nconnect_target, set_at, f"the target of the profile {profile.name}{most}")
    elif row.nconnect_max is not None:
        yield Origin(None, place, f"the profile {profile.name} has no target{most}")
    if own and builtin.nconnect is not None:
        yield Origin(builtin.nconnect, place, f"{set_at} replaces it")
