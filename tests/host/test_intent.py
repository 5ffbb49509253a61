from __future__ import annotations

import pytest

from nfstuned.host.observe import observe_intent
from nfstuned.model.mounts import Maker, Request, Unread
from tests.tree import Tree

UNIT = "[Mount]\nWhat=nas:/a\nType=nfs\nOptions=nconnect=4\n"


def requests(tree: Tree, *mounted: str) -> list[tuple[str, str, str]]:
    found = observe_intent(tree.root, mounted)
    assert [str(problem) for problem in found.problems] == []
    return [(r.point, r.options, f"{r.file}:{r.line}") for r in found.requests]


def settings(tree: Tree) -> list[tuple[str, str]]:
    found = observe_intent(tree.root, ["/nfs"])
    return [(setting.value, setting.file) for setting in found.settings]


def test_units_of_the_administrator_stand_before_fstab_and_those_of_packages_behind(tree: Tree) -> None:
    tree.write("etc/systemd/system/mnt-a.mount", UNIT)
    tree.write("usr/lib/systemd/system/mnt-a.mount", UNIT)
    tree.write("usr/lib/systemd/system/mnt-b.mount", UNIT)
    tree.write("run/systemd/generator/mnt-c.mount", UNIT)
    tree.write("usr/lib/systemd/system/mnt-masked.mount", UNIT)
    tree.link("etc/systemd/system/mnt-masked.mount", "/dev/null")
    tree.write("etc/fstab", "nas:/a /mnt/f nfs ro\n")
    assert requests(tree) == [
        ("/mnt/a", "nconnect=4", "/etc/systemd/system/mnt-a.mount:4"),
        ("/mnt/f", "ro", "/etc/fstab:1"),
        ("/mnt/b", "nconnect=4", "/usr/lib/systemd/system/mnt-b.mount:4"),
    ]


def test_a_unit_that_an_automount_triggers_is_mounted_at_its_first_use(tree: Tree) -> None:
    for name in ("a", "b", "c"):
        tree.write(f"etc/systemd/system/mnt-{name}.mount", UNIT)
    tree.write("usr/lib/systemd/system/mnt-a.automount", "[Automount]\nWhere=/mnt/a\n")
    tree.write("usr/lib/systemd/system/mnt-b.automount", "[Automount]\nWhere=/mnt/b\n")
    tree.link("etc/systemd/system/mnt-b.automount", "/dev/null")
    found = observe_intent(tree.root, []).requests
    assert [(r.point, r.maker) for r in found] == [
        ("/mnt/a", Maker.AUTOMOUNT),
        ("/mnt/b", Maker.UNIT),
        ("/mnt/c", Maker.UNIT),
    ]


def test_every_type_keeps_its_name_through_drop_ins(tree: Tree) -> None:
    tree.write("etc/fstab", "//nas/a /mnt/a cifs ro\nsa1:/b /mnt/b aznfs ro\nnas:/c /mnt/c nfs4 ro\n")
    tree.write("etc/systemd/system/mnt-.mount.d/x.conf", "[Mount]\nOptions=rw\n")
    tree.write("etc/systemd/system/d.mount", "[Mount]\nWhat=//nas/d\n")
    found = observe_intent(tree.root, []).requests
    assert [(r.point, r.fstype, r.options) for r in found] == [
        ("/d", "cifs", ""),
        ("/mnt/a", "cifs", "rw"),
        ("/mnt/b", "aznfs", "rw"),
        ("/mnt/c", "nfs4", "rw"),
    ]


MASTER_OF_FILES = "/home auto.home\n/abs /etc/auto.home\n+auto.master\n"


def unread(tree: Tree) -> list[tuple[str, str, str, str, str]]:
    found = observe_intent(tree.root, [])
    assert [str(problem) for problem in found.problems] == []
    return [
        (item.point, item.kind, item.name, f"{item.file.rpartition('/')[2]}:{item.line}", item.local)
        for item in found.maps
    ]


