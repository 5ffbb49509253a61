"""Rules NFS101 to NFS103 and NFS108 to NFS110: the read-ahead values of superblocks."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.mounts.options import read_ahead_is_small
from nfstuned.core.policy.endpoint import split_source
from nfstuned.core.rules.nfs1_udev import contested_values, has_lost, lost_kbs, overtaken_rules
from nfstuned.core.rules.rivals import fits_policy, other_writers, present_kb, profile_of, wanted_kb
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    INFO,
    LIVE,
    SAMPLE,
    SERVICE,
    WARNING,
    Manual,
    by_superblock,
    enable,
    give_workload,
    name_others,
    rule,
    source_of,
    superblock_key,
    unmask,
)
from nfstuned.core.udev.writers import in_force, is_nfsrahead, reaches_all, runs_unknown
from nfstuned.model.facts import Facts, Fault, Target
from nfstuned.model.kernel import whole_pages
from nfstuned.model.policy import KERNEL_KB, MOST_KB, RANDOM, WORKLOAD_MARK, Profile
from nfstuned.parse.fields import quote, some

_FIXED_DEFAULT_SINCE = (5, 4, 0)
"""From this kernel on a mount starts with 128 KiB; earlier kernels took 15 times its rsize."""


@rule("NFS101", "read-ahead-below-policy", WARNING, needs=(LIVE,), source=Manual.PERFORMANCE)
def low_read_ahead(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks with less read-ahead than their profile's, but for less than a page (`below_page`).

    Other rules report a value that another program wrote (NFS104, NFS107), and a value that is too low for
    want of a working udev rule (NFS105) or a readable file (NFS112). A distribution's default that equals
    the kernel's is reported here.
    """
    yield from _unnamed(facts)
    page, first = facts.snapshot.page_kb, unmask(facts, facts.system.daemon, SERVICE)
    reported = {superblock_key(target) for contest in contested_values(facts) for target in contest.lost}
    renamed = [(early.kb, values) for early, _, values in overtaken_rules(facts)]
    lost = lost_kbs(facts)
    for target, kb in _known_read_aheads(facts):
        wanted = whole_pages(present_kb(target) or 0, page)
        if not page <= kb < wanted or superblock_key(target) in reported:
            continue
        if any(early and fits_policy(facts, target, early) and kb in values for early, values in renamed):
            continue
        if any(has_lost(facts, target, meant_kb) for meant_kb in lost):
            continue
        profile = profile_of(facts, target)
        yield Fault(
            target.subject,
            f"read-ahead is {kb} KiB and {_asker(target, profile)} {wanted} KiB: sequential reads wait for "
            f"the server again and again{_why_128(facts, kb)}",
            observed=f"{kb} KiB",
            expected=f"{wanted} KiB",
            remedy=f"sudo nfstuned apply, and {first}sudo systemctl enable --now {SERVICE} for later mounts",
            source=source_of(profile, "read_ahead_kb"),
        )


def _asker(target: Target, profile: Profile) -> str:
    if target.decision is not None and target.decision.adapted_kb is not None:
        return "the mount's own reads have moved its target to"
    return f"the profile {profile.name} asks for"


