"""Rules NFS4xx: names, addresses, ports and TLS tunnels."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from nfstuned.core.mounts.targets import server_name
from nfstuned.core.nconnect.groups import is_azure_files
from nfstuned.core.policy.endpoint import (
    AZURE_FILES,
    Address,
    all_public,
    as_address,
    is_loopback,
    plain,
    provider_by_name,
    same,
    split_source,
)
from nfstuned.model.facts import Answer, Facts, Reach, Reachable, Target
from nfstuned.model.finding import Fault
from nfstuned.model.mounts import Maker

_LINK = "privatelink"
_NOTHING = Answer("")
_Reaches = dict[tuple[Address | None, int], Reach]
_NOT_TCP = ("udp", "udp6", "rdma", "rdma6")
_WHY = {
    Reachable.REFUSED: "refuses connections",
    Reachable.TIMEOUT: "does not answer",
    Reachable.UNREACHABLE: "cannot be reached",
}


def public(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files at a public address; what has a private endpoint all the same is NFS402."""
    answers = facts.network.by_name
    for target in facts.nfs:
        answer = answers.get(server_name(target), _NOTHING)
        used = _used(target, answer)
        if not _is_azure(target, answer) or not all_public(used) or _link(answer):
            continue
        host = server_name(target)
        what = "leads through a tunnel to" if as_address(host) else f"is of {host}, which is"
        yield Fault(
            target.subject,
            f"the mount {what} the public address {used[0]}: NFS works there only from subnets of the same "
            "region that have a service endpoint, not over peering, and the address may change",
            observed=", ".join(used),
            expected="the address of a private endpoint",
            remedy="create a private endpoint for the storage account's file service in this network, "
            f"link its DNS zone {_zone(host)}, and mount again",
        )


