"""Rules NFS1xx: the read-ahead of superblocks, and who else writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nfstuned.core.readahead.evidence import KERNEL_KB, WASTE_RATIO, Use, judge, reads_of
from nfstuned.core.readahead.writers import (
    Rival,
    agrees,
    fits,
    fstype_of,
    nfsrahead_kb,
    profile_of,
    rivals,
    wanted_kb,
)
from nfstuned.core.rules import sources
from nfstuned.core.rules.remedies import also, enable, give_workload, source_of, unmask
from nfstuned.core.rules.rule import ADVICE, ERROR, INFO, LIVE, SAMPLE, WARNING, rule
from nfstuned.core.udev.faults import BrokenRule, find_broken, is_about_read_ahead
from nfstuned.core.udev.mask import is_copy, set_by_administrator
from nfstuned.core.udev.writers import (
    file_writers,
    in_force,
    is_nfsrahead,
    reaches_all,
    rule_writers,
    runs_unknown,
    unsure,
)
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault
from nfstuned.model.kernel import whole_pages
from nfstuned.model.policy import MOST_KB, RANDOM, WITH, Profile
from nfstuned.model.requests import NFSRAHEAD
from nfstuned.model.shell import RELOAD_UDEV, sudo, then_sudo
from nfstuned.model.udev import RuleWriter, UdevEvent, UdevFile, is_mask
from nfstuned.parse.fields import some
from nfstuned.parse.udev.rules import parse_udev_rules

_DISK = UdevEvent(kernel="8:0", read_ahead_kb="128")
"""A disk as most are, with the kernel's own default (VM_READAHEAD_PAGES)."""
_CHANGED = UdevEvent(action="change")
_PACKAGED = ("/usr/lib/", "/lib/")
_ADMINISTRATORS = "/etc/udev/rules.d"
_NFS_RULES = "99-nfs.rules"
_SERVICE = "nfstuned.service"


@rule(
    "NFS104",
    "read-ahead-contested",
    WARNING,
    source="https://manpages.debian.org/bookworm/nfs-common/nfsrahead.5.en.html",
)
def contested(facts: Facts) -> Iterator[Fault]:
    """Yield what else writes a value that the policy does not want for mounts of this host.

    Silent where NFS105 or NFS107 tells of the same rule, and where NFS101 tells of a distribution's default.
    """
    for contest in _contests(facts):
        rival = contest.rival
        wanted = sorted({kb for target in contest.against if (kb := wanted_kb(target)) is not None})
        values = " or ".join(f"{kb} KiB" for kb in wanted)
        yield Fault(
            rival.subject,
            f"{rival.program} writes a read-ahead of {rival.kb} KiB where the policy wants {values} "
            f"({some([target.subject for target in contest.against])}): whoever writes last wins",
            observed=f"{rival.kb} KiB",
            expected=values,
            remedy=f"{rival.remedy}{'; then sudo nfstuned apply' if contest.lost else ''}",
            source=rival.source,
        )


@dataclass(frozen=True, slots=True)
class _Contest:
    """A value that another program writes, and the mounts for which the policy wants another one."""

    rival: Rival
    against: tuple[Target, ...]
    lost: tuple[Target, ...]
    """Live mounts among them that have just this value, which is less than the policy wants."""


def _contests(facts: Facts) -> Iterator[_Contest]:
    """Yield the contests that NFS104 tells of."""
    outran, broken_lines = _outrun(facts), _lines_of(_broken(facts))
    for rival in rivals(facts):
        against = tuple(target for target in rival.targets if not agrees(facts, target, rival))
        lost = tuple(target for target in against if _has_too_little(target, rival.kb))
        if not against or rival.rule in broken_lines:
            continue
        renamed = [early.kb for early, late, _ in outran if (late.file, late.line) == rival.rule]
        mended = all(any(kb and fits(facts, target, kb) for kb in renamed) for target in against)
        if not mended and not (lost and rival.stock and _masks_stock_rules(facts)):
            yield _Contest(rival, against, lost)


