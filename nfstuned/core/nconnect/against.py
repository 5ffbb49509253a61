"""What is against several connections: why a mount stays as it is, and with it all others of its server."""

from __future__ import annotations

from dataclasses import dataclass

from nfstuned.core.mounts.kernels import V4_0_SINCE, knows_nconnect
from nfstuned.core.mounts.options import has_kerberos, security
from nfstuned.core.nconnect.groups import (
    addresses,
    is_azure_files,
    is_private,
    limit,
    protocol,
    requested_nconnect,
    version,
)
from nfstuned.core.policy.endpoint import as_address
from nfstuned.model.facts import Facts, Target
from nfstuned.model.mounts import Result

_ONLY_THERE = "Azure Files supports nconnect over private endpoints only"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no change."""

    reason: str
    result: Result = Result.SKIPPED
    """FAILED where nothing told whether there should be a change."""


def contrary(target: Target, count: int, facts: Facts) -> Refusal | None:
    """Return why a mount that cannot be changed here lets none of its server be; None where it does not.

    What a mount asked for that was made by hand, and of which nothing tells, is no reason.
    """
    reason, asked = against(target, facts), requested_nconnect(target)
    if reason is not None or asked in {None, count}:
        return reason
    number = f"nconnect={asked}" if "nconnect" in target.wanted else "no nconnect"
    return Refusal(f"it asks for {number}")


def against(target: Target, facts: Facts) -> Refusal | None:
    """Return why a mount should not have several connections, or no other number; None where it may."""
    profile = target.profile
    if limit(target) == 1:
        number = f" with NFS {version(target)}" if profile.nconnect_max != 1 else ""
        return Refusal(f"its profile {profile.name} allows one connection{number}")
    if profile.nconnect is not None:
        return unfit(target, facts)
    return Refusal(
        f"its profile {profile.name} names no nconnect, and another profile of the same server does"
    )


def unfit(target: Target, facts: Facts) -> Refusal | None:
    """Return why a mount should not have several connections, whoever asks for them; None where it may."""
    transport = protocol(target)
    if transport != "tcp":
        return Refusal(f"proto={transport}: nconnect is for TCP")
    options = target.wanted if security(target.wanted) else target.options
    if has_kerberos(options):
        return Refusal(f"sec={security(options)}: Kerberos and several connections do not go together")
    if why := _old_kernel(target, facts):
        return Refusal(why)
    return _public(target, facts) if is_azure_files(target) else None


def _old_kernel(target: Target, facts: Facts) -> str:
    release, asked = facts.snapshot.kernel, version(target)
    if release is None:
        return "NFS 4.0 has nconnect only since Linux 5.8" if asked == "4.0" else ""
    if not knows_nconnect(release, facts.snapshot.distribution, asked):
        return f"Linux {release.text} does not know nconnect"
    if asked == "4.0" and release.version < V4_0_SINCE:
        return f"Linux {release.text} ignores nconnect with NFS 4.0"
    return ""


def _public(target: Target, facts: Facts) -> Refusal | None:
    """Return why an endpoint of Azure Files is none for nconnect; None for a private one."""
    private = has_private_endpoint(target, facts)
    if private is None:
        return _open(target, facts)
    return None if private else Refusal(f"{target.endpoint.host} is a public endpoint; {_ONLY_THERE}")


def has_private_endpoint(target: Target, facts: Facts) -> bool | None:
    """Return whether a mount's endpoint is private, by a live mount of its name where nothing else tells."""
    private, host = is_private(target, facts), target.endpoint.host
    if private is not None:
        return private
    seen = (is_private(mount, facts) for mount in facts.nfs if mount.live and mount.endpoint.host == host)
    return next((answer for answer in seen if answer is not None), None)


def _open(target: Target, facts: Facts) -> Refusal:
    """Return why nobody knows whether the endpoint is private."""
    host, places = target.endpoint.host, sorted(addresses(target, facts))
    answer = facts.answers.get(host)
    if not places and as_address(host) is None and not (answer is not None and answer.final):
        why = answer.error if answer is not None else "it was not asked for"
        return Refusal(f"the address of {host} is not known ({why}): try again; {_ONLY_THERE}", Result.FAILED)
    shown = places[0] if places else "no address here"
    if len(places) > 1:
        shown = f"several addresses that are not all of one kind ({', '.join(places)})"
    return Refusal(
        f"{host} leads to {shown}, so that it is open whether it is a private endpoint; {_ONLY_THERE}"
    )
