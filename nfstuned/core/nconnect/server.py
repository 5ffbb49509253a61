"""A server: the mounts that share its connections, their common nconnect, and the objections to it.

The rules NFS2xx and the commands `nconnect fstab`, `persist` and `remount` are four views of it. They differ
in the members: a rule and a remount ask who shares one nfs_client now, the files ask who will use the server,
whatever the version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from nfstuned.core.mounts.options import NCONNECT_V4_0_SINCE, has_kerberos, knows_nconnect, security
from nfstuned.core.mounts.requests import Intents
from nfstuned.core.mounts.targets import targets
from nfstuned.core.nconnect.transport import (
    MOST,
    addresses,
    has_private_endpoint,
    is_private,
    live_group,
    transport_groups,
    usable,
)
from nfstuned.core.policy.decision import choose_profile, matcher
from nfstuned.core.policy.endpoint import as_address, asked_port, is_loopback, plain, split_source
from nfstuned.model.facts import Facts, Identity, Target
from nfstuned.model.kernel import Options
from nfstuned.model.mounts import AZURE_FILES, GENERIC, Maker, Request, Result, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.system import Answer, Network

Id = Hashable
"""A name or an address of a server, with the values that separate connections."""
T = TypeVar("T")


class Objection(NamedTuple):
    """The reason why a mount, and with it its whole server, keeps its number of connections."""

    reason: str
    result: Result = Result.SKIPPED
    """FAILED where a change may be right, but a fact for the decision is unknown."""


@dataclass(frozen=True, slots=True)
class Member:
    """A mount of a server."""

    target: Target
    """The mount as it is, or as its line asks for it."""
    asked: int | None
    """The nconnect that it asks for at its next mount; None for no number, or an unknown one."""

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.target.subject if self.target.live is None else f"the mount at {self.target.point}"


MemberT = TypeVar("MemberT", bound=Member)


@dataclass(frozen=True, slots=True)
class Server(Generic[MemberT]):
    """The mounts that share the connections of one server."""

    members: tuple[MemberT, ...]
    strictest: Target
    """The mount with the lowest limit of connections."""
    most: int
    """The limit of this mount."""
    nconnect: int | None
    """The highest number that a profile recommends or a member asks for, within `most`; None without any."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """The mounts of its members."""
        return tuple(member.target for member in self.members)

    @property
    def is_named(self) -> bool:
        """Whether a profile of a member recommends a number."""
        return any(member.target.profile.nconnect is not None for member in self.members)

    def reason(self, chief: Sequence[Member]) -> str:
        """Return why `nconnect` is the number, by the profiles of `chief` or by other members."""
        count = self.nconnect
        for member in chief:
            if member.target.profile.nconnect == count:
                return f"{member.target.profile.name} recommends nconnect={count}"
        other = next((member.name for member in self.members if member.asked == count), None)
        if other is not None:
            return f"as {other}, which is of the same server"
        return f"the profiles of {chief[0].target.endpoint.host} allow nconnect={count}"


def server_of(
    members: Iterable[MemberT], most_of: Callable[[Target], int] = usable, limiting: Sequence[Target] = ()
) -> Server[MemberT]:
    """Return the server of members; without `limiting` each of their mounts limits the connections.

    A member's number above the limit does not count; a profile's number is cut to the limit.
    """
    known = tuple(members)
    strictest = min(limiting or [member.target for member in known], key=most_of)
    most = most_of(strictest)
    named = (member.target.profile.nconnect for member in known)
    asked = (member.asked for member in known if (member.asked or 0) <= most)
    number = max((number for number in (*named, *asked) if number is not None), default=None)
    return Server(known, strictest, most, None if number is None else min(number, most))


def group_by_ids(things: Iterable[tuple[frozenset[Id], T]]) -> list[tuple[T, ...]]:
    """Return the things in groups that are connected by common ids; the last thing is in the last group."""
    members: dict[int, list[T]] = {}
    ids: dict[int, set[Id]] = {}
    owner: dict[Id, int] = {}
    for number, (mine, thing) in enumerate(things):
        same = {owner[id_] for id_ in mine if id_ in owner}
        roots = list(same) if len(same) < 2 else [root for root in members if root in same]  # noqa: PLR2004 - most have one
        root, *others = roots or [number]
        group = members.pop(root, [])
        known = ids.setdefault(root, set())
        for other in others:
            group += members.pop(other)
            known |= ids.pop(other)
        known |= mine
        owner.update(dict.fromkeys(mine if not others else known, root))
        group.append(thing)
        members[root] = group
    return [tuple(group) for group in members.values()]


def objection(target: Target, facts: Facts) -> Objection | None:
    """Return why a mount should not have several connections, or no other number; None where it may."""
    profile = target.profile
    if target.most_connections == 1:
        number = f" with NFS {target.version}" if profile.nconnect_max != 1 else ""
        return Objection(f"its profile {profile.name} allows one connection{number}")
    if profile.nconnect is not None:
        return hard_objection(target, facts)
    return Objection(
        f"its profile {profile.name} names no nconnect, and another profile of the same server does"
    )


def hard_objection(target: Target, facts: Facts) -> Objection | None:
    """Return why a mount should not have several connections, for any profile; None where it may."""
    transport = target.protocol
    if transport != "tcp":
        return Objection(f"proto={transport}: nconnect is for TCP")
    options = target.wanted if security(target.wanted) else target.options
    if has_kerberos(options):
        return Objection(f"sec={security(options)}: Kerberos works with one connection only")
    if why := _old_kernel(target, facts):
        return Objection(why)
    return _public(target, facts) if target.is_azure_files else None


def _old_kernel(target: Target, facts: Facts) -> str:
    """Return why the kernel has no nconnect for a mount, "" where it has; an unknown kernel is new."""
    release, asked = facts.snapshot.kernel, target.version
    if release is None:
        return "nconnect works with NFS 4.0 only since Linux 5.8" if asked == "4.0" else ""
    if not knows_nconnect(release, facts.snapshot.distribution):
        return f"Linux {release.text} does not know nconnect"
    if asked == "4.0" and release.version < NCONNECT_V4_0_SINCE:
        return f"Linux {release.text} ignores nconnect with NFS 4.0"
    return ""


def _public(target: Target, facts: Facts) -> Objection | None:
    """Return why an endpoint of Azure Files is not fit for nconnect; None for a private one."""
    only = "Azure Files supports nconnect over private endpoints only"
    private, host = has_private_endpoint(target, facts), target.endpoint.host
    if private:
        return None
    if private is False:
        return Objection(f"{host} is a public endpoint; {only}")
    places, answer = sorted(addresses(target, facts)), facts.answers.get(host)
    if not places and as_address(host) is None and not (answer is not None and answer.final):
        why = answer.error if answer is not None else "it was not resolved"
        return Objection(f"the address of {host} is not known ({why}): try again; {only}", Result.FAILED)
    shown = places[0] if places else "no address here"
    if len(places) > 1:
        shown = f"several addresses that are not all of one kind ({', '.join(places)})"
    return Objection(
        f"{host} resolves to {shown}, and whether that is a private endpoint is not known; {only}"
    )


@dataclass(frozen=True, slots=True)
class Line(Member):
    """A line of fstab, a unit or a map, and the mount that it makes the next time."""

    mount: Target
    """The mount as it is: live, or only asked for."""
    ids: frozenset[Id]
    """Names and addresses of its server, with all values that separate connections; empty where it is open.

    A version that is left to negotiation is the same for all such lines, and the version of a live mount is
    known as well.
    """


@lru_cache(maxsize=1)
def servers(facts: Facts) -> tuple[Server[Member], ...]:
    """Return the NFS mounts of a host by server, live and only asked for, as they share connections.

    A mount that a proposal replaces limits no other, nor does a line that asks Azure Files for Kerberos: it
    is refused (NFS302). The last result is kept, because several rules ask for it.
    """
    known, asking = transport_groups(facts), lines(facts)
    # A line is for one of several network namespaces, and it is open for which.
    by_line = len({group.namespace for group in known.live}) <= 1

    def ids(target: Target) -> frozenset[Id]:
        group, line = live_group(target, facts), asking.get(target.identity)
        own = line.ids if line is not None and (by_line or target.live is None) else frozenset[Id]()
        return own if group is None else own | {group}

    found = []
    for sharing in group_by_ids((ids(target), target) for target in facts.nfs):
        counting = [target for target in sharing if target.identity not in known.after]
        mounts = (Member(target, target.asked_nconnect) for target in sharing)
        found.append(server_of(mounts, limiting=_without_refused(counting) or sharing))
    return tuple(found)


@lru_cache(maxsize=1)
def disagreeing_servers(facts: Facts) -> tuple[Server[Line], ...]:
    """Return the servers with lines that ask for different numbers of connections.

    Lines with an unsettled server do not count, nor numbers that the kernel refuses (NFS309), nor lines for
    which the kernel or the protocol has no nconnect.
    """
    counting = (
        line
        for line in lines(facts).values()
        if line.ids
        and 1 <= (line.asked or 0) <= MOST
        and line.target.protocol == "tcp"
        and not (line.target.request and line.target.request.is_conditional)
        and not _old_kernel(line.target, facts)
    )
    found = []
    for alike in group_by_ids((line.ids, line) for line in counting):
        once = {line.target.origin: line for line in alike}.values()
        if len({line.asked for line in once}) > 1:
            found.append(server_of(once, limiting=_without_refused([line.target for line in once])))
    return tuple(found)


def _without_refused(mounts: Iterable[Target]) -> list[Target]:
    """Return the mounts without lines that ask Azure Files for Kerberos."""
    return [
        target
        for target in mounts
        if target.live or target.endpoint.provider != AZURE_FILES or not has_kerberos(target.options)
    ]


@lru_cache(maxsize=1)
def lines(facts: Facts) -> dict[Identity, Line]:
    """Return the lines that ask for mounts, by the mounts."""
    snapshot = facts.snapshot
    intents, replicas = Intents((), snapshot.settings, snapshot.tunnels), _replicas(facts)
    known = {}
    for target in facts.nfs:
        request, asking = target.request, target
        if request is None:
            continue
        if target.live is not None:
            asking = replace(
                target,
                live=None,
                superblock=None,
                source=request.source,
                fstype=request.fstype,
                asked=intents.asked(request),
            )
        clear = (target.origin, target.point) not in replicas
        ids = _line_ids(target, asking, request, facts) if clear else frozenset[Id]()
        known[target.identity] = Line(asking, asking.asked_nconnect, target, ids)
    return known


def _line_ids(target: Target, line: Target, request: Request, facts: Facts) -> frozenset[Id]:
    host = plain(split_source(request.source)[0])
    if not host or "&" in host or "," in request.source.partition(":/")[0] or _has_several(host, facts):
        return frozenset()
    # The port of a tunnel's end stands for the server.
    names = {host} if is_loopback(host) else {host, *addresses(line, facts)}
    encryption = "tunnel" if request.wants_tunnel else line.wanted.get("xprtsec") or "none"
    rest = (asked_port(request.source, line.wanted), line.protocol, encryption, request.group)
    versions = {line.version} if target.live is None else {line.version, target.version}
    return frozenset((name, number, *rest) for name in names for number in versions)


def _has_several(host: str, facts: Facts) -> bool:
    """Whether a name has several addresses of a family: each mount may be of another server."""
    answer = facts.answers.get(host)
    known = (as_address(text) for text in (answer.addresses if answer else ()))
    families = Counter(address.version for address in known if address is not None)
    return max(families.values(), default=0) > 1


def _replicas(facts: Facts) -> frozenset[tuple[str, str]]:
    """Return the entries of maps that name several servers for one place: the choice is automount's."""
    sources: dict[tuple[str, str], set[str]] = {}
    for target in facts.nfs:
        if target.request is not None and target.request.maker is Maker.AUTOFS:
            sources.setdefault((target.origin, target.point), set()).add(target.request.source)
    return frozenset(entry for entry, named in sources.items() if len(named) > 1)