BOTH = ["/home/kim", "/abs/kim"]
INCLUDED = ("", "sss", "auto.master", "auto.master:3", "")


@pytest.mark.parametrize(
    ("sources", "asked", "named"),
    [
        # only SSSD: what is left in /etc is not read
        ("sss", [], [("", "sss", "auto.master", "nsswitch.conf:1", "")]),
        # SSSD first: the files count only where it has none of the name
        ("sss files", [], [("", "sss", "auto.master", "nsswitch.conf:1", "/etc/auto.master")]),
        ("ldap [!SUCCESS=return] files", [], [("", "ldap", "auto.master", "nsswitch.conf:1", "")]),
        ("nis files sss", [], [("", "nis, sss", "auto.master", "nsswitch.conf:1", "/etc/auto.master")]),
        # files first: a master map there is the last; what it includes of its own name is SSSD's
        ("files sss", BOTH, [INCLUDED, ("/home", "sss", "auto.home", "auto.master:1", "")]),
        ("files [NOTFOUND=return] sss", BOTH, [INCLUDED]),
        ("files", BOTH, []),
    ],
)
def test_nsswitch_names_map_sources(tree: Tree, sources: str, asked: list[str], named: list[object]) -> None:
    tree.write("etc/nsswitch.conf", f"automount: {sources}\n")
    tree.write("etc/sssd/sssd.conf", "[sssd]\nservices = nss, autofs\n")
    tree.write("proc/sys/kernel/domainname", "example\n")
    tree.write("etc/auto.master", MASTER_OF_FILES)
    tree.write("etc/auto.home", "kim nas:/kim\n")
    assert unread(tree) == named
    assert [point for point, _, _ in requests(tree)] == asked


@pytest.mark.parametrize(
    ("source", "file", "text"),
    [
        ("sss", "etc/sssd/conf.d/x.conf", "[sssd]\nservices = autofs\n"),
        ("sss", "etc/systemd/system/sssd.service.wants/sssd-autofs.socket", ""),
        ("nisplus", "var/nis/NIS_COLD_START", ""),
        ("nis", "proc/sys/kernel/domainname", "example\n"),
    ],
)
def test_a_source_without_its_client_has_no_maps(tree: Tree, source: str, file: str, text: str) -> None:
    tree.write("proc/sys/kernel/domainname", "(none)\n")
    tree.write("etc/sssd/sssd.conf", "[sssd]\nservices = nss, pam\n")
    tree.write("etc/nsswitch.conf", f"automount: {source} files\n")
    tree.write("etc/auto.master", "/home /etc/auto.home\n")
    tree.write("etc/auto.home", "kim nas:/kim\n")
    assert (len(requests(tree)), unread(tree)) == (1, [])
    tree.write(file, text)
    assert (len(requests(tree)), len(unread(tree))) == (0, 1)


@pytest.mark.parametrize(
    ("file", "text"),
    [("etc/defaultdomain", "example\n"), ("etc/sysconfig/network", "NETWORKING=yes\nNISDOMAIN='example'\n")],
)
def test_an_image_has_the_nis_domain_that_its_boot_will_set(tree: Tree, file: str, text: str) -> None:
    tree.write("etc/nsswitch.conf", "automount: files nis\n")
    tree.write("etc/auto.master", "/home /etc/auto.home\n+auto.master\n")
    tree.write("etc/auto.home", "kim nas:/kim\n")
    tree.write(file, "\n")
    assert unread(tree) == []
    tree.write(file, text)
    assert {kind for _, kind, _, _, _ in unread(tree)} == {"nis"}


def test_without_an_automounter_nobody_is_asked_for_maps(tree: Tree) -> None:
    tree.write("etc/nsswitch.conf", "automount: sss files\n")
    tree.write("etc/sssd/sssd.conf", "[sssd]\nservices = nss, autofs\n")
    assert unread(tree) == []
    tree.write("usr/sbin/automount", "")
    assert unread(tree) == [("", "sss", "auto.master", "nsswitch.conf:1", "")]


