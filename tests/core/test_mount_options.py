from __future__ import annotations

import pytest

from nfstuned.core.mounts.options import (
    cache_times,
    has_kerberos,
    has_nconnect,
    knows_nconnect,
    newer_options,
    read_ahead_is_small,
)
from nfstuned.model.kernel import Distribution, Version, nfs_version, parse_options, version_text
from nfstuned.parse.proc.machine import parse_release

MANY_DIGITS = "1" * 5000
VERSIONS: dict[Version | None, list[str]] = {
    None: ["nfs", "aznfs mountvers=3", "nfs vers=3.1.1", "nfs v3=1"],
    (3, None): ["nfs nfsvers=3", "nfs mountproto=tcp", "nfs mountport=635"],
    (4, None): ["nfs4", "nfs vers=4", "nfs4 mountvers=3", f"nfs vers=4,minorversion={MANY_DIGITS}"],
    (4, 1): [
        *("nfs vers=4.1", "nfs vers=4,minorversion=1", "nfs4 minorversion=1", "nfs v3,vers=4.1"),
        "nfs mounthost=nas,vers=4.1",
    ],
    (4, 2): ["nfs minorversion=2,vers=4", "nfs vers=4.2,minorversion=1", "nfs v4.2"],
}


@pytest.mark.parametrize(("version", "mounts"), VERSIONS.items())
def test_the_version_is_the_last_that_is_named(version: Version | None, mounts: list[str]) -> None:
    named = [text.partition(" ") for text in mounts]
    found = [nfs_version(fstype, parse_options(options)) for fstype, _, options in named]
    assert found == [version] * len(mounts)


def test_a_version_without_a_minor_one_is_written_without() -> None:
    assert [version_text((3, None)), version_text((4, 1))] == ["3", "4.1"]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("", (3, 60, 30, 60)),
        ("acregmin=30,acregmax=30,acdirmax=30", (30, 30, 30, 30)),
        ("actimeo=45", (45, 45, 45, 45)),
        ("acregmin=5,actimeo=45", (45, 45, 45, 45)),
        ("actimeo=45,acregmin=5", (5, 45, 45, 45)),
        ("noac,actimeo=45", (0, 0, 0, 0)),
        ("noac,ac,actimeo=45", (45, 45, 45, 45)),
        ("actimeo=x", (3, 60, 30, 60)),
        ("actimeo=45,acregmin=" + "9" * 5000, (45, 45, 45, 45)),
    ],
)
def test_cache_times_are_the_kernel_s_where_nothing_is_said(text: str, times: tuple[int, ...]) -> None:
    found = cache_times(parse_options(text))
    assert tuple(found[name] for name in ("acregmin", "acregmax", "acdirmin", "acdirmax")) == times


def test_the_last_of_opposites_counts() -> None:
    assert parse_options("hard,soft,rw").last_of("hard", "soft") == "soft"
    assert parse_options("rw").last_of("hard", "soft") == ""


def test_a_list_of_flavours_with_kerberos_in_it_counts_as_kerberos() -> None:
    texts = ("sec=krb5p", "sec=sys:krb5i", "sec=krb5,sec=sys", "", "sec=sys", "sec")
    assert [has_kerberos(parse_options(text)) for text in texts] == [True] * 3 + [False] * 3


