from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Maker, Misnamed, Request, UnitSetting, UnitState
from nfstuned.parse.etc import units
from nfstuned.parse.fields import clean_path, unit_name
from tests.parse.rows import shown

FILE = "/etc/systemd/system/mnt-a.mount"
# var-lib-nfs-rpc_pipefs.mount of nfs-common
PIPEFS = """\
[Unit]
Description=RPC Pipe File System
DefaultDependencies=no
After=systemd-tmpfiles-setup.service
Conflicts=umount.target

[Mount]
What=sunrpc
Where=/var/lib/nfs/rpc_pipefs
Type=rpc_pipefs
"""
REAL = """\
[Mount]
# the share
What=nas:/a
Where=/mnt/a
Type=nfs
Options=rw,nconnect=4
"""
NAMES = ["/", "/mnt/a", "//mnt//a/", "/mnt/a-b/.x", "/.x", "/mnt/with space", "/mnt/é:_", "/a\\b"]


def requests(
    text: str, name: str = "mnt-a.mount", **specifiers: str
) -> tuple[Request | Misnamed | ParseError, ...]:
    settings = [s for s in units.parse_unit(text, FILE) if isinstance(s, UnitSetting)]
    return units.mount_request(name, settings, specifiers)


def asked(options: str, line: int) -> tuple[Request]:
    request = Request("nas:/a", "/mnt/a", options, FILE, line, maker=Maker.UNIT)
    return (request._replace(source_line=3 if line != 3 else 0),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PIPEFS, "var-lib-nfs-rpc_pipefs.mount"),
        ("[Mount]\nWhere=/mnt/a\nType=nfs\n", "mnt-a.mount"),
        ("[Mount]\nWhat=/dev/sda\nWhere=/mnt/a\n", "mnt-a.mount"),
        ("[Mount]\nWhat=nas:/a\nType=fuse.sshfs\n", "mnt-a.mount"),
    ],
)
def test_other_file_systems_are_left_out(text: str, name: str) -> None:
    assert requests(text, name) == ()


def test_lines_go_on_behind_a_backslash_past_comments_and_keep_their_first_number() -> None:
    settings = units.parse_unit("[Mount]\nOptions=rw,\\\n# why\n ; why\n  ro\\\\\nType=nfs\r\nA=b\\", FILE)
    assert settings == (
        UnitSetting("Mount", "Options", "rw,   ro\\\\", FILE, 2),
        UnitSetting("Mount", "Type", "nfs", FILE, 6),
        UnitSetting("Mount", "A", "b", FILE, 7),
    )


def test_specifiers_are_replaced_and_quotes_stay() -> None:
    text = '[Mount]\nWhat=%H:/%p/%J\nWhere=%f\nOptions="x=100%%,%-"\n'
    (found,) = requests(text, H="here")
    made = Request("here:/mnt-a/a", "/mnt/a", '"x=100%,%-"', FILE, 4, maker=Maker.UNIT)
    assert found == made._replace(named="", source_line=2)


def test_a_specifier_or_a_name_that_is_not_known_costs_its_assignment() -> None:
    error, unknown, *found = requests(REAL + "Options=addr=%Q\nOption=ro\n")
    assert str(error) == f"{FILE}:7: a specifier that is not known here: '%Q'"
    assert str(unknown) == f"{FILE}:8: systemd ignores Option= in [Mount]: write Options="
    assert tuple(found) == asked("rw,nconnect=4", 6)


def test_a_unit_with_a_specifier_of_its_host_is_not_judged_without_it() -> None:
    text = REAL + "Options=addr=%H,uid=%U\n"
    assert requests(text, H="here") == asked("addr=here,uid=0", 7)
    (error,) = requests(text)
    assert str(error) == f"{FILE}:7: a specifier that is not known here: '%H'"
    assert requests(text.replace("nas:/a", "/dev/b").replace("nfs", "ext4")) == ()


@pytest.mark.parametrize(("value", "options"), [("yes", "rw,nconnect=4,sloppy"), ("no", "rw,nconnect=4")])
def test_sloppy_options_are_an_option_of_mount(value: str, options: str) -> None:
    assert requests(f"{REAL}SloppyOptions={value}\n") == asked(options, 6)


def test_a_unit_under_a_wrong_name_is_refused() -> None:
    (refused,) = requests(REAL, "mnt-b.mount")
    assert isinstance(refused, Misnamed)
    assert (refused.request.point, refused.name) == ("/mnt/a", "mnt-a.mount")


@pytest.mark.parametrize("where", ["mnt/b", "~/b", '"/mnt/b"', "/mnt/x/../b"])
def test_a_mount_point_that_systemd_ignores_leaves_that_of_the_name(where: str) -> None:
    (found,) = requests(REAL.replace("/mnt/a", where))
    assert (type(found), getattr(found, "point", "")) == (Request, "/mnt/a")


def test_a_name_with_a_blank_and_no_where_is_refused() -> None:
    (refused,) = requests("[Mount]\nWhat=nas:/a\nType=nfs\n", "mnt-a # b.mount")
    assert isinstance(refused, Misnamed)


