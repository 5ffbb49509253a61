"""Rules NFS104 to NFS107, NFS111 and NFS112: other writers of the read-ahead, and defects of udev rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from nfstuned.core.rules.rivals import (
    Rival,
    agrees,
    fits_policy,
    fstype_of,
    nfsrahead_kb,
    other_writers,
    present_kb,
    wanted_kb,
)
from nfstuned.core.rules.rule import ADVICE, ERROR, HOST, SERVICE, WARNING, Manual, enable, rule
from nfstuned.core.udev.faults import BrokenRule, find_broken, is_about_read_ahead
from nfstuned.core.udev.writers import (
    file_writers,
    is_copy,
    is_nfsrahead,
    reaches_all,
    rule_writers,
    set_by_administrator,
    started_scripts,
    unsure,
)
from nfstuned.model.facts import Facts, Fault, Target
from nfstuned.model.mounts import NFSRAHEAD
from nfstuned.model.udev import NFS_RULES, RuleWriter, UdevEvent, UdevFile, is_mask
from nfstuned.parse.fields import RELOAD_UDEV, some, sudo, then_sudo
from nfstuned.parse.udev_rules import parse_udev_rules

_APPLY = ", and sudo nfstuned apply"
_DISK = UdevEvent(kernel="8:0", read_ahead_kb="128")
"""A usual disk, with the kernel's default (VM_READAHEAD_PAGES)."""
_CHANGED = UdevEvent(action="change")
_PACKAGED = ("/usr/lib/", "/lib/")
_LEFT_ASIDE = (
    *("~", ".bak", ".orig", ".old", ".save", ".disabled", ".off", ".swp", ".txt", ".md", ".example"),
    *(".sample", ".dist", ".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-dist", ".dpkg-new"),
    ".dpkg-bak",
)
"""Endings that people and packages give to files which udev shall not read."""


@rule(
    "NFS104",
    "read-ahead-contested",
    WARNING,
    needs=(HOST,),
    source="https://manpages.debian.org/bookworm/nfs-common/nfsrahead.5.en.html",
)
def contested(facts: Facts) -> Iterator[Fault]:
    """Yield other writers of a value that the policy does not want for mounts of this host.

    NFS105 and NFS107 report the same udev rule in their place, NFS101 a distribution's default.
    """
    daemon = facts.system.daemon
    # The service corrects other programs' values already where it is enabled.
    service = (
        ""
        if daemon.enabled or daemon.active
        else f"; or {enable(facts, daemon, SERVICE)}: it sets each mount's own value after any other program"
    )
    for contest in contested_values(facts):
        rival = contest.rival
        wanted = sorted({kb for target in contest.objectors if (kb := wanted_kb(target)) is not None})
        values = " or ".join(f"{kb} KiB" for kb in wanted)
        yield Fault(
            rival.subject,
            f"{rival.program} writes a read-ahead of {rival.kb} KiB to mounts that should have "
            f"{values} ({some([target.subject for target in contest.objectors])})"
            f"{'' if service else ': the last writer wins'}",
            observed=f"{rival.kb} KiB",
            expected=values,
            remedy=f"{rival.remedy}{'; then sudo nfstuned apply' if contest.lost else ''}{service}",
            source=rival.source,
        )


class ContestedValue(NamedTuple):
    """A value that another program writes, and the mounts for which the policy wants another value."""

    rival: Rival
    objectors: tuple[Target, ...]
    lost: tuple[Target, ...]
    """The live mounts among them that have this value, and should have more."""


def contested_values(facts: Facts) -> Iterator[ContestedValue]:
    """Yield the contests that NFS104 reports."""
    daemon = facts.system.daemon
    # Once it is enabled, the service masks the distribution's rules.
    masks_stock = not (daemon.enabled or daemon.active) and (daemon.masks_rules or not daemon.installed)
    overtaken, broken_lines = overtaken_rules(facts), _lines_of(broken_rules(facts))
    for rival in other_writers(facts):
        objectors = tuple(target for target in rival.targets if not agrees(facts, target, rival))
        lost = tuple(target for target in objectors if _has_too_little(target, rival.kb))
        if not objectors or rival.rule in broken_lines:
            continue
        renamed = [early.kb for early, late, _ in overtaken if (late.file, late.line) == rival.rule]
        repaired = all(any(kb and fits_policy(facts, target, kb) for kb in renamed) for target in objectors)
        if not repaired and not (lost and rival.stock and masks_stock):
            yield ContestedValue(rival, objectors, lost)


def _has_too_little(target: Target, kb: int) -> bool:
    """Whether a live mount has this value, and should have a larger one now."""
    return target.superblock is not None and target.superblock.read_ahead_kb == kb < (present_kb(target) or 0)


