"""Transport groups: the mounts that share the connections of one nfs_client, and so its nconnect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nfstuned.core.mounts import options as nfsoptions
from nfstuned.core.policy.endpoint import AddressKind, as_address, is_loopback, split_source
from nfstuned.model.facts import Facts, Identity, Target
from nfstuned.model.kernel import NFS_PORT, NfsClient, Options
from nfstuned.model.mounts import AZURE_FILES, UTAB

MOST = 16
"""NFS_MAX_CONNECTIONS."""


class Group(NamedTuple):
    """The values by which nfs_clients differ (fs/nfs/client.c, nfs_match_client); no name is among them."""

    version: str
    """With the minor version: "3", "4.1"."""
    protocol: str
    address: str
    port: int
    security: str
    """xprtsec; "" without."""
    namespace: int = 0
    """The number of the network namespace in `Groups`; 0 in a group that only a file asks for."""


class _Namespaces:
    """Network namespaces by their nfs_clients, numbered from 1 on."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._known: dict[tuple[NfsClient, ...], int] = {}

    def number(self, servers: tuple[NfsClient, ...]) -> int:
        """Return the number of the namespace with these nfs_clients; they must live as long as this."""
        number = self._seen.get(id(servers))
        if number is None:
            number = self._seen[id(servers)] = self._known.setdefault(servers, len(self._known) + 1)
        return number


class Groups(NamedTuple):
    """The transport groups that are live, each with its mounts; `bare` finds them without the namespace."""

    live: Mapping[Group, tuple[Target, ...]]
    mine: Mapping[Identity, Group]
    """By live mount."""
    bare: Mapping[Group, tuple[Group, ...]]
    after: Mapping[Identity, Target]
    """By live mount: the proposal's line for its mount point. The two are one mount before and after, so that
    lines of the proposal inherit nothing from it."""
    kerberos: Mapping[Group, Target]
    """A line with Kerberos that is not mounted, by the group that it would join, without namespace."""


@lru_cache(maxsize=1)
def transport_groups(facts: Facts) -> Groups:
    """Return the live transport groups of a host; the last result is kept, because each rule asks for it."""
    spaces, mine = _Namespaces(), {}
    live: defaultdict[Group, list[Target]] = defaultdict(list)
    for target in facts.nfs:
        group = _live(target)
        if group is not None and target.superblock is not None:
            group = group._replace(namespace=spaces.number(target.superblock.servers))
            live[group].append(target)
            mine[target.identity] = group
    bare: defaultdict[Group, list[Group]] = defaultdict(list)
    for group in live:
        bare[group._replace(namespace=0)].append(group)
    return Groups(
        {group: tuple(members) for group, members in live.items()},
        mine,
        {group: tuple(alike) for group, alike in bare.items()},
        replaced(facts),
        _kerberos(facts),
    )


def _kerberos(facts: Facts) -> dict[Group, Target]:
    """Return the lines with Kerberos that are not mounted; not of Azure Files, which has none (NFS302)."""
    targets: dict[Group, Target] = {}
    for target in facts.nfs:
        asking = target.live is None and nfsoptions.has_kerberos(target.options)
        if asking and target.endpoint.provider != AZURE_FILES:
            group = _asked(target, facts)
            if group is not None:
                targets.setdefault(group, target)
    return targets


def replaced(facts: Facts) -> dict[Identity, Target]:
    """Return the proposal's lines by the live mounts that they replace; the first of a mount point counts."""
    lines: dict[str, Target] = {}
    for target in facts.nfs:
        if target.live is None and target.request and target.request.file == facts.proposal:
            lines.setdefault(target.point.rstrip("/"), target)
    points = {target.identity: target.point.rstrip("/") for target in facts.nfs if target.live is not None}
    return {mount: lines[point] for mount, point in points.items() if point in lines}


def members(target: Target, facts: Facts) -> tuple[Target, ...]:
    """Return the live mounts that share, or will share, a mount's connections, itself included if live.

    Nothing for a mount that only a file asks for, unless the files and the resolver leave one group possible.
    """
    group = live_group(target, facts)
    return transport_groups(facts).live[group] if group is not None else ()


def live_group(target: Target, facts: Facts) -> Group | None:
    """Return the live group of a mount, or the group that a line will join; None where that is open."""
    if target.live is not None:
        return transport_groups(facts).mine.get(target.identity)
    asked = _asked(target, facts)
    alike = transport_groups(facts).bare.get(asked, ()) if asked is not None else ()
    return alike[0] if len(alike) == 1 else None


def rivals(target: Target, facts: Facts) -> tuple[Target, ...]:
    """Return the other live mounts of its group; for a line those that no proposal replaces."""
    after = transport_groups(facts).after
    others = (other for other in members(target, facts) if other is not target)
    return tuple(other for other in others if target.live is not None or other.identity not in after)


def pending_kerberos(target: Target, facts: Facts) -> tuple[Target, ...]:
    """Return the line with Kerberos, if any, that is not mounted yet and will join the mount's group.

    It limits the whole group to one connection (NFS207).
    """
    known = transport_groups(facts)
    group = known.mine.get(target.identity) if target.live is not None else _asked(target, facts)
    if group is None:
        return ()
    bare = group._replace(namespace=0)
    line = known.kerberos.get(bare)
    return (line,) if line is not None and len(known.bare.get(bare, ())) <= 1 else ()