def test_an_entry_for_any_key_leaves_none_to_ask_others_for(tree: Tree) -> None:
    tree.write("etc/nsswitch.conf", "automount: files ldap\n")
    tree.write("etc/auto.master", "/home auto.home\n")
    tree.write("etc/auto.home", "kim nas:/kim\n* nas:/home/&\n")
    assert unread(tree) == []
    tree.write("etc/auto.home", "kim nas:/kim\n+auto.home\n")
    assert [item[:4] for item in unread(tree)] == [
        ("/home", "ldap", "auto.home", "auto.home:2"),
        ("/home", "ldap", "auto.home", "auto.master:1"),
    ]


def test_an_error_in_nsswitch_leaves_the_maps_that_have_a_path(tree: Tree) -> None:
    tree.write("etc/nsswitch.conf", "automount: files [NOTFOUND=stop]\n")
    tree.write("etc/default/autofs", 'MASTER_MAP_NAME="/etc/auto.master"\n')
    tree.write("etc/auto.master", MASTER_OF_FILES)
    tree.write("etc/auto.home", "kim nas:/kim\n")
    found = observe_intent(tree.root, [])
    assert [request.point for request in found.requests] == ["/abs/kim"]
    assert [problem.file for problem in found.problems] == ["/etc/nsswitch.conf"]


HOME, SITE, OTHER = "/home /etc/auto.home\n", "/site /etc/auto.home\n", "/other /etc/auto.home\n"
BUILT = {
    "etc/autofs/autofs.conf": "[ autofs ]\n",
    "etc/autofs/auto.master": "/home auto.home\n+auto.more\n",
    "etc/autofs/auto.more": "/more auto.home\n",
    "etc/autofs/auto.home": "kim nas:/kim\n",
}
"""An automounter that was built for another folder, as with Arch and Gentoo."""


@pytest.mark.parametrize(
    ("files", "points"),
    [
        ({"etc/autofs.conf": "[ autofs ]\nmaster_map_name = /etc/auto.site\n"}, ["/site/kim"]),
        ({"etc/autofs.conf": "[ autofs ]\nmaster_map_name = auto.site\n"}, ["/site/kim"]),
        ({"etc/default/autofs": 'MASTER_MAP_NAME="file:/etc/auto.site"\n'}, ["/site/kim"]),
        ({"etc/sysconfig/autofs": "MASTER_MAP_NAME=auto.site\n"}, ["/site/kim"]),
        ({"etc/autofs.conf": "[ amd ]\nmaster_map_name = auto.site\n"}, ["/home/kim"]),
        ({"etc/auto_master": OTHER}, ["/home/kim"]),
        ({"etc/auto.master": "", "etc/auto_master": OTHER}, []),
        ({"etc/auto.master": None, "etc/auto_master": OTHER}, ["/other/kim"]),
        ({**BUILT, "etc/auto.master": None}, ["/home/kim", "/more/kim"]),
        (
            {**BUILT, "etc/auto.master": None, "etc/autofs/autofs.conf": "master_map_name = auto.more\n"},
            ["/more/kim"],
        ),
        (BUILT, ["/home/kim"]),
    ],
)
def test_a_single_master_map_counts(tree: Tree, files: dict[str, str | None], points: list[str]) -> None:
    maps = {"etc/auto.master": HOME, "etc/auto.site": SITE, "etc/auto.home": "kim nas:/kim\n"}
    for name, text in (maps | files).items():
        if text is not None:
            tree.write(name, text)
    assert [point for point, _, _ in requests(tree)] == points


