from __future__ import annotations

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount, NfsClient, Uevent, Volume
from nfstuned.parse.proc.mounts import (
    SMB,
    find_volume,
    is_device_number,
    node_at,
    parse_clients,
    parse_mount_types,
    parse_mountinfo,
    parse_nodes,
    parse_read_ahead,
    parse_uevent,
    parse_volumes,
    remote_type,
)
from tests.parse.conftest import DATA, Captured
from tests.parse.damage import damaged
from tests.parse.rows import shown

REAL = (DATA / "6.12" / "mountinfo").read_text()
LINE = "61 24 0:43 / /mnt/2 rw,relatime shared:106 - nfs4 sa1:/a rw,vers=4.1,nconnect=4"


def only(text: str) -> Mount:
    (entry,) = parse_mountinfo(text)
    assert isinstance(entry, Mount)
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
    found = attrgetter(*["mount_id", "parent_id", "device", "point", "fstype", "source", "shared", "master"])
    assert [found(node) for node in parse_nodes(text)] == [
        (27, 1, "8:1", "/", "ext4", "/dev/sda1", 1, None),
        (30, 27, "0:40", "/mnt/a b", "nfs4", "sa1:/a b", 2, 3),
        (32, 27, "0:42", "/private", "tmpfs", "tmpfs", None, None),
    ]


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
        "5 1 0:43 / /m rw - tmpfs m rw\n6 5 0:44 / /m/x rw - tmpfs x rw\n7 5 0:45 / /m rw - nfs4 s:/m rw\n"
    )
    types = [(node.point, node.fstype) for node in nodes]
    assert [remote_type(types, path) for path in ("/m/x/y", "/mnt/x", "/n")] == ["nfs4", "nfs4", ""]
    for path, mount_id in (("/mnt", 3), ("/mnt/y", 3), ("/mnt/x/y", 4), ("/mntx", 1), ("/", 1), ("/m/x", 7)):
        found = node_at(path, nodes)
        assert (found and found.mount_id, node_at("relative", nodes[1:])) == (mount_id, None)


def test_only_nfs_mounts_are_taken_with_the_options_of_their_superblock(captured: Captured) -> None:
    mounts = {m.point: m for m in parse_mountinfo(captured("mountinfo")) if isinstance(m, Mount)}
    assert {mount.fstype for mount in mounts.values()} == {"nfs", "nfs4"}
    assert {"/mnt/1", "/mnt/2", "/mnt/bind", "/mnt/2/cross", "/mnt/with space"} <= mounts.keys()
    devices = {point: mount.device for point, mount in mounts.items()}
    assert devices["/mnt/bind"] == devices["/mnt/2"]
    assert devices["/mnt/2/cross"] == devices["/mnt/bind/cross"] != devices["/mnt/2"]
    for mount in mounts.values():
        assert mount.options.number("rsize") == 262144
        assert mount.options.number("nconnect") == (4 if mount.source.startswith("sa1") else None)


def test_escapes_are_decoded_in_every_text_unless_they_are_no_byte_of_a_name() -> None:
    mount = only(r"1 2 0:3 /a\040b /c\134d\000n\400 rw - nfs s\011x:/y\777 rw,context=a\054b")
    assert (mount.root, mount.point, mount.source) == ("/a b", r"/c\d\000n\400", "s\tx:/y\\777")
    assert mount.options.get("context") == "a,b"


