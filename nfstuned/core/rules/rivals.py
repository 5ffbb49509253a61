"""Other programs' writes to the read-ahead of NFS mounts, and the policy's opinion on their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from shlex import quote
from typing import NamedTuple

from nfstuned.core.policy.decision import read_ahead_kb
from nfstuned.core.policy.endpoint import has_stand_in, is_loopback, split_source
from nfstuned.core.udev.writers import in_force, is_default, is_nfsrahead, reaches_all
from nfstuned.model.facts import Facts, Target
from nfstuned.model.kernel import nfs_version
from nfstuned.model.mounts import AZNFS, AZURE_FILES, EFS, EFS_UTILS, NFSRAHEAD, TUNED, Setting
from nfstuned.model.policy import Profile
from nfstuned.parse.fields import RELOAD_UDEV, sudo, then_sudo

NFSRAHEAD_KB = 128
"""nfsrahead's value where nfs.conf has none (nfs-utils, tools/nfsrahead/main.c)."""
_UDEV = "https://www.freedesktop.org/software/systemd/man/latest/udev.html"
_AZNFS = "https://github.com/Azure/AZNFS-mount/blob/main/lib/common.sh"
_EFS = "https://github.com/aws/efs-utils/blob/master/src/efs_utils_common/mount_utils.py"
_EFS_SINCE = (5, 4, 0)
_TUNED = "https://github.com/redhat-performance/tuned/blob/master/tuned/plugins/plugin_sysfs.py"
_NUMBER = re.compile(r"\s*([-+]?[0-9]{1,12})")
_VERSIONS = {"nfs": "NFS 3", "nfs4": "NFS 4"}
"""By the name of nfsrahead's setting: the version that it is for."""
_UNSET = -1
_WHOLE = re.compile(r"[0-9]{1,9}")
_EFS_TIMES = 15
_PROBE = "0:43"
"""A device number like those that NFS mounts have."""


class Rival(NamedTuple):
    """A value that another program writes, and the mounts that it reaches."""

    subject: str
    """The file and line where it is set."""
    program: str
    kb: int
    targets: tuple[Target, ...]
    remedy: str
    source: str = ""
    raises_only: bool = False
    """It leaves a larger value alone."""
    rule: tuple[str, int] | None = None
    """The file and the line of the udev rule that writes it; None for other programs."""
    stock: bool = False
    """It is a default of the distribution, which nobody chose and nfstuned.service masks."""
    configuration: str = ""
    """How its own configuration gives these mounts the policy's values; "" where nothing there can."""


@lru_cache(maxsize=1)
def other_writers(facts: Facts) -> tuple[Rival, ...]:
    """Return the other writers on this host with values that its files show."""
    return (*_rules(facts), *_aznfs(facts), *_efs(facts), *_tuned(facts))


def agrees(facts: Facts, target: Target, rival: Rival) -> bool:
    """Whether a mount keeps the policy's value in spite of a rival, or because of it."""
    kb = wanted_kb(target)
    return fits_policy(facts, target, rival.kb) or (rival.raises_only and kb is not None and rival.kb < kb)


def fits_policy(facts: Facts, target: Target, written_kb: int) -> bool:
    """Whether nfstuned leaves a value: it raises only, unless the profile lowers, up to the profile's bound.

    True where the policy has no value.
    """
    kb, page = wanted_kb(target), facts.snapshot.page_kb
    if kb is None:
        return True
    profile, kb, written = profile_of(facts, target), kb // page, written_kb // page
    if written <= kb or profile.lower:
        return written == kb
    return profile.read_ahead_max_kb is None or written <= profile.read_ahead_max_kb // page


def wanted_kb(target: Target) -> int | None:
    """Return the profile's value in KiB for a mount, or for the superblock that it shares."""
    if target.decision is not None:
        return target.decision.kb
    profile = target.profile
    return read_ahead_kb(profile.read_ahead, target.options.number("rsize"), profile.read_ahead_max_kb)


def present_kb(target: Target) -> int | None:
    """Return the value in KiB that a mount should have now: its reads may have moved the profile's."""
    return wanted_kb(target) if target.decision is None else target.decision.target_kb


def profile_of(facts: Facts, target: Target) -> Profile:
    """Return the profile that decided: of mounts that share a superblock, one mount's counts for all."""
    return facts.policy.profile(target.decision.profile) if target.decision else target.profile


def nfsrahead_kb(facts: Facts, kind: str) -> tuple[int, Setting | None]:
    """Return nfsrahead's value for "nfs" or "nfs4" (nfsrahead(5)), and the setting that decides it.

    Names have no case. Values are read as by atoi(3); -1 stands for no setting.
    """
    settings = _settings(facts, NFSRAHEAD)
    for name in (kind, "default"):
        chosen = next((setting for setting in reversed(settings) if setting.name.lower() == name), None)
        if chosen is not None:
            number = _NUMBER.match(chosen.value)
            kb = int(number[1]) if number else 0
            if kb != _UNSET:
                return kb, chosen
    return NFSRAHEAD_KB, None


def fstype_of(target: Target) -> str:
    """Return the filesystem type that a mount has, or will have, in mountinfo: "nfs" is version 3."""
    if target.live is not None:
        return target.live.fstype
    asked = nfs_version(target.fstype, target.options)
    return "nfs" if asked is not None and asked[0] in {2, 3} else "nfs4"