@pytest.mark.parametrize(("kind", "line"), [("nfs", 2), ("nfs3", 4)])
@pytest.mark.parametrize("drop_in", ["", "[Mount]\nOptions=ro\n"])
def test_a_source_or_a_misspelt_type_has_a_place_of_its_own(kind: str, line: int, drop_in: str) -> None:
    unit = f"[Mount]\nWhat=\\\n nas:/a\nType={kind}\n"
    items = (*units.parse_unit(unit, FILE), *units.parse_unit(drop_in, "x.conf"))
    settings = [item for item in items if isinstance(item, UnitSetting)]
    (request,) = units.mount_request("mnt-a.mount", settings, {})
    assert isinstance(request, Request)
    assert request.place == ("x.conf:2" if drop_in else f"{FILE}:2")
    assert request.source_place == f"{FILE}:{line}"


def test_the_specifiers_of_a_setting_have_a_bound() -> None:
    error, _ = requests(REAL.replace("/mnt/a", "/%n" * 101))
    assert str(error) == f"{FILE}:4: more than 100 specifiers in Where="


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[Mount", "a section without a closing bracket: '[Mount'"),
        ("Options", "no '=' in 'Options'"),
        ("= x", "a value without a name: '= x'"),
        ("A=\udcff", "not UTF-8, so systemd ignores it: 'A=\\udcff'"),
    ],
)
def test_a_line_that_systemd_passes_over_is_located_and_the_others_survive(line: str, message: str) -> None:
    assert shown(units.parse_unit(f"[A]\nb=1\n{line}\n[A]\nb=1\n", FILE)) == [
        UnitSetting("A", "b", "1", FILE, 2),
        f"{FILE}:3: {message}",
        UnitSetting("A", "b", "1", FILE, 5),
    ]


def test_a_path_has_the_name_that_systemd_gives_it() -> None:
    first = "-.mount", "mnt-a.mount", "mnt-a.mount", "mnt-a\\x2db-.x.mount", "\\x2ex.mount"
    assert tuple(unit_name(path) for path in NAMES[:5]) == first


def test_names_are_those_of_systemd_escape() -> None:
    tool = shutil.which("systemd-escape")
    if tool is None:
        pytest.skip("no systemd-escape here")
    for path in NAMES:
        run = subprocess.run([tool, "-p", "--suffix=mount", path], capture_output=True, text=True, check=True)
        assert unit_name(path) == run.stdout.strip()


@given(st.text(st.characters(codec="utf-8")))
def test_a_name_stands_for_the_path_that_it_was_made_of(text: str) -> None:
    name = unit_name("/" + text)
    assert units.unit_path(name) == clean_path(text)


def test_drop_ins_come_from_the_unit_its_prefixes_and_its_type() -> None:
    folders = "mnt-a-b.mount.d", "mnt-a-.mount.d", "mnt-.mount.d", "mount.d"
    assert units.drop_in_folders("mnt-a-b.mount") == folders
    assert units.drop_in_folders("-.mount") == ("-.mount.d", "-.mount.d", "mount.d")


TEXT = """\
LazyUnmount=no
ForceUnmount=no
Id=srv-vol1.mount
BoundBy=
LoadState=loaded
FragmentPath=/run/systemd/generator/srv-vol1.mount
NeedDaemonReload=yes

Id=mnt-a\\x20b.mount
BoundBy=db.service web.service
LoadState=loaded
FragmentPath=
NeedDaemonReload=no
LazyUnmount=yes
ForceUnmount=yes
"""


def test_each_unit_has_its_block() -> None:
    states = units.parse_units(TEXT)
    stale = UnitState(loaded=True, fragment="/run/systemd/generator/srv-vol1.mount", stale=True)
    bound = UnitState(loaded=True, lazy=True, force=True, bound_by=("db.service", "web.service"))
    assert states == {"srv-vol1.mount": stale, "mnt-a\\x20b.mount": bound}
    assert stale.objection == ""
    assert "LazyUnmount=yes" in bound.objection
    assert (units.parse_units(""), units.parse_units("Id=x.mount\n")) == ({}, {"x.mount": UnitState()})


def test_a_condition_counts_once_it_was_judged() -> None:
    text = "Id=a.mount\nLoadState=loaded\nConditionResult=no\nConditionTimestampMonotonic={}\n"
    assert units.parse_units(text.format(0))["a.mount"].condition
    assert not units.parse_units(text.format(4711))["a.mount"].condition
    assert not units.parse_units(text.format(0))["a.mount"].job
    assert units.parse_units(text.format(0) + "Job=12 /org/freedesktop/systemd1/job/12\n")["a.mount"].job


UNIT = "nfstuned.service"


@pytest.mark.parametrize(
    ("texts", "enabled"),
    [
        ((), True),
        (("enable sshd.service\n",), True),
        (("disable *\n",), False),
        (("enable nfs*.service\n", "disable *\n"), True),
        (("disable nfstuned.service\n", "enable *\n"), False),
        (("ignore nfstuned.service\n", "enable *\n"), False),
        (("# disable *\n; disable *\n\n  enable nfstuned.service\ndisable *\n",), True),
        (("disable\nmask *\ndisable other.service\n",), True),
    ],
)
def test_the_first_line_that_fits_decides_and_no_line_enables(texts: tuple[str, ...], enabled: bool) -> None:  # noqa: FBT001
    assert units.preset_enables(texts, UNIT) is enabled
