"""Who uses the servers of an fstab's entries: the entries, and the mounts that no edit of it changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from nfstuned.core.mounts.requests import mounted_source
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect.fstab_text import ansible_lines
from nfstuned.core.nconnect.groups import Id, addresses, protocol, united
from nfstuned.core.policy.endpoint import GENERIC, as_address
from nfstuned.core.policy.place import choose
from nfstuned.model.facts import NFS_TYPES, Facts, Target
from nfstuned.model.mounts import FSTAB, Maker, Request, Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.parse.etc.fstab import FILE as UTAB
from nfstuned.parse.etc.fstab import parse_fstab
from nfstuned.parse.etc.units import unit_name
from nfstuned.parse.fields import clean_path


@dataclass(frozen=True, slots=True)
class FstabEntry:
    """An NFS line of an fstab: its text, and the mount that comes of it."""

    target: Target
    text: str
    line: int
    """Its number, from 1 on."""
    ansibles: bool = False
    """It stands in a block of Ansible's."""
    elsewhere: str = ""
    """`file:line` of the unit or the drop-in that decides its options in its place."""

    @property
    def asked(self) -> int | None:
        """The number that it asks for, with what nfsmount.conf adds; None where nothing says one."""
        return self.target.wanted.number("nconnect")

    @property
    def host(self) -> str:
        """The server, behind tunnels."""
        return self.target.endpoint.host


@dataclass(frozen=True, slots=True)
class Mounts:
    """The mounts that a text of fstab asks for, and beside them all others of the host."""

    entries: tuple[FstabEntry, ...]
    others: tuple[Target, ...]
    """Live ones, and those that mount units and autofs maps ask for."""
    facts: Facts


@dataclass(frozen=True, slots=True)
class ServerUsers:
    """What shares connections, whatever its version, and who uses it."""

    entries: tuple[FstabEntry, ...]
    others: tuple[Target, ...]


def mounts(text: str, snapshot: Snapshot, policy: Policy) -> Mounts:
    """Return what an fstab asks for, and what else there is; what is no entry is not among them.

    A server that says by a live mount what it is (Azure NetApp Files) is that for all its mounts.
    """
    facts = Facts(frozenset(), snapshot, policy, targets(snapshot, policy))
    said = what_servers_say(facts)
    entries = tuple(
        replace(entry, target=with_provider(entry.target, said, policy))
        for entry in _entries(text, snapshot, policy)
    )
    return Mounts(
        entries, tuple(with_provider(other, said, policy) for other in _others(entries, facts)), facts
    )


def what_servers_say(facts: Facts) -> Mapping[str, str]:
    """Return the providers that live mounts show, by host."""
    return {
        target.endpoint.host: target.endpoint.provider
        for target in facts.nfs
        if target.live is not None and target.endpoint.provider != GENERIC
    }


def unsettled(known: Mounts) -> tuple[str, ...]:
    """Return the names whose addresses tell which mounts have one server, and whether it is private."""
    if all(entry.target.profile.nconnect is None for entry in known.entries):
        return ()
    unknown = (target.endpoint.host for target in known.others if target.endpoint.address is None)
    names = (*(entry.host for entry in known.entries), *unknown)
    # Of a wildcard of autofs the key stands for a server that nobody knows before.
    asked = (name for name in names if name and "&" not in name and as_address(name) is None)
    return tuple(dict.fromkeys(asked))


def servers(known: Mounts, facts: Facts) -> Sequence[ServerUsers]:
    """Return the servers of the entries, with all who use them; `facts` have the resolver's answers.

    Two that have a name or one of their addresses in common are one.
    """
    users: list[tuple[frozenset[Id], FstabEntry | Target]] = [
        *((ids(entry.target, facts), entry) for entry in known.entries),
        *((ids(target, facts), target) for target in known.others),
    ]
    groups = (
        ServerUsers(
            tuple(user for user in group if isinstance(user, FstabEntry)),
            tuple(user for user in group if isinstance(user, Target)),
        )
        for group in united(users)
    )
    return [server for server in groups if server.entries]


