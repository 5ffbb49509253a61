"""Rules NFS1xx: the read-ahead of superblocks, and who else writes it."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.readahead.evidence import KERNEL_KB, WASTE_RATIO, Use, judge, reads_of
from nfstuned.core.readahead.writers import (
    agrees,
    fits,
    kind_of,
    names,
    nfsrahead_kb,
    profile_of,
    rivals,
    wanted_kb,
)
from nfstuned.core.rules.remedies import unmask
from nfstuned.core.udev.faults import find_broken, is_about_read_ahead
from nfstuned.core.udev.mask import set_by_administrator
from nfstuned.core.udev.writers import in_force, is_nfsrahead, reaches_all, rule_writers, unsure
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault
from nfstuned.model.masks import is_mask
from nfstuned.model.policy import MOST_KB
from nfstuned.model.requests import NFSRAHEAD
from nfstuned.model.udev import RuleWriter, UdevEvent, UdevFile
from nfstuned.parse.udev.rules import parse_udev_rules

_DISK = UdevEvent(kernel="8:0", read_ahead_kb="128")
"""A disk as most are, with the kernel's own default (VM_READAHEAD_PAGES)."""
_PACKAGED = ("/usr/lib/", "/lib/")
_ADMINISTRATORS = "/etc/udev/rules.d"
_NFS_RULES = "99-nfs.rules"
_SERVICE = "nfstuned.service"


def contested(facts: Facts) -> Iterator[Fault]:
    """Yield what else writes a value that the policy does not want for mounts of this host."""
    for rival in rivals(facts):
        against = [target for target in rival.targets if not agrees(facts, target, rival)]
        if not against:
            continue
        wanted = sorted({kb for target in against if (kb := wanted_kb(target)) is not None})
        values = " or ".join(f"{kb} KiB" for kb in wanted)
        yield Fault(
            rival.subject,
            f"{rival.program} writes a read-ahead of {rival.kb} KiB where the policy wants {values} "
            f"({names(against)}): whoever writes last wins",
            observed=f"{rival.kb} KiB",
            expected=values,
            remedy=rival.remedy,
            source=rival.source,
        )


def broken(facts: Facts) -> Iterator[Fault]:
    """Yield rules that udev reads as something else than what they mean."""
    everywhere = _everywhere(facts)
    for file in facts.udev:
        if not is_about_read_ahead(file.text):
            continue
        mine = {writer.line: writer.value for writer in everywhere if writer.file == file.path}
        for rule in find_broken(file.text, mine):
            yield Fault(
                f"{file.path}:{rule.line}",
                rule.message,
                observed=rule.defect,
                expected="one line, $$ for a program's own $, and a condition that only NFS meets",
                remedy=f"remove the rule from {file.path} and enable nfstuned.service, or write it as in "
                "nfstuned's 99-nfstuned.rules; then sudo udevadm control --reload",
            )


def _everywhere(facts: Facts) -> list[RuleWriter]:
    """Return the rules that write to a disk's bdi as they do to that of an NFS mount, whatever it is."""
    nfs = {(writer.file, writer.line) for writer in rule_writers(facts)}
    disks = [writer for writer in rule_writers(facts, _DISK) if (writer.file, writer.line) in nfs]
    return [writer for writer in disks if writer.kb is not None and not unsure(facts.udev, writer)]


def masked(facts: Facts) -> Iterator[Fault]:
    """Yield files that hide a packaged one of the same name."""
    for file in facts.udev:
        hidden = [path for path in file.hides if _is_packaged(path)]
        if hidden and _matters(facts, file):
            yield Fault(
                file.path,
                f"this file hides {' and '.join(hidden)} of the same name, which udev never reads: "
                "what a package brings and updates there has no effect"
                + (", and neither has [nfsrahead] of /etc/nfs.conf" if _is_nfs_rules(file) else ""),
                observed=f"{hidden[0]} is hidden",
                expected="a name of its own",
                remedy=_unhide(file, hidden[0]),
            )


def _matters(facts: Facts, file: UdevFile) -> bool:
    """Whether a hidden file is missed.

    One without a rule was made to hide. It does harm where nfs.conf still counts on what is hidden, and
    nfstuned does not do the work instead, or masked it before nfs.conf said so.
    """
    if parse_udev_rules(file.text).rules:
        return _is_nfs_rules(file) or is_about_read_ahead(file.text)
    if is_mask(file.text):
        return _is_nfs_rules(file) and set_by_administrator(facts.writers) is not None
    daemon = facts.system.daemon
    counted_on = _is_nfs_rules(file) and any(writer.section == NFSRAHEAD for writer in facts.writers)
    return counted_on and not (daemon.enabled or daemon.active)


