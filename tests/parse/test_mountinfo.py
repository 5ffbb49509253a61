from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount
from nfstuned.parse.mountinfo import SMB, parse_mount_types, parse_mountinfo
from tests.parse.conftest import DATA, Captured
from tests.parse.damage import any_text, damaged, tokens_damaged

REAL = (DATA / "6.12" / "mountinfo").read_text()
LINE = "61 24 0:43 / /mnt/2 rw,relatime shared:106 - nfs4 sa1:/a rw,vers=4.1,nconnect=4"


def only(text: str) -> Mount | ParseError:
    (entry,) = parse_mountinfo(text)
    return entry


def test_the_type_of_every_mount_is_known_under_its_decoded_name() -> None:
    text = (
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "nonsense - \n"
        "30 22 0:40 / /mnt/a\\040b rw shared:2 master:3 - fuse.sshfs me@there: rw\n"
        "31 22 0:41 / /mnt/c"
    )
    assert parse_mount_types(text) == (("/", "ext4"), ("/mnt/a b", "fuse.sshfs"))


def test_only_nfs_mounts_are_taken(captured: Captured) -> None:
    mounts = [entry for entry in parse_mountinfo(captured("mountinfo")) if isinstance(entry, Mount)]
    assert {mount.fstype for mount in mounts} == {"nfs", "nfs4"}
    assert {"/mnt/1", "/mnt/2", "/mnt/bind", "/mnt/2/cross", "/mnt/with space"} <= {
        mount.point for mount in mounts
    }


def test_a_bind_mount_has_the_device_of_its_origin(captured: Captured) -> None:
    devices = {
        entry.point: entry.device
        for entry in parse_mountinfo(captured("mountinfo"))
        if isinstance(entry, Mount)
    }
    assert devices["/mnt/bind"] == devices["/mnt/2"]
    assert devices["/mnt/2/cross"] == devices["/mnt/bind/cross"] != devices["/mnt/2"]


def test_the_options_are_those_of_the_superblock(captured: Captured) -> None:
    for entry in parse_mountinfo(captured("mountinfo")):
        assert isinstance(entry, Mount)
        assert entry.options.number("rsize") == 262144
        assert entry.options.number("nconnect") == (4 if entry.source.startswith("sa1") else None)


def test_a_mounts_own_options_are_kept_apart_from_the_superblocks() -> None:
    mount = only("1 2 0:3 / /m ro,nosuid,relatime shared:1 - nfs s:/ rw,vers=3")
    assert isinstance(mount, Mount)
    assert (mount.flags, "ro" in mount.options) == ("ro,nosuid,relatime", False)


def test_escapes_are_decoded_in_every_text() -> None:
    mount = only(r"1 2 0:3 /a\040b /c\134d rw - nfs s\011x:/y rw,context=a\054b")
    assert isinstance(mount, Mount)
    assert (mount.root, mount.point, mount.source, mount.options.get("context")) == (
        "/a b",
        "/c\\d",
        "s\tx:/y",
        "a,b",
    )


def test_any_number_of_optional_fields_is_fine() -> None:
    none = only("1 2 0:3 / /m rw - nfs s:/ rw")
    assert only("1 2 0:3 / /m rw shared:1 master:2 propagate_from:3 unbindable - nfs s:/ rw") == none


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINE.replace("61", "x1"), "mount id is not a number: 'x1'"),
        (LINE.replace(" 24", " -4"), "parent id is not a number: '-4'"),
        (LINE.replace("0:43", "0.43"), "not a device number: '0.43'"),
        (LINE.replace(" rw,vers", ""), "7 fields before and 2 after the hyphen: "),
        ("61 - nfs4 a b", "1 fields before and 3 after the hyphen: '61 - nfs4 a b'"),
        ("9" * 5000 + LINE, "mount id is not a number: '" + "9" * 80 + "'..."),
    ],
)
def test_a_damaged_line_is_located_and_the_others_survive(line: str, message: str) -> None:
    before, error, after = parse_mountinfo(f"{LINE}\n{line}\n{LINE}\n", "mountinfo")
    assert before == after == only(LINE)
    assert isinstance(error, ParseError)
    assert str(error).startswith(f"mountinfo:2: {message}")


@given(st.one_of(damaged(REAL), tokens_damaged(REAL), any_text, any_text.map(lambda text: LINE + text)))
def test_nothing_but_parse_errors_comes_out(text: str) -> None:
    assert all(isinstance(entry, (Mount, ParseError)) for entry in parse_mountinfo(text))


@given(st.data())
def test_mounts_beside_a_damaged_line_survive(data: st.DataObject) -> None:
    lines = [line for line in REAL.splitlines() if " - nfs" in line and " - nfsd" not in line]
    at = data.draw(st.integers(0, len(lines) - 1))
    bad = data.draw(damaged(lines[at])).replace("\n", "")
    good = [only(line) for line in (*lines[:at], *lines[at + 1 :])]
    found = parse_mountinfo("\n".join([*lines[:at], bad, *lines[at + 1 :]]))
    assert [entry for entry in found if entry in good] == good


def test_the_families_do_not_see_each_others_mounts() -> None:
    text = f"{LINE}\n62 24 0:44 / /mnt/3 rw - cifs //sa1/b rw\n63 24 0:45 / /mnt/4 rw - ext4 /dev/cifs rw"
    assert [m.point for m in parse_mountinfo(text) if isinstance(m, Mount)] == ["/mnt/2"]
    assert [m.point for m in parse_mountinfo(text, family=SMB) if isinstance(m, Mount)] == ["/mnt/3"]
