"""The mounts that rules judge: those that exist, and those that only a file knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from nfstuned.core.mounts.requests import Intents, options
from nfstuned.core.policy.decision import Place, agree, choose, place
from nfstuned.core.policy.endpoint import (
    GENERIC,
    as_address,
    asked_port,
    is_loopback,
    plain,
    provider_by_options,
    resolve,
    same,
    split_source,
)
from nfstuned.core.policy.match import matcher
from nfstuned.model.facts import NFS_TYPES, Target
from nfstuned.model.kernel import Mount
from nfstuned.model.mounts import UTAB, Request, Snapshot, Superblock
from nfstuned.model.policy import Policy, Profile

SMB_SUFFIX = "-smb"
_OF_SMB = ("actimeo_min", "max_channels")
"""The keys of a profile that mean mounts over SMB, too."""


def targets(
    snapshot: Snapshot, policy: Policy, others: Sequence[Mount] = (), proposal: str = ""
) -> tuple[Target, ...]:
    """Return every network mount once: live ones by mount point, then what is only asked for.

    `others` are the live mounts that are not NFS. The lines of the file `proposal` stand for themselves, also
    where a mount exists that they are about: it does not have their options yet.
    """
    intents = Intents(snapshot.requests, snapshot.settings, snapshot.tunnels)
    live = [
        *(
            target
            for superblock in snapshot.superblocks
            for target in _live_of(superblock, snapshot, policy, intents)
        ),
        *(_live(mount, place(policy, mount, None, snapshot), policy, intents) for mount in others),
    ]
    known = {target.request for target in live}
    planned = (
        request
        for request in snapshot.requests
        if request.file != UTAB and (request not in known or request.file == proposal)
    )
    return (
        *sorted(live, key=lambda target: target.point),
        *(_asked(snapshot, policy, request, intents) for request in _first(planned)),
    )


def server_name(target: Target) -> str:
    """Return the server's name, or its address where no name is known.

    AZNFS resolves the name itself and leads a tunnel to the address: there the line that asks has the name.
    """
    host = target.endpoint.host
    if as_address(host) is None or target.request is None or target.request.wildcard:
        return host
    return plain(split_source(target.request.source)[0])


def stood_in_for(target: Target) -> bool:
    """Whether a live mount's address is one that AZNFS sends to the server, which has another."""
    host, address = split_source(target.source)[0], target.endpoint.address
    if target.live is None or address is None or as_address(host) is None or is_loopback(host):
        return False
    return not same(host, address)


def with_proposal(snapshot: Snapshot, proposal: str) -> Snapshot:
    """Return the snapshot of a host whose mounts were asked for by a proposed file, where it has them."""
    proposed = {_place(request) for request in snapshot.requests if request.file == proposal}
    kept = (
        request for request in snapshot.requests if request.file != UTAB or _place(request) not in proposed
    )
    return replace(snapshot, requests=tuple(kept))


def _place(request: Request) -> tuple[str, str]:
    """Return source and mount point as they compare: people write trailing slashes, the kernel does not."""
    return request.source.rstrip("/"), request.point.rstrip("/")


def _first(requests: Iterable[Request]) -> Iterator[Request]:
    """Yield requests, of several for one mount only the first: it is the one that counts."""
    seen: set[tuple[str, str]] = set()
    for request in requests:
        place = (request.source, request.point)
        if place not in seen:
            seen.add(place)
            yield request


def _live_of(
    superblock: Superblock, snapshot: Snapshot, policy: Policy, intents: Intents
) -> Iterator[Target]:
    """Yield the mounts of a superblock, which share its decision."""
    placed = [(mount, place(policy, mount, superblock, snapshot)) for mount in superblock.mounts]
    decision = agree(placed) if placed else None
    for mount, where in placed:
        stats = snapshot.stanzas.get((mount.source, mount.point))
        target = _live(mount, where, policy, intents)
        yield replace(target, superblock=superblock, decision=decision, stats=stats)


def _live(mount: Mount, where: Place, policy: Policy, intents: Intents) -> Target:
    return Target(
        subject=mount.point,
        point=mount.point,
        source=mount.source,
        fstype=mount.fstype,
        endpoint=where.endpoint,
        profile=profile_of(policy, where.choice.profile, mount.fstype),
        live=mount,
        asked=intents.of(mount),
        request=intents.planned(mount),
    )


def _asked(snapshot: Snapshot, policy: Policy, request: Request, intents: Intents) -> Target:
    asked = intents.asked(request)
    wanted = options(asked)
    host, _ = split_source(request.source)
    address, port = wanted.get("addr") or wanted.get("ip"), asked_port(request.source, wanted)
    server = resolve(host, address, port, (), snapshot.tunnels)
    if server.provider == GENERIC:
        server = replace(server, provider=provider_by_options(wanted))
    chosen = choose(policy, request.source, request.point, wanted, server).profile
    return Target(
        subject=f"{request.file}:{request.line}",
        point=request.point,
        source=request.source,
        fstype=request.fstype,
        endpoint=server,
        profile=profile_of(policy, chosen, request.fstype),
        asked=asked,
        request=request,
    )


def profile_of(policy: Policy, chosen: Profile, fstype: str) -> Profile:
    """Return the profile of a mount; SMB has profiles of its own, named as their NFS ones with a suffix."""
    if fstype in NFS_TYPES or chosen.base.endswith(SMB_SUFFIX):
        return chosen
    named, base = (matcher(policy).find(name + SMB_SUFFIX) for name in (chosen.name, chosen.base))
    if named or base is None:
        return named or chosen
    # The vendor's profile for SMB, with what the administrator's own one says about such mounts.
    own = {key: value for key in _OF_SMB if (value := getattr(chosen, key)) is not None}
    return replace(base, name=chosen.name, inherits=base.name, **own)