@rule("NFS105", "udev-rule-broken", ERROR, source=Manual.UDEV)
def broken(facts: Facts) -> Iterator[Fault]:
    """Yield rules with another effect than their author meant, with all other defects of their files.

    A file that hides a packaged file, or has an overtaken rule, has one finding and one remedy. A script
    that a rule starts is advice: its conditions are not judged.
    """
    yield from _rule_faults(facts, works=False)
    broken_lines = _lines_of(broken_rules(facts))
    for started in started_scripts(facts.udev) if facts.nfs else ():
        if (started.file, started.line) in broken_lines:
            continue
        place, script, values = (
            f"{started.file}:{started.line}",
            started.script,
            " or ".join(started.values),
        )
        reload = then_sudo(RELOAD_UDEV, image=facts.image, mark=";")
        yield Fault(
            place,
            f"udev starts the script {script} for every bdi, which writes {values} to read_ahead_kb: "
            "neither the rule nor the script seems to test the file system, so NFS mounts may get the value",
            observed=f"{script} writes {values}",
            expected="a condition that all NFS mounts meet, or none",
            remedy=f"let {script} leave NFS out (nfstuned explain NFS105 has the line), or remove the rule "
            f"from {place}{reload}",
            severity=ADVICE,
        )


@rule("NFS111", "udev-rule-tolerated", WARNING, source=Manual.UDEV)
def tolerated(facts: Facts) -> Iterator[Fault]:
    """Yield rules that work although udev complains of them, with all other defects of their files."""
    return _rule_faults(facts, works=True)


def _rule_faults(facts: Facts, *, works: bool) -> Iterator[Fault]:
    overtaken = {(early.file, early.line): (late, values) for early, late, values in overtaken_rules(facts)}
    hidden = {file.path: hidden for file, hidden in _masking_files(facts)}
    for path, defective in broken_rules(facts):
        if defective.works is not works:
            continue
        own_lines = _lines_of([(path, defective)])
        late, values = next((overtaken[place] for place in own_lines if place in overtaken), (None, []))
        more = (
            [f"the file also hides {' and '.join(hidden[path])} of the same name"] if path in hidden else []
        )
        # Of a rule that works this is the whole loss.
        own = "this rule" if works else "it"
        in_conf = ""
        if late is not None:
            more.append(f"{late.file}, which sorts after {own}, overwrites its value with {_kib(values)}")
            in_conf = _in_configuration(facts, late, ", or ")
        elsewhere = f"remove {path}" if path in hidden else f"remove the rule from {path}"
        repair = (
            "write it in one line with a condition that only NFS meets (nfstuned explain NFS105), and with "
            "the number for NFS"
        )
        if defective.repair:
            repair = f"write {defective.repair} in {path}:{defective.line}"
        elif defective.sign:
            repair = f"write ${defective.sign} instead of {defective.sign} in {path}:{defective.line}"
        named = f", and {_rename(path, facts)}" if more else ""
        reload = then_sudo(RELOAD_UDEV, image=facts.image, mark=";")
        lost = any(has_lost(facts, target, defective.kb) for target in facts.nfs)
        yield Fault(
            f"{path}:{defective.line}",
            "; ".join((*more, defective.message) if works else (defective.message, *more)),
            observed=defective.defect,
            expected="one line, $$ for a program's own $, and a condition that only NFS meets",
            remedy=f"{repair}{named}; or {elsewhere}, and {enable(facts, facts.system.daemon, SERVICE)}"
            f"{in_conf}{reload}{_APPLY if lost else ''}",
            severity=ADVICE if works and not more else None,
        )


def _kib(values: Sequence[int]) -> str:
    return f"{' or '.join(map(str, values))} KiB"


def _in_configuration(facts: Facts, late: RuleWriter, before: str) -> str:
    """Return how nfsrahead's rule writes the policy's values by its configuration; "" where it cannot."""
    rule = late.file, late.line
    rivals = [
        rival
        for rival in other_writers(facts)
        if rival.rule == rule and not all(agrees(facts, target, rival) for target in rival.targets)
    ]
    lines = [rival.configuration for rival in rivals]
    return f"{before}{', and '.join(lines)}" if lines and all(lines) else ""


def has_lost(facts: Facts, target: Target, meant_kb: int | None) -> bool:
    """Whether a live mount has too little only because a rule does not write the value that it should."""
    superblock = target.superblock
    if meant_kb is None or superblock is None or superblock.read_ahead_kb is None:
        return False
    return _has_too_little(target, superblock.read_ahead_kb) and fits_policy(facts, target, meant_kb)


