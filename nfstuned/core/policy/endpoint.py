"""Whose server a mount really uses, behind tunnels and aliases, and who can reach its address.

The ranges are those of IANA's special-purpose registries. Python's own `is_private` is not used: its meaning
differs between versions, and it takes 100.64.0.0/10, documentation and benchmark ranges for one thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from nfstuned.model.kernel import Mount, Options, Server, Volume
from nfstuned.model.mounts import Endpoint, Superblock, Tunnel


class AddressKind(str, Enum):
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
"""RFC 6052: an IPv4 address behind a translator. Name servers (DNS64) write private ones so, too."""


def kind(text: str) -> AddressKind | None:
    """Return the kind of an address, of IPv4 in IPv6 as the IPv4 address it is; None for a name."""
    address = as_address(text)
    if address is None:
        return None
    if address in _NAT64:
        address = IPv4Address(int(address) & 0xFFFFFFFF)
    for known, network in _NETWORKS:
        if address in network:
            return known
    outside = address.version == 4 or address in _GLOBAL_IPV6  # noqa: PLR2004 - IPv4
    documented = any(address in network for network in _DOCUMENTATION_IPV6)
    return AddressKind.PUBLIC if outside and not documented else AddressKind.SPECIAL


def all_public(addresses: Iterable[str]) -> bool:
    """Whether there is an address, and each of them is public."""
    kinds = {kind(address) for address in addresses}
    return kinds == {AddressKind.PUBLIC}


def same(left: str, right: str) -> bool:
    """Whether two texts are one address: "::ffff:10.0.0.4" and "10.0.0.4" are."""
    parsed = as_address(left)
    return parsed is not None and parsed == as_address(right)


AZURE_FILES, AZURE_BLOB, NETAPP = "azure-files", "azure-blob", "azure-netapp-files"
EFS, S3_FILES, FSX_ONTAP, FSX_OPENZFS = "aws-efs", "aws-s3-files", "aws-fsx-ontap", "aws-fsx-openzfs"
ALIBABA, IBM, ONTAP, VAST = "alibaba-nas", "ibm-file-storage", "netapp-ontap", "vast"
GENERIC = "generic"
PROVIDERS = frozenset(
    (
        *(AZURE_FILES, AZURE_BLOB, NETAPP, EFS, S3_FILES, FSX_ONTAP, FSX_OPENZFS),
        *(ALIBABA, IBM, ONTAP, VAST, GENERIC),
    )
)
NFS_PORT, SMB_PORT = 2049, 445
_HIGHEST_PORT = 65535
TUNNEL_PORTS = range(20049, 21050)
"""The local ports that the TLS mount helpers choose from: AZNFS for Azure Files, efs-utils for Amazon EFS."""

# The prefix is AZNFS's own (https://github.com/Azure/AZNFS-mount). The first three clouds and the DNS zones
# are in https://learn.microsoft.com/azure/storage/files/storage-files-networking-endpoints; the others are
# known from source code only. Blob storage (`.blob.`) speaks NFSv3.
_AZURE = re.compile(
    r"(?:[a-z0-9]{3,24}(?:-secondary)?|fs-[a-z0-9]{1,21})(?:\.z[0-9]+)?(?:\.privatelink)?\.(file|blob)"
    r"(?:(?:\.preprod)?\.core\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn|cloudapi\.de"
    r"|microsoft\.scloud|eaglex\.ic\.gov|sovcloud-api\.(?:fr|de|sg))"
    r"|\.storage\.azure\.net)"
)
# The suffixes of Amazon's other partitions, as efs-utils has them: efs-utils.conf and s3files-utils.conf in
# dist of https://github.com/aws/efs-utils.
_PARTITIONS = r"amazonaws\.eu|cloud\.adc-e\.uk|c2s\.ic\.gov|sc2s\.sgov\.gov|csp\.hci\.ic\.gov"
_AMAZON = rf"\.[a-z0-9-]+\.(?:amazonaws\.com(?:\.cn)?|{_PARTITIONS})"
_ON_AWS = rf"\.[a-z0-9-]+\.(?:on\.aws|on\.amazonwebservices\.com\.cn|{_PARTITIONS})"
_NAMES = (
    # https://docs.aws.amazon.com/efs/latest/ug/mounting-fs-mount-cmd-dns-name.html
    (EFS, re.compile(rf"(?:[a-z0-9-]+\.)?fs-[0-9a-z]+\.efs{_AMAZON}")),
    (S3_FILES, re.compile(rf"(?:[a-z0-9-]+\.)?fs-[0-9a-z]+\.s3files{_ON_AWS}")),
    # A name of FSx with a storage virtual machine is ONTAP's. Of the others NFS mounts OpenZFS alone: Lustre
    # has a file system of its own, Windows speaks SMB.
    (FSX_ONTAP, re.compile(rf"svm-[0-9a-z]+\.fs-[0-9a-z]+\.fsx{_AMAZON}")),
    (FSX_OPENZFS, re.compile(rf"fs-[0-9a-z]+\.fsx{_AMAZON}")),
    # The kinds that the vendor's driver tells apart by the name (isExtremeNAS, isCPFS in pkg/nas/utils.go of
    # https://github.com/kubernetes-sigs/alibaba-cloud-csi-driver); CPFS is another product.
    (ALIBABA, re.compile(r"[a-z0-9-]+\.[a-z0-9-]+(?:\.extreme)?\.nas\.aliyuncs\.com")),
    # https://github.com/ibm-cloud-docs/vpc and https://github.com/ibm-cloud-docs/FileStorage
    (IBM, re.compile(r"(?:fsf-|nfs)[a-z0-9-]+\.(?:adn\.networklayer|service\.softlayer)\.com")),
)

VAST_CLIENT = frozenset({"spread_reads", "spread_writes", "pconnect", "mdconnect"})
"""Options that VAST's own client takes beside the kernel's, and no other:
https://kb.vastdata.com/kb/docs/7-vast-client-nfs-multipathing. `remoteports` is not among them: Dell's driver
for PowerScale takes it as well."""
MULTIPATH = VAST_CLIENT | {"remoteports", "localports", "localports_failover"}
"""Options of clients that are not the kernel's, and have more connections than it."""

