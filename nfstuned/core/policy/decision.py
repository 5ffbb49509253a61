"""Decisions of the policy: its compiled patterns, a mount's server and profile, a superblock's read-ahead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import translate
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from nfstuned.core.policy.endpoint import (
    TUNNEL_PORTS,
    Address,
    Providers,
    as_address,
    is_loopback,
    plain,
    split_source,
)
from nfstuned.model.kernel import Mount, NfsClient, Options, Volume
from nfstuned.model.mounts import GENERIC, Decision, Endpoint, Record, Snapshot, Superblock, Tunnel
from nfstuned.model.policy import (
    ADAPT_OFF,
    ADAPT_ON,
    LEAST_KB,
    MOST_KB,
    WORKLOAD_MARK,
    Assignment,
    Policy,
    Profile,
    ReadAhead,
)

_MOST_WITHOUT_NUMBER = ReadAhead(times_rsize=15)
"""The bound where no vendor names a number: the kernel's own read-ahead before 5.4 (fs/nfs/internal.h)."""
_MAPPED = IPv6Network("::ffff:0:0/96")
_ADDRESS_GLOB = re.compile(r"[0-9.:*?]+")


class Subject(NamedTuple):
    """The known facts of a mount, perhaps of a mount in the making. `None` means not known."""

    names: frozenset[str]
    """The names for server patterns: source host, real host and addresses, as `plain` gives them."""
    addresses: tuple[Address, ...]
    export: str | None = None
    point: str | None = None
    unnamed: bool = False
    """Its mount may have another name than `names`."""


def subject(host: str, address: str | None, endpoint: Endpoint, **known: str) -> Subject:
    """Return the subject for a mount of `host` at `address`; `export` and `point` where they are known.

    Both are written as the kernel shows them, unlike in files that ask for a mount.
    """
    texts = {plain(text) for text in (host, address, endpoint.host, endpoint.address) if text}
    addresses = tuple(parsed for text in texts if (parsed := as_address(text)) is not None)
    export, point = known.get("export"), known.get("point")
    if point and "//" in point:
        point = re.sub("//+", "/", point)
    return Subject(frozenset(texts), addresses, export and unended(export), point and unended(point))


def unended(path: str) -> str:
    """Return a path without slashes at its end, as the kernel shows it; "/" stays."""
    return path.rstrip("/") or path[:1]


def as_glob(text: str) -> str:
    """Return the pattern that means a text and nothing else (fnmatch)."""
    return re.sub(r"([*?[])", r"[\1]", text)


class Choice(NamedTuple):
    """A profile that applies, or may apply, and why."""

    profile: Profile
    why: str
    place: str = ""
    """`file:line` of the [[policy]] entry; "" for the provider's profile."""


class PolicyRule:
    """A [[policy]] entry, compiled."""

    __slots__ = (
        *("_any_name", "_any_server", "_export", "_names", "_networks", "_point"),
        *("assignment", "by_address"),
    )

    def __init__(self, assignment: Assignment) -> None:
        match = assignment.match
        self.assignment = assignment
        networks = [(pattern, as_network(pattern)) for pattern in match.server]
        globs = [plain(pattern) for pattern, network in networks if network is None]
        self._any_server = not match.server
        self._any_name = any(not _ADDRESS_GLOB.fullmatch(glob) for glob in globs)
        self.by_address = len(globs) < len(networks) or any(map(_ADDRESS_GLOB.fullmatch, globs))
        self._networks = tuple(network for _, network in networks if network is not None)
        self._names = _globs(globs)
        self._export = _globs([unended(pattern) for pattern in match.export])
        self._point = _globs([unended(pattern) for pattern in match.mount_point])

    def applies(self, subject: Subject) -> bool | None:
        """Return whether the entry means the subject; None when that depends on an unknown fact."""
        tests = (
            self._server(subject),
            _test(self._export, subject.export),
            _test(self._point, subject.point),
        )
        if False in tests:
            return False
        return None if None in tests else True

    def _server(self, subject: Subject) -> bool | None:
        if self._any_server or any(self._names.fullmatch(name) for name in subject.names if self._names):
            return True
        if any(address in network for network in self._networks for address in subject.addresses):
            return True
        return None if subject.unnamed and self._any_name else False


