"""The real server of a mount, behind tunnels and aliases, its provider, and the kinds of addresses.

The ranges are from IANA's special-purpose registries. Python's `is_private` differs between its versions, and
does not distinguish 100.64.0.0/10, documentation and benchmark ranges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from nfstuned.model.facts import Target
from nfstuned.model.kernel import NFS_PORT, Mount, NfsClient, Options, Volume
from nfstuned.model.mounts import GENERIC, Endpoint, Superblock, Tunnel
from nfstuned.model.policy import Provider
from nfstuned.parse.fields import PLACEHOLDER, has_placeholder


class AddressKind(str, Enum):
    """The kinds of addresses that matter to a client of a file server."""

    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    PRIVATE = "private"
    """RFC 1918, or a unique local address (RFC 4193)."""
    CGNAT = "carrier-grade NAT"
    """RFC 6598, 100.64.0.0/10: not reachable from the internet."""
    PUBLIC = "public"
    SPECIAL = "special"
    """Multicast, documentation, benchmarks, 0.0.0.0: not the address of a server."""

    @classmethod
    def of(cls, text: str) -> AddressKind | None:
        """Return the kind of an address, or of the IPv4 address in a mapped or NAT64 one; None for a name."""
        address = as_address(text)
        if address is None:
            return None
        if address in _NAT64:
            address = IPv4Address(int(address) & 0xFFFFFFFF)
        for kind, network in _NETWORKS:
            if address in network:
                return kind
        is_global = address.version == 4 or address in _GLOBAL_IPV6  # noqa: PLR2004 - IPv4
        documented = any(address in network for network in _DOCUMENTATION_IPV6)
        return cls.PUBLIC if is_global and not documented else cls.SPECIAL


_RANGES = (
    (AddressKind.LOOPBACK, ("127.0.0.0/8", "::1/128")),
    (AddressKind.LINK_LOCAL, ("169.254.0.0/16", "fe80::/10")),
    (AddressKind.PRIVATE, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")),
    (AddressKind.CGNAT, ("100.64.0.0/10",)),
    (
        AddressKind.SPECIAL,
        (
            *("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/3"),
        ),
    ),
)
_NETWORKS = tuple((kind, ip_network(text)) for kind, texts in _RANGES for text in texts)
_GLOBAL_IPV6 = ip_network("2000::/3")
_DOCUMENTATION_IPV6 = (ip_network("2001:db8::/32"), ip_network("3fff::/20"))
_NAT64 = ip_network("64:ff9b::/96")
"""RFC 6052: an IPv4 address behind a translator. Name servers (DNS64) write private addresses so, too."""


def all_public(addresses: Iterable[str]) -> bool:
    """Whether there is an address, and each of them is public."""
    kinds = {AddressKind.of(address) for address in addresses}
    return kinds == {AddressKind.PUBLIC}


def same_address(left: str, right: str) -> bool:
    """Whether two texts are one address: "::ffff:10.0.0.4" and "10.0.0.4" are."""
    parsed = as_address(left)
    return parsed is not None and parsed == as_address(right)


def has_stand_in(target: Target) -> bool:
    """Return whether a live mount's source has an address that stands in for its server's (AZNFS).

    No host has such an address: packets to it are sent to the server's own address.
    """
    host, address = split_source(target.source)[0], target.endpoint.address
    if target.live is None or address is None or as_address(host) is None or is_loopback(host):
        return False
    return not same_address(host, address)


SMB_PORT = 445
_HIGHEST_PORT = 65535
_SAMPLES = ("fs-0", "x00")
"""Samples for the placeholders in a server's name, so that its provider can be recognised."""
TUNNEL_PORTS = range(20049, 21050)
"""The local ports that the TLS mount helpers choose from: AZNFS for Azure Files, efs-utils for Amazon EFS."""

_MOST_KEPT = 2048
"""The size of the caches by host and address: each look asks for all."""