def _has_too_little(target: Target, kb: int) -> bool:
    """Whether a live mount has this value, and the policy wants a larger one."""
    return target.superblock is not None and target.superblock.read_ahead_kb == kb < (wanted_kb(target) or 0)


def _masks_stock_rules(facts: Facts) -> bool:
    """Whether nfstuned.service, once it is enabled, masks what the distribution brings."""
    daemon = facts.system.daemon
    return not (daemon.enabled or daemon.active) and (daemon.masks_rules or not daemon.installed)


@rule("NFS105", "udev-rule-broken", ERROR, source=sources.UDEV)
def broken(facts: Facts) -> Iterator[Fault]:
    """Yield rules that do not do what they mean, with all else that is wrong there.

    A file that hides a packaged one, or whose rule another one outruns, has one finding and one remedy.
    """
    return _told_of_rules(facts, works=False)


@rule("NFS111", "udev-rule-tolerated", WARNING, source=sources.UDEV)
def tolerated(facts: Facts) -> Iterator[Fault]:
    """Yield rules that work although udev complains of them, with all else that is wrong there."""
    return _told_of_rules(facts, works=True)


def _told_of_rules(facts: Facts, *, works: bool) -> Iterator[Fault]:
    outran = {(early.file, early.line): late for early, late, _ in _outrun(facts)}
    hidden = {file.path: hidden for file, hidden in _masked(facts)}
    for path, defective in _broken(facts):
        if defective.works is not works:
            continue
        late = next((outran[place] for place in _lines_of([(path, defective)]) if place in outran), None)
        more = ""
        if path in hidden:
            more += f"; the file also hides {' and '.join(hidden[path])} of the same name"
        if late is not None:
            more += f"; {late.file}, which sorts after it, overwrites its value as well"
        elsewhere = f"remove {path}" if path in hidden else f"remove the rule from {path}"
        name = ", under a name of its own that sorts after 99-nfs.rules" if more else ""
        lost = any(_lost_to(facts, target, defective.kb) for target in facts.nfs)
        yield Fault(
            f"{path}:{defective.line}",
            defective.message + more,
            observed=defective.defect,
            expected="one line, $$ for a program's own $, and a condition that only NFS meets",
            remedy=f"{elsewhere} and enable nfstuned.service, or write it as in "
            f"nfstuned's 99-nfstuned.rules{name}{then_sudo(RELOAD_UDEV, image=facts.image, mark=';')}"
            f"{', and sudo nfstuned apply' if lost else ''}",
        )


def _lost_to(facts: Facts, target: Target, meant_kb: int | None) -> bool:
    """Whether a live mount has too little only because a rule does not write what it was meant to."""
    superblock = target.superblock
    if meant_kb is None or superblock is None or superblock.read_ahead_kb is None:
        return False
    return _has_too_little(target, superblock.read_ahead_kb) and fits(facts, target, meant_kb)


def _broken(facts: Facts) -> list[tuple[str, BrokenRule]]:
    """Return the broken rules and their files."""
    # A rule for NFS that writes to a disk's bdi as well writes to that of everything.
    nfs = {(writer.file, writer.line) for writer in rule_writers(facts)}
    disks = [writer for writer in rule_writers(facts, _DISK) if (writer.file, writer.line) in nfs]
    everywhere = [writer for writer in disks if writer.kb is not None and not unsure(facts.udev, writer)]
    # A rule for other events is no mistake beside one for a new mount's own; nfs-utils' brings no such pair.
    paired = any(not is_nfsrahead(writer) for writer in rule_writers(facts))
    changing = {(writer.file, writer.line) for writer in rule_writers(facts, _CHANGED)} - nfs
    return [
        (file.path, rule)
        for file in facts.udev
        if is_about_read_ahead(file.text)
        for rule in find_broken(
            file.text,
            {writer.line: writer.value for writer in everywhere if writer.file == file.path},
            None if paired else frozenset(line for path, line in changing if path == file.path),
        )
    ]


