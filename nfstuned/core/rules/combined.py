"""Rules NFS205 to NFS207: what nconnect should not be combined with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nfstuned.core.endpoint import AZURE_FILES
from nfstuned.core.groups import (
    Groups,
    address,
    allowed,
    by_namespace,
    effective,
    groups,
    is_private,
    replaced,
    requested,
    rivals,
    share,
)
from nfstuned.core.inherited import some
from nfstuned.core.intent import find
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault, Rule
from nfstuned.model.severity import Severity
from nfstuned.parse.utab import FILE as UTAB


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
    mounts = [one for one in (target, *rivals(target, facts, known)) if (requested(one) or 1) > 1]
    return some(list(dict.fromkeys(_said_by(one) for one in mounts)))


def _said_by(target: Target) -> str:
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
        and after.get(id(target), target).request == target.request
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
    live = sorted({one.options.number("nconnect") or 1 for one in members if one.live is not None})
    others = sorted((one for one in members if requested(one) != count), key=_place)
    lines = dict.fromkeys(target.origin or f"the options of {target.point}" for target in others)
    also = "also " if count == most else ""
    return Fault(
        chief.subject,
        message,
        observed=f"in effect: {', '.join(str(count) for count in live)}" if live else "nothing mounted yet",
        expected=expected,
        remedy=f"put nconnect={count} {also}into {', '.join(lines)}, and mount all of them again",
    )


_AZURE = "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance"
_NETAPP = "https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options"

RULES: tuple[Rule, ...] = (
    Rule("NFS205", "nconnect-shared-private-endpoint", Severity.WARNING, shared_private_endpoint, _AZURE),
    Rule("NFS206", "nconnect-public-endpoint", Severity.WARNING, public_endpoint, _AZURE),
    Rule("NFS207", "nconnect-with-kerberos", Severity.WARNING, with_kerberos, _NETAPP),
)