Address = IPv4Address | IPv6Address


@lru_cache(_MOST_KEPT)
def as_address(text: str) -> Address | None:
    """Return `text` as an address, without scope (nfsfs has none), IPv4 if mapped; None for a name."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def split_source(source: str) -> tuple[str, str]:
    """Return the host and the export of `host:/export`; an IPv6 host loses its brackets, `[HOST]` does not.

    Of a list of replicas the first counts, as for the kernel (nfs_parse_source in fs/nfs/fs_context.c).
    `//host/share` of SMB is a host and "/share", with slashes or backslashes (smb3_parse_devname).
    """
    if source.startswith("[") and not has_placeholder(source):
        host, _, export = source[1:].partition("]:")
        return host, export
    if source.startswith(("//", "\\\\")):
        host, _, export = source[2:].replace("\\", "/").partition("/")
        return host, "/" + export
    host, slash, export = source.partition(":/")
    if slash:
        export = "/" + export
    else:
        host, _, export = source.partition(":")
    return host.partition(",")[0], export


_SECTION = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_.])?")
"""A plain host name or IPv4 address: nfsmount.conf takes a section's name literally."""
_LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


def section_name(source: str) -> str:
    """Return the name that mount.nfs compares with those of [ Server ] sections, in lower case.

    It cuts the source at its first colon: an IPv6 address in brackets is "[" and its first group.
    """
    return source.partition(":")[0].lower()


def section_obstacle(name: str) -> str:
    """Return why nfsmount.conf can have no section of a server's name; "" where it can."""
    if name.startswith("["):
        return "no section can have an IPv6 address: mount.nfs ends a name at its first colon"
    if is_loopback(name) or name in _LOCAL_NAMES:
        return f"every TLS tunnel of this host begins at {name}: a section would change all of them"
    if _SECTION.fullmatch(name) is None:
        return f"{name} is not a single name for a section"
    return ""


def asked_port(source: str, options: Options) -> int:
    """Return the port in the options; the default of the source's protocol where they have no valid port."""
    standard = SMB_PORT if source.startswith(("//", "\\\\")) else NFS_PORT
    named = options.number("port") or standard
    return named if named <= _HIGHEST_PORT else standard


@lru_cache(_MOST_KEPT)
def plain(host: str) -> str:
    """Return a host for comparison: in lower case but for an address's interface, without a last dot."""
    name, mark, interface = host.partition("%")
    return name.lower().removesuffix(".") + mark + interface


def is_loopback(address: str | None) -> bool:
    """Whether `address` is the host itself, where a TLS tunnel begins."""
    parsed = as_address(address) if address is not None else None
    return parsed is not None and parsed.is_loopback


def _recognise(known: Sequence[tuple[str, re.Pattern[str]]], name: str) -> str:
    """Return the first provider with such names."""
    names = [re.sub(PLACEHOLDER, part, name) for part in _SAMPLES] if has_placeholder(name) else [name]
    found = (provider for provider, pattern in known if any(map(pattern.fullmatch, names)))
    return next(found, GENERIC)


