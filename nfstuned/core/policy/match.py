"""The profiles that may apply to a mount, by the policy's compiled patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from nfstuned.core.policy.endpoint import Address, Providers, as_address, plain
from nfstuned.model.mounts import Endpoint
from nfstuned.model.policy import Assignment, Policy, Profile

_MAPPED = IPv6Network("::ffff:0:0/96")
_ADDRESS_GLOB = re.compile(r"[0-9.:*?]+")


@dataclass(frozen=True, slots=True)
class Subject:
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


@dataclass(frozen=True, slots=True)
class Choice:
    """A profile that applies, or may apply, and why."""

    profile: Profile
    why: str


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

    def _choice(self, assignment: Assignment, endpoint: Endpoint) -> Choice:
        profile = self.profile(assignment.profile or endpoint.provider)
        workload = self._policy.workload(assignment.workload)
        return Choice(profile.working(workload) if workload else profile, assignment.origin)

    def _sign(self, endpoint: Endpoint) -> str:
        """Return how the provider of an endpoint was recognised."""
        if self.providers.by_name(endpoint.host) == endpoint.provider:
            return f"{endpoint.provider} by name {endpoint.host}"
        provider = next((known for known in self._policy.providers if known.name == endpoint.provider), None)
        if provider and provider.implementation:
            return f"{endpoint.provider} by the own name of {endpoint.host}"
        if provider and provider.client_options:
            return f"{endpoint.provider} by options that its own client takes"
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


def provider_by_name(policy: Policy, host: str) -> str:
    """Return the provider with servers named like `host`; "generic" where no provider has such names."""
    return matcher(policy).providers.by_name(host)


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