def ids(target: Target, facts: Facts) -> frozenset[Id]:
    """Return the names and addresses of a mount's server, each with the port and the protocol."""
    names = {target.endpoint.host, *addresses(target, facts)} - {""}
    return frozenset((name, target.endpoint.port, protocol(target)) for name in names)


def _entries(text: str, snapshot: Snapshot, policy: Policy) -> Iterator[FstabEntry]:
    lines, blocks = text.split("\n"), ansible_lines(text)
    decides = _deciders(snapshot)
    for request in parse_fstab(text):
        if not isinstance(request, Request) or request.fstype not in NFS_TYPES:
            continue
        decider = decides.get(unit_name(request.point), request)
        elsewhere = "" if decider.file == request.file else f"{decider.file}:{decider.line}"
        target = as_target(decider if elsewhere else request, snapshot, policy)
        yield FstabEntry(target, lines[request.line - 1], request.line, request.line in blocks, elsewhere)


def _deciders(snapshot: Snapshot) -> Mapping[str, Request]:
    """Return by the name of its unit what systemd mounts: the first counts, a drop-in's for its entry."""
    requests: dict[str, Request] = {}
    for request in snapshot.requests:
        if _is_systemds(request):
            requests.setdefault(unit_name(request.point), request)
    return requests


def _is_systemds(request: Request) -> bool:
    return request.file != UTAB and request.maker is not Maker.AUTOFS


def _others(entries: Sequence[FstabEntry], facts: Facts) -> Iterator[Target]:
    """Yield the mounts that no entry makes; one that an entry's unit has hidden or decided is the entry's."""
    requests = [entry.target.request for entry in entries if entry.target.request is not None]
    own = {_place(mounted_source(request), request.point) for request in requests}
    units = {unit_name(request.point) for request in requests}
    mounted = [mount for mount in facts.nfs if mount.live and _place(mount.source, mount.point) in own]
    blocks = [mount.superblock for mount in mounted if mount.superblock is not None]
    for target in facts.nfs:
        if target.live is None:
            other = not _is_in(target.request, units)
        else:
            other = _place(target.source, target.point) not in own and not _is_apart(target, blocks)
        if other:
            yield target


def _is_apart(target: Target, blocks: Sequence[Superblock]) -> bool:
    """Return whether a live mount beside those of entries is none that counts.

    It is one of them, seen at another place (mount --bind), or one in another network namespace, as of a
    container; which of those is the host's is only known where an entry is mounted.
    """
    block = target.superblock
    if block is None or not blocks:
        return False
    again = not target.asked and any(block.device == superblock.device for superblock in blocks)
    return again or all(block.servers != superblock.servers for superblock in blocks)


def _place(source: str, point: str) -> tuple[str, str]:
    return source.rstrip("/"), clean_path(point)


def _is_in(request: Request | None, units: AbstractSet[str]) -> bool:
    """Return whether a mount that is only asked for is fstab's, or of one of these units."""
    return request is None or (
        _is_systemds(request) and (request.file == FSTAB or unit_name(request.point) in units)
    )


def as_target(request: Request, snapshot: Snapshot, policy: Policy) -> Target:
    """Return the mount that a request makes where it is the only one."""
    alone = replace(snapshot, superblocks=(), requests=(request,))
    return targets(alone, policy, (), request.file)[0]


def with_provider(target: Target, said: Mapping[str, str], policy: Policy) -> Target:
    """Return a mount with the provider and the profile that a live mount of its server shows."""
    place = target.endpoint
    if place.provider != GENERIC or place.host not in said:
        return target
    place = replace(place, provider=said[place.host])
    chosen = choose(policy, target.source, target.point, target.wanted, place)
    return replace(target, endpoint=place, profile=chosen.profile)