@lru_cache(maxsize=1)
def broken_rules(facts: Facts) -> tuple[tuple[str, BrokenRule], ...]:
    """Return the broken rules, each with its file."""
    writers = rule_writers(facts)
    nfs = {(writer.file, writer.line) for writer in writers}
    everywhere: dict[str, dict[int, str]] = {}
    for writer in rule_writers(facts, _DISK):
        # A rule for NFS that writes to a disk's bdi as well writes to every bdi.
        if (writer.file, writer.line) in nfs and writer.kb is not None and not unsure(facts.udev, writer):
            everywhere.setdefault(writer.file, {})[writer.line] = writer.value
    # A rule for other events is right where another rule writes at add; nfs-utils' brings no such pair.
    paired = any(not is_nfsrahead(writer) for writer in writers)
    changing = {(writer.file, writer.line) for writer in rule_writers(facts, _CHANGED)} - nfs
    return tuple(
        (file.path, rule)
        for file in facts.udev
        if is_about_read_ahead(file.text)
        for rule in find_broken(
            file.text,
            everywhere.get(file.path, {}),
            None if paired else frozenset(line for path, line in changing if path == file.path),
            file.absent,
        )
    )


def _lines_of(rules: Sequence[tuple[str, BrokenRule]]) -> dict[tuple[str, int], None]:
    """Return the lines of broken rules, each with its file."""
    return {(path, line): None for path, rule in rules for line in range(rule.line, rule.last + 1)}


@rule("NFS106", "udev-rule-masked", WARNING, needs=(HOST,), source=Manual.UDEV)
def masking(facts: Facts) -> Iterator[Fault]:
    """Yield files that hide a packaged file of the same name, unless NFS105 reports their rules."""
    broken_files = {path for path, _ in broken_rules(facts)}
    for file, hidden in _masking_files(facts):
        if file.path in broken_files:
            continue
        lost = ""
        if _is_nfs_rules(file):
            settings = dict.fromkeys(each.file for each in facts.writers if each.section == NFSRAHEAD)
            lost = f", and neither has [nfsrahead] of {some(list(settings)) or '/etc/nfs.conf'}"
        yield Fault(
            file.path,
            f"this file hides {' and '.join(hidden)} of the same name from udev: the rules that a package "
            f"brings and updates there have no effect{lost}",
            observed=f"{hidden[0]} is hidden",
            expected="a name of its own",
            remedy=_unhide_remedy(file, hidden[0], facts),
        )


def _masking_files(facts: Facts) -> Iterator[tuple[UdevFile, Sequence[str]]]:
    """Yield files that do harm by hiding, and the packaged files of the same name."""
    for file in facts.udev:
        hidden = [path for path in file.hides if path.startswith(_PACKAGED)]
        if hidden and _hiding_does_harm(facts, file):
            yield file, hidden


def _hiding_does_harm(facts: Facts, file: UdevFile) -> bool:
    """Whether hiding the packaged file loses something.

    A file with rules does harm where it is 99-nfs.rules or about read-aheads. It does none where it is a copy
    of the hidden rule, which a mask's text recommends, or writes a value for every NFS mount in place of
    99-nfs.rules and nfs.conf has no [nfsrahead]. nfstuned's own mask does where it hides 99-nfs.rules and an
    administrator has set [nfsrahead]. Any other file without a rule does where nfs.conf has [nfsrahead] and
    no nfstuned.service does the work. A file that could not be read is left alone.
    """
    if file.unread:
        return False
    hides_nfs = _is_nfs_rules(file)
    expected = hides_nfs and any(writer.section == NFSRAHEAD for writer in facts.writers)
    if parse_udev_rules(file.text).rules:
        writers = [writer for writer in file_writers([file]) if writer.kb is not None]
        replaces = hides_nfs and not expected and any(reaches_all(facts.udev, writer) for writer in writers)
        return not (is_copy(file) or replaces) and (hides_nfs or is_about_read_ahead(file.text))
    if is_mask(file.text):
        return hides_nfs and set_by_administrator(facts.writers) is not None
    daemon = facts.system.daemon
    return expected and not (daemon.enabled or daemon.active)


def _unhide_remedy(file: UdevFile, hidden: str, facts: Facts) -> str:
    if is_mask(file.text) and not facts.image:
        return f"sudo systemctl reload {SERVICE}, which masks the rule only if nfs.conf sets nothing"
    if not parse_udev_rules(file.text).rules:
        return sudo("rm", file.path, folder=facts.folder) + then_sudo(RELOAD_UDEV, image=facts.image)
    path = hidden if file.path.startswith(_PACKAGED) else file.path
    return _rename(path, facts) + then_sudo(RELOAD_UDEV, image=facts.image)


def _is_nfs_rules(file: UdevFile | RuleWriter) -> bool:
    path = file.path if isinstance(file, UdevFile) else file.file
    return path.endswith(f"/{NFS_RULES}")