class Providers:
    """The providers of a policy, by the names of their servers and by other signs."""

    __slots__ = ("_by_name", "_known")

    def __init__(self, known: tuple[Provider, ...]) -> None:
        self._known = known
        names = tuple(
            (provider.name, re.compile(pattern, re.VERBOSE))
            for provider in known
            for pattern in provider.servers
        )
        # Not a method: this object would refer to itself, and keep its policy until the collector runs.
        self._by_name = lru_cache(_MOST_KEPT)(partial(_recognise, names))

    def by_name(self, host: str) -> str:
        """Return the provider with servers named like `host`; "generic" where no provider has such names."""
        return self._by_name(plain(host))

    def by_options(self, options: Options) -> str:
        """Return the provider with a client that takes one of these options; "generic" without."""
        names = {name for name, _ in options.pairs}
        known = (provider.name for provider in self._known if not names.isdisjoint(provider.client_options))
        return next(known, GENERIC)

    def by_implementation(self, text: str, *, azure: bool) -> str:
        """Return the provider of a server that calls itself `text` (NFSv4.1's impl_id), else "generic".

        Several providers run the same software: `azure`, on an Azure VM, decides between them.
        """
        for provider in self._known:
            if (
                provider.implementation
                and provider.implementation in text.lower()
                and provider.azure is azure
            ):
                return provider.name
        return GENERIC

    def endpoint(
        self,
        mount: Mount,
        superblock: Superblock | None,
        tunnels: tuple[Tunnel, ...],
        azure: bool,  # noqa: FBT001 - a fact about the machine, not a mode
        implementation: str | None,
    ) -> Endpoint:
        """Return the real server of `mount`.

        `implementation` is the server's `impl_id` (NFSv4.1 and later), by which Azure NetApp Files is
        recognised: its endpoints are addresses in the customer's own subnet, without names.
        """
        host, _ = split_source(mount.source)
        address = mount.options.get("addr") or (host if as_address(host) else None)
        servers, volume = (superblock.servers, superblock.volume) if superblock else ((), None)
        place = self.resolve(host, address, asked_port(mount.source, mount.options), servers, tunnels)
        if is_loopback(address) and not is_loopback(host):
            place = self._by_tunnel(place, volume, tunnels)
        if place.provider == GENERIC:
            own = self.by_options(mount.options)
            if own == GENERIC:
                own = self.by_implementation(implementation or "", azure=azure)
            return place._replace(provider=own)
        return place

    def resolve(
        self,
        host: str,
        address: str | None,
        port: int,
        servers: tuple[NfsClient, ...],
        tunnels: tuple[Tunnel, ...],
    ) -> Endpoint:
        """Return the real server behind `host` at `address` and `port`, by names and tunnels.

        A mount by address gets the name of another client of the same address and port. A mount through a
        tunnel leads to the tunnel's server, even where the kernel sends it over another mount's connection to
        that server.
        """
        if is_loopback(address) or is_loopback(host):
            for tunnel in tunnels:
                if tunnel.port == port and tunnel.stands_in is None:
                    return self._behind(tunnel)
        for tunnel in tunnels:
            if tunnel.stands_in is not None and tunnel.stands_in == str(as_address(address or host)):
                return self._behind(tunnel)._replace(address=tunnel.address, port=port)
        provider = self.by_name(host)
        if provider == GENERIC and as_address(host):
            for server in servers:
                named = self.by_name(server.hostname)
                if (
                    named != GENERIC
                    and server.port == port
                    and as_address(server.address) == as_address(host)
                ):
                    return Endpoint(plain(server.hostname), address, port, named)
        return Endpoint(plain(host), address, port, provider)

    def _by_tunnel(self, place: Endpoint, volume: Volume | None, tunnels: tuple[Tunnel, ...]) -> Endpoint:
        """Return the server of a mount made by name that shows a loopback address.

        It is a server on this host, or the kernel sends the mount over the connections of an earlier mount's
        tunnel to the same server. Then its superblock has that tunnel's port instead of the mount's own.
        """
        if volume is None or volume.port not in TUNNEL_PORTS or volume.port == place.port:
            return place
        behind = next((self._behind(tunnel) for tunnel in tunnels if tunnel.port == volume.port), None)
        if behind is None:
            return place._replace(address=None)
        provider = behind.provider if place.provider == GENERIC else place.provider
        return place._replace(address=behind.address, provider=provider)

    def _behind(self, tunnel: Tunnel) -> Endpoint:
        named = self.by_name(tunnel.host)
        return Endpoint(
            host=plain(tunnel.host),
            address=tunnel.host if as_address(tunnel.host) else None,
            port=tunnel.host_port,
            provider=named if named != GENERIC else tunnel.provider,
        )