class Matcher:
    """A policy, ready to be asked; make it once for each policy (see `matcher`)."""

    __slots__ = ("_policy", "_profiles", "_rules", "providers")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._rules = tuple(PolicyRule(entry) for entry in policy.assignments)
        self._profiles = {profile.name: profile for profile in policy.profiles}
        self.providers = Providers(policy.providers)

    def choices(self, subject: Subject, endpoint: Endpoint) -> tuple[Choice, ...]:
        """Return every profile that may apply, in the order of the file: one when all facts are known."""
        choices: list[Choice] = []
        for rule in self._rules:
            applies = rule.applies(subject)
            if applies is not False:
                choices.append(self._choice(rule.assignment, endpoint))
            if applies:
                return tuple(choices)
        return (*choices, Choice(self.profile(endpoint.provider), self._sign(endpoint)))

    def matching(self, subject: Subject, endpoint: Endpoint) -> tuple[Choice, ...]:
        """Return a choice for every entry that applies to a fully known mount, and then its provider's."""
        rules = (rule.assignment for rule in self._rules if rule.applies(subject))
        entries = (self._choice(assignment, endpoint) for assignment in rules)
        return (*entries, Choice(self.profile(endpoint.provider), self._sign(endpoint)))

    def _choice(self, assignment: Assignment, endpoint: Endpoint) -> Choice:
        profile = self.profile(assignment.profile or endpoint.provider)
        workload = self._policy.workload(assignment.workload)
        profile = profile.working(workload) if workload else profile
        profile = replace(profile, adapt=assignment.adapt) if assignment.adapt else profile
        return Choice(profile, assignment.origin, assignment.place)

    def _sign(self, endpoint: Endpoint) -> str:
        """Return how the provider of an endpoint was recognised."""
        if self.providers.by_name(endpoint.host) == endpoint.provider:
            return f"{endpoint.provider} by name {endpoint.host}"
        provider = next((known for known in self._policy.providers if known.name == endpoint.provider), None)
        if provider and provider.implementation:
            return f"{endpoint.provider} by the own name of {endpoint.host}"
        if provider and provider.client_options:
            return f"{endpoint.provider} by options of its own client"
        return f"{endpoint.provider} behind a TLS tunnel to {endpoint.host}"

    @property
    def by_address(self) -> bool:
        """Whether the address of a server may give its mounts another profile than its name does."""
        return any(rule.by_address for rule in self._rules)

    def by_implementation(self, *, azure: bool) -> list[Profile]:
        """Return the profiles that a server's own name may mean, on a VM of Azure or elsewhere."""
        known = self._policy.providers
        return [self.profile(each.name) for each in known if each.implementation and each.azure is azure]

    def find(self, name: str) -> Profile | None:
        """Return the profile of that name; None for another name."""
        return self._profiles.get(name)

    def profile(self, name: str) -> Profile:
        """Return the profile of that name; a profile without an opinion for another name."""
        return self.find(name) or Profile(name)


@lru_cache(maxsize=4)
def matcher(policy: Policy) -> Matcher:
    """Return the policy's matcher, compiled at the first call."""
    return Matcher(policy)


def as_network(pattern: str) -> IPv4Network | IPv6Network | None:
    """Return the network of a server pattern: a CIDR or an address, perhaps bracketed; else None.

    IPv4-mapped addresses give an IPv4 network, as in `as_address`.
    """
    text = pattern[1:-1] if pattern.startswith("[") and pattern.endswith("]") else pattern
    try:
        network = ip_network(text.partition("%")[0], strict=False)
    except ValueError:
        return None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        shortened = int(network.network_address) & 0xFFFFFFFF
        return IPv4Network((shortened, network.prefixlen - _MAPPED.prefixlen))
    return network


def _globs(patterns: list[str] | tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(translate(pattern) for pattern in patterns)) if patterns else None


def _test(pattern: re.Pattern[str] | None, text: str | None) -> bool | None:
    if pattern is None:
        return True
    return None if text is None else pattern.fullmatch(text) is not None


V4 = 4
UNSEEN = "none of its mounts is visible here"


class Classification(NamedTuple):
    """The real server of a live mount, and its profile."""

    endpoint: Endpoint
    choice: Choice


def classify(
    policy: Policy, mount: Mount, superblock: Superblock | None, snapshot: Snapshot
) -> Classification:
    """Return the classification of a live mount; `superblock` is None for mounts other than NFS."""
    stanza = snapshot.stanza_of(mount, superblock)
    implementation = stanza.implementation if stanza else None
    providers = matcher(policy).providers
    server = providers.endpoint(mount, superblock, snapshot.tunnels, snapshot.azure, implementation)
    return Classification(server, choose_profile(policy, mount.source, mount.point, mount.options, server))


