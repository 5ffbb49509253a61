from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request
from nfstuned.parse.etc.requests import parse_fstab, parse_utab, parse_verify

REAL = """\
# <file system> <mount point> <type> <options> <dump> <pass>
UUID=0a3407de-014b-458b-b5c1-848e92a327a3 / ext4 errors=remount-ro 0 1

sa1.file.core.windows.net:/sa1/share\t/mnt/a\tnfs\tvers=4.1,nconnect=4,sec=sys,_netdev\t0\t0
  10.1.2.4:/vol\\0401 /mnt/with\\040space\\043\\134 nfs4 context="a,b" 0
[fd00::10]:/b /b nfs defaults
#10.1.2.4:/c /c nfs defaults 0 0
//sa1.file.core.windows.net/s /smb cifs vers=3.1.1 0 0
sa1.file.core.windows.net:/sa1/s /tls aznfs vers=4.1 0 0
"""


def test_only_network_entries_are_taken_and_decoded_with_their_type() -> None:
    assert parse_fstab(REAL) == (
        Request(
            "sa1.file.core.windows.net:/sa1/share",
            "/mnt/a",
            "vers=4.1,nconnect=4,sec=sys,_netdev",
            "/etc/fstab",
            4,
        ),
        Request("10.1.2.4:/vol 1", "/mnt/with space#\\", 'context="a,b"', "/etc/fstab", 5, fstype="nfs4"),
        Request("[fd00::10]:/b", "/b", "defaults", "/etc/fstab", 6),
        Request("//sa1.file.core.windows.net/s", "/smb", "vers=3.1.1", "/etc/fstab", 8, fstype="cifs"),
        Request("sa1.file.core.windows.net:/sa1/s", "/tls", "vers=4.1", "/etc/fstab", 9, fstype="aznfs"),
    )


def test_an_escape_of_a_byte_that_is_0_ends_the_field_as_mount_reads_it() -> None:
    text = "nas:/a\\000b /m\\400n nfs ro,nconnect=4\\0005 0 0\n"
    assert parse_fstab(text) == (Request("nas:/a", "/m", "ro,nconnect=4", "/etc/fstab", 1),)


@pytest.mark.parametrize(
    ("named", "fstype"),
    [("nfs4,nfs", "nfs4"), ("ext4,nfs", "nfs"), ("smb3,cifs", "smb3"), ("ext4,xfs", None), (",", None)],
)
def test_of_a_list_of_types_the_first_of_a_network_counts(named: str, fstype: str | None) -> None:
    entry = Request("nas:/a", "/m", "rw", "/etc/fstab", 1, fstype=fstype or "", named=named)
    assert parse_fstab(f"nas:/a /m {named} rw 0 0\n") == ((entry,) if fstype else ())


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("nas:/a /m defaults 0 0", "defaults"),
        ("nas:/a /m rw,_netdev,nofail 0 0", "rw,_netdev,nofail"),
        ("nas:/a /m vers=4.1,hard", "vers=4.1,hard"),
        ("//nas/a /m uid=1000,_netdev 0 0", "uid=1000,_netdev"),
    ],
)
def test_a_line_with_options_in_the_place_of_the_type_is_an_error(line: str, options: str) -> None:
    message = f"options in the place of the type: '{options}'"
    assert [str(item) for item in parse_fstab(line)] == [f"/etc/fstab:1: {message}"]


@pytest.mark.parametrize(
    "line",
    ["mon1:6789:/ /m ceph name=admin 0 0", "/dev/sda1 /m defaults 0 0", "host:/v /m glusterfs defaults 0 0"],
)
def test_lines_of_other_types_stay_foreign(line: str) -> None:
    assert parse_fstab(line) == ()