def _unnamed(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks with the kernel's value, for which nobody names another: advice.

    The source of such a profile says why it has no number; a profile without both leaves its mounts alone.
    """
    if lost_kbs(facts) or overtaken_rules(facts):
        return
    chosen = [rival for rival in other_writers(facts) if not rival.stock]
    decided = {superblock_key(target) for rival in chosen for target in rival.targets}
    low = [pair for pair in _known_read_aheads(facts) if facts.snapshot.page_kb <= pair[1] <= KERNEL_KB]
    # The text is the same for all superblocks of a server: it names the first, a mount of the host's own.
    firsts = {each.endpoint.host: each for each, _ in sorted(low, key=lambda pair: pair[0].foreign)[::-1]}
    for target, kb in low:
        profile, first = profile_of(facts, target), firsts[target.endpoint.host]
        source, name = source_of(profile, "read_ahead_kb"), profile.name.partition(WORKLOAD_MARK)[0]
        if profile.read_ahead or not source or superblock_key(target) in decided:
            continue
        place = " in its own mount namespace" if first.foreign else ""
        yield Fault(
            target.subject,
            f"read-ahead is {kb} KiB and no vendor names a number for this server: sequential reads over a "
            f"distance may need more{_why_128(facts, kb)}",
            observed=f"{kb} KiB",
            expected="a measured value",
            remedy=f"sudo nfstuned bench {quote(first.point)} --suite read-ahead measures the best{place}; "
            f"then set read_ahead_kb of [profile.{name}], or of a profile that a [[policy]] names",
            source=source,
            severity=ADVICE,
        )


@rule("NFS102", "read-ahead-excessive", WARNING, needs=(LIVE,), source=Manual.PERFORMANCE)
def excessive(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks with more read-ahead than their profile allows, or than every sensible value."""
    for target, kb in _known_read_aheads(facts):
        profile = profile_of(facts, target)
        most = profile.read_ahead_max_kb or MOST_KB
        if kb > most:
            meant, wanted = kb // 1024, present_kb(target)
            in_bytes = (wanted or min(KERNEL_KB, most)) <= meant <= most
            bound = (
                f"the profile {profile.name} allows"
                if profile.read_ahead_max_kb
                else "are of use with any server"
            )
            why = f"; {kb} is {meant} KiB written in bytes, but the attribute counts in KiB"
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB, more than the {most} KiB that {bound}: memory and bandwidth go "
                f"to data that no program reads{why if in_bytes else ''}",
                observed=f"{kb} KiB",
                expected=f"at most {most} KiB",
                remedy=_write_remedy(target, wanted or (meant if in_bytes else min(KERNEL_KB, most))),
                source=source_of(profile, "read_ahead_max_kb"),
            )


