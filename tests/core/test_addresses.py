from __future__ import annotations

import pytest

from nfstuned.core.policy.endpoint import AddressKind, all_public, kind, same


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1", AddressKind.LOOPBACK),
        ("127.8.9.10", AddressKind.LOOPBACK),
        ("::1", AddressKind.LOOPBACK),
        ("169.254.169.254", AddressKind.LINK_LOCAL),
        ("fe80::1", AddressKind.LINK_LOCAL),
        ("fe80::1%eth0", AddressKind.LINK_LOCAL),
        ("10.0.0.4", AddressKind.PRIVATE),
        ("172.16.0.1", AddressKind.PRIVATE),
        ("172.31.255.255", AddressKind.PRIVATE),
        ("192.168.1.1", AddressKind.PRIVATE),
        ("fd12:3456::1", AddressKind.PRIVATE),
        ("100.64.0.1", AddressKind.CGNAT),
        ("100.127.255.255", AddressKind.CGNAT),
        ("::ffff:10.0.0.4", AddressKind.PRIVATE),
        ("::ffff:52.239.238.8", AddressKind.PUBLIC),
        ("52.239.238.8", AddressKind.PUBLIC),
        ("2603:1030:a08:1::80c", AddressKind.PUBLIC),
        ("64:ff9b::34ef:ee08", AddressKind.PUBLIC),
        ("64:ff9b::10.0.0.4", AddressKind.PRIVATE),
        ("64:ff9b::100.64.0.9", AddressKind.CGNAT),
        # The neighbours of the private ranges.
        ("9.255.255.255", AddressKind.PUBLIC),
        ("11.0.0.0", AddressKind.PUBLIC),
        ("172.15.255.255", AddressKind.PUBLIC),
        ("172.32.0.0", AddressKind.PUBLIC),
        ("192.167.255.255", AddressKind.PUBLIC),
        ("192.169.0.0", AddressKind.PUBLIC),
        ("100.63.255.255", AddressKind.PUBLIC),
        ("100.128.0.0", AddressKind.PUBLIC),
        ("168.63.129.16", AddressKind.PUBLIC),
        # What no file server has tells nothing.
        ("0.0.0.0", AddressKind.SPECIAL),  # noqa: S104 - an address to classify
        ("224.0.0.1", AddressKind.SPECIAL),
        ("192.0.2.1", AddressKind.SPECIAL),
        ("198.18.0.1", AddressKind.SPECIAL),
        ("::", AddressKind.SPECIAL),
        ("ff02::1", AddressKind.SPECIAL),
        ("2001:db8::1", AddressKind.SPECIAL),
        ("3fff::1", AddressKind.SPECIAL),
        ("100::1", AddressKind.SPECIAL),
    ],
)
def test_each_address_is_of_the_kind_of_its_range(text: str, expected: AddressKind) -> None:
    assert kind(text) is expected


@pytest.mark.parametrize("text", ["", "nas", "10.0.0", "sa1.file.core.windows.net"])
def test_a_name_is_of_no_kind(text: str) -> None:
    assert kind(text) is None


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (("52.239.238.8",), True),
        (("52.239.238.8", "2603:1030:a08:1::80c"), True),
        (("52.239.238.8", "10.0.0.4"), False),
        (("10.0.0.4",), False),
        (("nas",), False),
        ((), False),
    ],
)
def test_addresses_are_public_when_there_are_some_and_none_is_private(
    addresses: tuple[str, ...], *, expected: bool
) -> None:
    assert all_public(addresses) is expected


def test_addresses_are_compared_by_what_they_mean() -> None:
    assert same("::ffff:10.0.0.4", "10.0.0.4")
    assert same("fe80::1%eth0", "fe80::0:1")
    assert not same("10.0.0.4", "10.0.0.5")
    assert not same("nas", "nas")