@dataclass(frozen=True, slots=True)
class Users(Generic[MemberT]):
    """The mounts that a change of files is about, before the resolver was asked for their servers."""

    members: tuple[MemberT, ...]
    facts: Facts

    def names_to_resolve(self) -> tuple[str, ...]:
        """Return the names to resolve: their addresses show shared servers and private endpoints.

        Where the policy goes by addresses, they also decide the profiles.
        """
        named = any(member.target.profile.nconnect is not None for member in self.members)
        if not (named or matcher(self.facts.policy).by_address):
            return ()
        names: dict[str, None] = {}
        for target in (member.target for member in self.members):
            # A live mount shows its server's address, but not always whether that is a private endpoint.
            doubtful = target.is_azure_files and not is_private(target, self.facts)
            if target.endpoint.address is None or doubtful:
                names[target.endpoint.host] = None
        # In the name of an autofs wildcard `&` stands for a key that nobody knows before.
        return tuple(name for name in names if name and "&" not in name and as_address(name) is None)


def server_ids(target: Target, facts: Facts) -> frozenset[Id]:
    """Return the names and addresses of a mount's server, each with the port and the protocol.

    A version for which alone the profile allows no nconnect is part of the protocol: such a mount shares no
    connections with the other versions, which may have more.
    """
    names = {target.endpoint.host, *addresses(target, facts)} - {""}
    number, kind = target.version, target.protocol
    if number in target.profile.nconnect_not_for:
        kind = f"{kind} {number}"
    return frozenset((name, target.endpoint.port, kind) for name in names)