ANY = "no distribution"
KNOWING = {
    *("5.3.0, debian 10", "5.3.18-22-default, sles 15.2", "4.18.0-1020-azure, ubuntu 18.04"),
    *("4.18.0-240.el8.x86_64, rhel 8.3", "4.18.0-240.22.1.el8_3.x86_64, rocky 8.3"),
    *("4.12.14-122.130-default, sles 12.5", "4.12.14-150.86-default, sles 15"),
    "4.12.14-197.99-default, sles_sap 15.1",
    # Without a distribution the number must leave no doubt.
    *(f"4.19.112-nas, {ANY}", f"4.15.0-213-generic, {ANY}", f"5.0.0-1036-azure, {ANY}"),
    f"4.14.355-276.amzn2.x86_64, {ANY}",
}
IGNORANT = {
    *("5.2.21, debian 10", "4.15.0-213-generic, ubuntu 16.04", "3.10.0-1160.el7.x86_64, rhel 7.9"),
    *("4.18.0-193.28.1.el8_2.x86_64, rhel 8.2", "4.14.35-2047.el7uek.x86_64, ol 7.9"),
    *("4.4.180-94.164-default, sles 12.3", "4.14.355-276.amzn2.x86_64, amzn 2"),
    *(f"5.2.0, {ANY}", f"4.19.0-27-amd64, {ANY}", f"5.2.0-0.bpo.3-amd64, {ANY}", f"4.19.112+, {ANY}"),
    f"4.18.0-193.el8.x86_64, {ANY}",
}


@pytest.mark.parametrize("host", sorted(KNOWING | IGNORANT))
def test_a_kernel_knows_nconnect_by_its_number_or_its_distribution(host: str) -> None:
    release, distribution = host.split(", ")
    name, _, number = distribution.partition(" ")
    named = Distribution(name, number, name) if name != "no" else None
    assert knows_nconnect(parse_release(release), named) is (host in KNOWING)


@pytest.mark.parametrize(
    ("release", "text", "newer"),
    [
        ("5.15.0-100-generic", "xprtsec=tls,noalignwrite,max_connect=4", "xprtsec noalignwrite"),
        ("5.4.0-1103-azure", "max_connect=4,trunkdiscovery,softerr", "max_connect trunkdiscovery"),
        ("5.4.0-1103-azure", "write=eager,softreval", "write softreval"),
        ("5.15.0-100-generic", "trunkdiscovery,write=eager,softreval,nconnect=4", ""),
        ("5.2.0", "nconnect=16", ""),
        ("6.1.0-40-amd64", "rdirplus=force,rdirplus", "rdirplus=force"),
        ("6.12.48+deb13-amd64", "rdirplus,nordirplus,alignwrite,xprtsec=mtls", ""),
        ("6.12.48+deb13-amd64", "cert_serial=1,fatal_neterrors=none", "cert_serial fatal_neterrors"),
        ("6.17.0", "cert_serial=1,fatal_neterrors=none,rdirplus=none", ""),
        ("5.14.0-570.17.1.el9_6.x86_64", "xprtsec=tls", ""),
        ("5.14.21-150500.55.83-default", "xprtsec=tls", ""),
        ("6.1.148-173.267.amzn2023.x86_64", "xprtsec=tls", ""),
        ("5.4.17-2136.el8uek.x86_64", "max_connect=4", ""),
        ("5.3.0-1041-azure", "softreval", ""),
    ],
)  # fmt: skip
def test_options_that_the_kernel_cannot_have_are_named(release: str, text: str, newer: str) -> None:
    assert list(newer_options(parse_options(text), parse_release(release))) == newer.split()


ABILITIES: dict[tuple[bool | None, bool | None], str] = {
    (True, True): """
        6.12.107+deb13-cloud-amd64 5.4.0-1103-azure 5.4.17-2136.el8uek.x86_64 4.18.0-553.el8_10.x86_64
        4.18.0-240.el8.x86_64 4.18.0-240.1.1.el8_3.x86_64
    """,
    (False, True): "5.3.18-57-default",
    (False, False): "4.18.0-193.28.1.el8_2.x86_64 4.19.0-27-amd64 3.10.0-1160.el7.x86_64",
    (None, True): "5.3.0-1041-azure",
    (None, None): "4.15.0-213-generic 4.12.14-197.45-default",
}
"""Whether a kernel has a small read-ahead, and whether it has several connections, by releases."""


@pytest.mark.parametrize(("abilities", "releases"), ABILITIES.items())
def test_a_release_shows_kernel_abilities(abilities: tuple[bool | None, ...], releases: str) -> None:
    for release in map(parse_release, releases.split()):
        assert (read_ahead_is_small(release), has_nconnect(release)) == abilities, release
