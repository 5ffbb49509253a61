from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.errors import MapError
from nfstuned.model.mounts import AutoMap, Maker, MapEntry, MapInclude, Request
from nfstuned.parse.etc.autofs import mount_requests, parse_map, parse_master, parse_master_name
from tests.parse.rows import shown

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


def master(text: str) -> AutoMap:
    (found,) = parse_master(text, FILE)
    assert isinstance(found, AutoMap)
    return found


def test_a_master_names_maps_and_other_masters() -> None:
    assert parse_master(MASTER, FILE) == (
        AutoMap("/misc", "", "", "/etc/auto.misc", "", "/etc/auto.master", 4),
        AutoMap("/net", "hosts", "", "-hosts", "", "/etc/auto.master", 5),
        MapInclude("dir", "/etc/auto.master.d", "/etc/auto.master", 6),
        MapInclude("", "auto.master", "/etc/auto.master", 8),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/etc/auto.home", ("", "", "/etc/auto.home")),
        ("auto.home", ("", "", "auto.home")),
        ("file:/etc/auto.home", ("file", "", "/etc/auto.home")),
        ("file,amd: /etc/auto.home", ("file", "amd", "/etc/auto.home")),
        ("program:/etc/auto.net", ("program", "", "/etc/auto.net")),
        ("ldap:ou=auto.home,dc=x", ("ldap", "", "ou=auto.home,dc=x")),
        ("ou=auto.home,dc=x", ("ldap", "", "ou=auto.home,dc=x")),
        ("nas.x:nisMapName=auto.home,dc=x", ("ldap", "", "nas.x:nisMapName=auto.home,dc=x")),
        ("//ldap.example.com/ou=auto.home", ("ldap", "", "//ldap.example.com/ou=auto.home")),
        ("yp auto.home", ("yp", "", "auto.home")),
        ("-null", ("null", "", "-null")),
        ("/etc/with\\ space", ("", "", "/etc/with space")),
    ],
)
def test_a_map_has_a_type_a_format_and_a_name(text: str, expected: tuple[str, ...]) -> None:
    found = master(f"/home/ {text}\n")
    assert (found.point, found.kind, found.format, found.name) == ("/home", *expected)


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
    assert master(f"/home /etc/auto.home {text}\n").options == options


def test_a_map_of_several_names_each_with_its_own_options() -> None:
    text = "/home multi:file,sun:/etc/auto.local -ro -- yp:auto.home --timeout=5 soft -- auto.more\n"
    found = master(text)
    assert (found.point, found.kind, found.name) == ("/home", "multi", "")
    assert [(part.point, part.kind, part.name, part.options) for part in found.parts] == [
        ("/home", "file", "/etc/auto.local", "ro"),
        ("/home", "yp", "auto.home", "soft"),
        ("/home", "", "auto.more", ""),
    ]


def test_a_line_of_a_master_that_ends_with_cr_has_it_in_the_name_of_the_map() -> None:
    text = "# master\r\n\r\n/home /etc/auto.home\r\n/net -hosts\r\n/ro auto.ro -ro\r\n+auto.more\r\n"
    problem = "the line ends with a carriage return, which automount(8) reads as a part of the map's name"
    assert shown(parse_master(text, FILE)) == [
        f"{FILE}:3: {problem}: '/etc/auto.home\\r'",
        AutoMap("/net", "hosts", "", "-hosts", "", FILE, 4),
        AutoMap("/ro", "", "", "auto.ro", "ro", FILE, 5),
        MapInclude("", "auto.more", FILE, 6),
    ]
    (error,) = shown([parse_master_name("master_map_name = auto.site\r\n", "f")])
    assert str(error).startswith("f:1: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ autofs ]\nmaster_map_name = /etc/auto.site\n", MapInclude("", "/etc/auto.site", "f", 2)),
        ("Master_Map_Name=a # ours\n[amd]\nmaster_map_name = no\n", MapInclude("", "a", "f", 1)),
        ('MASTER_MAP_NAME="ldap:ou=auto.master,dc=x"\n', MapInclude("ldap", "ou=auto.master,dc=x", "f", 1)),
        ("master_map_name = a\nmaster_map_name = yp:b\n", MapInclude("yp", "b", "f", 2)),
        ("", None),
        ("#master_map_name = auto.x\n", None),
        ("[ amd ]\nmaster_map_name = x\n", None),
        ("master_map_name =\n", None),
    ],
)
def test_autofs_conf_may_name_another_master(text: str, expected: MapInclude | None) -> None:
    assert parse_master_name(text, "f") == expected


def test_entries_go_on_behind_a_backslash_and_keep_their_first_line() -> None:
    text = 'a nas:/a \\\n  /sub nas:/b\n"b c" nas:/\\\\\nd\\ e nas:/d\n+file:/etc/x rest\ne nas:/e\\'
    assert parse_map(text, "f") == (
        MapEntry("a", "nas:/a   /sub nas:/b", "f", 1),
        MapEntry("b c", "nas:/\\\\", "f", 3),
        MapEntry("d e", "nas:/d", "f", 4),
        MapInclude("file", "/etc/x", "f", 5),
        MapEntry("e", "nas:/e", "f", 6),
    )