def _unhide(file: UdevFile, hidden: str) -> str:
    if is_mask(file.text):
        return f"sudo systemctl reload {_SERVICE}, which masks the rule only where nfs.conf says nothing"
    if not parse_udev_rules(file.text).rules:
        return f"sudo rm {file.path}, then sudo udevadm control --reload"
    return _rename(hidden if _is_packaged(file.path) else file.path)


def _is_packaged(path: str) -> bool:
    return path.startswith(_PACKAGED)


def _is_nfs_rules(file: UdevFile) -> bool:
    return file.path.endswith("/" + _NFS_RULES)


def outrun(facts: Facts) -> Iterator[Fault]:
    """Yield rules whose value nfs-utils' rule overwrites, because its file comes later."""
    sure = [writer for writer in rule_writers(facts) if reaches_all(facts.udev, writer)]
    if not sure or not (is_nfsrahead(sure[-1]) or sure[-1].file.endswith("/" + _NFS_RULES)):
        return
    *earlier, winner = sure
    for writer in earlier:
        values = sorted(kb for kb in _writes(facts, winner) if kb != writer.kb)
        if writer.kb is not None and values and writer.file != winner.file:
            said = " or ".join(str(kb) for kb in values)
            yield Fault(
                f"{writer.file}:{writer.line}",
                f"this rule writes {writer.kb} KiB, and {winner.file}, which sorts after it, then {said} KiB",
                observed=f"{said} KiB",
                expected=f"{writer.kb} KiB",
                remedy=_rename(writer.file),
            )


def _rename(path: str) -> str:
    """Return the remedy for a file's name: one that sorts after nfs-utils' own; a package's file stays.

    The name is the file's alone, and sorts among such names as the old one did.
    """
    folder, _, name = path.rpartition("/")
    verb, folder = ("cp", _ADMINISTRATORS) if _is_packaged(path) else ("mv", folder)
    return f"sudo {verb} -n {path} {folder}/99-read-ahead-{name}, then sudo udevadm control --reload"


def _writes(facts: Facts, writer: RuleWriter) -> set[int]:
    """Return what a rule writes for the mounts of this host, or for either version where none is known."""
    if not is_nfsrahead(writer):
        return {writer.kb} if writer.kb is not None else set()
    kinds = {kind_of(target) for target in facts.nfs} or {"nfs", "nfs4"}
    return {nfsrahead_kb(facts, kind)[0] for kind in kinds}


_OPTIMISED = (5, 4, 0)


def below_policy(facts: Facts) -> Iterator[Fault]:
    """Yield mounts whose read-ahead is below their profile's; the value counts, never the version."""
    page, later = facts.snapshot.page_kb, f"{unmask(facts.system.daemon, _SERVICE, 'systemctl')}systemctl"
    for target, kb in _values(facts):
        wanted = (wanted_kb(target) or 0) // page * page
        if page <= kb < wanted:
            profile = profile_of(facts, target).name
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB and the profile {profile} asks for {wanted} KiB: "
                f"sequential reads wait for the server again and again{_why_128(facts, kb)}",
                observed=f"{kb} KiB",
                expected=f"{wanted} KiB",
                remedy=f"sudo nfstuned apply, and {later} enable --now {_SERVICE} for later mounts",
                source=_said_by(facts, profile, "read_ahead_kb"),
            )


def excessive(facts: Facts) -> Iterator[Fault]:
    """Yield mounts whose read-ahead is above what their profile allows, or above every sensible value."""
    for target, kb in _values(facts):
        profile = profile_of(facts, target)
        most = profile.read_ahead_max_kb or MOST_KB
        if kb > most:
            wanted = wanted_kb(target) or most
            bound = (
                f"the profile {profile.name} allows" if profile.read_ahead_max_kb else "make sense anywhere"
            )
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB, more than the {most} KiB that {bound}: memory and "
                f"bandwidth go to data that nobody asked for{_why_bytes(kb, wanted, most)}",
                observed=f"{kb} KiB",
                expected=f"at most {most} KiB",
                remedy=_write(target, wanted),
                source=_said_by(facts, profile.name, "read_ahead_max_kb"),
            )