# cifs_show_options before Linux 4.3 prints names as they are
def test_an_option_of_smb_may_have_blanks() -> None:
    text = "1 2 0:3 / /m rw shared:1 - cifs //nas/a rw,vers=3.0,username=Jo Doe - x,domain=THE OFFICE,seal\n"
    (mount,) = parse_mountinfo(text, family=SMB)
    assert isinstance(mount, Mount)
    names = ("username", "Jo Doe - x"), ("domain", "THE OFFICE"), ("seal", None)
    assert (mount.point, mount.source) == ("/m", "//nas/a")
    assert mount.options.pairs == (("rw", None), ("vers", "3.0"), *names)
    (node,) = parse_nodes(text)
    assert (node.fstype, node.source, node.options.split(",")[-1]) == ("cifs", "//nas/a", "seal")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (LINE.replace("61", "x1"), "mount id is not a number: 'x1'"),
        (LINE.replace(" 24", " -4"), "parent id is not a number: '-4'"),
        (LINE.replace("0:43", "0.43"), "not a device number: '0.43'"),
        (LINE.replace(" rw,vers", ""), "7 fields before and 2 after the hyphen: "),
        ("61 - nfs4 a b", "1 fields before and 3 after the hyphen: '61 - nfs4 a b'"),
        ("9" * 5000 + LINE, "mount id does not fit 64 bits: '" + "9" * 80 + "'..."),
    ],
)
def test_a_damaged_line_is_located_and_the_others_survive(line: str, message: str) -> None:
    before, error, after = shown(parse_mountinfo(f"{LINE}\n{line}\n{LINE}\n", "mountinfo"))
    assert before == after == only(LINE)
    assert str(error).startswith(f"mountinfo:2: {message}")


@given(st.data())
def test_mounts_beside_a_damaged_line_survive(data: st.DataObject) -> None:
    lines = [line for line in REAL.splitlines() if " - nfs" in line and " - nfsd" not in line]
    at = data.draw(st.integers(0, len(lines) - 1))
    bad = data.draw(damaged(lines[at])).replace("\n", "")
    good = [only(line) for line in (*lines[:at], *lines[at + 1 :])]
    found = parse_mountinfo("\n".join([*lines[:at], bad, *lines[at + 1 :]]))
    assert [entry for entry in found if entry in good] == good


HEADER = "NV SERVER   PORT DEV          FSID                              FSC\n"
REAL_ROWS = (DATA / "6.12" / "volumes").read_text()


def row(device: str, fsid: str = "e:0", address: str = "0a0a0a0a") -> str:
    """Return a row as nfs_volume_list_show of fs/nfs/client.c prints it."""
    return f"v4 {address}  801 {device:<12} {fsid:<33} no \n"


def test_addresses_and_ports_are_decoded(captured_6_12: Captured) -> None:
    assert parse_volumes(captured_6_12("volumes"))[:2] == (
        Volume(3, "10.10.10.11", 2049, "0:45", "e:0"),
        Volume(4, "10.10.10.10", 2049, "0:46", "0:0"),
    )
    assert parse_clients(captured_6_12("servers")) == (
        NfsClient(3, "10.10.10.11", 2049, 1, "10.10.10.11"),
        NfsClient(4, "10.10.10.10", 2049, 2, "sa1.file.core.windows.net"),
        NfsClient(4, "10.10.10.10", 2049, 2, "10.10.10.10"),
        NfsClient(4, "10.10.10.10", 2049, 1, "10.10.10.10"),
    )


@pytest.mark.parametrize(
    ("line", "volume"),
    [
        # %pi6 of net/sunrpc/xprtsock.c: 32 digits
        (row("0:9", address=f"fd{'0' * 28}10"), Volume(4, "fd00::10", 2049, "0:9", "e:0")),
        (row("0:9", address="00000001"), Volume(4, "0.0.0.1", 2049, "0:9", "e:0")),
        ("v4 unprintable unprintable 0:9 0:0 no \n", Volume(4, "unprintable", 0, "0:9", "0:0")),
        # a superblock that is being set up
        (row("0:0"), Volume(4, "10.10.10.10", 2049, "0:0", "e:0")),
        # before the columns were widened: seven characters of device, seventeen of fsid
        ("v3 7f000001  801 0:1048  14bf85b7d1: no \n", Volume(3, "127.0.0.1", 2049, "0:1048", "14bf85b7d1:")),
        # before FS-Cache
        ("v3 7f000001    0 0:9     14bf85b7d1:0\n", Volume(3, "127.0.0.1", 0, "0:9", "14bf85b7d1:0")),
    ],
)
def test_rows_of_other_kernels_are_understood(line: str, volume: Volume) -> None:
    assert parse_volumes(HEADER + line) == (volume,)
    assert find_volume(HEADER + line, volume.device) == volume


