"""Rules NFS1xx: the read-ahead of superblocks, and who else writes it."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.model.facts import Facts
from nfstuned.model.finding import Fault, Need, Rule, Severity

_OPTIMISED = (5, 4, 0)


def below_policy(facts: Facts) -> Iterator[Fault]:
    """Yield mounts whose read-ahead is below their profile's; the value counts, never the version."""
    for target in facts.nfs:
        superblock, decision = target.superblock, target.decision
        if superblock is None or superblock.read_ahead_kb is None or decision is None or decision.kb is None:
            continue
        wanted = decision.kb - decision.kb % facts.snapshot.page_kb
        if facts.snapshot.page_kb <= superblock.read_ahead_kb < wanted:
            yield Fault(
                target.subject,
                f"read-ahead is {superblock.read_ahead_kb} KiB and the profile {decision.profile} asks for "
                f"{wanted} KiB: sequential reads wait for the server again and again"
                f"{_why_128(facts, superblock.read_ahead_kb)}",
                observed=f"{superblock.read_ahead_kb} KiB",
                expected=f"{wanted} KiB",
                remedy="sudo nfstuned apply, and systemctl enable --now nfstuned.service for later mounts",
                source=_said_by(facts, decision.profile),
            )


def _why_128(facts: Facts, kb: int) -> str:
    kernel = facts.snapshot.kernel
    if kb != 128 or kernel is None or kernel.version < _OPTIMISED:  # noqa: PLR2004 - the kernel's own number
        return ""
    return f"; 128 is what kernels since 5.4 give every NFS mount (this is {kernel.text})"


def _said_by(facts: Facts, profile: str) -> str:
    sources = facts.policy.profile(profile).sources
    return next((source.url for source in sources if "read_ahead_kb" in source.keys), "")


_AZURE = "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance"

RULES: tuple[Rule, ...] = (
    Rule(
        "NFS101",
        "read-ahead-below-policy",
        Severity.WARNING,
        below_policy,
        _AZURE,
        frozenset({Need.LIVE}),
    ),
)
