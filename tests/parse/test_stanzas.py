from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import pytest

from nfstuned.model.kernel import MountStats, Nfsv4State, Stanza
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_nfsv4, parse_stanzas, parse_transports
from tests.parse.conftest import DATA, Captured
from tests.parse.damage import LONGEST_NAMES

REAL = (DATA / "6.12" / "mountstats").read_bytes()
HEADER = "device s:/a mounted on /m with fstype nfs4 statvers=1.1"
OPS = "\tper-op statistics\n\t        READ: 1 1 0 1 1 1 1 1 0\n"
XPRT = "\txprt:\ttcp 0 1 2 3 4 5 6 7 8 9 10 11 12\n"


def stanza(*lines: str, header: str = HEADER, end: str = "\n") -> str:
    return "\n".join([header, *lines]) + "\n" + end


def only(text: str) -> Stanza:
    (found,) = parse_stanzas([text.encode()])
    return found


def test_a_real_file_is_cut_into_the_mounts_that_its_parser_finds(captured: Captured) -> None:
    text = captured("mountstats")
    parsed = [entry for entry in parse_mountstats(text) if isinstance(entry, MountStats)]
    cut = parse_stanzas([text.encode("utf-8", "surrogateescape")])
    assert [(one.source, one.point, one.age_s, one.whole) for one in cut] == [
        (one.source, one.point, one.age_s, one.whole) for one in parsed
    ]
    assert all(one.whole and one.totals and one.transports and one.operations for one in cut)


@pytest.mark.parametrize("blank", ["", " ", "        "])
def test_a_file_without_tabs_is_cut_at_the_same_places(captured: Captured, blank: str) -> None:
    text = captured("mountstats").encode("utf-8", "surrogateescape")
    known, bare_ones = parse_stanzas([text]), parse_stanzas([text.replace(b"\t", blank.encode())])
    for usual, bare_one in zip(known, bare_ones, strict=True):
        assert bare_one[:4] == usual[:4]
        assert parse_transports(bare_one.transports) == parse_transports(usual.transports)
        assert bare_one.operations == (usual.operations or b"").replace(b"\t", blank.encode())
        assert bare_one.whole


def test_the_lease_and_the_cache_are_the_same_from_a_usual_stanza_and_from_any_other(
    captured: Captured,
) -> None:
    text = captured("mountstats").encode("utf-8", "surrogateescape").replace(b",vers=3", b",fsc,vers=3")
    usual, bare_ones = parse_stanzas([text]), parse_stanzas([text.replace(b"\t", b"")])
    assert [(one.nfsv4, one.cached) for one in usual] == [(one.nfsv4, one.cached) for one in bare_ones]
    leases = [parse_nfsv4(one.nfsv4) for one in usual if one.nfsv4 is not None]
    assert set(leases) == {Nfsv4State(90, 0, None)}
    assert {one.nfsv4 is None for one in usual} == {one.cached for one in usual} == {True, False}


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (b"pnfs=LAYOUT_FLEX_FILES,lease_time=60,lease_expired=7", Nfsv4State(60, 7, "LAYOUT_FLEX_FILES")),
        (b"pnfs=,lease_time=,lease_expired=-1", Nfsv4State(None, None, None)),
        (b"", Nfsv4State(None, None, None)),
        (b"lease_time=" + b"9" * 5000, Nfsv4State(None, None, None)),
    ],
)
def test_what_a_line_does_not_say_of_the_lease_is_not_known(text: bytes, state: Nfsv4State) -> None:
    assert parse_nfsv4(text) == state


def test_the_sections_are_the_files_own_text() -> None:
    found = parse_stanzas([REAL])[1]
    assert found.totals == b"8388608 8388608 0 0 0 8388608 0 8 "
    assert [line[:4] for line in found.transports.split(b"\n")] == [b"tcp "] * 4
    assert found.operations is not None
    assert found.operations.startswith(b"\t        NULL: 1 1 0 44 24 2 0 3 0\n")
    assert found.operations.endswith(b"\n\t   READ_PLUS: 0 0 0 0 0 0 0 0 0")


