"""Rules NFS1xx: the read-ahead of superblocks, and who else writes it."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.readaheaduse import KERNEL_KB, WASTE_RATIO, Use, judge, reads_of
from nfstuned.core.remedies import unmask
from nfstuned.core.rivals import fits, names, profile_of, rivals, wanted_kb
from nfstuned.core.rules.udev import BROKEN, CONTESTED, MASKED, OUTRUN
from nfstuned.core.udevinforce import in_force, is_nfsrahead, reaches_all
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault, Need, Rule
from nfstuned.model.policy import MOST_KB
from nfstuned.model.severity import Severity

_OPTIMISED = (5, 4, 0)
_SERVICE = "nfstuned.service"


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


_AZURE = "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance"
_BDI = "https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-bdi"
_LIVE = frozenset({Need.LIVE})

RULES: tuple[Rule, ...] = (
    Rule("NFS101", "read-ahead-below-policy", Severity.WARNING, below_policy, _AZURE, _LIVE),
    Rule("NFS102", "read-ahead-excessive", Severity.WARNING, excessive, _AZURE, _LIVE),
    Rule("NFS103", "read-ahead-below-page", Severity.ERROR, below_page, "mm/readahead.c", _LIVE),
    CONTESTED,
    BROKEN,
    MASKED,
    OUTRUN,
    Rule("NFS108", "read-ahead-shared-conflict", Severity.WARNING, shared_conflict, "fs/nfs/super.c", _LIVE),
    Rule(
        "NFS109",
        "read-ahead-wasted",
        Severity.ADVICE,
        wasted,
        "include/linux/nfs_iostat.h",
        frozenset({Need.LIVE, Need.SAMPLE}),
    ),
    Rule("NFS110", "read-ahead-not-persistent", Severity.INFO, not_persistent, _BDI, _LIVE),
)
