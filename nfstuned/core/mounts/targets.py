"""The mounts that the rules judge: live mounts, and mounts that only a file asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from nfstuned import data
from nfstuned.core.mounts.requests import Intents, asked_options
from nfstuned.core.policy.decision import (
    Classification,
    choose_profile,
    classify,
    join_decisions,
    loop_record,
    matcher,
)
from nfstuned.core.policy.endpoint import as_address, asked_port, plain, split_source
from nfstuned.model.facts import Target
from nfstuned.model.kernel import Mount, Options
from nfstuned.model.mounts import (
    GENERIC,
    SMB_TYPES,
    UTAB,
    Maker,
    Request,
    Snapshot,
    UnitState,
)
from nfstuned.model.policy import WORKLOAD_MARK, Policy, Profile
from nfstuned.parse.fields import below, quote, some

SMB_SUFFIX = "-smb"
_MAKERS = "makers.toml"
_SMB_KEYS = ("actimeo_min", "max_channels")
"""The keys of an administrator's NFS profile that also count for SMB mounts."""


def targets(
    snapshot: Snapshot,
    policy: Policy,
    smb_mounts: Sequence[Mount] = (),
    proposal: str = "",
    *,
    apart: bool = False,
) -> tuple[Target, ...]:
    """Return every network mount once: live ones by mount point, then those that are only asked for.

    `smb_mounts` are the live SMB mounts. Each line of the file `proposal` is a target of its own, also where
    its mount is live, because the live mount does not have the proposed options yet. The files of a snapshot
    that are `apart` are of several hosts: requests in two of them are two mounts.
    """
    intents = Intents(snapshot.requests, snapshot.settings, snapshot.tunnels)
    live: list[Target] = []
    for superblock in snapshot.superblocks:
        mounts = [(mount, classify(policy, mount, superblock, snapshot)) for mount in superblock.mounts]
        decision = join_decisions(mounts, loop_record(policy, superblock)) if mounts else None
        for mount, classified in mounts:
            target = _live_target(mount, classified, policy, intents, program_of(mount.point, snapshot))
            stats = snapshot.stanza_of(mount, superblock)
            live.append(replace(target, superblock=superblock, decision=decision, stats=stats))
    of_smb = ((mount, classify(policy, mount, None, snapshot)) for mount in smb_mounts)
    live += [
        _live_target(mount, classified, policy, intents, program_of(mount.point, snapshot))
        for mount, classified in of_smb
    ]
    known = {target.request for target in live}
    planned: dict[object, Request] = {}
    """The first request of each mount, which is the request that counts."""
    for request in snapshot.requests:
        if request.file != UTAB and (request not in known or request.file == proposal):
            place = (request.source, request.point, *((request.file, request.maker) if apart else ()))
            planned.setdefault(place if request.point else request, request)
    return (
        *sorted(live, key=lambda target: target.point),
        *(_planned_target(snapshot, policy, request, intents) for request in planned.values()),
    )


def server_name(target: Target) -> str:
    """Return the server's name, or its address where no name is known.

    With AZNFS a live mount may show only an address. Then the name is in the line that asks for the mount.
    """
    host = target.endpoint.host
    if as_address(host) is None or target.request is None or target.request.wildcard:
        return host
    return plain(split_source(target.request.source)[0])


def with_proposal(snapshot: Snapshot, proposal: str) -> Snapshot:
    """Return `snapshot` without the utab rows of the mounts that the file `proposal` asks for, too.

    For these mounts the proposed options then count, not the options in use.
    """
    proposed = {_mount_key(request) for request in snapshot.requests if request.file == proposal}
    requests = (
        request
        for request in snapshot.requests
        if request.file != UTAB or _mount_key(request) not in proposed
    )
    return replace(snapshot, requests=tuple(requests))


@cache
def _folders() -> tuple[tuple[Maker, re.Pattern[str]], ...]:
    """Return the folders of the programs that make mounts of their own accord (data/makers.toml)."""
    return tuple((Maker[name], re.compile(row["folder"])) for name, row in data.read_table(_MAKERS).items())


def program_of(point: str, snapshot: Snapshot) -> Maker | None:
    """Return the program that makes a mount at such a place; None for a place that people choose."""
    if below(point, (*snapshot.automounted, *(unread.point for unread in snapshot.maps if unread.point))):
        return Maker.AUTOFS
    return next((maker for maker, folder in _folders() if folder.search(point)), None)


def definition(target: Target, key: str = "definition") -> str:
    """Return where its maker has the source of a mount, or with `place` its options; "" for no such maker."""
    if target.program is None or not target.by_program:
        return "the automounter's map" if target.maker is Maker.AUTOFS else ""
    return _filled(data.read_table(_MAKERS)[target.program.name][key], [target])


def made_by(targets: Sequence[Target]) -> str:
    """Return a sentence on the program that makes mounts of this kind, and where their options are."""
    first, maker = targets[0], targets[0].program
    points = some([target.point for target in targets])
    return f"{maker.value if maker else ''} makes {points}, with the options in {definition(first, 'place')}"