def test_a_multi_map_is_its_maps_in_their_order(tree: Tree) -> None:
    tree.write("etc/auto.master", "/home multi:file:/etc/auto.a -ro -- yp:auto.b -- /etc/auto.c soft\n")
    tree.write("etc/auto.a", "kim nas:/a\n")
    tree.write("etc/auto.c", "kim nas:/c\neve nas:/c\n")
    assert requests(tree) == [("/home/kim", "ro", "/etc/auto.a:1"), ("/home/eve", "soft", "/etc/auto.c:2")]
    assert unread(tree) == [("/home", "yp", "auto.b", "auto.master:1", "")]


def test_a_map_that_is_mounted_in_a_map_is_followed(tree: Tree) -> None:
    tree.write("etc/auto.master", "/home /etc/auto.home hard\n/- /etc/auto.direct\n")
    tree.write(
        "etc/auto.home",
        "east -fstype=autofs,ro auto.east\nwest -fstype=autofs yp:auto.west\n"
        "* -fstype=autofs file:/etc/auto.&\n",
    )
    tree.write("etc/auto.east", "kim nas:/kim\ndeep -fstype=autofs :/etc/auto.deep\n")
    tree.write("etc/auto.deep", "eve -soft nas:/eve\n")
    tree.write("etc/auto.direct", "/data -fstype=autofs auto.deep\n")
    assert requests(tree) == [
        ("/home/east/kim", "hard,ro", "/etc/auto.east:1"),
        ("/home/east/deep/eve", "hard,ro,soft", "/etc/auto.deep:1"),
        ("/data/eve", "soft", "/etc/auto.deep:1"),
    ]
    found = observe_intent(tree.root, [])
    assert [(item.why, item.point, item.name) for item in found.maps] == [
        (Unread.ASKED, "/home/west", "auto.west"),
        (Unread.KEY, "/home/*", "/etc/auto.&"),
    ]


def test_every_map_that_is_not_read_is_named(tree: Tree) -> None:
    tree.write(
        "etc/auto.master",
        "/amd file,amd:/etc/auto.amd\n/slow /nfs/auto.slow\n/own /amd/maps\n"
        "+ldap:ou=x\n+//host/ou=y\n+/nfs/m\n+dir:/nfs\n"
        "/text file:/etc/auto.prog\n/prog auto.prog\n/inc auto.inc\n/net -hosts\n"
        "/said program:/etc/auto.p\n/nis yp:home\n",
    )
    tree.write("etc/auto.inc", "+yp:x\n+/etc/auto.prog\n")
    tree.write("etc/auto.prog", "#!/bin/cat\nkim nas:/kim\n", 0o755)
    for name in ("nfs/m", "nfs/auto.slow", "nfs/x.autofs", "amd/maps"):
        tree.write(name, "/x yp:x\n")
    found = observe_intent(tree.root, ["/nfs", "/"])
    assert [(item.why, item.point, item.kind, item.name) for item in found.maps] == [
        (Unread.ASKED, "", "ldap", "ou=x"),
        (Unread.ASKED, "", "ldap", "//host/ou=y"),
        (Unread.PLACE, "", "", "/nfs/m"),
        (Unread.PLACE, "", "dir", "/nfs"),
        (Unread.FORMAT, "/amd", "file", "/etc/auto.amd"),
        (Unread.PLACE, "/slow", "", "/nfs/auto.slow"),
        (Unread.PLACE, "/own", "", "/amd/maps"),
        (Unread.ASKED, "/prog", "program", "auto.prog"),
        (Unread.ASKED, "/inc", "yp", "x"),
        (Unread.ASKED, "/inc", "program", "/etc/auto.prog"),
        (Unread.ASKED, "/said", "program", "/etc/auto.p"),
        (Unread.ASKED, "/nis", "yp", "home"),
    ]
    assert [request.point for request in found.requests] == ["/text/kim"]