@pytest.mark.parametrize(
    ("rows", "device", "fsid"),
    [
        (("0:43", "0:431", "10:43", "0:10485"), "0:4", None),
        (("0:43", "0:431", "10:43", "0:10485"), "0:104857", None),
        (("0:43", "0:431", "10:43", "0:10485"), "", None),
        (("0:431", "10:43", "0:43 e:1"), "0:43", "e:1"),
        # A file system's id is never taken for a device.
        (("0:43 c:0", "0:44 0:43", "0:45 0:99"), "0:43", "c:0"),
        (("0:43 c:0", "0:44 0:43", "0:45 0:99"), "0:99", None),
        # Of two rows the newer one counts.
        (("0:43 a:0", "0:43 b:0"), "0:43", "b:0"),
    ],
)
def test_only_the_exact_device_is_found(rows: tuple[str, ...], device: str, fsid: str | None) -> None:
    found = find_volume(HEADER + "".join(row(*one.split()) for one in rows), device)
    assert found == (Volume(4, "10.10.10.10", 2049, device, fsid) if fsid else None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v4 0a0a0a0a\n", "2 fields, 5 expected: 'v4 0a0a0a0a'"),
        ("x4 0a0a0a0a 801 0:4 e:0\n", "not an NFS version: 'x4'"),
        ("v 0a0a0a0a 801 0:4 e:0\n", "NFS version is not a number: ''"),
        ("v4 0a0a0a 801 0:4 e:0\n", "address of 6 digits: '0a0a0a'"),
        ("v4 0a0a0a0g 801 0:4 e:0\n", "address is not hexadecimal: '0a0a0a0g'"),
        ("v4 0a_a0a0a 801 0:4 e:0\n", "address is not hexadecimal: '0a_a0a0a'"),
        ("v4 0a0a0a0a 10801 0:4 e:0\n", "port of 5 digits: '10801'"),
        ("v4 0a0a0a0a -801 0:4 e:0\n", "port is not hexadecimal: '-801'"),
        ("v4 0a0a0a0a 801 0-4 e:0\n", "not a device number: '0-4'"),
    ],
)
def test_a_damaged_row_is_located_and_the_others_survive(line: str, message: str) -> None:
    (before,), (after,) = parse_volumes(row("0:43")), parse_volumes(row("0:44"))
    found = shown(parse_volumes(HEADER + row("0:43") + line + row("0:44")))
    assert found == [before, f"/proc/fs/nfsfs/volumes:3: {message}", after]


def test_a_damaged_row_is_an_error_when_its_device_is_looked_for() -> None:
    text = HEADER + row("0:43") + row("0:44", address="?")
    assert find_volume(text, "0:43") is not None
    with pytest.raises(ParseError, match=r"^/proc/fs/nfsfs/volumes:3: address is not hexadecimal: '\?'"):
        find_volume(text, "0:44")


def test_a_short_server_row_is_located_and_a_host_name_is_taken_as_it_stands() -> None:
    text = "NV SERVER   PORT USE HOSTNAME\nv4 0a0a0a0a  801   2\nv4 0a0a0a0a  801   2 odd \udcff name\n"
    assert shown(parse_clients(text)) == [
        "/proc/fs/nfsfs/servers:2: 4 fields, 5 expected: 'v4 0a0a0a0a  801   2'",
        NfsClient(4, "10.10.10.10", 2049, 2, "odd \udcff name"),
    ]