_MOST_KEPT = 2048
"""Of how many hosts and addresses the answers are kept: each look asks about all of them again."""

Address = IPv4Address | IPv6Address


@lru_cache(_MOST_KEPT)
def as_address(text: str) -> Address | None:
    """Return the address that `text` is: without scope (nfsfs has none), IPv4 where it is mapped."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def split_source(source: str) -> tuple[str, str]:
    """Return the host and the export of `host:/export`; an IPv6 host loses its brackets.

    Of a list of replicas the first counts, as for the kernel (nfs_parse_source in fs/nfs/fs_context.c).
    `//host/share` of SMB is a host and "/share", with slashes or backslashes (smb3_parse_devname).
    """
    if source.startswith("["):
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


def section_name(source: str) -> str:
    """Return what mount.nfs compares with the names of [ Server ] sections, in lower case.

    It cuts the source at its first colon: an IPv6 address in brackets is "[" and its first group.
    """
    return source.partition(":")[0].lower()


def asked_port(source: str, options: Options) -> int:
    """Return the port that options name; that of the source's protocol where they name none that exists."""
    standard = SMB_PORT if source.startswith(("//", "\\\\")) else NFS_PORT
    named = options.number("port") or standard
    return named if named <= _HIGHEST_PORT else standard


@lru_cache(_MOST_KEPT)
def plain(host: str) -> str:
    """Return a host as hosts are compared: lower case but for an address's interface, without a last dot."""
    name, mark, interface = host.partition("%")
    return name.lower().removesuffix(".") + mark + interface


@lru_cache(_MOST_KEPT)
def provider_by_name(host: str) -> str:
    """Return the provider whose naming scheme `host` follows; "generic" when none does."""
    name = plain(host)
    if azure := _AZURE.fullmatch(name):
        return AZURE_FILES if azure[1] == "file" else AZURE_BLOB
    return next((provider for provider, pattern in _NAMES if pattern.fullmatch(name)), GENERIC)