def test_an_indented_line_spoils_the_entry_before_it_but_not_behind_an_empty_line() -> None:
    text = "a nas:/a\nb nas:/b\n  # why\n  c nas:/c\nd nas:/d\n \n\n e nas:/e\n# why\n f nas:/f\n"
    a, error, d, e = parse_map(text, "f")
    expected = [MapEntry(key, f"nas:/{key}", "f", line) for key, line in (("a", 1), ("d", 5), ("e", 8))]
    assert [a, d, e] == expected
    assert str(error) == "f:3: an indented line spoils the entry before it: '  # why'"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("key", "nothing follows the key 'key'"),
        ('"key nas:/a', "a quote that does not close: '\"key nas:/a'"),
        ('a"key nas:/a', "a quote that does not close: 'a\"key nas:/a'"),
    ],
)
def test_an_entry_that_automount_would_not_take_leaves_the_others(line: str, message: str) -> None:
    found = shown(parse_map(f"a x:/\n{line}\nb x:/\n", "f"))
    assert found == [MapEntry("a", "x:/", "f", 1), f"f:2: {message}", MapEntry("b", "x:/", "f", 3)]


@pytest.mark.parametrize("line", ["home /etc/auto.home", "/home \\", "/home multi:\\ "])
def test_a_master_entry_needs_a_path_and_a_map(line: str) -> None:
    assert [type(row) for row in parse_master(line + "\n\n", FILE)] == [MapError]


WRITTEN = "(if that is meant as the location, write ':{}')"
DASH = "(options begin with a dash, and stand before the location: '-fstype=nfs,ro')"
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


def test_a_wildcard_stands_for_any_key() -> None:
    (found,) = mount_requests(MapEntry("*", "-x=& nas:/home/&", "f", 3), HOME, {})
    assert found == Request("nas:/home/&", "/home/*", "x=&", "f", 3, wildcard=True, maker=Maker.AUTOFS)


@pytest.mark.parametrize(
    ("text", "source", "options", "fstype"),
    [
        ("-fstype=cifs,vers=3.1.1 ://nas/k", "//nas/k", "vers=3.1.1", "cifs"),
        ('-fstype=cifs "://nas/b c"', "//nas/b c", "", "cifs"),
        ("-fstype=aznfs,vers=4.1 nas:/k", "nas:/k", "vers=4.1", "aznfs"),
        ("-fstype=efs,tls fs-0abc1234:/", "fs-0abc1234:/", "tls", "efs"),
    ],
)
def test_smb_and_azure_files_have_their_type(text: str, source: str, options: str, fstype: str) -> None:
    (found,) = mount_requests(MapEntry("k", text, "f", 3), HOME, {})
    assert found == Request(source, "/home/k", options, "f", 3, fstype=fstype, maker=Maker.AUTOFS)


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
    (found,) = mount_requests(MapEntry("x", text, "f", 3), replace(DIRECT, point="/home"), {})
    assert found == AutoMap("/home/x", kind, "", name, options, "f", 3, {"SITE": "east"})


@pytest.mark.parametrize("text", ["-fstype=iso9660,ro :/d", ":/dev/cdrom", "-fstype=autofs,hosts -hosts"])
def test_other_file_systems_and_the_map_of_all_hosts_are_left_out(text: str) -> None:
    assert mounts("cd", text) == []


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("/k", "nas:/a", "'/k' is not a key: below /home it is a name: write 'k', or mount the map on /-"),
        ("k", "nas", "a location without a server: 'nas', in the entry of 'k'"),
        ("k", "nas:app", "a location without a slash after its colon: 'nas:app', in the entry of 'k'"),
        ("k", "a,,b:/x", "a location without a server: 'a,,b:/x', in the entry of 'k'"),
        (
            "k",
            "fstype=nfs,ro n:/x",
            f"a location without a server: 'fstype=nfs,ro' {DASH}, in the entry of 'k'",
        ),
        ("k", "-ro", "no location, in the entry of 'k'"),
        *(
            ("k", text, f"no location behind the folder '{name}' {WRITTEN.format(name)}, in the entry of 'k'")
            for name, text in {"//nas/b": "-fstype=cifs //nas/b", "/a": "/a /b nas:/b"}.items()
        ),
    ],
)
def test_an_entry_that_automount_would_not_take_is_located(key: str, text: str, message: str) -> None:
    assert shown(mount_requests(MapEntry(key, text, "f", 3), HOME, {})) == [f"f:3: {message}"]
    direct = shown(mount_requests(MapEntry("k", "nas:/a", "f", 3), DIRECT, {}))
    assert direct == ["f:3: 'k' is not a key: the key of a direct map (/-) is the whole path"]
