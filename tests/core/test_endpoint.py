from __future__ import annotations

import pytest

from nfstuned.core.policy.decision import matcher
from nfstuned.core.policy.endpoint import (
    AddressKind,
    all_public,
    as_address,
    is_loopback,
    plain,
    same_address,
    split_source,
)
from nfstuned.host.config import builtin_policy
from nfstuned.model.kernel import Mount, NfsClient, Options, Volume
from nfstuned.model.mounts import Endpoint, Superblock, Tunnel

KNOWN = matcher(builtin_policy()).providers
AZNFS = Tunnel(20049, "10.0.0.5", 2049, "azure-files", "/etc/stunnel/microsoft/aznfs/stunnel_10.0.0.5.conf")
EFS_TUNNEL = Tunnel(20100, "fs-0123.efs.eu-west-1.amazonaws.com", 2049, "aws-efs", "/run/efs/stunnel-config")


NETAPP = "name='NetApp Release 9.14.1',domain='netapp.com',date='0,0'"


def mount(source: str, **options: str) -> Mount:
    return Mount(40, 25, "0:43", "/", "/mnt", "nfs4", source, Options(tuple(options.items())))


def row(hostname: str, port: int = 2049) -> NfsClient:
    return NfsClient(version=4, address="10.0.0.5", port=port, users=2, hostname=hostname)


def place(host: str, address: str | None, provider: str = "azure-files") -> Endpoint:
    return Endpoint(host, address, 2049, provider)


ACCOUNT = "sa1.file.core.windows.net"
AZURE_FILES = """
    sa1.file.core.windows.net SA1.File.Core.Windows.Net sa1.file.core.windows.net.
    sa1-secondary.file.core.windows.net sa1.privatelink.file.core.windows.net
    sa1.file.preprod.core.windows.net sa1.file.core.usgovcloudapi.net
    sa1.privatelink.file.core.usgovcloudapi.net sa1.file.core.chinacloudapi.cn
    sa1.privatelink.file.core.chinacloudapi.cn sa1.z12.file.storage.azure.net
    fs-vl8x2ab.z01.file.storage.azure.net fs-vl8x2ab.z01.privatelink.file.storage.azure.net
    fs-vl8x2ab.file.core.windows.net sa1.file.core.cloudapi.de sa1.file.core.microsoft.scloud
    sa1.file.core.eaglex.ic.gov sa1.file.core.sovcloud-api.fr sa1.file.core.sovcloud-api.de
    sa1.file.core.sovcloud-api.sg
"""
BLOB_STORAGE = "sa1.blob.core.windows.net sa1.z3.blob.storage.azure.net"
EFS = """
    fs-0123abcd.efs.eu-west-1.amazonaws.com eu-west-1a.fs-0123abcd.efs.eu-west-1.amazonaws.com
    fs-0123abcd.efs.cn-north-1.amazonaws.com.cn FS-0123ABCD.efs.us-gov-west-1.amazonaws.com.
    fs-0123abcd.efs.eu-isoe-west-1.cloud.adc-e.uk
"""
S3_FILES = """
    fs-0123abcd.s3files.us-east-1.on.aws use1-az1.fs-0123abcd.s3files.us-east-1.on.aws
    fs-0123abcd.s3files.cn-north-1.on.amazonwebservices.com.cn
"""
ONTAP = "svm-01234567890abdef0.fs-01234567890abcdef1.fsx.us-east-1.amazonaws.com"
OPENZFS = """
    fs-01234567890abcdef1.fsx.us-east-1.amazonaws.com fs-01234567890abcdef1.fsx.cn-north-1.amazonaws.com.cn
"""
ALIBABA = """
    2564f49129-ysu87.cn-shenzhen.nas.aliyuncs.com 0a1b2c-xyz12.cn-hangzhou.extreme.nas.aliyuncs.com
"""
IBM = """
    fsf-dal2433a-dz.adn.networklayer.com fsf-wdc0403a-fz.service.softlayer.com
    nfshou0201d-fz.service.softlayer.com
"""


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        *(("azure-files", AZURE_FILES), ("azure-blob", BLOB_STORAGE), ("aws-efs", EFS)),
        *(("aws-s3-files", S3_FILES), ("aws-fsx-ontap", ONTAP), ("aws-fsx-openzfs", OPENZFS)),
        *(("alibaba-nas", ALIBABA), ("ibm-file-storage", IBM)),
    ],
)
def test_a_provider_is_recognised_by_its_names_in_every_cloud(provider: str, names: str) -> None:
    assert {name: KNOWN.by_name(name) for name in names.split()} == dict.fromkeys(names.split(), provider)