def as_target(request: Request, snapshot: Snapshot, policy: Policy) -> Target:
    """Return the mount that a request makes where it is the only one."""
    alone = replace(snapshot, superblocks=(), requests=(request,))
    return targets(alone, policy, (), request.file)[0]


@lru_cache(maxsize=1)
def _shown_providers(facts: Facts) -> Mapping[str, str]:
    """Return the providers that live mounts show, by host; the last result is kept."""
    return {
        target.endpoint.host: target.endpoint.provider
        for target in facts.nfs
        if target.live is not None and target.endpoint.provider != GENERIC
    }


def with_provider(target: Target, facts: Facts) -> Target:
    """Return a mount with the provider and the profile that a live mount of its server shows."""
    place, providers = target.endpoint, _shown_providers(facts)
    if place.provider != GENERIC or place.host not in providers:
        return target
    place = place._replace(provider=providers[place.host])
    chosen = choose_profile(facts.policy, target.source, target.point, target.wanted, place)
    return replace(target, endpoint=place, profile=chosen.profile)


def with_answers(facts: Facts, network: Network) -> Facts:
    """Return the facts with the resolver's answers; live mounts answer for names that it did not resolve.

    So the entry of a mount is understood, and its neighbours of the same name, while no resolver answers.
    """
    known = {answer.host for answer in network.answers if answer.addresses}
    seen: dict[str, dict[str, None]] = {}
    for target in facts.nfs:
        place = target.endpoint
        if target.live is not None and place.address is not None and place.host not in known:
            seen.setdefault(place.host, {})[place.address] = None
    live = (Answer(host, tuple(places)) for host, places in seen.items())
    others = (answer for answer in network.answers if answer.host not in seen)
    return replace(facts, network=network._replace(answers=(*live, *others)))


def with_address_profile(target: Target, facts: Facts) -> Target:
    """Return a mount that only a file asks for with the profile that its server's address gives it.

    Its file has a name, and a policy may go by addresses. Where several addresses have different profiles,
    the profile of the name stays.
    """
    place = target.endpoint
    if target.live is not None or place.address is not None:
        return target
    places = (place._replace(address=known) for known in addresses(target, facts))
    profiles = {
        choose_profile(facts.policy, target.source, target.point, Options(), at).profile for at in places
    }
    return replace(target, profile=profiles.pop()) if len(profiles) == 1 else target
