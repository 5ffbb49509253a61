"""What else on a host writes the read-ahead of its NFS mounts, and whether the policy wants that value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from nfstuned.core.endpoint import AZURE_FILES, is_loopback, split_source
from nfstuned.core.policy import read_ahead_kb
from nfstuned.core.udevdevice import ATTRIBUTE
from nfstuned.core.udevwriters import NFS_ADDED, NFSRAHEAD, find_writers
from nfstuned.model.facts import AZNFS, EFS_UTILS, TUNED, Facts, Target, UdevFile
from nfstuned.model.intent import Setting
from nfstuned.model.policy import Profile
from nfstuned.model.udev import RuleWriter, UdevEvent, UdevRule
from nfstuned.parse.udevrules import parse_udev_rules

NFSRAHEAD_KB = 128
"""What nfsrahead says where nfs.conf says nothing (nfs-utils, tools/nfsrahead/main.c)."""
ROWS = "/nfsfs/volumes"
"""The kernel's list of NFS superblocks: a program that reads it is taken for one that finds them."""
_STATIC = {"ACTION", "SUBSYSTEM", "KERNEL", "DEVPATH"}
_BEHIND = re.compile(r"\b(?:ENV|TAGS?|RUN|RESULT|IMPORT)\b")
_SAID = re.compile(r"%c|\$result")
_NUMBER = re.compile(r"\s*([-+]?[0-9]{1,12})")
_EFS_TIMES = 15
_PROBE = "0:43"
"""A device number like those that NFS mounts have."""


@dataclass(frozen=True, slots=True)
class Rival:
    """One value that another program writes, and the mounts that it reaches."""

    subject: str
    """The file and line where it is set."""
    program: str
    kb: int
    targets: tuple[Target, ...]
    remedy: str
    raises_only: bool = False
    """It leaves a larger value alone."""


def rivals(facts: Facts) -> tuple[Rival, ...]:
    """Return what is in force on this host, as far as its files tell the value."""
    return (*_rules(facts), *_aznfs(facts), *_efs(facts), *_tuned(facts))


def agrees(facts: Facts, target: Target, rival: Rival) -> bool:
    """Whether what the policy wants for a mount stays in spite of a rival, or because of it."""
    kb = wanted_kb(target)
    return fits(facts, target, rival.kb) or (rival.raises_only and kb is not None and rival.kb < kb)


def fits(facts: Facts, target: Target, written_kb: int) -> bool:
    """Whether nfstuned leaves a value: it only raises, and the profile may have an upper bound."""
    kb, page = wanted_kb(target), facts.snapshot.page_kb
    if kb is None:
        return True
    profile, kb, written = profile_of(facts, target), kb // page, written_kb // page
    if written <= kb or profile.lower:
        return written == kb
    return profile.read_ahead_max_kb is None or written <= profile.read_ahead_max_kb // page


def wanted_kb(target: Target) -> int | None:
    """Return what the policy wants for a mount in KiB, or for the superblock that it shares."""
    if target.decision is not None:
        return target.decision.kb
    return read_ahead_kb(target.profile.read_ahead, target.options.number("rsize"))


def profile_of(facts: Facts, target: Target) -> Profile:
    """Return the profile that decided: of mounts that share a superblock, one mount's counts for all."""
    return facts.policy.profile(target.decision.profile) if target.decision else target.profile


def rule_writers(facts: Facts, event: UdevEvent = NFS_ADDED) -> tuple[RuleWriter, ...]:
    """Return the rules that may write the read-ahead of a new superblock, the last one last."""
    return find_writers(_that_matter(facts.udev), event)


def _that_matter(files: Iterable[UdevFile]) -> tuple[tuple[str, str], ...]:
    """Return paths and texts of the files that decide it: to read all of a host's rules takes its time.

    The others matter where a rule looks at what earlier ones left behind, or runs commands in the end.
    """
    everything = tuple((file.path, file.text) for file in files if file.text)
    about = tuple((path, text) for path, text in everything if ATTRIBUTE in text)
    return everything if any(_looks_back(text) for _, text in about) else about


def _looks_back(text: str) -> bool:
    return bool(_BEHIND.search(text)) or ("PROGRAM" not in text and bool(_SAID.search(text)))


def in_force(facts: Facts) -> tuple[RuleWriter, ...]:
    """Return those of them that no later rule overrules for every NFS superblock."""
    writers = rule_writers(facts)
    last = max((at for at, writer in enumerate(writers) if reaches_all(facts, writer)), default=0)
    return writers[last:]


def reaches_all(facts: Facts, writer: RuleWriter) -> bool:
    """Whether a rule writes for every NFS superblock of the host's own namespaces.

    So does one that asks the kernel's list of them, and nfs-utils' own. Whether another program's answer, or
    a jump on one, lets a rule through is not known.
    """
    if writer.certain or is_nfsrahead(writer):
        return True
    rule = rule_of(facts, writer)
    asks = rule is not None and any(token.key == "PROGRAM" and ROWS in token.value for token in rule.tokens)
    return unsure(facts, writer) <= ({"PROGRAM", "RESULT"} if asks else set())


def unsure(facts: Facts, writer: RuleWriter) -> set[str]:
    """Return the keys of a rule that only the host can answer; GOTO where something in its file jumps."""
    if writer.certain:
        return set()
    rule = rule_of(facts, writer)
    keys = {token.key for token in rule.tokens if token.is_match} if rule else {"GOTO"}
    jumps = any(each.goto for each in _parsed(facts, writer.file))
    return keys - _STATIC | ({"GOTO"} if jumps else set())


