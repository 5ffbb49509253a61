"""Rules NFS201 to NFS204: the nconnect that mounts ask for, and the one that they get."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from nfstuned.core.backports import knows_nconnect
from nfstuned.core.carrying import carrying
from nfstuned.core.endpoint import section_name
from nfstuned.core.fstabchecks import against
from nfstuned.core.groups import Groups, effective, groups, protocol, requested, version
from nfstuned.core.inherited import bound, contradicted, decider, mend, planned, strictest
from nfstuned.core.intent import find
from nfstuned.core.live import promising
from nfstuned.core.nfsoptions import has_kerberos
from nfstuned.core.persistmembers import unnamed
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault, Rule
from nfstuned.model.severity import Severity
from nfstuned.parse.utab import FILE as UTAB


def below_policy(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with fewer connections than their profile asks for.

    Silent where the advice would be wrong or said already: where a mount of its group has Kerberos (NFS207)
    or a profile that allows no more, where the kernel cannot (NFS203), and where the mount asks for enough
    and another mount decided (NFS204).
    """
    known = groups(facts)
    for target in facts.nfs:
        wanted, got = target.profile.nconnect, carrying(target) or effective(target, facts, known)
        if wanted is None or got is None or got >= wanted or not _may_have_more(target, facts):
            continue
        if contradicted(target, facts, known) and (requested(target) or 0) >= wanted:
            continue
        possible = min(wanted, bound(strictest(target, facts, known)))
        if got >= possible:
            continue
        yield Fault(
            target.subject,
            f"{'one connection carries' if got == 1 else f'{got} connections carry'} everything and the "
            f"profile {target.profile.name} asks for nconnect={wanted}: one connection is one network flow, "
            "with the speed of one",
            observed=_text(target, got),
            expected=f"nconnect={possible}",
            remedy=_raise(target, possible, facts, known) + _staying(target, facts, known),
            source=_said_by(target),
        )


def above_policy(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with more connections than their profile allows; not where NFS204 tells who decided."""
    known = groups(facts)
    for target in facts.nfs:
        most, got = target.profile.nconnect_max, effective(target, facts, known)
        if most is None or got is None or got <= most:
            continue
        if contradicted(target, facts, known) and (requested(target) or 0) <= most:
            continue
        wanted = min(target.profile.nconnect or most, bound(strictest(target, facts, known)))
        change = "" if planned(target, facts) == wanted else f"set nconnect={wanted}{_in_file(target)}"
        yield Fault(
            target.subject,
            f"nconnect={got} is more than the {most} that {target.profile.name} allows: nothing is gained "
            "beyond that, and the server's own queues may suffer",
            observed=f"nconnect={got}",
            expected=f"at most {most}",
            remedy=_then(change, mend(target, facts, known, wanted)),
            source=_said_by(target),
        )


def unsupported_kernel(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that ask for nconnect where the kernel does not know it."""
    release = facts.snapshot.kernel
    shown = any(target.live and "nconnect" in target.live.options for target in facts.nfs)
    if release is None or shown:
        return
    for target in facts.nfs:
        asked = find(target.asked, "nconnect")
        if asked is None or knows_nconnect(release, facts.snapshot.distribution, version(target)):
            continue
        yield Fault(
            target.subject,
            f"nconnect={asked.value} is asked for{_in_file(target)} and Linux {release.text} does not know "
            "it: the mount fails, or has one connection",
            observed=f"Linux {release.text}",
            expected="Linux 5.3, or a distribution's kernel with nconnect",
            remedy=f"update the kernel, or take nconnect out of the options{_in_file(target)}",
        )


def inherited(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that do not get the nconnect that they ask for, since another mount came first."""
    known = groups(facts)
    for target in facts.nfs:
        asked, wanted = contradicted(target, facts, known), requested(target)
        if asked is None or wanted is None:
            continue
        got = effective(target, facts, known)
        gets = "has" if target.live is not None else "would get"
        who = "mount(8) was asked" if asked.file == UTAB else f"{asked.origin} asks"
        yield Fault(
            target.subject,
            f"{who} for nconnect={wanted} and the mount {gets} {got}: "
            f"{decider(target, facts, known)}, because all mounts of one server "
            f"({target.endpoint.address or target.endpoint.host}) share its connections",
            observed=f"nconnect={got}" if got != 1 else "no nconnect",
            expected=f"nconnect={asked.value}",
            remedy=_granted(target, facts, known) + _staying(target, facts, known),
        )


def _granted(target: Target, facts: Facts, known: Groups) -> str:
    """Return how a mount gets what it asks for, or as much of it as its group is good for."""
    wanted, strict = requested(target) or 1, strictest(target, facts, known)
    count = min(wanted, bound(strict))
    if planned(target, facts) == count:
        change = ""
    elif count < wanted:
        profile = f"the profile of {strict.point} allows no more"
        why = f"{strict.point} asks for Kerberos" if has_kerberos(strict.options) else profile
        change = f"set nconnect={count}{_in_file(target)}, as {why}"
    else:
        change = f"put nconnect={count} into {target.origin}"
    return _then(change, mend(target, facts, known, count))


def _staying(target: Target, facts: Facts, known: Groups) -> str:
    """Return how a live mount gets connections and stays mounted, "" where that is known to be refused."""
    if not promising(target, facts, known):
        return ""
    return f"; or, while everything stays mounted: sudo nfstuned apply --live {quote(target.point)}"


def _may_have_more(target: Target, facts: Facts) -> bool:
    """Whether more connections are possible for a mount."""
    release = facts.snapshot.kernel
    possible = release is None or knows_nconnect(release, facts.snapshot.distribution, version(target))
    return possible and protocol(target) == "tcp"


def _raise(target: Target, wanted: int, facts: Facts, known: Groups) -> str:
    """Return how a mount gets more connections: a new line in its file where that does not ask for enough.

    One that was made by hand has no file; nfstuned's own can let the next one ask for it.
    """
    line = planned(target, facts)
    if target.live is None:
        return f"put nconnect={wanted} into the options{_in_file(target)}"
    if line is not None and wanted <= line <= bound(strictest(target, facts, known)):
        return mend(target, facts, known, line)
    by_hand = not target.origin and wanted == target.profile.nconnect
    if by_hand and not against(target, facts) and not unnamed(section_name(target.source)):
        change = "sudo nfstuned apply --persist"
    else:
        change = f"put nconnect={wanted} into the options{_in_file(target)}"
    return _then(change, mend(target, facts, known, wanted))


def _then(*steps: str) -> str:
    return ", then ".join(step for step in steps if step)


def _in_file(target: Target) -> str:
    asked = find(target.asked, "nconnect")
    place = asked.origin if asked and asked.file != UTAB else target.origin
    return f" in {place}" if place else ""


def _text(target: Target, got: int) -> str:
    return f"nconnect={got}" if "nconnect" in target.options else "no nconnect"


def _said_by(target: Target) -> str:
    return next((source.url for source in target.profile.sources if "nconnect" in source.keys), "")


_AZURE = "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance"
_NETAPP = "https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options"

RULES: tuple[Rule, ...] = (
    Rule("NFS201", "nconnect-below-policy", Severity.ADVICE, below_policy, _AZURE),
    Rule("NFS202", "nconnect-above-policy", Severity.WARNING, above_policy, _AZURE),
    Rule("NFS203", "nconnect-unsupported-kernel", Severity.ERROR, unsupported_kernel, _NETAPP),
    Rule("NFS204", "nconnect-inherited", Severity.WARNING, inherited, _NETAPP),
)