def _lines_of(rules: Sequence[tuple[str, BrokenRule]]) -> dict[tuple[str, int], None]:
    """Return the lines that broken rules stand on, each with its file."""
    return {(path, line): None for path, rule in rules for line in range(rule.line, rule.last + 1)}


@rule("NFS106", "udev-rule-masked", WARNING, source=sources.UDEV)
def masked(facts: Facts) -> Iterator[Fault]:
    """Yield files that hide a packaged one of the same name; not where NFS105 tells of their rules."""
    broken_files = {path for path, _ in _broken(facts)}
    for file, hidden in _masked(facts):
        if file.path not in broken_files:
            yield Fault(
                file.path,
                f"this file hides {' and '.join(hidden)} of the same name, which udev never reads: "
                "what a package brings and updates there has no effect"
                + (
                    f", and neither has [nfsrahead] of {_configured_in(facts)}" if _is_nfs_rules(file) else ""
                ),
                observed=f"{hidden[0]} is hidden",
                expected="a name of its own",
                remedy=_unhide_remedy(file, hidden[0], image=facts.image),
            )


def _configured_in(facts: Facts) -> str:
    """Name the files that set [nfsrahead], or the file that would."""
    files = dict.fromkeys(writer.file for writer in facts.writers if writer.section == NFSRAHEAD)
    return some(list(files)) or "/etc/nfs.conf"


def _masked(facts: Facts) -> Iterator[tuple[UdevFile, Sequence[str]]]:
    """Yield files that do harm by what they hide, and the packaged files of the same name."""
    for file in facts.udev:
        hidden = [path for path in file.hides if _is_packaged(path)]
        if hidden and _hiding_does_harm(facts, file):
            yield file, hidden


def _hiding_does_harm(facts: Facts, file: UdevFile) -> bool:
    """Whether hiding the packaged file loses something.

    A file with rules does, where it is 99-nfs.rules or about read-aheads, unless it has the very rule that it
    hides: a mask's text says to copy what should stay in force. nfstuned's own mask does where it
    hides 99-nfs.rules and an administrator has set [nfsrahead]. Any other file without a rule does where
    nfs.conf has [nfsrahead] and no nfstuned.service does the work instead. What was not read is left alone.
    """
    if file.unread:
        return False
    if parse_udev_rules(file.text).rules:
        return not is_copy(file) and (_is_nfs_rules(file) or is_about_read_ahead(file.text))
    if is_mask(file.text):
        return _is_nfs_rules(file) and set_by_administrator(facts.writers) is not None
    daemon = facts.system.daemon
    counted_on = _is_nfs_rules(file) and any(writer.section == NFSRAHEAD for writer in facts.writers)
    return counted_on and not (daemon.enabled or daemon.active)


def _unhide_remedy(file: UdevFile, hidden: str, *, image: bool) -> str:
    if is_mask(file.text) and not image:
        return f"sudo systemctl reload {_SERVICE}, which masks the rule only where nfs.conf says nothing"
    if not parse_udev_rules(file.text).rules:
        return sudo("rm", file.path, image=image) + then_sudo(RELOAD_UDEV, image=image)
    return _rename_remedy(hidden if _is_packaged(file.path) else file.path, image=image)


def _is_packaged(path: str) -> bool:
    return path.startswith(_PACKAGED)


def _is_nfs_rules(file: UdevFile) -> bool:
    return file.path.endswith("/" + _NFS_RULES)


_LEFT_ASIDE = (
    *(
        "~",
        ".bak",
        ".orig",
        ".old",
        ".save",
        ".disabled",
        ".off",
        ".swp",
        ".txt",
        ".md",
        ".example",
        ".sample",
    ),
    *(".dist", ".rpmsave", ".rpmnew", ".rpmorig", ".dpkg-old", ".dpkg-dist", ".dpkg-new", ".dpkg-bak"),
)
"""How names end that people and packages give to files which are not to count."""


