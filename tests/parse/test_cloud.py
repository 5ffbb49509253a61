"""cloud-init's mounts, in the forms in which people write them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given

from nfstuned.errors import ParseError
from nfstuned.parse.etc.cloud import (
    DEFAULTS,
    CloudEntry,
    CloudMounts,
    as_fstab,
    parse_cloud_mounts,
    parse_preserve_hostname,
)
from tests.parse.damage import any_text, damaged

FLOW = """\
#cloud-config
package_update: true
mounts:
  - [ "nas:/vol", "/data", "nfs", "vers=4.1,nconnect=4", "0", "0" ]  # the data
  - [ //sa1.file.core.windows.net/share, /srv/share, cifs, 'vers=3.1.1,credentials=/etc/smb.cred', ~, null ]
runcmd:
  - [ touch, /tmp/x ]
"""
DASHES = """\
mounts:
- - nas:/vol
  - /data
  - nfs
  - vers=4.1,nconnect=4
-
  - nas:/two
  - "/two # words"
mount_default_fields: [ None, None, "auto", "defaults,nofail", "0", "2" ]
"""
NAS = ("nas:/vol", "/data", "nfs", "vers=4.1,nconnect=4")


def mounts(text: str) -> list[tuple[int, tuple[str | None, ...]]]:
    found = parse_cloud_mounts(text, "f").mounts
    assert found is not None
    return [(entry.line, entry.fields) for entry in found]


def test_lists_in_brackets() -> None:
    share = (
        "//sa1.file.core.windows.net/share",
        "/srv/share",
        "cifs",
        "vers=3.1.1,credentials=/etc/smb.cred",
    )
    assert mounts(FLOW) == [(4, (*NAS, "0", "0")), (5, (*share, None, None))]


def test_lists_of_dashes() -> None:
    assert mounts(DASHES) == [(2, NAS), (6, ("nas:/two", "/two # words"))]
    defaults = parse_cloud_mounts(DASHES, "f").defaults
    assert defaults == ("None", "None", "auto", "defaults,nofail", "0", "2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "mounts: [[nas:/vol, /data], [nas:/two, /two, nfs]]\n",
            [("nas:/vol", "/data"), ("nas:/two", "/two", "nfs")],
        ),
        ("mounts:\n  [\n   [ nas:/vol,\n     /data ],\n  ]\n", [("nas:/vol", "/data")]),
        ("mounts:\n - [nas:/vol, '/it''s', \"a\\\\b\"]\n", [("nas:/vol", "/it's", "a\\b")]),
        ("mounts:\n  - [swap, null]\n", [("swap", None)]),
        ("mounts: []\n", []),
        ("mounts:\n", []),
        ("mounts:\n  -\n    - nas:/vol\n    - /data\n", [("nas:/vol", "/data")]),
    ],
)
def test_other_forms(text: str, expected: list[tuple[str | None, ...]]) -> None:
    assert [fields for _, fields in mounts(text)] == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mounts:\n  - [nas:/vol, /data\n", 2),
        ("mounts:\n  - {spec: nas:/vol}\n", 2),
        ("mounts:\n  - spec: nas:/vol\n", 2),
        ("mounts: *other\n", 1),
        ("mounts:\n  - [nas:/vol, &a /data]\n", 2),
        ("mounts:\n\t- [nas:/vol]\n", 2),
        ("mounts:\n  - [[[nas:/vol]]]\n", 2),
        ("mounts:\n  - [nas:/vol] x\n", 2),
        ("mounts:\n  - ['nas:/vol, /data]\n", 2),
        ('mounts:\n  - ["\\q", /data]\n', 2),
        ("mounts:\n  - [a, b]\n   - [c, d]\n", 3),
        ("mounts:\n  - - a\n    - [b]\n", 3),
        ("mounts:\n  key: value\n", 2),
        ("mount_default_fields: [[a, b]]\n", 1),
    ],
)
def test_anything_else_is_an_error_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ParseError) as raised:
        parse_cloud_mounts(text, "/etc/cloud/cloud.cfg")
    assert (raised.value.file, raised.value.line) == ("/etc/cloud/cloud.cfg", line)


def test_a_file_without_the_key_says_nothing() -> None:
    assert parse_cloud_mounts("users: [default]\n# mounts: [[a, b]]\n  mounts: 1\n", "f") == CloudMounts()


def test_a_mount_gets_the_default_fields_and_stays_on_its_line() -> None:
    entries = [
        CloudEntry(3, ("nas:/vol", "/data")),
        CloudEntry(5, ("nas:/two", "/two", None, "ro")),
        CloudEntry(6, ("swap", None)),
    ]
    assert as_fstab(entries, DEFAULTS).split("\n") == [
        "",
        "",
        "nas:/vol\t/data\tauto\tdefaults,nofail,_netdev\t0\t2",
        "",
        "nas:/two\t/two\tauto\tro\t0\t2",
    ]


@given(damaged(FLOW + DASHES) | any_text)
def test_damage_is_told_or_understood(text: str) -> None:
    with suppress(ParseError):
        found = parse_cloud_mounts(text, "f")
        as_fstab(found.mounts or (), found.defaults or DEFAULTS)
    assert parse_preserve_hostname(text) in {True, False, None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("preserve_hostname: true\n", True),
        ("preserve_hostname:  YES  # ours\n", True),
        ("preserve_hostname: 'On'\n", True),
        ('"preserve_hostname" : "1"\n', True),
        ("#cloud-config\r\npreserve_hostname: True\r\n", True),
        ("preserve_hostname: false\n", False),
        ("preserve_hostname: maybe\n", False),
        ("preserve_hostname:\n", False),
        ("preserve_hostname: true\npreserve_hostname: off\n", False),
        ("preserve_hostname:true\n", None),
        ("# preserve_hostname: true\n", None),
        ("system_info:\n  preserve_hostname: true\n", None),
        ("preserve_hostnames: true\n", None),
        ("", None),
    ],
)
def test_whether_the_name_of_the_host_stays(text: str, expected: bool | None) -> None:  # noqa: FBT001 - a column of the table
    assert parse_preserve_hostname(text) is expected
