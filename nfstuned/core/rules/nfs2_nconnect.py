"""Rules NFS201 to NFS207: the nconnect that mounts ask for, get, and should not combine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from nfstuned.core.mounts.kernels import knows_nconnect
from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.mounts.requests import find
from nfstuned.core.nconnect.against import against
from nfstuned.core.nconnect.connections import carrying
from nfstuned.core.nconnect.first_mount import bound, contradicted, decider, mend, planned, some, strictest
from nfstuned.core.nconnect.groups import (
    Groups,
    address,
    allowed,
    by_namespace,
    effective,
    groups,
    is_private,
    protocol,
    replaced,
    requested,
    rivals,
    share,
    version,
)
from nfstuned.core.nconnect.live import promising
from nfstuned.core.nconnect.persist_members import unnamed
from nfstuned.core.policy.endpoint import AZURE_FILES, section_name
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault
from nfstuned.parse.etc.fstab import FILE as UTAB


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


def shared_private_endpoint(facts: Facts) -> Iterator[Fault]:
    """Yield private endpoints over which several shares are mounted that ask for different nconnect.

    One finding an endpoint, at the first mount that asks for the most.
    """
    endpoints: dict[tuple[str, int], list[Target]] = {}
    for target in _azure_files(facts, private=True):
        place = address(target, facts) or target.endpoint.host
        endpoints.setdefault((place, target.endpoint.port), []).append(target)
    for (place, _), members in endpoints.items():
        for alike in by_namespace(members):
            if len({share(target) for target in alike}) > 1 and _differ(alike):
                yield _fault(
                    alike,
                    f"shares of {_hosts(alike)} ask for different nconnect over one private "
                    f"endpoint ({place}): {_list(alike)}; the first mount decides for all, and Azure "
                    "supports nconnect of one mount only with a single share in the account",
                    "the same nconnect for every share, or an account for each",
                )


def public_endpoint(facts: Facts) -> Iterator[Fault]:
    """Yield mounts over public endpoints that ask for different nconnect: one finding for all of them.

    The addresses of public endpoints change and are shared by accounts, so that all count as one.
    """
    for alike in by_namespace(_azure_files(facts, private=False)):
        if _differ(alike):
            yield _fault(
                alike,
                f"mounts over public endpoints ask for different nconnect: {_list(alike)}; accounts share "
                "public addresses, so that Azure does not support nconnect of one mount there",
                "the same nconnect for every mount, or private endpoints",
            )


def with_kerberos(facts: Facts) -> Iterator[Fault]:
    """Yield Kerberos mounts with several connections; not of Azure Files, which has no Kerberos (NFS302)."""
    known = groups(facts)
    for target in facts.nfs:
        security, count = target.options.get("sec") or "", effective(target, facts, known) or 1
        certain = all(flavor.startswith("krb5") for flavor in security.split(":"))
        if certain and count > 1 and target.endpoint.provider != AZURE_FILES:
            asking = _asking(target, facts, known)
            yield Fault(
                target.subject,
                f"sec={security} and nconnect={count}{f' ({asking})' if asking else ''}: "
                "connections that share one Kerberos context run ahead of its replay window, which the "
                "server answers by dropping requests",
                observed=f"sec={security}, nconnect={count}",
                expected="nconnect=1, or sec=sys",
                remedy=(f"take nconnect out of {asking}, then " if asking else "")
                + "umount every mount of this server and mount them again without nconnect",
            )


def _asking(target: Target, facts: Facts, known: Groups) -> str:
    """Name the lines that ask for several connections: the mount's, and those of others in its group."""
    mounts = [mount for mount in (target, *rivals(target, facts, known)) if (requested(mount) or 1) > 1]
    return some(list(dict.fromkeys(_asked_by(mount) for mount in mounts)))


def _asked_by(target: Target) -> str:
    """Name the line that gives a mount its nconnect; utab is no file to change."""
    asked = find(target.asked, "nconnect")
    return asked.origin if asked and asked.file != UTAB else f"the options of {target.point}"


def _azure_files(facts: Facts, *, private: bool) -> list[Target]:
    """Return the mounts of Azure Files of which the endpoint's kind and the request are known.

    A live mount and the proposed line for it are one, and what another line replaces is none.
    """
    after, mounted = replaced(facts), {target.request for target in facts.nfs if target.live is not None}
    return [
        target
        for target in facts.nfs
        if target.endpoint.provider == AZURE_FILES
        and (target.live is not None or target.request not in mounted)
        and after.get(target.identity, target).request == target.request
        and requested(target) is not None
        and is_private(target, facts) is private
    ]


def _hosts(members: Sequence[Target]) -> str:
    return " and ".join(sorted({target.endpoint.host for target in members}))


def _differ(members: Sequence[Target]) -> bool:
    return len({requested(target) for target in members}) > 1


def _list(members: Sequence[Target]) -> str:
    """Name the mounts by what they ask for, the most first: "4 on /mnt/a, none on /mnt/b"."""
    asked: dict[int, list[str]] = {}
    for target in members:
        asked.setdefault(requested(target) or 1, []).append(target.point)
    parts = []
    for count in sorted(asked, reverse=True):
        first, *others = asked[count]
        more = f" and {len(others)} more" if others else ""
        parts.append(f"{'none' if count == 1 else count} on {first}{more}")
    return ", ".join(parts)


def _place(target: Target) -> tuple[str, int]:
    return (target.request.file, target.request.line) if target.request else (target.point, 0)


def _fault(members: Sequence[Target], message: str, expected: str) -> Fault:
    most = max(requested(target) or 1 for target in members)
    count = min(most, *map(allowed, members))
    chief = next(target for target in members if requested(target) == most)
    live = sorted({member.options.number("nconnect") or 1 for member in members if member.live is not None})
    others = sorted((member for member in members if requested(member) != count), key=_place)
    lines = dict.fromkeys(target.origin or f"the options of {target.point}" for target in others)
    also = "also " if count == most else ""
    return Fault(
        chief.subject,
        message,
        observed=f"in effect: {', '.join(str(count) for count in live)}" if live else "nothing mounted yet",
        expected=expected,
        remedy=f"put nconnect={count} {also}into {', '.join(lines)}, and mount all of them again",
    )
