"""What kind of network an address belongs to: this says who can reach it, not whose it is.

The ranges are those of IANA's special-purpose registries. Python's own `is_private` is not used: its meaning
differs between versions, and it takes 100.64.0.0/10, documentation and benchmark ranges for one thing.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from ipaddress import ip_network

from nfstuned.core.endpoint import as_address


class Kind(str, Enum):
    """The kinds of addresses that matter to a client of a file server."""

    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    PRIVATE = "private"
    """RFC 1918, or a unique local address (RFC 4193)."""
    CGNAT = "carrier-grade NAT"
    """RFC 6598, 100.64.0.0/10: not reachable from the internet either."""
    PUBLIC = "public"
    SPECIAL = "special"
    """Multicast, documentation, benchmarks, 0.0.0.0: no server's address, or nothing that tells where."""


_RANGES = (
    (Kind.LOOPBACK, ("127.0.0.0/8", "::1/128")),
    (Kind.LINK_LOCAL, ("169.254.0.0/16", "fe80::/10")),
    (Kind.PRIVATE, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")),
    (Kind.CGNAT, ("100.64.0.0/10",)),
    (
        Kind.SPECIAL,
        (
            *("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/3"),
        ),
    ),
)
_NETWORKS = tuple((kind, ip_network(text)) for kind, texts in _RANGES for text in texts)
_GLOBAL_IPV6 = ip_network("2000::/3")
_DOCUMENTATION_IPV6 = ip_network("2001:db8::/32")
_NAT64 = ip_network("64:ff9b::/96")
"""RFC 6052: a public IPv4 address behind a translator; private ones must not be written so."""


def kind(text: str) -> Kind | None:
    """Return the kind of an address, an IPv4-mapped one as the IPv4 address it is; None for a name."""
    address = as_address(text)
    if address is None:
        return None
    for known, network in _NETWORKS:
        if address in network:
            return known
    outside = address.version == 4 or address in _GLOBAL_IPV6 or address in _NAT64  # noqa: PLR2004 - IPv4
    return Kind.PUBLIC if outside and address not in _DOCUMENTATION_IPV6 else Kind.SPECIAL


def all_public(addresses: Iterable[str]) -> bool:
    """Whether there is an address, and each of them is public."""
    kinds = {kind(address) for address in addresses}
    return kinds == {Kind.PUBLIC}


def same(left: str, right: str) -> bool:
    """Whether two texts are one address: "::ffff:10.0.0.4" and "10.0.0.4" are."""
    parsed = as_address(left)
    return parsed is not None and parsed == as_address(right)