def provider_by_options(options: Options) -> str:
    """Return the provider whose own client takes the options; "generic" for those of the kernel's."""
    return VAST if any(name in VAST_CLIENT for name, _ in options.pairs) else GENERIC


def is_loopback(address: str | None) -> bool:
    """Whether `address` is the host itself, which is where a TLS tunnel begins."""
    parsed = as_address(address) if address is not None else None
    return parsed is not None and parsed.is_loopback


def endpoint(
    mount: Mount,
    superblock: Superblock | None,
    tunnels: tuple[Tunnel, ...],
    azure: bool,  # noqa: FBT001 - a fact about the machine, not a mode
    implementation: str | None,
) -> Endpoint:
    """Return the real server of `mount`.

    `implementation` is the server's `impl_id` (NFSv4.1 and later). One that says NetApp on an Azure VM is
    Azure NetApp Files: its endpoints are addresses in the customer's own subnet, without a provider's name.
    Elsewhere it is ONTAP, whoever runs it.
    """
    host, _ = split_source(mount.source)
    address = mount.options.get("addr") or (host if as_address(host) else None)
    servers, volume = (superblock.servers, superblock.volume) if superblock else ((), None)
    place = resolve(host, address, asked_port(mount.source, mount.options), servers, tunnels)
    if is_loopback(address) and not is_loopback(host):
        place = _beside_tunnel(place, volume, tunnels)
    if place.provider == GENERIC and (own := provider_by_options(mount.options)) != GENERIC:
        return replace(place, provider=own)
    if place.provider == GENERIC and "netapp" in (implementation or "").lower():
        return replace(place, provider=NETAPP if azure else ONTAP)
    return place


def resolve(
    host: str, address: str | None, port: int, servers: tuple[Server, ...], tunnels: tuple[Tunnel, ...]
) -> Endpoint:
    """Return the real server behind `host` at `address` and `port`, as far as names and tunnels tell.

    A mount by address is the endpoint that another client of the same address and port knows by name. One of
    a tunnel is the tunnel's, also where the kernel sends it over another mount's connection to that server.
    """
    if is_loopback(address) or is_loopback(host):
        for tunnel in tunnels:
            if tunnel.port == port and tunnel.stands_in is None:
                return _behind(tunnel)
    for tunnel in tunnels:
        if tunnel.stands_in is not None and tunnel.stands_in == str(as_address(address or host)):
            return replace(_behind(tunnel), address=tunnel.address, port=port)
    provider = provider_by_name(host)
    if provider == GENERIC and as_address(host):
        for server in servers:
            named = provider_by_name(server.hostname)
            if named != GENERIC and server.port == port and as_address(server.address) == as_address(host):
                return Endpoint(plain(server.hostname), address, port, named)
    return Endpoint(plain(host), address, port, provider)


def _beside_tunnel(place: Endpoint, volume: Volume | None, tunnels: tuple[Tunnel, ...]) -> Endpoint:
    """Return the server of a mount by name that shows this host's own address.

    It is a server on this host, or the kernel sends the mount over the connections of a tunnel to its server
    that was mounted first. Then its superblock has that tunnel's port, and not the mount's own.
    """
    if volume is None or volume.port not in TUNNEL_PORTS or volume.port == place.port:
        return place
    behind = next((_behind(tunnel) for tunnel in tunnels if tunnel.port == volume.port), None)
    if behind is None:
        return replace(place, address=None)
    provider = behind.provider if place.provider == GENERIC else place.provider
    return replace(place, address=behind.address, provider=provider)


def _behind(tunnel: Tunnel) -> Endpoint:
    named = provider_by_name(tunnel.host)
    return Endpoint(
        host=plain(tunnel.host),
        address=tunnel.host if as_address(tunnel.host) else None,
        port=tunnel.host_port,
        provider=named if named != GENERIC else tunnel.provider,
    )