def test_drop_ins_change_units_and_what_systemd_makes_of_fstab(tree: Tree) -> None:
    tree.write("etc/systemd/system/mnt-a.mount", UNIT)
    tree.write("etc/systemd/system/mnt-a.mount.d/20.conf", "[Mount]\nOptions=nconnect=6\n")
    tree.write("run/systemd/system/mnt-a.mount.d/20.conf", "[Mount]\nOptions=nconnect=7\n")
    tree.write("run/systemd/system/mnt-a.mount.d/10.conf", "[Mount]\nOptions=nconnect=5\n")
    tree.write("run/systemd/system/mnt-a.mount.d/30.txt", "[Mount]\nOptions=nconnect=9\n")
    tree.write("etc/fstab", "nas:/100% /mnt/b nfs ro\nnas:/c /c nfs ro\n")
    tree.write("etc/systemd/system/mnt-.mount.d/x.conf", "[Mount]\nOptions=nconnect=2,addr=%H,x=%l\n")
    tree.write("etc/systemd/system/c.mount.d/x.conf", "[Mount]\nTimeoutSec=9\n")
    tree.write("proc/sys/kernel/hostname", "here.example.org\n")
    found = observe_intent(tree.root, []).requests
    last = "/etc/systemd/system/mnt-.mount.d/x.conf"
    asked = "nconnect=2,addr=here.example.org,x=here"
    made = Request("nas:/a", "/mnt/a", asked, last, 2, maker=Maker.UNIT)
    unit, line = "/etc/systemd/system/mnt-a.mount", "/etc/fstab"
    assert found == [
        made._replace(source_file=unit, source_line=2),
        made._replace(source="nas:/100%", point="/mnt/b", source_file=line, source_line=1),
        Request("nas:/c", "/c", "ro", "/etc/fstab", 2, maker=Maker.MOUNT),
    ]


def test_a_drop_in_of_all_mounts_is_weaker_than_a_mount_s_own_wherever_they_are(tree: Tree) -> None:
    """As systemd 252 has it: the folder counts only among those for the mount, or among those for all."""
    tree.write("etc/systemd/system/mnt-a.mount", UNIT)
    tree.write("etc/systemd/system/mount.d/x.conf", "[Mount]\nOptions=nconnect=2\n")
    tree.write("usr/lib/systemd/system/mnt-a.mount.d/x.conf", "[Mount]\nOptions=nconnect=3\n")
    (request,) = observe_intent(tree.root, []).requests
    assert (request.options, request.file) == ("nconnect=3", "/usr/lib/systemd/system/mnt-a.mount.d/x.conf")


def test_nfsmount_conf_is_read_in_the_order_of_mount_nfs(tree: Tree) -> None:
    for name in ("nfsmount.conf.d/10.conf", "nfsmount.conf.d/9.conf", "nfsmount.conf.d/8.txt"):
        tree.write(f"etc/{name}", f"[ Server ]\nn={name}\n".replace(" ]", ' "nas" ]'))
    tree.write("usr/etc/nfsmount.conf", "[s]\nn=usr\n")
    tree.write("usr/etc/nfsmount.conf.d/1.conf", "[s]\nn=usr1\n")
    names = ["/usr/etc/nfsmount.conf", "/usr/etc/nfsmount.conf.d/1.conf"]
    drops = ["/etc/nfsmount.conf.d/9.conf", "/etc/nfsmount.conf.d/10.conf"]
    assert [file for _, file in settings(tree)] == [*names, *drops]
    tree.write("etc/nfsmount.conf", "[s]\nn=etc\n")
    assert [file for _, file in settings(tree)] == ["/etc/nfsmount.conf", *drops]


@pytest.mark.parametrize(
    ("program", "alone"),
    [
        ("(linux nfs-utils 2.6.2)\nconf_init_dir: scandir\n", True),
        ("(linux nfs-utils 2.8.3)\nconf_init_dir: scandir\n", False),
        ("(linux nfs-utils 2.3.3)\n", False),
        ("#!/bin/sh\n", False),
        (None, False),
    ],
)
def test_a_setting_is_marked_where_only_one_counts(tree: Tree, program: str | None, *, alone: bool) -> None:
    tree.write("etc/nfsmount.conf", '[ Server "nas" ]\nnconnect=4\n')
    if program is not None:
        tree.write("usr/sbin/mount.nfs", program)
    assert [one.alone for one in observe_intent(tree.root, ()).settings] == [alone]


