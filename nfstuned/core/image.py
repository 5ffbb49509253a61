"""The files with which an image's first boot has fast mounts, and the step for each file of nfstuned's."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nfstuned.core.rules.nfs2_connections import SESSION_SLOTS, SLOT_TABLE, crowd
from nfstuned.core.rules.nfs4_identity import one_identifier, without_identifier
from nfstuned.core.rules.rule import new_file, permanent_setting
from nfstuned.core.udev.writers import is_default, set_by_administrator
from nfstuned.model.change import (
    Change,
    ChangeKind,
    Content,
    FileStep,
    Installed,
    Link,
    Placement,
    digest,
    encoded,
)
from nfstuned.model.facts import Facts
from nfstuned.model.mounts import PERSISTED, Result, UnitSetting
from nfstuned.model.system import IDENTITY_UNIT, MACHINE_ID, Unit
from nfstuned.model.udev import BAKED, NFS_RULES
from nfstuned.parse.etc.units import parse_unit
from nfstuned.parse.fields import quote

SERVICE = "nfstuned.service"
UNITS = "etc/systemd/system"
RULES = "etc/udev/rules.d"
RULE = f"{RULES}/99-nfstuned.rules"
_TARGET = re.compile(r"[A-Za-z0-9:_.@-]+\.(?:target|service|slice|socket|path|timer)")
_FOLDERS = {"WantedBy": ".wants", "RequiredBy": ".requires"}
_ABSENT = (
    f"the image has no {SERVICE}: install the package in it, or run nfstuned install-files --root DIR first"
)
_MASKED = f"it is masked; to unmask it: systemctl --root=DIR unmask {SERVICE}"
_NO_TARGET = "the [Install] section of {} names no target that starts it"
_STARTS_TOO = f"it starts at boot and makes the udev rule useless: systemctl --root=DIR disable {SERVICE}"
_PRESET = (
    "the image has no machine id: systemd applies presets at the first boot, enables the service, and "
    f"makes the udev rule useless: systemctl --root=DIR mask {SERVICE}"
)
_NO_AWK = "the image has no /usr/bin/awk, which the udev rule runs: install mawk or gawk first"
_PARAMETERS = {SLOT_TABLE.name: "NFS210", SESSION_SLOTS.name: "NFS211"}
"""The rules with the wanted value of a parameter."""
_HEAD = "# Written by `nfstuned bake`, for Azure NetApp Files ({}); `--undo` takes it back.\n"
_LATER = (
    'with mode = "persist" under [nconnect] in /etc/nfstuned/nfstuned.toml, the service finds out at boot '
    "and writes it"
)
_KNOWN = 'mode = "persist": the service finds out at boot, and writes it for later mounts'
_BY_HAND = "without the service: write nconnect={} into the options of its mounts if the endpoint is private"
_PASSED = "nothing needs it any more"
_CLIENT, _OWN = "NFSv4 client", "an identity of its own"
_FOLDER_OF_IDENTITY = "multi-user.target.wants"
_AT_BOOT = (
    "clones with one name are one client to a server; with this each makes itself an identifier at boot"
)
_WITHOUT_PACKAGE = "the unit of the identifier"
_PRESET_OF_IDENTITY = "etc/systemd/system-preset/50-nfstuned-identity.preset"
"""It sorts before nfstuned's own, which leaves the unit disabled, and before a distribution's `disable *`."""
_PRESET_TEXT = f"""\
# Written by `nfstuned bake`; `--undo` takes it back. Without it `systemctl preset-all`, as mkosi runs it, and
# the first boot of a systemd that applies all presets, would take the unit's link away.
enable {IDENTITY_UNIT}
"""
_KEPT_BY_PRESET = "it keeps the unit enabled where presets are applied, by mkosi or at a first boot"
_ONE_MACHINE_ID = "the image has a machine id, which all of its clones would share: {}, bake again"
_ONE_IDENTIFIER = "all clones get the identifier {}, which the unit would leave: {}, bake again"
_REMOVED, _RESTORED = "removed", "as before"


@dataclass(frozen=True, slots=True)
class ImageUnit:
    """A unit of nfstuned's as the image has it: the service, or the unit that gives clones identities."""

    unit: Unit
    """As the image was before bake: a link that bake wrote does not enable it."""
    path: str = ""
    """Its strongest file that is no mask, without a leading slash; "" for none."""
    text: str = ""
    """The text of that file."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The files that an image should have, and why."""

    changes: tuple[Change, ...] = ()
    """Planned changes name a file of `contents`; the others have the reason against a file."""
    contents: Mapping[str, Content] = field(default_factory=dict)
    """The bytes of each file by its path, without a leading slash."""
    unprepared: bool = False
    """The image lacks a package for this, so that nothing at all is changed."""