def choose_profile(policy: Policy, source: str, point: str, options: Options, server: Endpoint) -> Choice:
    """Return the profile of a fully known mount, by the first [[policy]] entry for it."""
    return matcher(policy).choices(_known_subject(source, point, options, server), server)[0]


def matching_choices(policy: Policy, mount: Mount, server: Endpoint) -> tuple[Choice, ...]:
    """Return the choices of every entry for a live mount and of its provider: the first counts."""
    known = _known_subject(mount.source, mount.point, mount.options, server)
    return matcher(policy).matching(known, server)


def _known_subject(source: str, point: str, options: Options, server: Endpoint) -> Subject:
    host, export = split_source(source)
    return subject(host, options.get("addr"), server, export=export, point=point)


def read_ahead_kb(wanted: ReadAhead | None, rsize: int | None, most_kb: int | None = None) -> int | None:
    """Return a read-ahead in KiB within the bounds; None without an opinion, or without the rsize (bytes).

    `most_kb` is the profile's limit, which a multiple of a large rsize may exceed.
    """
    if wanted is None:
        return None
    kb = wanted.kb
    if kb is None:
        if wanted.times_rsize is None or rsize is None:
            return None
        kb = wanted.times_rsize * rsize // 1024
    return max(LEAST_KB, min(most_kb or MOST_KB, MOST_KB, kb))


def depends_on_implementation(policy: Policy) -> bool:
    """Whether a server's own name (impl_id) may give its mounts another read-ahead, even off Azure."""
    known = matcher(policy)
    other = known.profile(GENERIC)
    # A workload's number is cut by the profile's limit.
    keys = ("read_ahead", "lower", "read_ahead_max_kb", "moves")
    return any(
        getattr(named, key) != getattr(other, key)
        for named in known.by_implementation(azure=False)
        for key in keys
    )


def wanted_connections(profile: Profile, version: str | None) -> int | None:
    """Return a profile's number of connections with a version of NFS; None where it names none."""
    most = profile.most_connections(version)
    return profile.nconnect if profile.nconnect is None or most is None else min(profile.nconnect, most)


def decide(policy: Policy, superblock: Superblock, snapshot: Snapshot) -> Decision:
    """Return the decision on `superblock`, by the first [[policy]] entry for a mount, else by its provider.

    Mounts of one superblock share its read-ahead.
    """
    record = loop_record(policy, superblock)
    if superblock.mounts:
        mounts = [(mount, classify(policy, mount, superblock, snapshot)) for mount in superblock.mounts]
        return join_decisions(mounts, record)
    choices: list[tuple[Choice, Endpoint]] = []
    if superblock.volume is not None:
        choices = _volume_choices(matcher(policy), superblock.volume, superblock.servers, snapshot.tunnels)
    if not choices:
        return Decision(None, GENERIC, GENERIC, lower=False, why=UNSEEN)
    # The least that a possible profile asks for is never too much, for nfstuned only raises.
    decisions = [_decision(choice, server, None) for choice, server in choices]
    best = min(decisions, key=lambda decision: decision.kb or 0)
    if len({(decision.kb, decision.lower, decision.most_kb) for decision in decisions}) == 1:
        return as_adapted(best, record)
    return replace(
        best, most_kb=None, lower=False, why=f"{best.why}; {UNSEEN}, and this is the least possible value"
    )


def loop_record(policy: Policy, superblock: Superblock) -> Record | None:
    """Return the record to which the loop has written; None without samples, where nothing moves a value."""
    return superblock.record if policy.sample_interval_s else None