NOBODYS = """
    sa1.file.core.windows.net.example.org evil-sa1.file.core.windows.net. x.sa1.file.core.windows.net
    file.core.windows.net sa1.file.corexwindows.net sa1.queue.core.windows.net nas.example.org 10.0.0.5
    fs-0123abcd.s3files.us-east-1.amazonaws.com svm-0123.fsx.us-east-1.amazonaws.com
    fc-0123456789abcdef0.fsx.us-east-1.amazonaws.com
    management.fs-01234567890abcdef1.fsx.us-east-1.amazonaws.com fsx.us-east-1.amazonaws.com
    fs-0123abcd.elsewhere.us-east-1.amazonaws.com fs-0123abcd.efs.us-east-1.amazonaws.com.example.org
    cpfs-0123-vpc.cn-hangzhou.cpfs.nas.aliyuncs.com nas.aliyuncs.com cn-shenzhen.nas.aliyuncs.com
    www.adn.networklayer.com nas.subnet1.vcn1.oraclevcn.com
"""


@pytest.mark.parametrize("name", ["", "sa1.file.core.windows.net\n", *NOBODYS.split()])
def test_names_like_those_of_providers_are_nobodys(name: str) -> None:
    assert KNOWN.by_name(name) == "generic"


def endpoint(
    source: str, *tunnels: Tunnel, azure: bool = True, implementation: str | None = None, **options: str
) -> Endpoint:
    return KNOWN.endpoint(mount(source, **options), None, tunnels, azure, implementation)


def test_a_mount_by_vasts_own_client_is_known_by_options_that_only_it_takes() -> None:
    own = endpoint("10.0.0.5:/v", azure=False, addr="10.0.0.5", nconnect="32", spread_reads="")
    kernels = endpoint("10.0.0.5:/v", azure=False, addr="10.0.0.5", nconnect="16")
    assert (own.provider, kernels.provider) == ("vast", "generic")


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("nas:/vol1", ("nas", "/vol1")),
        ("nas:/", ("nas", "/")),
        ("10.0.0.5:/a:/b", ("10.0.0.5", "/a:/b")),
        ("[2001:db8::1]:/x", ("2001:db8::1", "/x")),
        ("[fe80::1%eth0]:/x", ("fe80::1%eth0", "/x")),
        ("fe80::1%eth0:/x", ("fe80::1%eth0", "/x")),
        ("a,b:/x", ("a", "/x")),
        ("nas:vol1", ("nas", "vol1")),
        ("nas", ("nas", "")),
        ("//sa1.file.core.windows.net/share/dir", ("sa1.file.core.windows.net", "/share/dir")),
        ("\\\\nas\\share", ("nas", "/share")),
        ("//nas", ("nas", "/")),
    ],
)
def test_a_source_is_host_and_export(source: str, parts: tuple[str, str]) -> None:
    assert split_source(source) == parts


def test_the_interface_in_a_scope_keeps_its_case() -> None:
    """udev calls the cards of a PCI domain enP4p1s0: no other name is that interface."""
    assert plain("FE80::1%enP4p1s0") == "fe80::1%enP4p1s0"
    assert KNOWN.resolve("FE80::1%enP4p1s0", None, 2049, (), ()).host == "fe80::1%enP4p1s0"
    assert plain("NAS.Example.com.") == "nas.example.com"


def test_addresses_compare_without_scope_and_mapping() -> None:
    assert same_address("::ffff:10.0.0.4", "10.0.0.4")
    assert same_address("fe80::1%eth0", "fe80::0:1")
    assert not same_address("10.0.0.4", "10.0.0.5")
    assert not same_address("nas", "nas")
    assert as_address("nas") is None


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1", True), ("::1", True), ("10.0.0.5", False), ("localhost", False), (None, False)],
)
def test_loopback_is_known_by_address_only(address: str | None, expected: bool) -> None:  # noqa: FBT001
    assert is_loopback(address) is expected


def test_a_mount_by_name_keeps_its_name_and_address() -> None:
    assert endpoint("SA1.file.core.windows.net.:/sa1/s", addr="10.0.0.5") == place(ACCOUNT, "10.0.0.5")


def test_a_mount_without_addr_has_the_address_of_its_source() -> None:
    assert endpoint("10.0.0.9:/v", azure=False) == place("10.0.0.9", "10.0.0.9", "generic")
    assert endpoint("nas:/v", azure=False).address is None


def test_a_mount_through_a_tunnel_is_the_server_behind_it() -> None:
    for source, loopback in (("127.0.0.1:/sa1/s", "127.0.0.1"), ("[::1]:/sa1/s", "::1")):
        seen = endpoint(source, EFS_TUNNEL, AZNFS, port="20049", addr=loopback)
        assert seen == place("10.0.0.5", "10.0.0.5")
    by_name = endpoint("127.0.0.1:/", AZNFS, EFS_TUNNEL, azure=False, port="20100")
    assert by_name == place("fs-0123.efs.eu-west-1.amazonaws.com", None, "aws-efs")


def through(source: str, port: int) -> Endpoint:
    """Return the endpoint of a mount that shows this host's address, on a client of that port."""
    superblock = Superblock("0:43", 7, 128, volume=Volume(4, "127.0.0.1", port, "0:43", "0:0"))
    return KNOWN.endpoint(
        mount(source, addr="127.0.0.1"), superblock, (EFS_TUNNEL, AZNFS), azure=True, implementation=None
    )