def wanted_service(service: ImageUnit) -> Wanted:
    """Return the links that start the service at boot, as its [Install] section says.

    Where something starts it already there is nothing to do; a mask is somebody's decision.
    """
    if service.unit.masked:
        return _refused(ChangeKind.SERVICE, SERVICE, _MASKED, "masked", "enabled")
    if not service.path:
        refused = _refused(ChangeKind.SERVICE, SERVICE, _ABSENT, "not installed", "enabled")
        return replace(refused, unprepared=True)
    if service.unit.enabled:
        return Wanted()
    links = {f"{UNITS}/{folder}/{SERVICE}": Link("/" + service.path) for folder in _install(service)}
    if not links:
        return _refused(
            ChangeKind.SERVICE, SERVICE, _NO_TARGET.format("/" + service.path), "disabled", "enabled"
        )
    changes = []
    for path in links:
        reason = f"as its [Install] section says: {path.split('/')[-2]}"
        changes.append(
            Change(ChangeKind.SERVICE, SERVICE, "disabled", "enabled", Result.PLANNED, reason, "/" + path)
        )
    return Wanted(tuple(changes), links)


def wanted_rule(text: bytes, *, has_awk: bool, linked: bool, starts: bool) -> Wanted:
    """Return the udev rule for an image without the service.

    `starts`: the service starts at boot all the same; `linked`: by a link, else by a preset.
    """
    if not has_awk:
        refused = _refused(ChangeKind.RULE, "read-ahead", _NO_AWK, None, "15360 KiB")
        return replace(refused, unprepared=True)
    reason = "every NFS mount gets it, with any server"
    rule = Change(ChangeKind.RULE, "read-ahead", None, "15360 KiB", Result.PLANNED, reason, "/" + RULE)
    why = _STARTS_TOO if linked else _PRESET
    service = Change(ChangeKind.SERVICE, SERVICE, "enabled", "enabled", Result.SKIPPED, why)
    return Wanted((rule, service) if starts else (rule,), {RULE: text})


def wanted_mask(facts: Facts) -> Wanted:
    """Return the mask of nfs-utils' rule, which would write before bake's own udev rule.

    Nothing where the image has another rule of that name, or an administrator gave nfsrahead values.
    """
    stock = [file for file in facts.udev if file.path.endswith("/" + NFS_RULES) and is_default(file)]
    if not stock or set_by_administrator(facts.writers) is not None:
        return Wanted()
    path = f"{RULES}/{NFS_RULES}"
    reason = f"{stock[0].path} would write 128 KiB first"
    change = Change(ChangeKind.RULE, NFS_RULES, "in force", "masked", Result.PLANNED, reason, "/" + path)
    return Wanted((change,), {path: BAKED.encode()})


def wanted_parameters(facts: Facts) -> Wanted:
    """Return the files that give mounts of Azure NetApp Files the slots that it names.

    No profile has a key for them: the numbers are those of the rules NFS210 and NFS211, which count for
    mounts with the profile azure-netapp-files or a profile that inherits from it.
    """
    changes: list[Change] = []
    contents: dict[str, Content] = {}
    for wish in (SLOT_TABLE, SESSION_SLOTS):
        crowded = crowd(facts, wish)
        if crowded is None:
            continue
        place = new_file(facts, wish)
        change = Change(
            ChangeKind.PARAMETER,
            wish.name,
            crowded.value,
            int(wish.value),
            Result.FAILED,
            permanent_setting(facts, wish),
        )
        if place is not None:
            file, line = place
            rule = _PARAMETERS[wish.name]
            contents[file[1:]] = f"{_HEAD.format(rule)}{line}\n".encode()
            reason = f"{rule}, for {crowded.users[0].subject}"
            change = replace(change, place=file, result=Result.PLANNED, reason=reason)
        changes.append(change)
    return Wanted(tuple(changes), contents)