@rule("NFS112", "udev-file-unread", WARNING, source=sources.UDEV)
def unread(facts: Facts) -> Iterator[Fault]:
    """Yield files with a rule about the read-ahead that udev does not read, because of their names."""
    for writer in _unread_writers(facts):
        folder, _, name = writer.file.rpartition("/")
        wanted = _after_nfs_rules(f"{name.partition('.')[0]}.rules")
        lost = any(_lost_to(facts, target, writer.kb) for target in facts.nfs)
        yield Fault(
            writer.file,
            f"udev reads only files whose names end in .rules, and so never the rule in {name}, which would "
            f"give NFS mounts {writer.value} KiB",
            observed=name,
            expected=wanted,
            remedy=f"{sudo('mv -n', writer.file, f'{folder}/{wanted}', image=facts.image)}"
            f"{then_sudo(RELOAD_UDEV, image=facts.image)}{', and sudo nfstuned apply' if lost else ''}; or "
            f"remove it, and enable {_SERVICE}",
        )


def _unread_writers(facts: Facts) -> list[RuleWriter]:
    """Return the last rule of each file that was meant to be read and would write a value."""
    read = {_stem(file.path) for file in facts.udev}
    found = []
    for file in facts.udev_unread:
        name = file.path.rpartition("/")[2]
        kept = name.startswith((".", "README")) or name.endswith(_LEFT_ASIDE) or ".ucf-" in name
        if kept or _stem(file.path) in read or not is_about_read_ahead(file.text):
            continue
        found += [writer for writer in file_writers([file]) if writer.kb is not None][-1:]
    return found


def _stem(path: str) -> str:
    """Return a path as far as the first dot of its name: that of a file and of its other versions."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{name.partition('.')[0]}"


def _after_nfs_rules(name: str) -> str:
    """Return a name for a rules file that sorts after 99-nfs.rules, and so hides nothing of that name."""
    return name if name > _NFS_RULES else f"99-read-ahead-{name}"


@rule("NFS107", "udev-rule-outrun", WARNING, source=sources.UDEV)
def outrun(facts: Facts) -> Iterator[Fault]:
    """Yield rules whose value nfs-utils' rule overwrites, because its file comes later.

    Where the rule itself is broken NFS105 tells both.
    """
    broken_rules = _broken(facts)
    broken_lines = _lines_of(broken_rules)
    numbers: dict[str, list[str]] = {}
    for path, defective in broken_rules:
        numbers.setdefault(path, []).append(str(defective.line))
    for writer, winner, values in _outrun(facts):
        if (writer.file, writer.line) in broken_lines:
            continue
        kbs = " or ".join(str(kb) for kb in values)
        others = numbers.get(writer.file)
        first = f"mend line {some(others)} of {writer.file}, then " if others else ""
        lost = any(_has_too_little(target, kb) for target in facts.nfs for kb in values)
        yield Fault(
            f"{writer.file}:{writer.line}",
            f"this rule writes {writer.kb} KiB, and {winner.file}, which sorts after it, then {kbs} KiB",
            observed=f"{kbs} KiB",
            expected=f"{writer.kb} KiB",
            remedy=f"{first}{_rename_remedy(writer.file, image=facts.image)}"
            f"{', and sudo nfstuned apply' if lost else ''}",
        )


def _outrun(facts: Facts) -> list[tuple[RuleWriter, RuleWriter, list[int]]]:
    """Return the rules that nfs-utils' rule overwrites, each with that rule and what it writes, in KiB."""
    sure = [writer for writer in rule_writers(facts) if reaches_all(facts.udev, writer)]
    if not sure or not (is_nfsrahead(sure[-1]) or sure[-1].file.endswith("/" + _NFS_RULES)):
        return []
    *earlier, winner = sure
    wins = set() if winner.kb is None else {winner.kb}
    if is_nfsrahead(winner):
        # Where nothing is mounted yet, either version may come.
        kinds = {fstype_of(target) for target in facts.nfs} or {"nfs", "nfs4"}
        wins = {nfsrahead_kb(facts, kind)[0] for kind in kinds}
    return [
        (writer, winner, values)
        for writer in earlier
        if writer.kb is not None and (values := sorted(wins - {writer.kb})) and writer.file != winner.file
    ]