def not_linked(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of a name whose chain passes a privatelink zone and still ends at a public address."""
    answers = facts.network.by_name
    for target in facts.nfs:
        answer = answers.get(server_name(target), _NOTHING)
        used, link = _used(target, answer), _link(answer)
        if not link or not _is_azure(target, answer) or not all_public(used):
            continue
        yield Fault(
            target.subject,
            f"{answer.host} is an alias of {link}, so that it has a private endpoint, but this machine's "
            f"resolver ends at the public address {used[0]}: the private endpoint is not used",
            observed=" -> ".join((answer.host, *answer.chain, used[0])),
            expected="the address of the private endpoint",
            remedy=f"link the private DNS zone {_zone(link)} to this virtual network, or forward it to "
            "168.63.129.16 from a DNS server in there, and mount again",
        )


def by_address(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files by an address, or by a name of the privatelink zone."""
    for target in facts.nfs:
        host = plain(split_source(target.source)[0])
        ordinary = _ordinary(target, host)
        if not ordinary:
            continue
        what = "an address" if as_address(host) is not None else "a name of the privatelink zone"
        yield Fault(
            target.subject,
            f"the source {host} is {what}; the account's ordinary name leads to its private endpoint by "
            "itself, and stays right when that is made anew",
            observed=host,
            expected=ordinary,
            remedy=f"use {ordinary} in {target.origin or 'the mount command'}, unmount and mount again",
        )


def drifted(facts: Facts) -> Iterator[Fault]:
    """Yield live mounts whose address is not among those of their name any more.

    Names of other servers than Azure's may stand for many machines of which each answer names a few. There an
    old address that still serves is no drift. Nor is the address that another live mount still has by its own
    name: two addresses of one NFSv4.1 server are one client to the kernel, and both mounts show the first's.
    """
    answers = facts.network.by_name
    reaches = _by_address(facts)
    current = {as_address(address) for target in facts.nfs if (address := _current(answers, target))}
    for target in facts.nfs:
        address, host = _shown_address(target), plain(split_source(target.source)[0])
        answer = answers.get(host, _NOTHING)
        if address is None or is_loopback(address) or as_address(address) in current:
            continue
        # IPv4 and IPv6 are asked for apart: one without an answer is no change.
        if answer.error or not any(_alike(address, place) for place in answer.addresses):
            continue
        if not _is_azure(target, answer) and not _dead(_tried(reaches, (address,), target.endpoint.port)):
            continue
        yield Fault(
            target.subject,
            f"the mount goes to {address}, and {host} is {', '.join(answer.addresses)} now: a name is "
            "resolved only once, and the mount hangs when the old address no longer answers",
            observed=address,
            expected=", ".join(answer.addresses),
            remedy=f"sudo umount {quote(target.point)} (with -l where that hangs), then mount it again",
        )


def unreachable(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of which no address that was tried opens the port; what is mounted has no replicas."""
    doors = _Doors(facts)
    for target in facts.nfs:
        place, tried = target.endpoint, doors.tried(target)
        if _dead(tried) and (target.live is not None or doors.all_shut(target)):
            what = _WHY[tried[0].state] if len({reach.state for reach in tried}) == 1 else "does not open"
            yield Fault(
                target.subject,
                f"TCP port {place.port} of {place.host} {what}, so that the share cannot be used",
                observed="; ".join(_said(reach) for reach in tried),
                expected=f"TCP port {place.port} open",
                remedy=f"nc -zv {tried[0].address} {place.port}; open the port in the firewalls and network "
                "security groups between this machine and the server",
            )


def unresolved(facts: Facts) -> Iterator[Fault]:
    """Yield mounts whose server's name has no address, by the resolver's own verdict."""
    doors = _Doors(facts)
    for target in facts.nfs:
        answer = doors.answer(target)
        if not _is_nameless(target, answer) or not doors.all_shut(target):
            continue
        link = _link(answer)
        known = f"; its alias {link} has no record in the zone that this machine asks" if link else ""
        works = "the mount lives on the address that it has, and " if target.live is not None else ""
        yield Fault(
            target.subject,
            f"the name {answer.host} does not resolve ({answer.error}){known}: {works}the next mount fails",
            observed=answer.error,
            expected="an address",
            remedy=f"getent hosts {quote(answer.host)}; correct the name or the DNS record",
        )


def _shown_address(target: Target) -> str | None:
    """Return the address that a live mount shows; None for what is only asked for."""
    return target.live.options.get("addr") if target.live is not None else None


def _current(answers: dict[str, Answer], target: Target) -> str | None:
    """Return the address of a live mount that its source has, too: written there, or by its name now."""
    address, host = _shown_address(target), plain(split_source(target.source)[0])
    named = (host, *answers.get(host, _NOTHING).addresses)
    return address if address is not None and any(same(address, place) for place in named) else None


def _ordinary(target: Target, host: str) -> str:
    """Return the name by which Azure Files should be mounted instead of `host`; "" where nothing is wrong."""
    place = target.endpoint
    if as_address(host) is None:
        linked = provider_by_name(host) == AZURE_FILES and f".{_LINK}." in host
        return host.replace(f".{_LINK}.", ".", 1) if linked else ""
    if is_loopback(host) or not is_azure_files(target):
        return ""
    return place.host if as_address(place.host) is None else "ACCOUNT.file.core.windows.net"


class _Doors:
    """What names and ports say of each mount, and of the replicas that automount(8) may mount instead.

    A map's entry may name several servers for one place. All are asked and one that answers is taken, so that
    the others are no loss.
    """

    def __init__(self, facts: Facts) -> None:
        self._answers, self._reaches = facts.network.by_name, _by_address(facts)
        self._replicas: dict[tuple[str, str], list[Target]] = {}
        for target in facts.nfs:
            if _may_be_replica(target):
                self._replicas.setdefault((target.origin, target.point), []).append(target)

    def answer(self, target: Target) -> Answer:
        """Return what the resolver said of a mount's server."""
        return self._answers.get(server_name(target), _NOTHING)

    def tried(self, target: Target) -> tuple[Reach, ...]:
        """Return the attempts that count for a mount: at the address that it has, or at those of its name."""
        place = target.endpoint
        if (target.options.get("proto") or "") in _NOT_TCP or any(
            option in target.options for option in _NOT_TCP
        ):
            return ()
        named = self._answers.get(place.host, _NOTHING).addresses or (place.host,)
        return _tried(self._reaches, (place.address,) if place.address is not None else named, place.port)

    def all_shut(self, target: Target) -> bool:
        """Whether neither a mount nor any replica of it can be mounted."""
        alike = self._replicas[target.origin, target.point] if _may_be_replica(target) else [target]
        return all(_dead(self.tried(mount)) or _is_nameless(mount, self.answer(mount)) for mount in alike)


def _may_be_replica(target: Target) -> bool:
    return target.request is not None and target.request.maker is Maker.AUTOFS


def _is_nameless(target: Target, answer: Answer) -> bool:
    """Whether a mount needs a name that, by the resolver's verdict, has no address."""
    return bool(answer.error) and answer.final and not _is_numeric(target)


def _is_numeric(target: Target) -> bool:
    """Whether it is mounted by an address, which needs no name; a tunnel's own does not count."""
    host, _ = split_source(target.source)
    return as_address(host) is not None and not is_loopback(host)


def _is_azure(target: Target, answer: Answer) -> bool:
    """Whether the server is Azure Files: by its name, by an alias on the way, or behind a tunnel."""
    return target.endpoint.provider == AZURE_FILES or any(
        provider_by_name(name) == AZURE_FILES for name in answer.chain
    )


def _used(target: Target, answer: Answer) -> tuple[str, ...]:
    """Return the addresses that count: a live mount's own while its name still has it, else the name's."""
    own = target.endpoint.address
    if own is not None and (not answer.addresses or any(same(own, address) for address in answer.addresses)):
        return (own,)
    return answer.addresses


def _alike(left: str, right: str) -> bool:
    """Whether both are IPv4 addresses, or both IPv6."""
    return type(as_address(left)) is type(as_address(right))


def _link(answer: Answer) -> str:
    """Return the name of a privatelink zone that a chain passes, "" when it passes none."""
    return next((name for name in answer.chain if f".{_LINK}." in f".{plain(name)}"), "")


def _zone(host: str) -> str:
    """Return the private DNS zone of an endpoint's name: what follows the account, from privatelink on."""
    _, mark, suffix = plain(host).partition(".file.")
    return f"{_LINK}.file.{suffix if mark else 'core.windows.net'}"


def _by_address(facts: Facts) -> _Reaches:
    """Return the attempts to connect by address and port."""
    return {(as_address(attempt.address), attempt.port): attempt for attempt in facts.network.reaches}


def _tried(reaches: _Reaches, addresses: tuple[str, ...], port: int) -> tuple[Reach, ...]:
    """Return the attempts at those of the addresses that were tried; a name was not."""
    keys = ((as_address(address), port) for address in addresses)
    return tuple(reaches[key] for key in keys if key[0] is not None and key in reaches)


def _dead(tried: tuple[Reach, ...]) -> bool:
    """Whether some address was tried, and none opened the port."""
    return bool(tried) and all(reach.state is not Reachable.OPEN for reach in tried)


def _said(reach: Reach) -> str:
    return f"{reach.address}: {reach.detail or reach.state.value}"