@pytest.mark.parametrize(
    "lines",
    [
        ("\topts:\trw", "\tage:\t7", "\tbytes:\t1 2", "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)"),
        ("\tbytes:\t1 2", "\tnew:\tx", "\tage:\t7"),
        ("\tage:\t6", "\tage:\t7", "\tbytes:\t5", "\tbytes:\t1 2"),
    ],
)
def test_sections_are_found_in_any_order(lines: tuple[str, ...]) -> None:
    found = only(stanza(*lines, end=XPRT + OPS + "\n"))
    assert (found.age_s, found.totals, found.whole) == (7, b"1 2", True)
    assert found.transports == b"tcp 0 1 2 3 4 5 6 7 8 9 10 11 12"
    assert found.operations == b"\t        READ: 1 1 0 1 1 1 1 1 0"


@pytest.mark.parametrize(
    "name", ["a", f"\n{HEADER}\n\tage:\t9\n\tbytes:\t9\n{XPRT}{OPS}\n\n", "it's", "\n\n"]
)
def test_what_a_server_calls_itself_is_no_section(name: str) -> None:
    named = f"\timpl_id:\tname='{name}',domain='d',date='0,0'"
    first, second = parse_stanzas(
        [(stanza("\tage:\t7", named, "\tbytes:\t1 2", end=OPS + "\n") + stanza("\tage:\t8")).encode()]
    )
    assert (first.age_s, first.totals, first.transports) == (7, b"1 2", b"")
    assert (first.operations, first.whole) == (b"\t        READ: 1 1 0 1 1 1 1 1 0", True)
    assert second == only(stanza("\tage:\t8"))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (stanza("\tage:\t7", end=OPS + "\n"), True),
        (stanza("\tage:\t7", end=OPS + "\nno device mounted on /x with fstype foo\n"), True),
        (stanza("\tage:\t7"), True),
        (stanza("\tage:\t7", end=OPS), False),
        (stanza("\tage:\t7", end=OPS.rstrip("\n")), False),
        (stanza("\tage:\t7", end=OPS + "device tmpfs mounted on /t with fstype tmpfs\n\n"), False),
        (stanza("\tage:\t7", end=""), False),
        (HEADER, False),
    ],
)
def test_a_stanza_is_whole_when_it_ends_as_the_kernel_ends_it(text: str, whole: bool) -> None:  # noqa: FBT001
    assert only(text).whole is whole
    (parsed,) = parse_mountstats(text)
    assert isinstance(parsed, MountStats)
    assert parsed.whole is whole


@pytest.mark.parametrize("age", ["", "-1", "7 ", "²", "9" * 20, "9" * 5000])
def test_a_damaged_age_is_not_taken_for_none(age: str) -> None:
    found = only(stanza(f"\tage:\t{age}"))
    assert (found.age_s, found.whole) == (None, False)


def test_a_damaged_header_costs_its_own_mount_only() -> None:
    bad = stanza("\tage:\t7", header="device s:/a mounted off /m with fstype nfs4 statvers=1.1")
    good = stanza("\tage:\t8")
    assert parse_stanzas([(good + bad + good).encode()]) == (only(good), only(good))
    assert parse_stanzas([b""]) == parse_stanzas([b"device tmpfs mounted on /tmp with fstype tmpfs\n"]) == ()


def test_a_mount_in_a_servers_name_is_none_where_the_name_ends_in_another_part() -> None:
    inner = stanza("\tage:\t9", end=XPRT + OPS)
    named = f"\timpl_id:\tname='\n\n{inner}\n',domain='d',date='0,0'"
    text = (stanza("\tage:\t7", named, end=OPS + "\n") + stanza("\tage:\t8") * 2).encode()
    whole = parse_stanzas([text])
    assert [found.age_s for found in whole] == [7, 8, 8]
    for end in range(len(text)):
        assert parse_stanzas([text[:end], text[end:]]) == whole


