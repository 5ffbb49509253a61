"""What keeps a mount busy, as the kernel and nfs-utils write it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nfstuned.parse.proc.processes import (
    parse_exports,
    parse_layers,
    parse_mapped,
    parse_mount_id,
    parse_swaps,
    parse_unix,
)


def test_an_open_file_names_its_mount() -> None:
    assert parse_mount_id("pos:\t0\nflags:\t0100000\nmnt_id:\t64\nino:\t3\n") == 64
    assert parse_mount_id("pos:\t0\n") is None


def test_this_process_says_so_of_its_own_files() -> None:
    with Path("/proc/self/maps").open() as file:
        said = parse_mount_id(Path(f"/proc/self/fdinfo/{file.fileno()}").read_text())
        mapped = parse_mapped(file.read())
    rows = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    assert [row[4] for row in rows if int(row[0]) == said] == ["/proc"]
    assert mapped


def test_mapped_files_are_known_by_their_device() -> None:
    text = (
        "55b0a592d000-55b0a592f000 r--p 00000000 fe:00 247278                     /usr/bin/head\n"
        "7f0000000000-7f0000001000 rw-s 00000000 00:2b 12                         /mnt/a/b c (deleted)\n"
        "7f0000001000-7f0000002000 rw-s 00001000 00:2b 13                         /mnt/a/other\n"
        "7f0000002000-7f0000003000 rw-p 00000000 00:00 0                          [heap]\n"
        "7f0000003000-7f0000004000 rw-p 00000000 00:00 0 \n"
    )
    assert parse_mapped(text) == {"254:0": "/usr/bin/head", "0:43": "/mnt/a/b c (deleted)"}


def test_swap_files_and_not_partitions() -> None:
    text = (
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/mnt/a/swap\\040file                     file\t\t1048572\t\t0\t\t-2\n"
        "/dev/sda2                               partition\t1048572\t\t0\t\t-3\n"
    )
    assert parse_swaps(text) == ("/mnt/a/swap file",)


def test_exports_of_the_kernel_and_of_exportfs() -> None:
    kernel = "# Version 1.1\n# Path Client(Flags) # IPs\n/mnt/a\\040b\t*(rw,no_root_squash,sync)\n"
    etab = "/srv/a\t*(rw,sync)\n/srv/a\t10.0.0.0/8(ro)\n"
    assert (parse_exports(kernel), parse_exports(etab)) == (("/mnt/a b",), ("/srv/a",))


def test_bound_sockets() -> None:
    text = (
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "000000003e98976b: 00000003 00000000 00000000 0001 03   559\n"
        "00000000c117bb01: 00000002 00000000 00010000 0001 01   560 /mnt/a/the socket\n"
        "00000000c117bb02: 00000002 00000000 00010000 0001 01 12345 @abstract\n"
    )
    assert parse_unix(text) == ("/mnt/a/the socket",)


def test_the_layers_of_an_overlay() -> None:
    options = "rw,lowerdir=/mnt/a/l:relative:/l2,upperdir=/up\\040per,workdir=/work,xino=off"
    assert list(parse_layers(options)) == ["/mnt/a/l", "/l2", "/up per", "/work"]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse_mount_id(text)
    parse_mapped(text)
    parse_swaps(text)
    parse_exports(text)
    parse_unix(text)
    list(parse_layers(text))