def test_included_files_stand_where_they_are_named(tree: Tree) -> None:
    conf = "[s]\na=1\ninclude=more\ninclude=-no\ninclude=gone\ninclude=/nfs/x\ninclude=nfsmount.conf\nb=3\n"
    tree.write("etc/nfsmount.conf", conf)
    tree.write("etc/more", "a=2\n")
    tree.write("nfs/x", "a=9\n")
    found = observe_intent(tree.root, ["/nfs"])
    assert [setting.value for setting in found.settings] == ["1", "2", "3"]
    assert [str(problem) for problem in found.problems] == [
        "/etc/nfsmount.conf:5: the included file cannot be read: /etc/gone",
        "/etc/nfsmount.conf:7: /etc/nfsmount.conf includes itself, which makes mount.nfs crash",
    ]


MASTER = """\
/home /etc/auto.home --timeout=60 hard
/home /etc/auto.second
/gone -null
/gone auto.home
/- auto.direct
/- file:/etc/auto.direct2
/absent auto.absent
+dir:/etc/auto.master.d
+auto.master
+auto.more
"""


def test_maps_in_files_are_followed(tree: Tree) -> None:
    tree.write("etc/auto.master", MASTER)
    tree.write(
        "etc/auto.home", "* -ro nas:/home/&\nkim nas:/kim\n+auto.home\n+auto.guests\nkim nas:/other\n+yp:x\n"
    )
    tree.write("etc/auto.guests", "eve nas:/eve\n")
    tree.write("etc/auto.second", "x nas:/x\n")
    tree.write("etc/auto.direct", "/data/a nas-$HOST:/a\n")
    tree.write("etc/auto.direct2", "/data/b nas:/b\n")
    tree.write("etc/auto.master.d/b.autofs", "/b auto.guests\n")
    tree.write("etc/auto.master.d/.c.autofs", "/c auto.guests\n")
    tree.write("etc/auto.master.d/c.txt", "/c auto.guests\n")
    tree.write("etc/auto.more", "/more auto.guests\n+auto.master\n")
    tree.write("proc/sys/kernel/hostname", "here\n")
    assert requests(tree) == [
        ("/home/kim", "hard", "/etc/auto.home:2"),
        ("/home/eve", "hard", "/etc/auto.guests:1"),
        ("/home/*", "hard,ro", "/etc/auto.home:1"),
        ("/data/a", "", "/etc/auto.direct:1"),
        ("/data/b", "", "/etc/auto.direct2:1"),
        ("/b/eve", "", "/etc/auto.guests:1"),
        ("/more/eve", "", "/etc/auto.guests:1"),
    ]


def test_what_a_file_holds_that_cannot_be_understood_is_named(tree: Tree) -> None:
    tree.write("etc/auto.master", "nonsense x\n/home auto.home\n")
    tree.write("etc/auto.home", "key\n/kim nas:/kim\n")
    tree.write("etc/fstab", "nas:/a /mnt/a\n")
    tree.write("etc/systemd/system/mnt-a.mount", "junk\n")
    tree.write("etc/nfsmount.conf", "junk\n")
    found = observe_intent(tree.root, [])
    assert found.requests == []
    assert {f"{problem.file}:{problem.line}" for problem in found.problems} == {
        "/etc/auto.master:1",
        "/etc/auto.home:1",
        "/etc/auto.home:2",
        "/etc/fstab:1",
        "/etc/systemd/system/mnt-a.mount:1",
        "/etc/nfsmount.conf:1",
    }
