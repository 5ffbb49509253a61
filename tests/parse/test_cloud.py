"""cloud-init's mounts, in the forms in which people write them."""

from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request
from nfstuned.parse.etc.cloud import (
    DEFAULTS,
    CloudConfig,
    CloudEntry,
    cloud_requests,
    parse_cloud,
)

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
    found = parse_cloud(text, "f").mounts
    assert found is not None
    return [(entry.line, entry.fields) for entry in found if isinstance(entry, CloudEntry)]


def test_lists_in_brackets_and_of_dashes() -> None:
    share, options = "//sa1.file.core.windows.net/share", "vers=3.1.1,credentials=/etc/smb.cred"
    assert mounts(FLOW) == [(4, (*NAS, "0", "0")), (5, (share, "/srv/share", "cifs", options, None, None))]
    assert mounts(DASHES) == [(2, NAS), (7, ("nas:/two", "/two # words"))]
    assert parse_cloud(DASHES, "f").defaults == ("None", "None", "auto", "defaults,nofail", "0", "2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mounts: [[nas:/vol, /data], [nas:/b, /b, x]]\n", [("nas:/vol", "/data"), ("nas:/b", "/b", "x")]),
        ("mounts:\n  [\n   [ nas:/vol,\n     /data ],\n  ]\n", [("nas:/vol", "/data")]),
        ("mounts:\n - [nas:/vol, '/it''s', \"a\\\\b\"]\n", [("nas:/vol", "/it's", "a\\b")]),
        ("mounts:\n  - [swap, null]\n", [("swap", None)]),
        ("mounts: []\n", []),
        ("mounts:\n", []),
        ("mounts:\n  -\n    - nas:/vol\n    - /data\n", [("nas:/vol", "/data")]),
        ("a: &nas nas:/vol\nmounts: [[*nas, &b /data]]\n", [("nas:/vol", "/data")]),
        ("mounts: [[a, b, c, d, e, f, g]]\n", [("a", "b", "c", "d", "e", "f")]),
    ],
)
def test_other_forms(text: str, expected: list[tuple[str | None, ...]]) -> None:
    assert [fields for _, fields in mounts(text)] == expected


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("mounts:\n  - [nas:/vol, /data\n", 3, "the file was not read: "),
        ("mounts: *other\n", 1, "an alias without its anchor, other"),
        ("mounts:\n\t- [nas:/vol]\n", 2, "the file was not read: "),
        ("mounts:\n  - [nas:/vol] x\n", 2, "the file was not read: "),
        ('mounts:\n  - ["\\q", /data]\n', 2, "unknown escape"),
        ("mounts:\n  - [a, b]\n   - [c, d]\n", 3, "the file was not read: "),
        ("mounts: \0\n", 1, "0x00 is not UTF-8"),
        ("mounts: [[a, b]]\n---\nmounts: []\n", 3, "another document"),
        ("mounts:\n  - {spec: nas:/vol}\n", 2, "was not checked: '{spec: nas:/vol}'"),
        ("mounts:\n  - spec: nas:/vol\n", 2, "was not checked: '{spec: nas:/vol}'"),
        ("mounts:\n  - [[[nas:/vol]]]\n", 2, "was not checked"),
        ("mounts:\n  - - a\n    - [b]\n", 3, "was not checked: '[b]'"),
        ("mounts:\n  key: value\n", 2, "was not checked"),
        ("mount_default_fields: [[a, b]]\n", 1, "was not checked"),
    ],
)
def test_anything_else_is_an_error_with_its_line(text: str, line: int, problem: str) -> None:
    try:
        rows = parse_cloud(text, "/etc/cloud/cloud.cfg").mounts or ()
        (error,) = (row for row in rows if isinstance(row, ParseError))
    except ParseError as raised:
        error = raised
    assert (error.file, error.line) == ("/etc/cloud/cloud.cfg", line)
    assert problem in error.message


def test_a_file_without_the_keys_says_nothing() -> None:
    for text in ("users: [default]\n# mounts: [[a, b]]\nx:\n  mounts: 1\n", "", "- mounts\n", "mounts\n"):
        assert parse_cloud(text, "f") == CloudConfig()


def test_a_mount_gets_the_default_fields_and_the_line_of_its_entry() -> None:
    entries = [
        CloudEntry(3, ("nas:/vol", "/data")),
        CloudEntry(3, ("nas:/two", "/two", None, "ro")),
        CloudEntry(6, ("swap", None)),
        CloudEntry(7, ("nas:/three", "/three", "nfs", "ro", "x")),
    ]
    options = "defaults,nofail,_netdev"
    first, second, broken = cloud_requests(entries, DEFAULTS, "f")
    assert first == Request("nas:/vol", "/data", options, "f", 3, fstype="nfs", named="auto")
    assert second == Request("nas:/two", "/two", "ro", "f", 3, fstype="nfs", named="auto")
    assert str(broken) == "f:7: dump frequency is not a number: 'x'"


@pytest.mark.parametrize(
    ("entry", "lines"),
    [
        ("[nas:/a, /a, nfs, 'ro,soft']", (2, 0, ())),
        ("- nas:/a\n   - /a\n   - nfs\n   - ro,soft", (2, 0, (5, 5))),
        ("[\n  nas:/a, /a,\n  nfs, 'ro,soft']", (2, 3, (4, 4))),
        ("- nas:/a\n   - /a\n   - nfs\n   - |\n     ro,soft", (2, 0, (6, 6))),
        ("- nas:/a\n   - /a\n   - nfs\n   - null", (2, 0, ())),
    ],
)
def test_the_fields_of_an_entry_have_their_own_lines(
    entry: str, lines: tuple[int, int, tuple[int, ...]]
) -> None:
    found = parse_cloud(f"mounts:\n - {entry}\n", "f").mounts or ()
    (request,) = (row for row in cloud_requests(found, DEFAULTS, "f") if isinstance(row, Request))
    assert (request.line, request.source_line, request.option_lines) == lines


def test_a_source_without_a_mount_point_takes_its_earlier_mounts_back_and_a_bad_mount_no_other() -> None:
    text = "mounts: [[s:/a, /a], [s:/a, /a2], [s:/a, null], [s:/a, /a3], {b: c}, s:/d, [s:/e, /e]]\n"
    entries = parse_cloud(text, "f").mounts or ()
    found = [getattr(row, "point", "bad") for row in cloud_requests(entries, DEFAULTS, "f")]
    assert found == ["/a3", "bad", "bad", "/e"]


KEY = "preserve_hostname"


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        *((f"{KEY}: {value}\n", True) for value in ("true", " YES  # ours", "'On'")),
        *((f'"{KEY}" : "1"\n', True), (f"#cloud-config\r\n{KEY}: True\r\n", True)),
        *((f"{KEY}:{value}\n", False) for value in (" false", " maybe", "", f" true\n{KEY}: off")),
        *((text, None) for text in (f"{KEY}:true\n", f"# {KEY}: true\n", f"a:\n  {KEY}: true\n", "")),
        (f"{KEY}s: true\n", None),
    ],
)
def test_whether_the_name_of_the_host_stays(text: str, *, stays: bool | None) -> None:
    assert parse_cloud(text, "f").preserve_hostname is stays