def wanted_identity(facts: Facts, unit: ImageUnit, text: bytes) -> Wanted:
    """Return the unit that gives the NFSv4 client of each clone an identity of its own, and its link.

    Nothing where no line asks for NFSv4, the clones differ already, or the unit is enabled or masked. An
    identifier or a machine id that all clones share is a skipped change.
    """
    client = facts.system.client
    mounts_v4 = any(not target.is_v3 for target in facts.nfs)
    if not mounts_v4 or unit.unit.masked:
        return Wanted()
    one = one_identifier(facts)
    if one is not None:
        return _left(_ONE_IDENTIFIER.format(one[0], without_identifier(facts)))
    if not client.shared_by_clones or unit.unit.enabled:
        return Wanted()
    if client.machine_ids:
        ways = (f"{'empty' if file == MACHINE_ID else 'remove'} its {file}" for file in client.machine_ids)
        return _left(_ONE_MACHINE_ID.format(" and ".join(ways)))
    place = f"{UNITS}/{_FOLDER_OF_IDENTITY}/{IDENTITY_UNIT}"
    change = Change(ChangeKind.IDENTITY, _CLIENT, None, _OWN, Result.PLANNED, _AT_BOOT, "/" + place)
    name = _PRESET_OF_IDENTITY.rpartition("/")[2]
    preset = replace(change, target=name, reason=_KEPT_BY_PRESET, place="/" + _PRESET_OF_IDENTITY)
    contents: dict[str, Content] = {_PRESET_OF_IDENTITY: _PRESET_TEXT.encode()}
    if unit.path:
        return Wanted((change, preset), {place: Link("/" + unit.path), **contents})
    file = f"{UNITS}/{IDENTITY_UNIT}"
    return Wanted(
        (change, replace(change, target=IDENTITY_UNIT, reason=_WITHOUT_PACKAGE, place="/" + file), preset),
        {place: Link("/" + file), file: text, **contents},
    )


def _left(reason: str) -> Wanted:
    """Return that the clones get no identity of their own."""
    return Wanted((Change(ChangeKind.IDENTITY, _CLIENT, None, _OWN, Result.SKIPPED, reason),))


def wanted_sections(
    planned: Sequence[Change], sections: Mapping[str, int], now: Mapping[str, int], text: str | None
) -> Wanted:
    """Return nfstuned's drop-in of nfsmount.conf with these sections: `text`, or None for no file.

    `planned` are changes of a file without bake's own sections; `now` are the sections that it really has.
    """
    reasons = {change.target: change for change in planned}
    changes = []
    for name in sorted({*sections, *now, *reasons}):
        old, new = now.get(name), sections.get(name)
        known = reasons.get(name)
        if known is not None and known.result is not Result.PLANNED:
            changes.append(_section(name, (old, known.new), known.result, known.reason))
        elif old != new:
            reason = known.reason if known is not None else _PASSED
            changes.append(_section(name, (old, new), Result.PLANNED, reason))
    return Wanted(tuple(changes), {} if text is None else {PERSISTED[1:]: encoded(text)})


def with_remedy(change: Change, unknown: Container[str], mode: str | None) -> Change:
    """Return a skipped change with another remedy, where only a network knows the address.

    `unknown` are the names without an address in the image; `mode` is the policy's mode of nconnect, None
    where no service will run.
    """
    if change.result is not Result.SKIPPED or change.target not in unknown:
        return change
    way = _BY_HAND.format(change.new) if mode is None else _KNOWN if mode == "persist" else _LATER
    return replace(change, reason=f"{change.reason}; {way}")


def refused_sections(reason: str) -> Wanted:
    """Return that the drop-in is not touched."""
    return Wanted((_section(PERSISTED, (None, None), Result.FAILED, reason),))


def joined(parts: Iterable[Wanted]) -> Wanted:
    """Return all of them as one."""
    known = tuple(parts)
    contents = {path: content for part in known for path, content in part.contents.items()}
    return Wanted(tuple(change for part in known for change in part.changes), contents)


def with_folder(changes: Iterable[Change], folder: str) -> tuple[Change, ...]:
    """Return changes with commands for the image in a folder; "/" is the system of the command itself."""

    def root(match: re.Match[str]) -> str:
        return "" if folder == "/" else f" --root{match[1]}{quote(folder)}"

    return tuple(
        replace(change, reason=re.sub(r" --root([= ])DIR\b", root, change.reason)) for change in changes
    )


