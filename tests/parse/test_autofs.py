from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.mounts import AutoMap, Maker, MapEntry, MapInclude, Request
from nfstuned.parse.etc.autofs import mount_requests, parse_map, parse_master, parse_master_name
from tests.parse.damage import any_text, damaged, tokens_damaged

# auto.master and auto.misc of autofs 5.1.8, most of their comments apart
MASTER = """\
#
# Sample auto.master file
#
/misc\t/etc/auto.misc
/net\t-hosts
+dir:/etc/auto.master.d
#/nfs4  /usr/sbin/fedfs-map-nfs4 nobind
+auto.master
"""
FILE = "/etc/auto.master"
MISC = """\
# key [ -mount-options-separated-by-comma ] location

cd\t\t-fstype=iso9660,ro,nosuid,nodev\t:/dev/cdrom
#linux\t\t-ro,soft\t\tftp.example.org:/pub/linux
"""


def test_a_master_names_maps_and_other_masters() -> None:
    assert parse_master(MASTER, FILE) == (
        AutoMap("/misc", "", "", "/etc/auto.misc", "", "/etc/auto.master", 4),
        AutoMap("/net", "hosts", "", "-hosts", "", "/etc/auto.master", 5),
        MapInclude("dir", "/etc/auto.master.d", "/etc/auto.master", 6),
        MapInclude("", "auto.master", "/etc/auto.master", 8),
    )


@pytest.mark.parametrize(
    ("text", "kind", "form", "name"),
    [
        ("/etc/auto.home", "", "", "/etc/auto.home"),
        ("auto.home", "", "", "auto.home"),
        ("file:/etc/auto.home", "file", "", "/etc/auto.home"),
        ("file,amd: /etc/auto.home", "file", "amd", "/etc/auto.home"),
        ("program:/etc/auto.net", "program", "", "/etc/auto.net"),
        ("ldap:ou=auto.home,dc=x", "ldap", "", "ou=auto.home,dc=x"),
        ("ou=auto.home,dc=x", "ldap", "", "ou=auto.home,dc=x"),
        (
            "ldap.example.com:nisMapName=auto.home,dc=x",
            "ldap",
            "",
            "ldap.example.com:nisMapName=auto.home,dc=x",
        ),
        ("//ldap.example.com/ou=auto.home", "ldap", "", "//ldap.example.com/ou=auto.home"),
        ("yp auto.home", "yp", "", "auto.home"),
        ("-null", "null", "", "-null"),
        ("/etc/with\\ space", "", "", "/etc/with space"),
    ],
)
def test_a_map_has_a_type_a_format_and_a_name(text: str, kind: str, form: str, name: str) -> None:
    (found,) = parse_master(f"/home/ {text}\n", FILE)
    assert isinstance(found, AutoMap)
    assert (found.point, found.kind, found.format, found.name) == ("/home", kind, form, name)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("rw,nconnect=4", "rw,nconnect=4"),
        ("-rw,nconnect=4 hard", "rw,nconnect=4,hard"),
        ("--timeout=60 --ghost -g nobrowse,soft", "soft"),
        ("--timeout 60 -t 5 -n=5 --mode 0755 ro", "ro"),
        ("-t60 timeout=5,nobind,ro", "ro"),
        ("", ""),
    ],
)
def test_a_map_has_the_options_that_are_for_mount(text: str, options: str) -> None:
    (found,) = parse_master(f"/home /etc/auto.home {text}\n", FILE)
    assert isinstance(found, AutoMap)
    assert found.options == options


def test_a_map_of_several_names_each_with_its_own_options() -> None:
    text = "/home multi:file,sun:/etc/auto.local -ro -- yp:auto.home --timeout=5 soft -- auto.more\n"
    (found,) = parse_master(text, FILE)
    assert isinstance(found, AutoMap)
    assert (found.point, found.kind, found.name) == ("/home", "multi", "")
    assert [(part.point, part.kind, part.name, part.options) for part in found.parts] == [
        ("/home", "file", "/etc/auto.local", "ro"),
        ("/home", "yp", "auto.home", "soft"),
        ("/home", "", "auto.more", ""),
    ]


def test_a_multi_map_without_a_map_is_an_error() -> None:
    (error,) = parse_master("/home multi:\\ \n", FILE)
    assert isinstance(error, ParseError)


def test_a_line_of_a_master_that_ends_with_cr_has_it_in_the_name_of_the_map() -> None:
    text = "# master\r\n\r\n/home /etc/auto.home\r\n/net -hosts\r\n/ro auto.ro -ro\r\n+auto.more\r\n"
    first, *rest = parse_master(text, FILE)
    assert str(first) == (
        "/etc/auto.master:3: the line ends with a carriage return, which automount(8) takes for a part of "
        "the map's name: '/etc/auto.home\\r'"
    )
    assert rest == [
        AutoMap("/net", "hosts", "", "-hosts", "", "/etc/auto.master", 4),
        AutoMap("/ro", "", "", "auto.ro", "ro", "/etc/auto.master", 5),
        MapInclude("", "auto.more", "/etc/auto.master", 6),
    ]