@pytest.mark.parametrize(
    ("source", "fstype"),
    [
        ("nas:/a", "nfs"),
        ("[fd00::10]:/b", "nfs"),
        ("//nas/a", "cifs"),
        ("//nas:445/a", None),
        ("/dev/disk/by-path/pci-0000:00:/1", None),
        ("https://dav.example.com/", None),
        ("/dev/vda", None),
        ("UUID=0a34", None),
    ],
)
def test_of_a_source_that_names_a_server_mount_guesses_the_type(source: str, fstype: str | None) -> None:
    found = parse_fstab(f"{source} /m auto rw 0 0\n{source} /n none rw 0 0\n")
    entry = Request(source, "/m", "rw", "/etc/fstab", 1, fstype=fstype or "", named="auto")
    assert found == ((entry,) if fstype else ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s:/", "no mount point after 's:/'"),
        ("s:/ /m", "no type after '/m'"),
        ("s:/ /m nfs rw, nconnect=4 0 0", "dump frequency is not a number: 'nconnect=4'"),
        ("s:/ /m nfs rw # why", "dump frequency is not a number: '#'"),
        ("s:/ /m nfs rw 0 x", "fsck pass is not a number: 'x'"),
        ("s:/ /m nfs rw 0 0\r ", "fsck pass is not a number: '0\\r'"),
        ("s:/ /m n\0f\0s rw 0 0", "a byte that is 0, which mount(8) takes for the line's end"),
    ],
)
def test_an_entry_that_mount_would_not_take_is_located_and_the_others_survive(
    line: str, message: str
) -> None:
    before, error, after = parse_fstab(f"s:/ /m nfs rw\n{line}\ns:/ /m nfs rw 0 0 # why\n", "fstab")
    assert before == Request("s:/", "/m", "rw", "fstab", 1)
    assert after == Request("s:/", "/m", "rw", "fstab", 3)
    assert isinstance(error, ParseError)
    assert str(error) == f"fstab:2: {message}"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("s:/ /m nfs", ""),
        ("s:/ /m nfs\r", ""),
        ("s:/ /m nfs rw\r", "rw"),
        ("s:/ /m nfs rw +1 -2\r", "rw"),
        ("s:/ /m nfs rw 0 0 more", "rw"),
        ("s:/ /m nfs rw 0 0 # why", "rw"),
    ],
)
def test_what_findmnt_takes_is_an_entry(line: str, options: str) -> None:
    assert parse_fstab(f"# new\r\n\r\n{line}\n", "fstab") == (Request("s:/", "/m", options, "fstab", 3),)


def test_a_line_of_another_type_is_none_of_ours_whatever_is_wrong_with_it() -> None:
    assert parse_fstab("/dev/vda / ext4 rw x y\nproc /proc proc\n/dev/vdb /b # why\n") == ()


# fprintf_utab_fs of libmount's tab_update.c; newer versions start with ID= and know UNIQID=
NFS = "ID=61 SRC=sa1:/a TARGET=/mnt/2 ROOT=/ ATTRS=vers=4.1,nconnect=8,addr=10.10.10.10 UNIQID=9"
ESCAPED = r"SRC=s:/a\040b TARGET=/mnt/with\040space ROOT=/ ATTRS=addr=fd00::10 OPTS=_netdev"
UTAB_ROWS = f"{NFS}\n{ESCAPED}\n"


def test_nfs_requests_are_found_with_the_options_of_mount_nfs() -> None:
    assert parse_utab(UTAB_ROWS) == (
        Request("sa1:/a", "/mnt/2", "vers=4.1,nconnect=8,addr=10.10.10.10", "/run/mount/utab", 1),
        Request("s:/a b", "/mnt/with space", "addr=fd00::10", "/run/mount/utab", 2),
    )


def test_other_entries_and_noise_do_not_count() -> None:
    assert (
        parse_utab("\nSRC=/dev/sda1 TARGET=/ ROOT=/ OPTS=_netdev,addr=x\nnoise\nSRC=x TARGET=/x ATTRS=a\n")
        == ()
    )


def test_an_entry_without_a_mount_point_is_located_and_the_others_survive() -> None:
    before, error, after = parse_utab(f"{NFS}\nSRC=s:/ ATTRS=vers=3\n{NFS}\n", "utab")
    assert isinstance(before, Request)
    assert isinstance(after, Request)
    assert (before.options, before.line, after.options, after.line) == (after.options, 1, before.options, 3)
    assert isinstance(error, ParseError)
    assert str(error) == "utab:2: neither SRC nor TARGET may be missing: 'SRC=s:/ ATTRS=vers=3'"


OUTPUT = """\
/
   [E] unreachable on boot required source: LABEL=x
/nope
   [E] unreachable on boot required target: No such file or directory
/proc
   [W] unreachable source: proc: No such file or directory
   [W] bogus seems unsupported by the current kernel
   [W] cannot detect on-disk filesystem type (No such file or directory)
"""
ERRORS = """\
findmnt: /tmp/t.fstab: parse error at line 3 -- ignored
findmnt: /tmp/t.fstab: parse error at line 6 -- ignored

2 parse errors, 2 errors, 3 warnings
"""


def test_errors_are_counted_and_warnings_are_not() -> None:
    assert parse_verify(OUTPUT, ERRORS) == {
        "/: unreachable on boot required source: LABEL=x": 1,
        "/nope: unreachable on boot required target: No such file or directory": 1,
        "parse error at line 3": 1,
        "parse error at line 6": 1,
    }


def test_the_same_error_twice_counts_twice() -> None:
    found = parse_verify(OUTPUT + OUTPUT, ERRORS)
    assert found is not None
    assert found["/: unreachable on boot required source: LABEL=x"] == 2


def test_success_is_no_error() -> None:
    assert parse_verify("Success, no errors or warnings detected\n", "") == {}


def test_what_has_no_summary_is_no_verdict() -> None:
    assert parse_verify("", "findmnt: unrecognized option '--verify'\n") is None
    assert parse_verify("", "") is None