def _rules(facts: Facts) -> Iterator[Rival]:
    for writer in in_force(facts):
        place = f"{writer.file}:{writer.line}"
        if not reaches_all(facts.udev, writer):
            continue
        rule = (writer.file, writer.line)
        stock = any(file.path == writer.file and is_default(file) for file in facts.udev)
        if is_nfsrahead(writer):
            for rival in _nfsrahead(facts, place):
                yield rival._replace(rule=rule, stock=stock and rival.subject == place)
        elif writer.kb is not None:
            reload = then_sudo(RELOAD_UDEV, image=facts.image, mark=";")
            remedy = f"change the value in {writer.file}, or remove the rule{reload}"
            yield Rival(place, "this udev rule", writer.kb, facts.nfs, remedy, _UDEV, rule=rule, stock=stock)


def _nfsrahead(facts: Facts, rule: str) -> Iterator[Rival]:
    """Yield nfsrahead's values: one line of nfs.conf may count for version 3, another for version 4."""
    target_groups: dict[tuple[int, Setting | None], list[Target]] = {}
    for target in facts.nfs:
        target_groups.setdefault(nfsrahead_kb(facts, fstype_of(target)), []).append(target)
    settings = reversed(_settings(facts, NFSRAHEAD))
    other = next((one for one in settings if one.name.lower() in _VERSIONS), None)
    for (kb, setting), targets in target_groups.items():
        place = f"{setting.file}:{setting.line}" if setting else rule
        line = _configure(setting, targets, facts.folder)
        mask = sudo("ln -s /dev/null", "/etc/udev/rules.d/99-nfs.rules", folder=facts.folder)
        remedy = line or f"{mask}, and let nfstuned.service set each mount's own value"
        program = "nfs-utils' nfsrahead"
        if setting is None and other is not None:
            version = _VERSIONS[other.name.lower()]
            program += f" ({other.name}={other.value} in {other.file}:{other.line} is for {version} alone)"
        yield Rival(place, program, kb, tuple(targets), remedy, configuration=line)


def _configure(setting: Setting | None, targets: Sequence[Target], folder: str) -> str:
    """Return how to give nfsrahead the policy's values; "" where servers need several of one version.

    Only the deciding line is worth a change; below /usr it is the vendor's, and a drop-in overrules it.
    """
    asked = [(target, wanted_kb(target)) for target in targets]
    # A server without a number keeps the value that nfsrahead has by itself.
    wanted = {
        (fstype_of(target), kb or NFSRAHEAD_KB) for target, kb in asked if kb or not target.profile.read_ahead
    }
    if len(wanted) > len({kind for kind, _ in wanted}):
        return ""
    settings = " and ".join(f"{kind}={kb}" for kind, kb in sorted(wanted))
    if setting is None or setting.file.startswith("/usr/"):
        return f"write {settings} below [nfsrahead] in {quote(f'{folder}/etc/nfs.conf.d/99-nfstuned.conf')}"
    values = {kb for _, kb in wanted}
    line = f"{setting.name}={values.pop()}" if len(values) == 1 else settings
    return f"change {setting.file}:{setting.line} to {line}"


def _aznfs(facts: Facts) -> Iterator[Rival]:
    for setting in _settings(facts, AZNFS):
        targets = tuple(target for target in facts.nfs if is_aznfs(target))
        remedy = f"set {setting.name} in the environment of mount.aznfs to the expected value"
        place = f"{setting.file}:{setting.line}"
        yield Rival(place, "AZNFS", int(setting.value), targets, remedy, _AZNFS, raises_only=True)


def is_aznfs(target: Target) -> bool:
    """Whether mount.aznfs makes the mount: a file asks for it, or the mount goes through its tunnel."""
    if has_stand_in(target):
        return True
    tunnelled = is_loopback(split_source(target.source)[0]) and target.endpoint.provider == AZURE_FILES
    return tunnelled or "aznfs" in {target.fstype, target.request.fstype if target.request else ""}


def _efs(facts: Facts) -> Iterator[Rival]:
    """Yield efs-utils' writes on kernels since 5.4 (optimize_readahead_window)."""
    kernel = facts.snapshot.kernel
    old = kernel is not None and kernel.version < _EFS_SINCE
    for setting in () if old else _settings(facts, EFS_UTILS)[-1:]:
        if setting.value.lower() not in {"true", "yes", "on", "1"}:
            continue
        target_groups: dict[int, list[Target]] = {}
        for target in facts.nfs:
            rsize = target.options.number("rsize")
            if target.endpoint.provider == EFS and rsize is not None:
                target_groups.setdefault(_EFS_TIMES * rsize // 1024, []).append(target)
        remedy = f"set optimize_readahead = false in {setting.file}"
        for kb, targets in target_groups.items():
            yield Rival(f"{setting.file}:{setting.line}", "efs-utils", kb, tuple(targets), remedy, _EFS)


def _tuned(facts: Facts) -> Iterator[Rival]:
    for setting in _settings(facts, TUNED):
        if not _WHOLE.fullmatch(setting.value):
            continue
        folder = setting.name.rsplit("/", 2)[0]
        devices = ((each, each.superblock.device if each.superblock else _PROBE) for each in facts.nfs)
        reached = tuple(
            target
            for target, device in devices
            if fnmatchcase(f"{folder}/{device}/read_ahead_kb", setting.name)
        )
        reload = then_sudo("systemctl restart tuned", image=facts.image)
        remedy = f"remove {setting.name} from {setting.file}{reload}"
        yield Rival(f"{setting.file}:{setting.line}", "TuneD", int(setting.value), reached, remedy, _TUNED)


def _settings(facts: Facts, program: str) -> Sequence[Setting]:
    return [setting for setting in facts.writers if setting.section == program]