@rule("NFS112", "udev-file-unread", WARNING, needs=(HOST,), source=Manual.UDEV)
def unread(facts: Facts) -> Iterator[Fault]:
    """Yield files with a rule about the read-ahead that udev does not read, because of their names."""
    for writer in _unread_writers(facts):
        folder, _, name = writer.file.rpartition("/")
        # It sorts after 99-nfs.rules, and so hides no file of that name.
        wanted = f"{name.partition('.')[0]}.rules"
        wanted = wanted if wanted > NFS_RULES else f"99-read-ahead-{wanted}"
        lost = any(has_lost(facts, target, writer.kb) for target in facts.nfs)
        yield Fault(
            writer.file,
            f"udev reads only files with names in .rules: the rule in {name}, which would give NFS mounts "
            f"{writer.value} KiB, has no effect",
            observed=name,
            expected=wanted,
            remedy=f"{sudo('mv -n', writer.file, f'{folder}/{wanted}', folder=facts.folder)}"
            f"{then_sudo(RELOAD_UDEV, image=facts.image)}{_APPLY if lost else ''}; or remove it, and "
            f"{enable(facts, facts.system.daemon, SERVICE)}",
        )


def _unread_writers(facts: Facts) -> list[RuleWriter]:
    """Return the last rule of each file that was meant to be read and would write a value."""
    read = {_stem(file.path) for file in facts.udev}
    writers: list[RuleWriter] = []
    for file in facts.udev_unread:
        name = file.path.rpartition("/")[2]
        aside = name.startswith((".", "README")) or name.endswith(_LEFT_ASIDE) or ".ucf-" in name
        if not aside and _stem(file.path) not in read and is_about_read_ahead(file.text):
            writers += [writer for writer in file_writers([file]) if writer.kb is not None][-1:]
    return writers


def _stem(path: str) -> str:
    """Return a path up to the first dot of its name, which a file and its other versions have in common."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}"


def lost_kbs(facts: Facts) -> list[int]:
    """Return the values in KiB that broken rules and unread files should have written."""
    broken_kbs = [rule.kb for _, rule in broken_rules(facts)]
    return [kb for kb in (*broken_kbs, *(each.kb for each in _unread_writers(facts))) if kb is not None]


@rule("NFS107", "udev-rule-outrun", WARNING, needs=(HOST,), source=Manual.UDEV)
def outrun(facts: Facts) -> Iterator[Fault]:
    """Yield rules with a value that nfs-utils' rule overwrites, because its file comes later.

    NFS105 reports both where the rule itself is broken.
    """
    defective = broken_rules(facts)
    broken_lines = _lines_of(defective)
    for writer, winner, values in overtaken_rules(facts):
        if (writer.file, writer.line) in broken_lines:
            continue
        others = [str(each.line) for path, each in defective if path == writer.file]
        first = f"repair line {some(others)} of {writer.file}, then " if others else ""
        lost = any(_has_too_little(target, kb) for target in facts.nfs for kb in values)
        yield Fault(
            f"{writer.file}:{writer.line}",
            (
                f"this rule writes {writer.kb} KiB, and then {winner.file}, which sorts after it, writes "
                f"{_kib(values)}"
            ),
            observed=_kib(values),
            expected=f"{writer.kb} KiB",
            remedy=f"{first}{_rename(writer.file, facts)}"
            f"{_in_configuration(facts, winner, '; or remove the rule, and ')}"
            f"{then_sudo(RELOAD_UDEV, image=facts.image)}{_APPLY if lost else ''}",
        )


@lru_cache(maxsize=1)
def overtaken_rules(facts: Facts) -> tuple[tuple[RuleWriter, RuleWriter, list[int]], ...]:
    """Return the rules that nfs-utils' rule overwrites, each with that rule and its values in KiB."""
    sure = [writer for writer in rule_writers(facts) if reaches_all(facts.udev, writer)]
    if not sure or not (is_nfsrahead(sure[-1]) or _is_nfs_rules(sure[-1])):
        return ()
    *earlier, winner = sure
    wins = set() if winner.kb is None else {winner.kb}
    if is_nfsrahead(winner):
        # Where nothing is mounted yet, either version may come.
        kinds = {fstype_of(target) for target in facts.nfs} or {"nfs", "nfs4"}
        wins = {nfsrahead_kb(facts, kind)[0] for kind in kinds}
    return tuple(
        (writer, winner, values)
        for writer in earlier
        if writer.kb is not None and (values := sorted(wins - {writer.kb})) and writer.file != winner.file
    )


def _rename(path: str, facts: Facts) -> str:
    """Return the command for a name that sorts after 99-nfs.rules; a package's file is copied to /etc.

    The new name ends with the old, so that several files keep their order.
    """
    folder, _, name = path.rpartition("/")
    verb, folder = ("cp", "/etc/udev/rules.d") if path.startswith(_PACKAGED) else ("mv", folder)
    return sudo(f"{verb} -n", path, f"{folder}/99-read-ahead-{name}", folder=facts.folder)
