"""The mounts and lines of one server: what shares connections, or will, as names and addresses tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from nfstuned.core.mounts.kernels import V4_0_SINCE, knows_nconnect
from nfstuned.core.mounts.options import has_kerberos
from nfstuned.core.mounts.requests import Intents, wants_tunnel
from nfstuned.core.nconnect.first_mount import bound
from nfstuned.core.nconnect.groups import (
    MOST,
    addresses,
    groups,
    highest,
    live_group,
    protocol,
    requested_nconnect,
    united,
    version,
)
from nfstuned.core.policy.endpoint import (
    AZURE_FILES,
    as_address,
    asked_port,
    is_loopback,
    plain,
    split_source,
)
from nfstuned.model.facts import Facts, Identity, Target
from nfstuned.model.mounts import Maker, Request


@dataclass(frozen=True, slots=True)
class Line:
    """A line of fstab, a unit or a map that asks for a mount."""

    target: Target
    """What comes of the line when it is mounted the next time."""
    mount: Target
    """The mount as it is: live, or only asked for."""
    ids: frozenset[Hashable]
    """Names and addresses of its server, with all else that separates connections; none where that is open.

    A version that is left to negotiation is the same for all such lines, and what a live mount came to is
    known as well.
    """

    @property
    def place(self) -> str:
        """The file and the line."""
        return self.target.origin

    @property
    def count(self) -> int | None:
        """The number of connections that it asks for: 1 where the option is absent, None for no number."""
        return requested_nconnect(self.target)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Lines whose mounts share the connections of one server, and that ask for different numbers of them."""

    host: str
    lines: tuple[Line, ...]
    """Each once."""
    count: int
    """The number that all lines should ask for: it is good for each of their mounts."""
    strictest: Target
    """The mount that is good for the fewest connections."""


@lru_cache(maxsize=1)
def servers(facts: Facts) -> tuple[tuple[Target, ...], ...]:
    """Return the NFS mounts by server: what shares connections, and the lines that will join them.

    The last result is kept for the rules that ask about one host.
    """
    known, asking = groups(facts), lines(facts)
    # A line is for one of several network namespaces, and nothing tells for which.
    by_line = len({group.namespace for group in known.live}) <= 1

    def ids(target: Target) -> frozenset[Hashable]:
        group, line = live_group(target, facts, known), asking.get(target.identity)
        own = line.ids if line is not None and (by_line or target.live is None) else frozenset[Hashable]()
        return own if group is None else own | {group}

    return tuple(united((ids(target), target) for target in facts.nfs))


@lru_cache(maxsize=1)
def disagreements(facts: Facts) -> tuple[Disagreement, ...]:
    """Return the servers whose lines ask for different numbers of connections.

    Nothing is said of lines whose server is open, of numbers that the kernel refuses (NFS309), and where the
    kernel or the protocol has no nconnect.
    """
    telling = (
        line
        for line in lines(facts).values()
        if line.ids and 1 <= (line.count or 0) <= MOST and _heeds_nconnect(line.target, facts)
    )
    groups_of_lines = (
        tuple({line.place: line for line in alike}.values())
        for alike in united((line.ids, line) for line in telling)
    )
    return tuple(_judge(alike, facts) for alike in groups_of_lines if len({line.count for line in alike}) > 1)


def _judge(asking: tuple[Line, ...], facts: Facts) -> Disagreement:
    targets = [line.target for line in asking]
    strict = strictest(targets, facts)
    most = bound(strict)
    count = highest((target.profile.nconnect for target in targets), (line.count for line in asking), most)
    host, _ = split_source(targets[0].source)
    return Disagreement(plain(host), asking, min(count or most, most), strict)


def strictest(sharing: Sequence[Target], facts: Facts) -> Target:
    """Return the mount or line of a server that is good for the fewest connections: they are all mounts'.

    What a proposal replaces limits nobody, nor does a line that asks Azure Files for Kerberos: it is refused
    (NFS302).
    """
    after = groups(facts).after
    counting = [target for target in sharing if target.identity not in after and not _is_refused(target)]
    return min(counting or sharing, key=bound)


def _is_refused(target: Target) -> bool:
    return target.live is None and target.endpoint.provider == AZURE_FILES and has_kerberos(target.options)


@lru_cache(maxsize=1)
def lines(facts: Facts) -> dict[Identity, Line]:
    """Return the lines that ask for mounts, by the mounts."""
    snapshot = facts.snapshot
    intents, replicas = Intents((), snapshot.settings, snapshot.tunnels), _replicas(facts)
    known = {}
    for target in facts.nfs:
        request = target.request
        if request is not None:
            asking = _asking(target, request, intents)
            clear = (target.origin, target.point) not in replicas
            ids = _ids(target, asking, request, facts) if clear else frozenset[Hashable]()
            known[target.identity] = Line(asking, target, ids)
    return known


def _asking(target: Target, request: Request, intents: Intents) -> Target:
    """Return a mount as its line asks for it."""
    if target.live is None:
        return target
    return replace(
        target,
        live=None,
        superblock=None,
        source=request.source,
        fstype=request.fstype,
        asked=intents.asked(request),
    )


def _ids(target: Target, line: Target, request: Request, facts: Facts) -> frozenset[Hashable]:
    host = plain(split_source(request.source)[0])
    if not host or "&" in host or "," in request.source.partition(":/")[0] or _has_several(host, facts):
        return frozenset()
    # Of a tunnel's end the port tells the server.
    names = {host} if is_loopback(host) else {host, *addresses(line, facts)}
    security = "tunnel" if wants_tunnel(request) else line.wanted.get("xprtsec") or "none"
    rest = (asked_port(request.source, line.wanted), protocol(line), security)
    versions = {version(line)} if target.live is None else {version(line), version(target)}
    return frozenset((name, number, *rest) for name in names for number in versions)


def _has_several(host: str, facts: Facts) -> bool:
    """Whether a name has several addresses of a family: each mount may be of another server."""
    answer = facts.answers.get(host)
    known = (as_address(text) for text in (answer.addresses if answer else ()))
    families = Counter(address.version for address in known if address is not None)
    return max(families.values(), default=0) > 1


def _replicas(facts: Facts) -> frozenset[tuple[str, str]]:
    """Return the entries of maps that name several servers for one place: nobody knows which is taken."""
    sources: dict[tuple[str, str], set[str]] = {}
    for target in facts.nfs:
        if target.request is not None and target.request.maker is Maker.AUTOFS:
            sources.setdefault((target.origin, target.point), set()).add(target.request.source)
    return frozenset(entry for entry, named in sources.items() if len(named) > 1)


def _heeds_nconnect(line: Target, facts: Facts) -> bool:
    """Whether the kernel counts the option for a mount; an unknown kernel is taken for one of today."""
    release, number = facts.snapshot.kernel, version(line)
    if protocol(line) != "tcp":
        return False
    if release is None:
        return number != "4.0"
    old = number == "4.0" and release.version < V4_0_SINCE
    return not old and knows_nconnect(release, facts.snapshot.distribution, number)