@pytest.mark.parametrize(
    ("host", "port", "address", "provider"),
    [
        (ACCOUNT, 20049, "10.0.0.5", "azure-files"),
        ("files.example.net", 20049, "10.0.0.5", "azure-files"),
        ("10.0.0.5", 20049, "10.0.0.5", "azure-files"),
        (ACCOUNT, 20052, None, "azure-files"),
        ("localhost", 2049, "127.0.0.1", "generic"),
    ],
)
def test_a_clear_mount_of_a_tunnel_is_named(host: str, port: int, address: str | None, provider: str) -> None:
    assert through(f"{host}:/s", port) == place(host, address, provider)


def test_a_mount_by_address_is_the_share_that_another_client_knows_by_name() -> None:
    rows = (row("nas"), row("sa9.file.core.windows.net", port=2050), row("Sa1.file.core.windows.net"))
    assert KNOWN.resolve("10.0.0.5", "10.0.0.5", 2049, rows, ()) == place(ACCOUNT, "10.0.0.5")
    assert KNOWN.resolve("10.0.0.6", "10.0.0.6", 2049, rows, ()).provider == "generic"


@pytest.mark.parametrize(
    ("source", "implementation", "azure", "provider"),
    [
        ("10.0.1.4:/vol1", NETAPP, True, "azure-netapp-files"),
        ("10.0.1.4:/vol1", NETAPP, False, "netapp-ontap"),
        ("10.0.1.4:/vol1", "name='Linux 6.1',domain='kernel.org',date='0,0'", True, "generic"),
        ("10.0.1.4:/vol1", None, True, "generic"),
        ("sa1.file.core.windows.net:/sa1/s", NETAPP, True, "azure-files"),
    ],
)
def test_a_server_without_a_known_name_is_recognised_by_its_implementation(
    source: str, implementation: str | None, provider: str, *, azure: bool
) -> None:
    assert endpoint(source, azure=azure, implementation=implementation).provider == provider


BLOB = Tunnel(0, "sa1.blob.core.windows.net", 0, "azure-blob", "/m", "10.161.100.100", "52.239.1.2")


def test_an_address_of_aznfs_is_the_server_that_it_stands_in_for() -> None:
    blob = endpoint("10.161.100.100:/sa1/c", AZNFS, BLOB, addr="10.161.100.100")
    assert blob == place("sa1.blob.core.windows.net", "52.239.1.2", "azure-blob")
    named = Tunnel(0, "nfs.example.org", 0, "azure-files", "/m", "10.161.100.101", "10.0.0.9")
    by_number = KNOWN.resolve("10.161.100.101", None, 2049, (), (BLOB, named))
    assert by_number == place("nfs.example.org", "10.0.0.9")
    other = KNOWN.resolve("10.161.100.102", "10.161.100.102", 2049, (), (BLOB, named))
    assert (other.host, other.provider) == ("10.161.100.102", "generic")
    # The end of a tunnel is no such address.
    assert KNOWN.resolve("127.0.0.1", "127.0.0.1", 0, (), (BLOB,)).provider == "generic"


KINDS = {
    AddressKind.LOOPBACK: "127.0.0.1 127.8.9.10 ::1",
    AddressKind.LINK_LOCAL: "169.254.169.254 fe80::1 fe80::1%eth0",
    AddressKind.PRIVATE: """
        10.0.0.4 172.16.0.1 172.31.255.255 192.168.1.1 fd12:3456::1 ::ffff:10.0.0.4 64:ff9b::10.0.0.4
    """,
    AddressKind.CGNAT: "100.64.0.1 100.127.255.255 64:ff9b::100.64.0.9",
    # From 9.255.255.255 on: the neighbours of the private ranges.
    AddressKind.PUBLIC: """
        52.239.238.8 ::ffff:52.239.238.8 2603:1030:a08:1::80c 64:ff9b::34ef:ee08 168.63.129.16
        9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 100.63.255.255
        100.128.0.0
    """,
    # No file server has such an address.
    AddressKind.SPECIAL: """
        0.0.0.0 224.0.0.1 192.0.2.1 198.18.0.1 :: ff02::1 2001:db8::1 3fff::1 100::1
    """,
    None: "nas 10.0.0 sa1.file.core.windows.net",
}


@pytest.mark.parametrize(("expected", "texts"), KINDS.items())
def test_each_address_is_of_the_kind_of_its_range(expected: AddressKind | None, texts: str) -> None:
    assert {text: AddressKind.of(text) for text in texts.split()} == dict.fromkeys(texts.split(), expected)
    assert AddressKind.of("") is None


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        *(("52.239.238.8", True), ("52.239.238.8 2603:1030:a08:1::80c", True)),
        *(("52.239.238.8 10.0.0.4", False), ("10.0.0.4", False), ("nas", False), ("", False)),
    ],
)
def test_known_addresses_are_public_if_none_is_private(addresses: str, *, expected: bool) -> None:
    assert all_public(tuple(addresses.split())) is expected