def decide_early(
    policy: Policy,
    volume: Volume,
    servers: tuple[NfsClient, ...],
    tunnels: tuple[Tunnel, ...],
    *,
    azure: bool = True,
) -> Decision | None:
    """Return the decision on a superblock before its mounts are visible; None: wait for mountinfo.

    Called between the kernel's bdi event and the mount's appearance, when only nfsfs knows the superblock.
    There is a decision only when the unknown name, export, mount point and rsize cannot change it: nfstuned
    only raises, so a value that is too high would stay. The server's own name (impl_id), which means another
    provider on an Azure VM (`azure`), may still raise it.
    """
    known = {tunnel.port for tunnel in tunnels}
    if volume.port in TUNNEL_PORTS and volume.port not in known and is_loopback(volume.address):
        return None
    compiled = matcher(policy)
    choices = _volume_choices(compiled, volume, servers, tunnels)
    if not choices or any(
        choice.profile.read_ahead and not choice.profile.read_ahead.kb for choice, _ in choices
    ):
        return None
    decisions = [_decision(choice, server, None) for choice, server in choices]
    if len({(decision.kb, decision.lower) for decision in decisions}) > 1:
        return None
    first = decisions[0]
    if volume.version >= V4 and first.kb is not None:
        for choice, server in choices:
            plain, _, work = choice.profile.name.partition(WORKLOAD_MARK)
            if (server.provider, plain) == (GENERIC, GENERIC):
                workload = policy.workload(work)
                for named in compiled.by_implementation(azure=azure):
                    later = (named.working(workload) if workload else named).read_ahead
                    if later is None or (later.kb or 0) < first.kb:
                        return None
    return first


def join_decisions(mounts: Sequence[tuple[Mount, Classification]], record: Record | None = None) -> Decision:
    """Return the decision on a superblock, given the classifications of its mounts; there must be a mount.

    The largest value counts. Mounts in other namespaces count only where the host's own namespace has no
    mount of the superblock.
    """
    deciding = [pair for pair in mounts if not pair[0].foreign] or mounts
    decisions = [
        _decision(classified.choice, classified.endpoint, mount.options.number("rsize"))
        for mount, classified in deciding
    ]
    best = max(decisions, key=lambda decision: (decision.kb or 0, not decision.lower))
    # A mount without a number has a word where no mount has one.
    if any(each.most_kb is None and (each.kb is not None or best.kb is None) for each in decisions):
        best = replace(best, most_kb=None)
    values = sorted({decision.kb for decision in decisions if decision.kb is not None})
    if len(values) <= 1:
        return as_adapted(best, record)
    others = " and ".join(str(value) for value in values)
    why = f"{best.why}; its mounts ask for {others} KiB, the largest counts"
    return as_adapted(replace(best, why=why, conflict=True), record)


def as_adapted(decision: Decision, record: Record | None) -> Decision:
    """Return the decision with the value to which a superblock's reads have moved it, if they may."""
    kb = record.adapted_kb if record is not None and record.hold is None else None
    if kb is None or decision.most_kb is None or min(kb, decision.most_kb) == decision.kb:
        return decision
    why = f"{decision.why}; adapted to its reads"
    return replace(decision, adapted_kb=min(kb, decision.most_kb), why=why)


def _volume_choices(
    compiled: Matcher, volume: Volume, servers: tuple[NfsClient, ...], tunnels: tuple[Tunnel, ...]
) -> list[tuple[Choice, Endpoint]]:
    """Return every possible profile of a superblock, for each possible name of its server."""
    at = (volume.version, volume.address, volume.port)
    rows = tuple(row for row in servers if (row.version, row.address, row.port) == at)
    # During the first mount of a client it has a single user; NFSv4 holds the pseudo-root as well. With more
    # users, another mount may have come first, or the export lies deeper; a client has only the first mount's
    # name (fs/nfs/client.c, nfs_get_client).
    shared = any(row.users > (2 if row.version >= V4 else 1) for row in rows)
    choices: list[tuple[Choice, Endpoint]] = []
    for host in dict.fromkeys([*(row.hostname for row in rows), volume.address]):
        server = compiled.providers.resolve(host, volume.address, volume.port, rows, tunnels)
        known: Subject = subject(host, volume.address, server)
        if shared:
            known = known._replace(unnamed=True)
        choices.extend((choice, server) for choice in compiled.choices(known, server))
    return choices if rows else []


def _decision(choice: Choice, server: Endpoint, rsize: int | None) -> Decision:
    profile = choice.profile
    kb = read_ahead_kb(profile.read_ahead, rsize, profile.read_ahead_max_kb)
    most_kb, by_need = None if profile.moves == ADAPT_OFF else kb, profile.read_ahead is None
    if by_need and profile.moves == ADAPT_ON:
        most_kb = read_ahead_kb(_MOST_WITHOUT_NUMBER, rsize, profile.read_ahead_max_kb)
    named = (profile.name, server.provider, profile.lower, choice.why)
    return Decision(kb, *named, most_kb=most_kb, by_need=by_need)