@pytest.mark.parametrize(
    ("text", "kind", "name", "line"),
    [
        ("[ autofs ]\nmaster_map_name = /etc/auto.site\n", "", "/etc/auto.site", 2),
        ("Master_Map_Name=auto.site # ours\n[amd]\nmaster_map_name = no\n", "", "auto.site", 1),
        ('MASTER_MAP_NAME="ldap:ou=auto.master,dc=x"\n', "ldap", "ou=auto.master,dc=x", 1),
        ("master_map_name = a\nmaster_map_name = yp:b\n", "yp", "b", 2),
    ],
)
def test_autofs_conf_names_another_master(text: str, kind: str, name: str, line: int) -> None:
    assert parse_master_name(text, "f") == MapInclude(kind, name, "f", line)


@pytest.mark.parametrize(
    "text", ["", "#master_map_name = auto.x\n", "[ amd ]\nmaster_map_name = x\n", "master_map_name =\n"]
)
def test_autofs_conf_may_name_none(text: str) -> None:
    assert parse_master_name(text, "f") is None


def test_a_master_that_is_named_with_cr_is_an_error() -> None:
    error = parse_master_name("master_map_name = auto.site\r\n", "f")
    assert isinstance(error, ParseError)
    assert error.line == 1


def test_a_map_has_variables() -> None:
    (found,) = parse_master("/home /etc/auto.home -DA=b -D C=d ro\n", FILE)
    assert isinstance(found, AutoMap)
    assert (found.variables, found.options) == ({"A": "b", "C": "d"}, "ro")


def test_an_entry_is_a_key_and_all_that_follows() -> None:
    assert parse_map(MISC, "/etc/auto.misc") == (
        MapEntry("cd", "-fstype=iso9660,ro,nosuid,nodev\t:/dev/cdrom", "/etc/auto.misc", 3),
    )


def test_entries_go_on_behind_a_backslash_and_keep_their_first_line() -> None:
    text = 'a nas:/a \\\n  /sub nas:/b\n"b c" nas:/\\\\\nd\\ e nas:/d\n+file:/etc/x rest\n'
    assert parse_map(text, "f") == (
        MapEntry("a", "nas:/a   /sub nas:/b", "f", 1),
        MapEntry("b c", "nas:/\\\\", "f", 3),
        MapEntry("d e", "nas:/d", "f", 4),
        MapInclude("file", "/etc/x", "f", 5),
    )


def test_a_backslash_at_the_end_of_the_file_goes_on_with_nothing() -> None:
    assert parse_map("a nas:/a\\", "f") == (MapEntry("a", "nas:/a", "f", 1),)


def test_an_indented_line_spoils_the_entry_before_it() -> None:
    first, error, last = parse_map("a nas:/a\nb nas:/b\n  # why\n  c nas:/c\nd nas:/d", "f")
    assert (first, last) == (MapEntry("a", "nas:/a", "f", 1), MapEntry("d", "nas:/d", "f", 5))
    assert str(error) == "f:3: an indented line spoils the entry before it: '  # why'"


def test_indented_lines_count_behind_an_empty_one_and_not_behind_a_comment() -> None:
    assert parse_map("a nas:/a\n \n\n b nas:/b\n# why\n c nas:/c\n", "f") == (
        MapEntry("a", "nas:/a", "f", 1),
        MapEntry("b", "nas:/b", "f", 4),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("key", "nothing follows the key 'key'"),
        ('"key nas:/a', "a quote that does not close: '\"key nas:/a'"),
        ('a"key nas:/a', "a quote that does not close: 'a\"key nas:/a'"),
    ],
)
def test_an_entry_that_automount_would_not_take_is_located_and_the_others_survive(
    line: str, message: str
) -> None:
    before, error, after = parse_map(f"a x:/\n{line}\nb x:/\n", "f")
    assert (before, after) == (MapEntry("a", "x:/", "f", 1), MapEntry("b", "x:/", "f", 3))
    assert str(error) == f"f:2: {message}"


@pytest.mark.parametrize("line", ["home /etc/auto.home", "/home \\"])
def test_a_master_entry_needs_a_path_and_a_map(line: str) -> None:
    (error,) = parse_master(line + "\n\n", FILE)
    assert isinstance(error, ParseError)


@given(st.one_of(damaged(MASTER), tokens_damaged(MASTER), any_text, any_text.map("/home /x ".__add__)))
def test_nothing_but_parse_errors_comes_out(text: str) -> None:
    assert all(isinstance(item, AutoMap | MapInclude | ParseError) for item in parse_master(text, FILE))
    assert all(isinstance(item, MapEntry | MapInclude | ParseError) for item in parse_map(text, "f"))
    assert isinstance(parse_master_name(text, "f"), MapInclude | ParseError | None)


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
def test_nothing_but_parse_errors_comes_out_of_an_entry(text: str, key: str) -> None:
    for auto in (HOME, DIRECT):
        found = mount_requests(MapEntry(key, text, "f", 3), auto, {"HOST": "&$"})
        assert all(isinstance(item, Request | AutoMap | ParseError) for item in found)
