from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount
from nfstuned.parse.proc.mountinfo import SMB, node_at, parse_mount_types, parse_mountinfo, parse_nodes
from tests.parse.conftest import DATA, Captured
from tests.parse.damage import damaged

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


def test_the_tree_of_mounts_has_their_peer_groups() -> None:
    text = (
        "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "nonsense - \n"
        "30 27 0:40 / /mnt/a\\040b rw shared:2 master:3 propagate_from:4 - nfs4 sa1:/a\\040b rw,vers=4.1\n"
        "31 x 0:41 / /mnt/d rw - nfs4 sa1:/a rw\n"
        "32 27 0:42 / /private rw - tmpfs tmpfs rw\n"
        "33 27 0:43 / /mnt/c"
    )
    assert [
        (node.mount_id, node.parent_id, node.device, node.point, node.fstype, node.source)
        for node in parse_nodes(text)
    ] == [
        (27, 1, "8:1", "/", "ext4", "/dev/sda1"),
        (30, 27, "0:40", "/mnt/a b", "nfs4", "sa1:/a b"),
        (32, 27, "0:42", "/private", "tmpfs", "tmpfs"),
    ]
    assert [(node.shared, node.master) for node in parse_nodes(text)] == [(1, None), (2, 3), (None, None)]


def test_the_tree_of_mounts_has_every_mount_of_real_kernels(captured: Captured) -> None:
    text = captured("mountinfo")
    nodes = {node.mount_id: node for node in parse_nodes(text)}
    assert len(nodes) == len(text.strip().split("\n"))
    for entry in parse_mountinfo(text):
        assert isinstance(entry, Mount)
        node = nodes[entry.mount_id]
        assert (node.point, node.source, node.device) == (entry.point, entry.source, entry.device)


def test_a_path_is_on_the_mount_on_top() -> None:
    nodes = parse_nodes(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        "2 1 0:40 / /mnt rw - nfs4 s:/ rw\n"
        "3 2 0:41 / /mnt rw - nfs4 s:/b rw\n"
        "4 3 0:42 / /mnt/x rw - nfs4 s:/x rw\n"
    )
    found = {path: node_at(path, nodes) for path in ("/mnt", "/mnt/y", "/mnt/x/y", "/mntx", "/")}
    assert {path: node and node.mount_id for path, node in found.items()} == {
        "/mnt": 3,
        "/mnt/y": 3,
        "/mnt/x/y": 4,
        "/mntx": 1,
        "/": 1,
    }
    assert node_at("relative", nodes[1:]) is None


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


def test_an_escape_that_is_no_byte_of_a_name_stays_as_it_is() -> None:
    mount = only(r"1 2 0:3 / /m\000n\400 rw - nfs s:/a\777 rw")
    assert isinstance(mount, Mount)
    assert (mount.point, mount.source) == (r"/m\000n\400", r"s:/a\777")


# cifs_show_options before Linux 4.3 prints names as they are
def test_an_option_of_smb_may_have_blanks() -> None:
    text = "1 2 0:3 / /m rw shared:1 - cifs //nas/a rw,vers=3.0,username=Jo Doe - x,domain=THE OFFICE,seal\n"
    (mount,) = parse_mountinfo(text, family=SMB)
    assert isinstance(mount, Mount)
    assert (mount.point, mount.source) == ("/m", "//nas/a")
    assert mount.options.pairs == (
        ("rw", None),
        ("vers", "3.0"),
        ("username", "Jo Doe - x"),
        ("domain", "THE OFFICE"),
        ("seal", None),
    )
    (node,) = parse_nodes(text)
    assert (node.fstype, node.source, node.options.split(",")[-1]) == ("cifs", "//nas/a", "seal")


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
