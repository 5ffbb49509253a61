from __future__ import annotations

import pytest

from nfstuned.core.mounts.options import cache_times, has_kerberos, last_of
from nfstuned.model.kernel import Version, nfs_version, parse_options, version_text


@pytest.mark.parametrize(
    ("fstype", "text", "found"),
    [
        ("nfs", "", None),
        ("nfs4", "", (4, None)),
        ("nfs", "vers=4.1", (4, 1)),
        ("nfs", "nfsvers=3", (3, None)),
        ("nfs", "vers=4,minorversion=1", (4, 1)),
        ("nfs", "minorversion=2,vers=4", (4, 2)),
        ("nfs4", "minorversion=1", (4, 1)),
        ("nfs", "vers=4.2,minorversion=1", (4, 2)),
        ("nfs", "v4.2", (4, 2)),
        ("nfs", "v3,vers=4.1", (4, 1)),
        ("nfs", "vers=4", (4, None)),
        ("nfs", "mountproto=tcp", (3, None)),
        ("nfs", "mountport=635", (3, None)),
        ("nfs", "mounthost=nas,vers=4.1", (4, 1)),
        ("nfs4", "mountvers=3", (4, None)),
        ("aznfs", "mountvers=3", None),
        ("nfs", "vers=3.1.1", None),
        ("nfs", "v3=1", None),
        ("nfs", "vers=4,minorversion=" + "1" * 5000, (4, None)),
    ],
)
def test_the_version_is_the_last_that_is_named(fstype: str, text: str, found: Version | None) -> None:
    assert nfs_version(fstype, parse_options(text)) == found


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
    assert last_of(parse_options("hard,soft,rw"), "hard", "soft") == "soft"
    assert last_of(parse_options("rw"), "hard", "soft") == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", False),
        ("sec=sys", False),
        ("sec", False),
        ("sec=krb5p", True),
        ("sec=sys:krb5i", True),
        ("sec=krb5,sec=sys", True),
    ],
)
def test_a_list_of_flavours_with_kerberos_in_it_counts_as_kerberos(text: str, found: bool) -> None:  # noqa: FBT001 - an expected value
    assert has_kerberos(parse_options(text)) is found