@rule("NFS103", "read-ahead-below-page", ERROR, needs=(LIVE,), source="mm/readahead.c")
def below_page(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks without any read-ahead."""
    page = facts.snapshot.page_kb
    for target, kb in _known_read_aheads(facts):
        if kb < page:
            wanted = present_kb(target)
            yield Fault(
                target.subject,
                f"read-ahead is {kb} KiB, less than one page of {page} KiB: each READ fetches a single "
                "page, with any rsize",
                observed=f"{kb} KiB",
                expected=f"{wanted} KiB" if wanted else f"at least {KERNEL_KB} KiB",
                remedy=_write_remedy(target, wanted or KERNEL_KB),
            )


@rule("NFS108", "read-ahead-shared-conflict", WARNING, needs=(LIVE,), source="fs/nfs/super.c")
def shared_conflict(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks with mounts that ask for different values, each with the mounts that decide."""
    known = [target for target, _ in _known_read_aheads(facts)]
    for every in by_superblock(target for target in known if target.decision and target.decision.conflict):
        device = every[0].superblock.device if every[0].superblock else ""
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


_UNLESS_MAPPED = " (unless programs map files into memory: the kernel does not count those reads)"


@rule("NFS109", "read-ahead-wasted", ADVICE, needs=(LIVE, SAMPLE), source="include/linux/nfs_iostat.h")
def wasted(facts: Facts) -> Iterator[Fault]:
    """Yield superblocks for which the server sent far more than programs read."""
    # Few checks measure: the others do without the time that this takes to load.
    from nfstuned.core.samples.evidence import WASTE_RATIO, Use, read_ahead_use, reads_of, waste  # noqa: PLC0415

    samples = facts.measured.samples if facts.measured else ()
    # A running service keeps the policy that it has read, and would raise the values that apply lowers.
    daemon = facts.system.daemon
    reload = f"sudo systemctl reload {SERVICE}, then " if daemon.installed and daemon.active else ""
    first = {
        target.superblock.device: target
        for target, _ in reversed(_known_read_aheads(facts))
        if target.superblock
    }
    for sample in samples:
        reads = reads_of(sample)
        target = first.get(sample.device)
        if reads is None or target is None or read_ahead_use(reads) is not Use.WASTED:
            continue
        # All mounts of a superblock share its value, and so they all need the workload.
        every = target.superblock.mounts if target.superblock else ()
        mounts = [mount for mount in every if not mount.foreign]
        match = {"mount_point": dict.fromkeys([target.point, *(mount.point for mount in mounts)])}
        if target.by_program:
            # Its mount points have names of the moment, such as a pod's.
            exports = dict.fromkeys(split_source(mount.source)[1] for mount in mounts)
            match = {"server": {target.endpoint.address or target.endpoint.host: None}, "export": exports}
        profile = target.profile.name.partition(WORKLOAD_MARK)[0]
        own = profile if profile != target.endpoint.provider else ""
        command = give_workload(match, own, RANDOM)
        yield Fault(
            target.subject,
            f"in {sample.interval_s:.0f} s {waste(reads)}: a read-ahead of {reads.read_ahead_kb} KiB "
            f"fetches data that random reads do not use{'' if reads.of_faults else _UNLESS_MAPPED}",
            observed=f"{reads.calls:.0f} windows for {reads.faults:.0f} page faults"
            if reads.of_faults
            else f"{reads.ratio:.1f} bytes fetched for each byte read",
            expected="at most a page for each fault" if reads.of_faults else f"below {WASTE_RATIO:.0f}",
            remedy=f"{command}; then {reload}sudo nfstuned apply, and measure again",
        )


@rule(
    "NFS110",
    "read-ahead-not-persistent",
    INFO,
    needs=(LIVE,),
    source="https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-bdi",
)
def not_persistent(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with a right value that nothing on this host would set at the next mount, as one finding.

    NFS105 reports a broken rule that should have set it, NFS112 an unread file.
    """
    set_kb = kbs_at_mount(facts)
    if set_kb is None:
        return
    lost_values = lost_kbs(facts)
    unset = [
        (target, kb)
        for target, kb in _known_read_aheads(facts)
        if (wanted := wanted_kb(target)) is not None
        and wanted > KERNEL_KB
        and (kb == present_kb(target) or fits_policy(facts, target, kb))
        and kb <= (profile_of(facts, target).read_ahead_max_kb or MOST_KB)
        and set_kb.get(target.subject, 0) < wanted
        and not any(fits_policy(facts, target, lost) for lost in lost_values)
    ]
    if unset:
        chief, kb = unset[0]
        yield Fault(
            chief.subject,
            f"read-ahead is right at {kb} KiB, but nothing on this host sets it at the next mount: "
            "nfstuned.service is not enabled, and no udev rule or other program writes this "
            f"value{name_others([target for target, _ in unset[1:]])}",
            observed="set by hand",
            expected="set at every mount",
            remedy=enable(facts, facts.system.daemon, SERVICE),
        )


def kbs_at_mount(facts: Facts) -> dict[str, int] | None:
    """Return the value in KiB that other programs give each mount, by its subject, where they give any.

    None where the service does the work, or a value at the next mount is not known.
    """
    if facts.system.daemon.enabled or facts.system.daemon.active or _persistence_is_unclear(facts):
        return None
    set_kb: dict[str, int] = {}
    for rival in other_writers(facts):
        for target in rival.targets:
            set_kb[target.subject] = max(rival.kb, set_kb.get(target.subject, 0))
    return set_kb


def _persistence_is_unclear(facts: Facts) -> bool:
    """Whether the next mount's value is not known.

    The kernel is unknown, or too old for one default; a rule in force may not reach every mount, or writes a
    value that its text does not have, or runs a program that may write; or a rules file could not be read.
    """
    if any(file.unread for file in facts.udev):
        return True
    kernel = facts.snapshot.kernel
    if kernel is None or not read_ahead_is_small(kernel) or runs_unknown(facts.udev):
        return True
    return any(
        not reaches_all(facts.udev, writer) or (writer.kb is None and not is_nfsrahead(writer))
        for writer in in_force(facts)
    )


def _known_read_aheads(facts: Facts) -> list[tuple[Target, int]]:
    """Return the live NFS mounts with a known read-ahead, in KiB."""
    return [
        (target, target.superblock.read_ahead_kb)
        for target in facts.nfs
        if target.superblock is not None and target.superblock.read_ahead_kb is not None
    ]


def _write_remedy(target: Target, kb: int) -> str:
    device = target.superblock.device if target.superblock else ""
    return f"echo {kb} | sudo tee /sys/class/bdi/{device}/read_ahead_kb, and correct its other writer"


def _why_128(facts: Facts, kb: int) -> str:
    kernel = facts.snapshot.kernel
    if kb != KERNEL_KB or kernel is None:
        return ""
    before = ", as some vendors' older kernels do" if kernel.version < _FIXED_DEFAULT_SINCE else ""
    return f"; kernels since 5.4 give every NFS mount {kb} KiB{before} (this is {kernel.text})"