def below_page(facts: Facts) -> Iterator[Fault]:
    """Yield mounts without any read-ahead."""
    page = facts.snapshot.page_kb
    for target, kb in _values(facts):
        if kb < page:
            wanted = wanted_kb(target)
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB, less than one page of {page} KiB: each READ fetches a single page, "
                "however large rsize is",
                observed=f"{kb} KiB",
                expected=f"{wanted} KiB" if wanted else f"at least {KERNEL_KB} KiB",
                remedy=_write(target, wanted or KERNEL_KB),
            )


def shared_conflict(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks whose mounts ask for different values, once each."""
    sharing: dict[tuple[str, int | None], list[Target]] = {}
    for target, _ in _values(facts):
        if target.superblock is not None and target.decision is not None and target.decision.conflict:
            sharing.setdefault((target.superblock.device, target.superblock.bdi), []).append(target)
    for (device, _), targets in sharing.items():
        profiles = " and ".join(sorted({target.profile.name for target in targets}))
        yield Fault(
            targets[0].subject,
            f"{names(targets)} share one superblock ({device}) and so one read-ahead, but their profiles "
            f"{profiles} ask for different values: the largest counts for all",
            observed=profiles,
            expected="one profile",
            remedy="give them one profile in /etc/nfstuned/nfstuned.toml, or mount one with nosharecache",
        )


def wasted(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks of which far more was fetched than programs read."""
    samples = facts.measured.samples if facts.measured else ()
    first = {target.superblock.device: target for target, _ in reversed(_values(facts)) if target.superblock}
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
            remedy=f"give {target.point} a profile with a smaller read_ahead_kb and lower = true in "
            "/etc/nfstuned/nfstuned.toml, then sudo nfstuned apply, and measure again",
        )


def not_persistent(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that are right now, while nothing on this host would make them so at the next mount."""
    if facts.system.daemon.enabled or facts.system.daemon.active or _may_be_set(facts):
        return
    set_kb: dict[str, int] = {}
    for rival in rivals(facts):
        for target in rival.targets:
            set_kb[target.subject] = max(rival.kb, set_kb.get(target.subject, 0))
    for target, kb in _values(facts):
        wanted = wanted_kb(target)
        if wanted is None or wanted <= KERNEL_KB or not fits(facts, target, kb):
            continue
        if set_kb.get(target.subject, 0) >= wanted:
            continue
        yield Fault(
            target.subject,
            f"read-ahead is right at {kb} KiB, but nothing on this host sets it at the next mount: "
            "nfstuned.service is not enabled, and no udev rule or other program writes this value",
            observed="set by hand",
            expected="set at every mount",
            remedy=unmask(facts.system.daemon, _SERVICE) + f"sudo systemctl enable --now {_SERVICE}",
        )


def _may_be_set(facts: Facts) -> bool:
    """Whether the files leave open who sets it: a rule hangs on an unknown program, or the kernel is old."""
    kernel = facts.snapshot.kernel
    if kernel is None or kernel.version < _OPTIMISED:
        return True
    unknown = (
        w for w in in_force(facts) if not reaches_all(facts.udev, w) or (w.kb is None and not is_nfsrahead(w))
    )
    return any(unknown)


def _values(facts: Facts) -> list[tuple[Target, int]]:
    """Return the live NFS mounts whose read-ahead is known, in KiB."""
    return [
        (target, target.superblock.read_ahead_kb)
        for target in facts.nfs
        if target.superblock is not None and target.superblock.read_ahead_kb is not None
    ]


def _write(target: Target, kb: int) -> str:
    device = target.superblock.device if target.superblock else ""
    return f"echo {kb} | sudo tee /sys/class/bdi/{device}/read_ahead_kb, and mend what sets it"


def _why_128(facts: Facts, kb: int) -> str:
    kernel = facts.snapshot.kernel
    if kb != KERNEL_KB or kernel is None:
        return ""
    before = ", as some vendors' older ones do" if kernel.version < _OPTIMISED else ""
    return f"; {kb} is what kernels since 5.4 give every NFS mount{before} (this is {kernel.text})"


def _why_bytes(kb: int, wanted: int, most: int) -> str:
    if not wanted <= kb // 1024 <= most:
        return ""
    return f"; {kb} is {kb // 1024} KiB written in bytes, but the attribute counts in KiB"


def _said_by(facts: Facts, profile: str, key: str) -> str:
    sources = facts.policy.profile(profile).sources
    return next((source.url for source in sources if key in source.keys), "")