FORGED = (
    b"\tcaps:\tcaps=0x1\n\tbytes:\t9 9 9 9 9 9 9 9 \n\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
    b"\tper-op statistics\n\t        READ: 9 9 9 9 9 9 9 9 9\n\n"
    b"device 10.10.10.10:/ mounted on /mnt/4 with fstype nfs4 statvers=1.1\n\topts:\trw\n\tage:\t9\n"
    b"\timpl_id:\tname='NetApp Release 9.13.1',domain='netapp.com',date='0,0'\n"
    b"\tcaps:\tcaps=0x1\n\tbytes:\t9 9 9 9 9 9 9 9 \n"
)
"""The rest of a mount, and another mount that the host really has."""
END = b"',domain='d',date='0,0'\n"
HOSTILE = {
    "an end": (b"n',domain='d',date='0,0'", b"d"),
    "a stanza in the name": (b"n" + END + FORGED, b"d"),
    "a stanza in the domain": (b"n", b"d',date='0,0'\n" + FORGED),
    "a stanza in either": (b"n" + END + FORGED, b"d',date='0,0'\n" + FORGED),
    "a stanza that is whole": (b"n" + END + FORGED + b"\tper-op statistics\n\n", b""),
    "a header behind the end": (
        b"n" + END + b"\ndevice 10.10.10.10:/ mounted on /mnt/4 with fstype nfs4\n",
        b"",
    ),
    "the longest": ((b"n" + END + FORGED).ljust(1024, b"n"), b"d".rjust(1024, b"'")),
    "the longest of ends": ((END * 50)[:1024], (END * 50)[:1024]),
    "bytes that are no UTF-8": (b"\xff\xc3\n" + END + b"\xfe", b"\x80"),
    "lines and quotes": (b"'\n'\n\n'\tage:\t9\n", b"''\n"),
}


@pytest.mark.parametrize("names", HOSTILE.values(), ids=HOSTILE)
def test_no_name_of_a_server_says_anything_of_another_mount(names: tuple[bytes, bytes]) -> None:
    name, domain = names
    assert max(map(len, names)) <= 1024
    real = b"name='',domain='',date='0,0'"
    where = REAL.index(b"\timpl_id:\t", REAL.index(b" on /mnt/2 ")) + len(b"\timpl_id:\t")
    assert REAL.startswith(real, where)
    text = REAL[:where] + b"name='%b',domain='%b',date='%d,999999999'" % (name, domain, 2**64 - 1)
    text += REAL[where + len(real) :]
    honest = parse_stanzas([REAL])
    assert parse_stanzas([text]) == parse_stanzas([text], honest) == honest
    for end in range(where - 300, where + 3000, 7):
        assert parse_stanzas([text[:end], text[end:]]) == honest
    parsed = [entry for entry in parse_mountstats(text) if isinstance(entry, MountStats)]
    (named,) = (entry for entry in parsed if entry.implementation)
    assert named.point == "/mnt/2"
    assert [replace(entry, implementation=None) for entry in parsed] == list(parse_mountstats(REAL))


def test_a_mount_as_kernels_print_it_is_longer_than_the_names_of_a_server_can_reach() -> None:
    for folder in DATA.iterdir():
        if (folder / "mountstats").exists():
            text = (folder / "mountstats").read_bytes()
            starts = [match.end() for match in re.finditer(rb"\n\timpl_id:\t", text)]
            assert starts
            ends = [text.find(b"\n\n", start) for start in starts]
            assert min(end - start for start, end in zip(starts, ends, strict=True)) > LONGEST_NAMES


def test_no_more_of_a_file_is_kept_than_the_mount_that_is_not_complete() -> None:
    """A regular file of many parts costs no more memory than a few of them."""
    parts = [REAL[at : at + 10_000] for at in range(0, len(REAL), 10_000)] * 20
    tracemalloc.start()
    try:
        found = parse_stanzas(parts)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 20 * len(parse_stanzas([REAL]))
    assert most - kept < 100_000


def test_names_are_bytes_and_their_escapes_are_decoded() -> None:
    (found,) = parse_stanzas([b"device s:/\xff mounted on /m\\040n with fstype nfs\n\n"])
    assert (found.source, found.point) == ("s:/\udcff", "/m n")


def test_the_operations_of_an_earlier_look_are_not_taken_for_longer_ones() -> None:
    """The text of before may be the beginning of what is there now."""
    short = stanza("\topts:\trw", end=OPS + "\n")
    longer = stanza("\topts:\trw", end=OPS + "\t       WRITE: 1 1 0 1 1 1 1 1 0\n\n")
    for text in (short, longer):
        real = REAL.replace(b"\n\t        READ: 0 0 0 0 0 0 0 0 0", b"", 1)
        assert parse_stanzas([text.encode()], parse_stanzas([real])) == parse_stanzas([text.encode()])
    assert (only(longer).operations or b"").count(b"\n") == 1