@given(st.data())
def test_rows_beside_a_damaged_one_survive(data: st.DataObject) -> None:
    rows = REAL_ROWS.splitlines()
    at = data.draw(st.integers(1, len(rows) - 1))
    bad = data.draw(damaged(rows[at])).replace("\n", "")
    text = "\n".join([*rows[:at], bad, *rows[at + 1 :]])
    good = [entry for number, entry in enumerate(parse_volumes(REAL_ROWS), 1) if number != at]
    assert [entry for entry in parse_volumes(text) if entry in good] == good


def test_every_real_bdi_has_the_kernels_default(captured: Captured) -> None:
    for line in captured("bdi").splitlines():
        path, _, value = line.partition("/read_ahead_kb:")
        assert is_device_number(path.rpartition("/")[2])
        assert parse_read_ahead(value + "\n", path) == 128


def test_other_names_are_no_device_numbers() -> None:
    names = ("btrfs-1", "ceph-1", "0:", ":4", "0:4:3", "0:٤", "0:4\n", "", "0:" + "9" * 5000)
    assert [name for name in names if is_device_number(name)] == []


def test_a_value_that_the_kernel_prints_as_negative_is_an_enormous_one() -> None:
    # 2**64-1 is taken for a read-ahead and reads back as -4: pages are rounded down, and the print is signed
    assert parse_read_ahead("-4\n", "f") == 2**64 - 4
    assert parse_read_ahead("-0", "f") == 0


@pytest.mark.parametrize(
    ("text", "token"),
    [
        *((text, repr(text.strip())) for text in ("", "\n", "-", "12k", "1 2", "\0", "--4")),
        ("9" * 5000, f"'{'9' * 80}'..."),
    ],
)
def test_anything_else_is_an_error_that_names_file_and_token(text: str, token: str) -> None:
    with pytest.raises(ParseError) as raised:
        parse_read_ahead(text, "/sys/class/bdi/0:4/read_ahead_kb")
    assert str(raised.value) == f"/sys/class/bdi/0:4/read_ahead_kb:1: read-ahead is not a number: {token}"


def message(action: str = "add", path: str = "/devices/virtual/bdi/0:43", subsystem: str = "bdi") -> bytes:
    fields = f"{action}@{path}", f"ACTION={action}", f"DEVPATH={path}", f"SUBSYSTEM={subsystem}", "SEQNUM=832"
    return "".join(f"{field}\0" for field in fields).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("data", "subsystem", "event"),
    [
        *((message(action), "bdi", Uevent(action, "bdi", "0:43")) for action in ("add", "remove", "change")),
        # the short path of a transport that was removed
        (message("remove", "/switch-1/xprt-0", "sunrpc"), "sunrpc", Uevent("remove", "sunrpc", "xprt-0")),
        (b"add@/x/\xff\0SUBSYSTEM=\xfe\0", "\udcfe", Uevent("add", "\udcfe", "\udcff")),
    ],
)
def test_an_event_names_its_device(data: bytes, subsystem: str, event: Uevent) -> None:
    assert parse_uevent(data, subsystem) == event


@pytest.mark.parametrize(
    "data",
    [
        *(message(subsystem=name) for name in ("bdisk", "xbdi", "net")),
        b"libudev\0\xfe\xed\xca\xfe(\0\0\0ACTION=add\0SUBSYSTEM=bdi\0",
        b"",
        b"add@/devices/virtual/bdi/0:43\0",
        b"add@/devices/virtual/bdi/0:43\0SUBSYSTEM=bdi",
        b"@/devices/virtual/bdi/0:43\0SUBSYSTEM=bdi\0",
        b"SUBSYSTEM=bdi\0",
    ],
)
def test_events_of_other_subsystems_messages_of_udev_and_cut_ones_are_no_events(data: bytes) -> None:
    assert parse_uevent(data, "bdi") is None


@given(st.binary(), st.integers(0, 120))
def test_no_datagram_breaks_the_parser(data: bytes, cut: int) -> None:
    for text in (data, message()[:cut] + data, data + message()):
        parse_uevent(text, "bdi")