def renewal(targets: Sequence[Target]) -> str:
    """Return how mounts come back with other options where programs make them; "" where people make all.

    Nobody unmounts those by hand: their makers would not know, and other mounts keep the superblock.
    """
    made: dict[str, list[Target]] = {}
    for target in targets:
        if target.program is not None and target.by_program:
            made.setdefault(data.read_table(_MAKERS)[target.program.name]["renewal"], []).append(target)
    return "; ".join(_filled(step, mounts) for step, mounts in made.items())


def _filled(text: str, mounts: Sequence[Target]) -> str:
    """Return a sentence of data/makers.toml about mounts of one maker."""
    names: dict[str, None] = {}
    for target in mounts:
        match = next((match for _, folder in _folders() if (match := folder.search(target.point))), None)
        names[(match and match.groupdict().get("name")) or target.point.rpartition("/")[2]] = None
    points = [target.point for target in mounts]
    it = some(points) if len(points) > 1 else "it"
    return text.format(name=" ".join(map(quote, names)), point=" ".join(map(quote, points)), it=it)


def _mount_key(request: Request) -> tuple[str, str]:
    """Return source and mount point without trailing slashes: people write them, the kernel does not."""
    return request.source.rstrip("/"), request.point.rstrip("/")


def _live_target(
    mount: Mount, classified: Classification, policy: Policy, intents: Intents, program: Maker | None
) -> Target:
    """Return a live mount as a target, without the facts of an NFS superblock."""
    return Target(
        subject=mount.point,
        point=mount.point,
        source=mount.source,
        fstype=mount.fstype,
        endpoint=classified.endpoint,
        profile=mount_profile(policy, classified.choice.profile, mount.fstype),
        live=mount,
        asked=intents.of(mount),
        request=intents.planned(mount),
        program=program,
    )


def _planned_target(snapshot: Snapshot, policy: Policy, request: Request, intents: Intents) -> Target:
    """Return the target of a line that is not mounted, or is proposed; nfsmount.conf adds options."""
    asked = intents.asked(request)
    wanted = asked_options(asked)
    host, _ = split_source(request.source)
    # mount.cifs(8) takes an address; mount.nfs takes it out and asks for the name's (nfs_append_addr_option).
    named = wanted if request.fstype in SMB_TYPES else Options()
    address = next((text for text in (named.get("addr"), named.get("ip")) if text and as_address(text)), None)
    providers = matcher(policy).providers
    server = providers.resolve(host, address, asked_port(request.source, wanted), (), snapshot.tunnels)
    if server.provider == GENERIC:
        server = server._replace(provider=request.provider or providers.by_options(wanted))
    chosen = choose_profile(policy, request.source, request.point, named, server).profile
    return Target(
        subject=f"{request.file}:{request.line}",
        point=request.point,
        source=request.source,
        fstype=request.fstype,
        endpoint=server,
        profile=mount_profile(policy, chosen, request.fstype),
        asked=asked,
        request=request,
    )


def mount_profile(policy: Policy, chosen: Profile, fstype: str) -> Profile:
    """Return the profile of a mount. An SMB mount has the profile NAME-smb where `chosen` is NAME."""
    if fstype not in SMB_TYPES or chosen.base.endswith(SMB_SUFFIX):
        return chosen
    plain_name = chosen.name.partition(WORKLOAD_MARK)[0]
    named, base = (matcher(policy).find(name + SMB_SUFFIX) for name in (plain_name, chosen.base))
    if named or base is None:
        return named or chosen
    # The built-in SMB profile, changed by the _SMB_KEYS keys that the administrator's profile sets.
    own = {key: value for key in _SMB_KEYS if (value := getattr(chosen, key)) is not None}
    return replace(base, name=chosen.name, inherits=base.name, **own)


_STOPPED = frozenset({"failed", "inactive"})
"""The ActiveState of a unit that is neither active nor being started."""


def unmounted_targets(targets: Iterable[Target]) -> Iterator[Target]:
    """Yield the mounts that lines of fstab and mount units ask for and that the host does not have.

    A mount that is made at its first use is left out. The copy of a mount in another mount namespace, as a
    container has it, does not count as the host's.
    """
    for target in targets:
        request, is_mounted = target.request, target.live is not None and not target.live.foreign
        if request is None or is_mounted or not (target.is_nfs or target.is_smb):
            continue
        if request.maker in {Maker.MOUNT, Maker.UNIT} and not request.at_first_use:
            yield target


def is_missing(state: UnitState) -> bool:
    """Whether a unit should be active and is not, has no job, and its conditions were met.

    A unit should be active where a .target wants it, as at boot; a .service starts the units that it wants.
    """
    wanted = state.loaded and any(name.endswith(".target") for name in state.wanted_by)
    return wanted and state.active in _STOPPED and not state.job and state.condition