def _rename_remedy(path: str, *, image: bool) -> str:
    """Return the command for a name that sorts after 99-nfs.rules; a package's file is copied to /etc.

    The old name is its end, so that several keep their order.
    """
    folder, _, name = path.rpartition("/")
    verb, folder = ("cp", _ADMINISTRATORS) if _is_packaged(path) else ("mv", folder)
    moved = sudo(f"{verb} -n", path, f"{folder}/99-read-ahead-{name}", image=image)
    return moved + then_sudo(RELOAD_UDEV, image=image)


_FIXED_DEFAULT_SINCE = (5, 4, 0)
"""From this kernel on a mount starts with 128 KiB; before, with what its rsize came to."""


@rule("NFS101", "read-ahead-below-policy", WARNING, needs=(LIVE,), source=sources.PERFORMANCE)
def below_policy(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks whose read-ahead is below their profile's, but for less than a page (`below_page`).

    Where another program's value is what they have, NFS104 or NFS107 tells of it, and where a broken rule is
    why they have no more, NFS105 does, or NFS112 of a file that is not read; a distribution's default that
    writes what the kernel gives as well is told here.
    """
    page, first = facts.snapshot.page_kb, unmask(facts.system.daemon, _SERVICE)
    told = {target.identity for contest in _contests(facts) for target in contest.lost}
    renamed = [(early.kb, values) for early, _, values in _outrun(facts)]
    silent = [rule.kb for _, rule in _broken(facts)] + [writer.kb for writer in _unread_writers(facts)]
    for target, kb, others in _by_superblock(facts):
        wanted = whole_pages(wanted_kb(target) or 0, page)
        if not page <= kb < wanted or target.identity in told:
            continue
        if any(early and fits(facts, target, early) and kb in values for early, values in renamed):
            continue
        if any(_lost_to(facts, target, meant_kb) for meant_kb in silent):
            continue
        profile = profile_of(facts, target)
        yield Fault(
            target.subject,
            f"read-ahead is {kb} KiB and the profile {profile.name} asks for {wanted} KiB: "
            f"sequential reads wait for the server again and again{_why_128(facts, kb)}{_everywhere(others)}",
            observed=f"{kb} KiB",
            expected=f"{wanted} KiB",
            remedy=f"sudo nfstuned apply, and {first}sudo systemctl enable --now {_SERVICE} for later mounts",
            source=source_of(profile, "read_ahead_kb"),
        )


@rule("NFS102", "read-ahead-excessive", WARNING, needs=(LIVE,), source=sources.PERFORMANCE)
def excessive(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks with more read-ahead than their profile allows, or than every sensible value."""
    for target, kb, others in _by_superblock(facts):
        profile = profile_of(facts, target)
        most = _most_kb(profile)
        if kb > most:
            wanted = wanted_kb(target) or most
            bound = (
                f"the profile {profile.name} allows" if profile.read_ahead_max_kb else "make sense anywhere"
            )
            in_bytes = wanted <= kb // 1024 <= most
            why = f"; {kb} is {kb // 1024} KiB written in bytes, but the attribute counts in KiB"
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB, more than the {most} KiB that {bound}: memory and "
                f"bandwidth go to data that nobody asked for{why if in_bytes else ''}{_everywhere(others)}",
                observed=f"{kb} KiB",
                expected=f"at most {most} KiB",
                remedy=_write_remedy(target, wanted),
                source=source_of(profile, "read_ahead_max_kb"),
            )


def _most_kb(profile: Profile) -> int:
    return profile.read_ahead_max_kb or MOST_KB