def rule_of(facts: Facts, writer: RuleWriter) -> UdevRule | None:
    """Return the rule that writes."""
    return next((rule for rule in _parsed(facts, writer.file) if rule.line == writer.line), None)


def _parsed(facts: Facts, path: str) -> tuple[UdevRule, ...]:
    return _rules_of(next((file.text for file in facts.udev if file.path == path), ""))


@lru_cache(maxsize=8)
def _rules_of(text: str) -> tuple[UdevRule, ...]:
    return parse_udev_rules(text).rules


def is_nfsrahead(writer: RuleWriter) -> bool:
    """Whether nfs-utils' program decides the value."""
    return (writer.program or "").split(" ")[0].endswith("/" + NFSRAHEAD)


def nfsrahead_kb(facts: Facts, kind: str) -> tuple[int, Setting | None]:
    """Return what nfsrahead says for "nfs" or "nfs4" (nfsrahead(5)), and the setting that decides it.

    Names have no case. A value is what atoi(3) takes it for.
    """
    settings = [one for one in facts.writers if one.section == NFSRAHEAD]
    for name in (kind, "default"):
        chosen = next((one for one in reversed(settings) if one.name.lower() == name), None)
        if chosen is not None:
            number = _NUMBER.match(chosen.value)
            return int(number[1]) if number else 0, chosen
    return NFSRAHEAD_KB, None


def kind_of(target: Target) -> str:
    """Return the filesystem type that a mount has, or will have, in mountinfo: "nfs" is version 3."""
    if target.live is not None:
        return target.live.fstype
    version = target.options.get("vers") or target.options.get("nfsvers") or ""
    return "nfs" if "v3" in target.options or version.startswith("3") else "nfs4"


def _rules(facts: Facts) -> Iterator[Rival]:
    for writer in in_force(facts):
        place = f"{writer.file}:{writer.line}"
        if is_nfsrahead(writer):
            yield from _nfsrahead(facts, place)
        elif writer.kb is not None and reaches_all(facts, writer):
            remedy = f"change the value in {writer.file}, or remove the rule; then udevadm control --reload"
            yield Rival(place, "this udev rule", writer.kb, facts.nfs, remedy)


def _nfsrahead(facts: Facts, rule: str) -> Iterator[Rival]:
    """Yield nfsrahead's values: one line of nfs.conf may count for version 3, another for version 4."""
    found: dict[tuple[str, int], list[Target]] = {}
    for target in facts.nfs:
        kb, setting = nfsrahead_kb(facts, kind_of(target))
        place = f"{setting.file}:{setting.line}" if setting else rule
        found.setdefault((place, kb), []).append(target)
    for (place, kb), targets in found.items():
        key = "/".join(sorted({kind_of(target) for target in targets}))
        remedy = f"set {key} in [nfsrahead] of /etc/nfs.conf to what is expected"
        yield Rival(place, "nfs-utils' nfsrahead", kb, tuple(targets), remedy)


def _aznfs(facts: Facts) -> Iterator[Rival]:
    for setting in _of(facts, AZNFS):
        targets = tuple(target for target in facts.nfs if is_aznfs(target))
        remedy = f"set {setting.name} in the environment of mount.aznfs to what is expected"
        place = f"{setting.file}:{setting.line}"
        yield Rival(place, "AZNFS", int(setting.value), targets, remedy, raises_only=True)


def is_aznfs(target: Target) -> bool:
    """Whether mount.aznfs makes the mount: a file says so, or it goes through one of its tunnels."""
    tunnelled = is_loopback(split_source(target.source)[0]) and target.endpoint.provider == AZURE_FILES
    return tunnelled or "aznfs" in {target.fstype, target.request.fstype if target.request else ""}


def _efs(facts: Facts) -> Iterator[Rival]:
    """Yield what efs-utils writes on kernels from 5.4 on (mount_efs, optimize_readahead_window)."""
    for setting in _of(facts, EFS_UTILS)[-1:]:
        if setting.value.lower() not in {"true", "yes", "on", "1"}:
            continue
        place = f"{setting.file}:{setting.line}"
        for target in facts.nfs:
            rsize = target.options.number("rsize")
            if target.endpoint.provider == "aws-efs" and rsize is not None:
                remedy = f"set optimize_readahead = false in {setting.file}"
                yield Rival(place, "efs-utils", _EFS_TIMES * rsize // 1024, (target,), remedy)


def _tuned(facts: Facts) -> Iterator[Rival]:
    for setting in _of(facts, TUNED):
        reached = tuple(target for target in facts.nfs if fnmatchcase(_bdi(setting, target), setting.name))
        if setting.value.isdecimal():
            remedy = f"take {setting.name} out of {setting.file}, then tuned-adm profile again"
            place = f"{setting.file}:{setting.line}"
            yield Rival(place, "TuneD", int(setting.value), reached, remedy)


def _bdi(setting: Setting, target: Target) -> str:
    device = target.superblock.device if target.superblock else _PROBE
    return f"{setting.name.rsplit('/', 2)[0]}/{device}/read_ahead_kb"


def _of(facts: Facts, program: str) -> Sequence[Setting]:
    return [setting for setting in facts.writers if setting.section == program]


def names(targets: Iterable[Target]) -> str:
    """Return mounts for a message: three of them by name."""
    subjects = [target.subject for target in targets]
    more = f" and {len(subjects) - 3} more" if len(subjects) > 3 else ""  # noqa: PLR2004 - three fit a line
    return ", ".join(subjects[:3]) + more