def by_namespace(targets: Sequence[Target]) -> Sequence[Sequence[Target]]:
    """Split mounts by network namespace: connections are never shared across.

    A mount that only a file asks for belongs to the one namespace where there is no other, else to none.
    """
    spaces = _Namespaces()
    target_groups: defaultdict[int, list[Target]] = defaultdict(list)
    for target in targets:
        if target.superblock is not None:
            target_groups[spaces.number(target.superblock.servers)].append(target)
    return list(target_groups.values()) if len(target_groups) > 1 else [targets]


def effective_nconnect(target: Target, facts: Facts) -> int | None:
    """Return the nconnect of a live mount, or the number that a mount will get; None if that is unknown.

    A mount of a live group gets the group's, whatever it asks for.
    """
    alike = (target,) if target.live is not None else rivals(target, facts)
    if alike:
        return alike[0].options.number("nconnect") or 1
    return target.asked_nconnect


def allowed(target: Target) -> int:
    """Return the most connections that a mount's profile and the kernel allow."""
    return target.most_connections or MOST


def usable(target: Target) -> int:
    """Return the most connections that a mount is good for: one with Kerberos (NFS207)."""
    return 1 if nfsoptions.has_kerberos(target.options) else allowed(target)


def busy_connections(target: Target) -> int | None:
    """Return how many connections carry a live mount's requests; None where nothing is mounted."""
    return None if target.live is None else nfsoptions.carried(target.live.options, target.stats)


def addresses(target: Target, facts: Facts) -> frozenset[str]:
    """Return the server's address behind tunnels where it is known, else the resolver's for its name."""
    parsed = as_address(target.endpoint.address or target.endpoint.host)
    return frozenset({str(parsed)}) if parsed is not None else _resolved(target, facts)


def address(target: Target, facts: Facts) -> str | None:
    """Return the server's address behind tunnels; None where the files and the resolver leave several."""
    known = addresses(target, facts)
    return next(iter(known)) if len(known) == 1 else None


def is_private(target: Target, facts: Facts) -> bool | None:
    """Return whether an Azure Files mount goes through a private endpoint; None where that is open.

    A virtual network can use public addresses of its own: the last name of the resolver's chain is then in
    the private zone. Several addresses decide where they are all of one kind. Where none is known, a name of
    the private zone is meant for the private endpoint.
    """
    places, host = addresses(target, facts), target.endpoint.host
    kinds = {AddressKind.of(place) for place in places}
    if not places or kinds & {None, AddressKind.LOOPBACK}:
        return True if not places and ".privatelink." in f".{host}" else None
    answer = facts.answers.get(host)
    named = answer.chain[-1] if answer and answer.chain and places <= _resolved(target, facts) else ""
    if ".privatelink." in f".{named}":
        return True
    if kinds == {AddressKind.PUBLIC}:
        return False
    return True if kinds <= {AddressKind.PRIVATE, AddressKind.CGNAT} else None


def has_private_endpoint(target: Target, facts: Facts) -> bool | None:
    """Return whether a mount's endpoint is private; a live mount of its host decides where it is open."""
    private, host = is_private(target, facts), target.endpoint.host
    if private is not None:
        return private
    seen = (is_private(mount, facts) for mount in facts.nfs if mount.live and mount.endpoint.host == host)
    return next((answer for answer in seen if answer is not None), None)


def share(target: Target) -> str:
    """Return the Azure file share of a mount: the first two parts of the path, "/account/share"."""
    _, export = split_source(target.source)
    return "/" + "/".join([part for part in export.split("/") if part][:2])


def was_recorded(target: Target, facts: Facts) -> bool:
    """Whether utab has the options of a live mount as they were given; files may have changed since."""
    return any(
        request.file == UTAB and (request.source, request.point) == (target.source, target.point)
        for request in facts.snapshot.requests
    )


def _resolved(target: Target, facts: Facts) -> frozenset[str]:
    answer = facts.answers.get(target.endpoint.host)
    return frozenset(str(as_address(text) or text) for text in answer.addresses) if answer else frozenset()


def _live(target: Target) -> Group | None:
    """Return the group of a live mount, without its namespace; nfsfs has values that options leave out."""
    if target.live is None or target.superblock is None:
        return None
    options, volume = target.live.options, target.superblock.volume
    server = as_address(options.get("addr") or (volume.address if volume else ""))
    number = options.get("vers")
    if server is None or number is None:
        return None
    # A tunnel's mount over another's connections still shows its own port; its client has the other's.
    port = (volume.port if volume else 0) or options.number("port") or NFS_PORT
    return Group(number, target.protocol, str(server), port, _security(options))


def _asked(target: Target, facts: Facts) -> Group | None:
    """Return the group that a mount would join; None where that is open, and for a tunnel of a helper."""
    number, wanted = target.version, target.options
    if number is None or number == "4":
        return None
    # In a line it does not count: mount.nfs takes it out.
    place = (wanted.get("addr") if target.live is not None else None) or address(target, facts)
    parsed = as_address(place) if place else None
    if parsed is None or is_loopback(str(parsed)) or (target.request and target.request.wants_tunnel):
        return None
    port = wanted.number("port") or NFS_PORT
    return Group(number, target.protocol, str(parsed), port, _security(wanted))


def is_tunnel(target: Target) -> bool:
    """Whether a mount goes to this machine's end of a tunnel."""
    host, _ = split_source(target.source)
    return is_loopback(host) and not is_loopback(target.endpoint.address or target.endpoint.host)


def _security(wanted: Options) -> str:
    security = wanted.get("xprtsec")
    return "" if security in {None, "none"} else str(security)