@rule("NFS103", "read-ahead-below-page", ERROR, needs=(LIVE,), source="mm/readahead.c")
def below_page(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks without any read-ahead."""
    page = facts.snapshot.page_kb
    for target, kb, others in _by_superblock(facts):
        if kb < page:
            wanted = wanted_kb(target)
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB, less than one page of {page} KiB: each READ fetches a single page, "
                f"however large rsize is{_everywhere(others)}",
                observed=f"{kb} KiB",
                expected=f"{wanted} KiB" if wanted else f"at least {KERNEL_KB} KiB",
                remedy=_write_remedy(target, wanted or KERNEL_KB),
            )


@rule("NFS108", "read-ahead-shared-conflict", WARNING, needs=(LIVE,), source="fs/nfs/super.c")
def shared_conflict(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks whose mounts ask for different values, once each, with those that have a say."""
    sharing: dict[tuple[str, int | None], list[Target]] = {}
    for target, _ in _known_read_aheads(facts):
        if target.superblock is not None and target.decision is not None and target.decision.conflict:
            sharing.setdefault((target.superblock.device, target.superblock.bdi), []).append(target)
    for (device, _), every in sharing.items():
        targets = [target for target in every if not target.foreign] or every
        mounts = some([target.subject for target in targets])
        profiles = " and ".join(sorted({target.profile.name for target in targets}))
        yield Fault(
            targets[0].subject,
            f"{mounts} share one superblock ({device}) and so one read-ahead, but their profiles "
            f"{profiles} ask for different values: the largest counts for all",
            observed=profiles,
            expected="one profile",
            remedy="give them one profile in /etc/nfstuned/nfstuned.toml, or mount one with nosharecache",
        )


@rule("NFS109", "read-ahead-wasted", ADVICE, needs=(LIVE, SAMPLE), source="include/linux/nfs_iostat.h")
def wasted(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks of which far more was fetched than programs read."""
    samples = facts.measured.samples if facts.measured else ()
    # A running service keeps the policy that it has read, and would raise again what apply lowers.
    reload = f"sudo systemctl reload {_SERVICE}, then " if facts.system.daemon.active else ""
    first = {
        target.superblock.device: target
        for target, _ in reversed(_known_read_aheads(facts))
        if target.superblock
    }
    for sample in samples:
        reads = reads_of(sample)
        target = first.get(sample.device)
        if reads is None or target is None or judge(reads) is not Use.WASTED:
            continue
        yield Fault(
            target.subject,
            f"in {sample.interval_s:.0f} s the server sent {reads.fetched_bytes / (1 << 20):.0f} MiB, "
            f"{reads.ratio:.1f} times what programs read: a read-ahead of {reads.read_ahead_kb} KiB fetches "
            "what random reads do not want (unless programs map files into memory: the kernel does not count "
            "those reads)",
            observed=f"{reads.ratio:.1f} bytes fetched for each that was read",
            expected=f"below {WASTE_RATIO:.0f}",
            remedy=f"{_give_random(target)}; then {reload}sudo nfstuned apply, and measure again",
        )


def _give_random(target: Target) -> str:
    """Return how all mounts of a superblock get the workload `random`: of theirs the largest counts."""
    mounts = target.superblock.mounts if target.superblock else ()
    points = dict.fromkeys([target.point, *(mount.point for mount in mounts if not mount.foreign)])
    profile = target.profile.name.partition(WITH)[0]
    return give_workload(tuple(points), profile if profile != target.endpoint.provider else "", RANDOM)


@rule(
    "NFS110",
    "read-ahead-not-persistent",
    INFO,
    needs=(LIVE,),
    source="https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-bdi",
)
def not_persistent(facts: Facts) -> Iterator[Fault]:
    """Yield the mounts that are right now, while nothing on this host would make them so at the next mount.

    One finding for all of them: what is missing is the host's. Where a broken rule would have done it, NFS105
    tells, and NFS112 of a file that is not read.
    """
    if facts.system.daemon.enabled or facts.system.daemon.active or _persistence_is_unclear(facts):
        return
    meant = [rule.kb for _, rule in _broken(facts)] + [writer.kb for writer in _unread_writers(facts)]
    silent = [kb for kb in meant if kb is not None]
    set_kb: dict[str, int] = {}
    for rival in rivals(facts):
        for target in rival.targets:
            set_kb[target.subject] = max(rival.kb, set_kb.get(target.subject, 0))
    unset = [
        (target, kb)
        for target, kb in _known_read_aheads(facts)
        if (wanted := wanted_kb(target)) is not None
        and wanted > KERNEL_KB
        and fits(facts, target, kb)
        and kb <= _most_kb(profile_of(facts, target))
        and set_kb.get(target.subject, 0) < wanted
        and not any(fits(facts, target, lost) for lost in silent)
    ]
    if unset:
        chief, kb = unset[0]
        yield Fault(
            chief.subject,
            f"read-ahead is right at {kb} KiB, but nothing on this host sets it at the next mount: "
            "nfstuned.service is not enabled, and no udev rule or other program writes this value"
            f"{also([target for target, _ in unset[1:]])}",
            observed="set by hand",
            expected="set at every mount",
            remedy=enable(facts.system.daemon, _SERVICE),
        )


def _persistence_is_unclear(facts: Facts) -> bool:
    """Whether it cannot be told who sets the next mount's value.

    The kernel is unknown, or too old for one default; or a rule in force may not reach every mount, or writes
    what its text does not tell, or runs a program that may; or a file of rules was not read.
    """
    if any(file.unread for file in facts.udev):
        return True
    kernel = facts.snapshot.kernel
    if kernel is None or kernel.version < _FIXED_DEFAULT_SINCE or runs_unknown(facts.udev):
        return True
    unknown = (
        w for w in in_force(facts) if not reaches_all(facts.udev, w) or (w.kb is None and not is_nfsrahead(w))
    )
    return any(unknown)


def _known_read_aheads(facts: Facts) -> list[tuple[Target, int]]:
    """Return the live NFS mounts whose read-ahead is known, in KiB."""
    return [
        (target, target.superblock.read_ahead_kb)
        for target in facts.nfs
        if target.superblock is not None and target.superblock.read_ahead_kb is not None
    ]


def _by_superblock(facts: Facts) -> list[tuple[Target, int, list[Target]]]:
    """Return a mount of each superblock, its read-ahead in KiB, and the superblock's other mounts.

    The mount is the first that a file asks for: binds of it have none. The host's own go before those of
    other mount namespaces, whose mount points mean nothing here.
    """
    sharing: dict[tuple[str, int | None], list[tuple[Target, int]]] = {}
    for target, kb in _known_read_aheads(facts):
        if target.superblock is not None:
            sharing.setdefault((target.superblock.device, target.superblock.bdi), []).append((target, kb))
    result = []
    for mounts in sharing.values():
        chief, kb = min(mounts, key=lambda pair: (pair[0].foreign, pair[0].request is None))
        result.append((chief, kb, [target for target, _ in mounts if target is not chief]))
    return result


def _everywhere(others: Sequence[Target]) -> str:
    """Name the other mount points of a superblock."""
    return f"; it is mounted at {some([target.point for target in others])} as well" if others else ""


def _write_remedy(target: Target, kb: int) -> str:
    device = target.superblock.device if target.superblock else ""
    return f"echo {kb} | sudo tee /sys/class/bdi/{device}/read_ahead_kb, and mend what sets it"


def _why_128(facts: Facts, kb: int) -> str:
    kernel = facts.snapshot.kernel
    if kb != KERNEL_KB or kernel is None:
        return ""
    before = ", as some vendors' older ones do" if kernel.version < _FIXED_DEFAULT_SINCE else ""
    return f"; {kb} is what kernels since 5.4 give every NFS mount{before} (this is {kernel.text})"