def results(wanted: Wanted, steps: Sequence[Placement]) -> tuple[Change, ...]:
    """Return the changes as their files' steps allow: without those of files that are right already.

    Files that go, or that somebody has changed, have a change each.
    """
    by_path = {f"/{step.path}": step for step in steps}
    changes: list[Change] = []
    for change in wanted.changes:
        placement = by_path[change.place] if change.result is Result.PLANNED else None
        if placement is None or placement.step is FileStep.WRITE:
            changes.append(change)
        elif placement.step is FileStep.REFUSE:
            changes.append(replace(change, result=Result.FAILED, reason=placement.reason))
    failed = {change.place for change in wanted.changes if change.result is Result.FAILED}
    others = [step for step in steps if step.path not in wanted.contents and f"/{step.path}" not in failed]
    removed = [step for step in others if step.step is FileStep.REMOVE]
    left = [step for step in others if step.step is FileStep.KEEP]
    changes += [_of_file(step, _REMOVED, Result.PLANNED, _PASSED) for step in removed]
    return (*changes, *(_of_file(step, None, Result.SKIPPED, step.reason) for step in left))


def taken_back(steps: Iterable[Placement], before: Container[str]) -> tuple[Change, ...]:
    """Return the change of each file that bake wrote; `before` names those that replaced another text."""
    return tuple(
        _of_file(step, None, Result.FAILED, step.reason)
        if step.step is FileStep.KEEP
        else _of_file(step, _RESTORED if step.path in before else _REMOVED, Result.PLANNED, "bake wrote it")
        for step in steps
    )


def interrupted(changes: Iterable[Change], done: Container[str], problem: str) -> tuple[Change, ...]:
    """Return the results of changes that were done for some files only, named by their paths."""
    return tuple(
        replace(change, result=Result.FAILED, reason=problem)
        if change.result is Result.DONE and change.place not in done
        else change
        for change in changes
    )


def _of_file(placement: Placement, new: str | None, result: Result, reason: str) -> Change:
    path = f"/{placement.path}"
    return Change(ChangeKind.FILE, path, None, new, result, reason, path)


def _install(service: ImageUnit) -> Iterator[str]:
    """Yield the folders in which a link starts the service; an empty value takes back those before it."""
    known: dict[str, list[str]] = {name: [] for name in _FOLDERS}
    for item in parse_unit(service.text, "/" + service.path):
        if isinstance(item, UnitSetting) and item.section == "Install" and item.name in known:
            names = item.value.split()
            known[item.name] = [*known[item.name], *names] if names else []
    for name, targets in known.items():
        yield from dict.fromkeys(
            f"{target}{_FOLDERS[name]}" for target in targets if _TARGET.fullmatch(target)
        )


def _section(name: str, numbers: tuple[str | int | None, ...], result: Result, reason: str) -> Change:
    old, new = numbers
    return Change(ChangeKind.SECTION, name, old, new, result, reason, PERSISTED)


def _refused(kind: ChangeKind, target: str, reason: str, old: str | None, new: str) -> Wanted:
    return Wanted((Change(kind, target, old, new, Result.FAILED, reason),))


_FOREIGN = "it was not written by {}: move it away, or remove the package that owns it"
_EDITED = "it was changed after {} had written it: move it away"
_LEFT = "it was changed after {} had written it: remove it yourself if nothing needs it"


def plan_files(
    wanted: Mapping[str, Content], digests: Mapping[str, str | None], known: Installed, command: str
) -> tuple[Placement, ...]:
    """Return the step for each wanted file, and for each file of an earlier `command` that is not wanted now.

    `digests` are by path: None where there is no file, "" for anything but a regular file or a link.
    """
    steps = []
    for path, content in wanted.items():
        now, ours = digests.get(path), known.digests.get(path, ())
        if now == digest(content):
            steps.append(Placement(path, FileStep.SAME))
        elif now is None or now in ours:
            steps.append(Placement(path, FileStep.WRITE))
        else:
            reason = _EDITED if ours else _FOREIGN
            steps.append(Placement(path, FileStep.REFUSE, reason.format(command)))
    return (
        *steps,
        *(placement for placement in plan_removal(digests, known, command) if placement.path not in wanted),
    )


def plan_removal(present: Mapping[str, str | None], known: Installed, command: str) -> tuple[Placement, ...]:
    """Return the step for each file that was written.

    A file that is gone has no step, nor has a file with its earlier text, because a kill came before the
    write. `present` are the digests by path.
    """
    before = {path: digest(encoded(text)) for path, text in known.before.items()}
    left = _LEFT.format(command)
    return tuple(
        Placement(path, FileStep.REMOVE) if present[path] in digests else Placement(path, FileStep.KEEP, left)
        for path, digests in known.digests.items()
        if present.get(path) not in {None, before.get(path)}
    )
