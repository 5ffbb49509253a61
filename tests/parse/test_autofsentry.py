from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Maker, Request
from nfstuned.model.requests import AutoMap, MapEntry
from nfstuned.parse.etc.autofs import mount_requests
from tests.parse.damage import any_text, damaged

HOME = AutoMap("/home", "", "", "/etc/auto.home", "", "/etc/auto.master", 1)
DIRECT = AutoMap("/-", "", "", "/etc/auto.direct", "hard", "/etc/auto.master", 2, {"SITE": "east"})
# the examples of autofs(5)
SERVER = "-rw,hard / -ro myserver.me.org:/ /usr myserver.me.org:/usr /home myserver.me.org:/home"


def mounts(key: str, text: str, auto: AutoMap = HOME) -> list[tuple[str, str, str]]:
    found = mount_requests(MapEntry(key, text, "f", 3), auto, {"HOST": "here"})
    requests = [item for item in found if isinstance(item, Request)]
    assert len(requests) == len(found)
    assert {(item.file, item.line) for item in requests} <= {("f", 3)}
    return [(item.source, item.point, item.options) for item in requests]


@pytest.mark.parametrize(
    ("text", "source", "options"),
    [
        ("nas:/a", "nas:/a", ""),
        ("-rw,nconnect=4 nas:/a", "nas:/a", "rw,nconnect=4"),
        ("-rw -nconnect=4 nas:/a", "nas:/a", "rw,nconnect=4"),
        ("-fstype=nfs4,strict,nobind,bg,ro nas:/a", "nas:/a", "ro"),
        ("[fd00::10]:/a", "[fd00::10]:/a", ""),
        ("nas:/a:b", "nas:/a/b", ""),
        ("nas:/with\\ space", "nas:/with space", ""),
        ('nas:"/with $HOST &"', "nas:/with $HOST &", ""),
        ("nas:/&/\\&", "nas:/kim/&", ""),
        ("$HOST:/${HOST}x/$USER/${UID", "here:/herex/$USER/${UID", ""),
        ('-context="a,b" nas:/a', "nas:/a", "context=a,b"),
        ("-ro nas:/a # the old server: nas0:/a", "nas:/a", "ro"),
        ("-ro nas:/a\r", "nas:/a", "ro"),
    ],
)
def test_an_entry_asks_for_one_mount_below_the_point_of_its_map(text: str, source: str, options: str) -> None:
    assert mounts("kim", text) == [(source, "/home/kim", options)]


def test_a_direct_entry_has_its_whole_path_as_key_and_the_options_of_the_map() -> None:
    assert mounts("/data/x", "-ro nas-$SITE:/x", DIRECT) == [("nas-east:/x", "/data/x", "hard,ro")]


def test_a_multi_mount_asks_for_each_of_its_offsets() -> None:
    assert mounts("server", SERVER) == [
        ("myserver.me.org:/", "/home/server", "rw,hard,ro"),
        ("myserver.me.org:/usr", "/home/server/usr", "rw,hard"),
        ("myserver.me.org:/home", "/home/server/home", "rw,hard"),
    ]
    assert [point for _, point, _ in mounts("k", 'nas:/a "/b c/" nas:/b')] == ["/home/k", "/home/k/b c"]


def test_each_replicated_server_may_be_the_one() -> None:
    assert [source for source, _, _ in mounts("k", "h1(5),h2(6):/blah h3:/other")] == [
        "h1:/blah",
        "h2:/blah",
        "h3:/other",
    ]


def test_a_wildcard_stands_for_any_key() -> None:
    (found,) = mount_requests(MapEntry("*", "-x=& nas:/home/&", "f", 3), HOME, {})
    assert found == Request("nas:/home/&", "/home/*", "x=&", "f", 3, wildcard=True, maker=Maker.AUTOFS)


def test_smb_and_the_helper_of_azure_files_are_taken_with_their_type() -> None:
    (smb,) = mount_requests(MapEntry("k", "-fstype=cifs,vers=3.1.1 ://nas/k", "f", 3), HOME, {})
    assert smb == Request("//nas/k", "/home/k", "vers=3.1.1", "f", 3, fstype="cifs", maker=Maker.AUTOFS)
    (tls,) = mount_requests(MapEntry("k", "-fstype=aznfs,vers=4.1 nas:/k", "f", 3), HOME, {})
    assert tls == Request("nas:/k", "/home/k", "vers=4.1", "f", 3, fstype="aznfs", maker=Maker.AUTOFS)


@pytest.mark.parametrize(
    ("text", "kind", "name", "options"),
    [
        ("-fstype=autofs auto.sub", "", "auto.sub", "hard"),
        ("-fstype=autofs,ro,browse,timeout=9 :/etc/auto.sub", "", "/etc/auto.sub", "hard,ro"),
        ("-fstype=autofs file:/etc/auto.&", "file", "/etc/auto.x", "hard"),
        ("-fstype=autofs yp:auto.sub", "yp", "auto.sub", "hard"),
    ],
)
def test_a_map_may_be_mounted_in_a_map(text: str, kind: str, name: str, options: str) -> None:
    home = AutoMap("/home", "", "", "/etc/auto.home", "hard", "/etc/auto.master", 1, {"SITE": "east"})
    (found,) = mount_requests(MapEntry("x", text, "f", 3), home, {})
    assert found == AutoMap("/home/x", kind, "", name, options, "f", 3, {"SITE": "east"})


def test_the_map_of_all_hosts_may_be_mounted_in_a_map_and_has_no_name() -> None:
    assert mount_requests(MapEntry("net", "-fstype=autofs,hosts -hosts", "f", 3), HOME, {}) == ()


def test_other_file_systems_are_left_out() -> None:
    assert mounts("cd", "-fstype=iso9660,ro :/dev/cdrom") == []
    assert mounts("cd", ":/dev/cdrom") == []


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("/k", "nas:/a", "not a key of an indirect map: '/k'"),
        ("k", "nas", "a location without a server: 'nas', in the entry of 'k'"),
        ("k", "a,,b:/x", "a location without a server: 'a,,b:/x', in the entry of 'k'"),
        ("k", "-ro", "no location, in the entry of 'k'"),
        ("k", "/a /b nas:/b", "no location, in the entry of 'k'"),
    ],
)
def test_an_entry_that_automount_would_not_take_is_located(key: str, text: str, message: str) -> None:
    (error,) = mount_requests(MapEntry(key, text, "f", 3), HOME, {})
    assert str(error) == f"f:3: {message}"
    (error,) = mount_requests(MapEntry("k", "nas:/a", "f", 3), DIRECT, {})
    assert str(error) == "f:3: not a key of a direct map: 'k'"


@given(st.one_of(damaged(SERVER), any_text), any_text)
def test_nothing_but_parse_errors_comes_out(text: str, key: str) -> None:
    for auto in (HOME, DIRECT):
        found = mount_requests(MapEntry(key, text, "f", 3), auto, {"HOST": "&$"})
        assert all(isinstance(item, Request | AutoMap | ParseError) for item in found)
