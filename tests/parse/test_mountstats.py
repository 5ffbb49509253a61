"""mountstats read in full, and as lines for the sampler."""

from __future__ import annotations

import re
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import ByteCounters, Mount, MountStats, Nfsv4State, OpCounters, Stanza, Transport
from nfstuned.parse.proc.mounts import parse_mountinfo
from nfstuned.parse.proc.mountstats import (
    kernel_text,
    parse_mountstats,
    parse_nfsv4,
    parse_stanzas,
    parse_transports,
)
from tests.parse.conftest import DATA, Captured
from tests.parse.damage import LONGEST_NAMES, damaged, names_go_on, tokens_damaged
from tests.parse.rows import shown

REAL = (DATA / "6.12" / "mountstats").read_text()
REAL_BYTES = REAL.encode()
HEADER = "device s:/a mounted on /m with fstype nfs4 statvers=1.1"
BYTES = "\tbytes:\t1 2 3 4 5 6 7 8 "
OPS = "\tper-op statistics"
EIGHT = ByteCounters(1, 2, 3, 4, 5, 6, 7, 8)
TCP = "\txprt:\ttcp 829 1 2 3 4 5 6 7 8 9 10 11 12"
NINE = "1 2 3 4 5 6 7 8 9"
ELEVEN = "tcp 1 2 3 4 5 6 7 8 9 10 11"
RDMA = "rdma 0 1 2 3 4 5 6 7 8 9 " + " ".join(str(10 + number) for number in range(17))
PROC = "/proc/self/mountstats"


def stanza(*lines: str, header: str = HEADER, end: str = "\n") -> str:
    return "\n".join([header, *lines, end])


def only(text: str) -> MountStats:
    (mount,) = parse_mountstats(text)
    assert isinstance(mount, MountStats), mount
    return mount


def test_each_mount_of_mountinfo_has_its_stanza(captured: Captured) -> None:
    mounts = [entry for entry in parse_mountinfo(captured("mountinfo")) if isinstance(entry, Mount)]
    stats = [entry for entry in parse_mountstats(captured("mountstats")) if isinstance(entry, MountStats)]
    assert [(stat.source, stat.point, stat.fstype) for stat in stats] == [
        (mount.source, mount.point, mount.fstype) for mount in mounts
    ]


def test_a_real_mount_is_read_whole(captured: Captured) -> None:
    for stat in parse_mountstats(captured("mountstats")):
        assert isinstance(stat, MountStats)
        assert (stat.statvers, len(stat.events), stat.options.number("rsize")) == ("1.1", 27, 262144)
        assert None not in {stat.age_s, stat.bytes}
        assert len(stat.transports) == (4 if stat.source.startswith("sa1") else 1)
        assert stat.ops["GETATTR"].errors == 0
        assert stat.implementation is None  # knfsd gives an empty name


def test_the_figures_of_a_real_mount_are_the_files(captured_6_12: Captured) -> None:
    mount = parse_mountstats(captured_6_12("mountstats"))[1]
    assert isinstance(mount, MountStats)
    assert (mount.source, mount.point) == ("sa1.file.core.windows.net:/a", "/mnt/2")
    assert mount.bytes == ByteCounters(8388608, 8388608, 0, 0, 0, 8388608, 0, 8)
    assert mount.transports[0] == Transport("tcp", None, 2, 0, 20, 20, 0, 48, 0, 8, 14, 21)
    assert mount.ops["WRITE"] == OpCounters(32, 32, 0, 8394752, 5888, 433, 1242, 1679, 0)
    assert "READ" not in mount.ops


def test_the_kernels_own_text_is_not_changed_by_repairs(captured: Captured) -> None:
    text = captured("mountstats").encode("utf-8", "surrogateescape")
    short = re.sub(rb"\n\t(?:age|caps|sec|events|bytes|RPC|xprt)[^\n]*", b"", text)
    broken = re.sub(rb"(opts:\t.{20})(.{30})", rb"\1\n\2\n", text)
    for changed, right in ((text, text), (short, short), (broken, text)):
        assert parse_mountstats(kernel_text(changed)[0]) == parse_mountstats(right)


def test_any_statvers_and_unknown_lines_are_fine() -> None:
    fsc = "\tfsc:\t0 0 0 0 0 "  # nfs_show_stats of fs/nfs/super.c, until FS-Cache was rewritten
    lines = fsc, "\tnew:\tx", "no colon", BYTES, "no device mounted on /x with fstype foo", OPS, "no colon"
    mount = only(stanza(*lines, header=HEADER.replace("1.1", "2.0-vendor")))
    assert (mount.statvers, mount.bytes) == ("2.0-vendor", EIGHT)


def test_names_are_bytes_and_their_escapes_are_decoded() -> None:
    mount = only("device s:/a\\040\udcff mounted on /m\\134\\011n with fstype nfs4 statvers=1.1")
    assert (mount.source, mount.point) == ("s:/a \udcff", "/m\\\tn")


# _print_rpc_iostats of net/sunrpc/stats.c: eight columns until Linux 5.3, then nine
@pytest.mark.parametrize("columns", [8, 9, 11])
def test_eight_nine_and_more_columns_of_an_operation_are_understood(columns: int) -> None:
    numbers = range(1, 1 + columns)
    lines = [f"\t{name:>12}: {' '.join(map(str, numbers))}" for name in ("READ", "77")]
    idle = f"\t        OPEN: {'0 ' * columns}".rstrip()
    assert only(stanza(OPS, *lines, idle)).ops == dict.fromkeys(("READ", "77"), OpCounters(*numbers[:9]))


# om_queue, om_rtt and om_execute are ktime_t, printed with %Lu (net/sunrpc/stats.c)
def test_times_that_went_negative_are_negative() -> None:
    line = "\t        READ: 5 4 0 0 0 18446743919241604546 18446744073709551615 9223372036854775807 0"
    read = only(stanza(OPS, line)).ops["READ"]
    assert (read.queue_ms, read.rtt_ms, read.execute_ms) == (-154467947070, -1, 2**63 - 1)
    assert read.transmissions < read.ops


def test_what_only_rdma_counts_has_names() -> None:
    """Earlier kernels print fewer; the order never changed."""
    (rdma,) = parse_transports(RDMA.encode())
    names = ("read chunks", "failed marshals", "waits for a send")
    assert [rdma.rdma[name] for name in names] == [10, 18, 26]
    (older,) = parse_transports(RDMA.partition(" 24 ")[0].encode())
    assert older.rdma["allocated regions"] == 23
    assert "waits for a send" not in older.rdma
    (tcp,) = parse_transports(b"tcp 1 1 2 3 4 5 6 7 8 9 10 11 12 13")
    assert tcp.rdma == {}


# net/sunrpc/xprtsock.c, xs_{tcp,udp,local}_print_stats; the short forms are those of statvers 1.0.
# Of net/sunrpc/xprtrdma/transport.c, xprt_rdma_print_stats: a 0, nine counters, then its own.
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("tcp 829 1 2 3 4 5 6 7 8 9 10 11 12", Transport("tcp", 829, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
        ("tcp 829 1 2 3 4 5 6 7 8 9", Transport("tcp", 829, 2, 4, 5, 6, 7, 8, 9)),
        ("tcp 0 1 2 3 -4 5 6 7 8 9", Transport("tcp", None, 2, -4, 5, 6, 7, 8, 9)),
        ("tcp 1 1 2 3 4 5 6 7 8 9 10 11 12 13", Transport("tcp", 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, (13,))),
        ("udp 829 1 2 3 4 5 6 7 8 9", Transport("udp", 829, None, None, 2, 3, 4, 5, 6, 7, 8, 9)),
        ("udp 829 1 2 3 4 5 6", Transport("udp", 829, None, None, 2, 3, 4, 5, 6)),
        ("local 1 2 3 4 5 6 7 8 9 10 11 12", Transport("local", None, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
        ("local 1 2 3 4 5 6 7 8 9", Transport("local", None, 2, 4, 5, 6, 7, 8, 9)),
        (RDMA, Transport("rdma", None, 2, 4, 5, 6, 7, 8, 9, extra=tuple(range(10, 27)))),
    ],
)
def test_transports_of_every_protocol_are_understood(columns: str, expected: Transport) -> None:
    assert only(stanza(f"\txprt:\t{columns}")).transports == (expected,)


def test_every_transport_line_is_kept_and_unknown_protocols_do_not_count() -> None:
    assert len(only(stanza(*[TCP] * 16, "\txprt:\tquic 1 2 3", "\txprt:\t")).transports) == 16


# show_implementation_id of fs/nfs/super.c prints what the server sent, as it is
@pytest.mark.parametrize(
    ("names", "implementation"),
    [
        ("name='Acme 9.1',domain='acme.example'", "Acme 9.1"),
        ("name='',domain='acme.example'", "acme.example"),
        ("name='',domain=''", None),
        ("name='a\nb\nc',domain='d'", "a\nb\nc"),
        (f"name='a\n{HEADER}\n{BYTES}\n',domain='d'", f"a\n{HEADER}\n{BYTES}\n"),
        ("name='it's, name='x'',domain='d'", "it's, name='x'"),
    ],
)
@pytest.mark.parametrize("after", ["", stanza(BYTES), "device x mounted on /x with fstype tmpfs\n"])
def test_a_servers_own_name_is_read_whatever_it_holds(names: str, implementation: str, after: str) -> None:
    text = stanza("\tage:\t7", f"\timpl_id:\t{names},date='0,0'", "\tevents:\t1 2 ", BYTES)
    mount = parse_mountstats(text + after)[0]
    assert isinstance(mount, MountStats)
    assert mount.implementation == implementation
    assert (mount.age_s, mount.events, mount.bytes) == (7, (1, 2), EIGHT)
    assert parse_mountstats(text + after)[1:] == parse_mountstats(after)


def test_lines_after_a_name_of_many_lines_keep_their_numbers() -> None:
    text = stanza("\timpl_id:\tname='a\nb\nc',domain='d',date='0,0'", "\tbytes:\t1 2")
    assert shown(parse_mountstats(text))[1:] == [f"{PROC}:5: bytes has 2 numbers, at least 8 expected: '1 2'"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("\tbytes:\t1 2 3 4 5 6 7 ", "bytes has 7 numbers, at least 8 expected: '1 2 3 4 5 6 7 '"),
        ("\tbytes:\t", "bytes holds something that is not a number: ''"),
        (f"\tbytes:\t1 2 3 4 5 6 7 {2**64}", f"bytes does not fit 64 bits: '1 2 3 4 5 6 7 {2**64}'"),
        ("\tevents:\t1 x", "events holds something that is not a number: '1 x'"),
        ("\tage:\t-1", "age is not a number: '-1'"),
        ("\tbytes:\t1 2 3 -4 5 6 7 8 ", "bytes holds a negative number: '1 2 3 -4 5 6 7 8 '"),
        ("\tevents:\t1 -2 ", "events holds a negative number: '1 -2 '"),
        ("\txprt:\ttcp 8 1 -1 0 4 5 6 7 8 9", "xprt tcp holds a negative number: '8 1 -1 0 4 5 6 7 8 9'"),
        ("\txprt:\ttcp 1 2 3", "xprt tcp has 3 numbers, at least 10 expected: '1 2 3'"),
        (f"\txprt:\t{ELEVEN}", f"xprt tcp has 11 numbers, 13 expected: '{ELEVEN}'"),
        (f"\txprt:\trdma {NINE}", f"xprt rdma has 9 numbers, at least 10 expected: '{NINE}'"),
        (f"{OPS}\n\tREAD: 1 2 3 4 5 6 7", "READ has 7 numbers, at least 8 expected: '1 2 3 4 5 6 7'"),
        (f"{OPS}\n\tREAD: 1 2 3 4 5 6 7 8 -9", "READ holds a negative number: '1 2 3 4 5 6 7 8 -9'"),
        (f"{OPS}\n\tREAD: 0 0 0 0 0 0 0 0\n\tNULL: 1 a", "NULL holds something that is not a number: '1 a'"),
        (f"{OPS}\n\tX: 1 -{'9' * 5000}", f"X does not fit 64 bits: '1 -{'9' * 77}'..."),
    ],
)
def test_a_damaged_line_costs_itself_only(line: str, message: str) -> None:
    good = stanza("\tage:\t1", BYTES)
    found = shown(parse_mountstats(good + stanza("\tage:\t1", line) + good))
    place = f"{PROC}:{7 + line.count(chr(10))}"
    assert found == [only(good), only(stanza("\tage:\t1")), f"{place}: {message}", only(good)]


def test_beside_a_damaged_line_the_others_are_read() -> None:
    lines = BYTES, TCP, OPS, "\tREAD: 1 2 3 4 5 6 7 8", "\tWRITE: 1 x", "\tNULL: 1 2 3 4 5 6 7 8"
    kept, damage = parse_mountstats(stanza("\tage:\t1", *lines))
    assert isinstance(kept, MountStats)
    assert (kept.age_s, kept.bytes, len(kept.transports), list(kept.ops)) == (1, EIGHT, 1, ["READ", "NULL"])
    assert str(damage) == f"{PROC}:7: WRITE holds something that is not a number: '1 x'"


def test_of_connections_all_are_known_or_none() -> None:
    kept, damage = parse_mountstats(stanza(TCP, TCP.replace("829", "?"), TCP, BYTES))
    assert isinstance(kept, MountStats)
    assert (kept.transports, kept.bytes) == ((), EIGHT)
    assert isinstance(damage, ParseError)


def test_of_very_many_damaged_lines_the_first_are_told() -> None:
    _, *damage = shown(parse_mountstats(stanza(OPS, *(f"\tOP{n}: x" for n in range(20)))))
    assert [str(one).partition(" ")[0] for one in damage] == [f"{PROC}:{line}:" for line in range(3, 12)]
    assert str(damage[-1]).endswith(": 12 lines more of this mount cannot be read")


def test_a_column_that_no_kernel_has_yet_may_have_a_sign() -> None:
    lines = f"{TCP} -13", "\tbytes:\t1 2 3 4 5 6 7 8 -9"
    mount = only(stanza(*lines, OPS, "\tREAD: 1 2 3 4 5 6 7 8 9 -10"))
    assert (mount.transports[0].extra, mount.bytes) == ((-13,), EIGHT)
    assert mount.ops["READ"] == OpCounters(1, 2, 3, 4, 5, 6, 7, 8, 9)


def test_a_header_that_does_not_name_a_mount_is_an_error() -> None:
    line = "device s:/a mounted off /m with fstype nfs4 statvers=1.1"
    (problem,) = shown(parse_mountstats(f"device x\n\n{line}\n"))
    assert problem == f"{PROC}:3: not the header of a mount: '{line}'"


def test_figures_under_a_header_that_is_lost_are_not_taken_for_the_mount_before() -> None:
    good = stanza("\tage:\t1", BYTES, OPS, "\tREAD: 1 2 3 4 5 6 7 8")
    assert only(good + good.replace("device", "?", 1).replace("1 2 3", "7 7 7")) == only(good)


@given(st.data())
def test_mounts_beside_a_damaged_one_survive(data: st.DataObject) -> None:
    parts = (part for part in REAL.split("device ")[1:] if " with fstype nfs" in part.split("\n")[0])
    stanzas = ["device " + part for part in parts]
    at = data.draw(st.integers(0, len(stanzas) - 1))
    bad = data.draw(st.one_of(damaged(stanzas[at]), tokens_damaged(stanzas[at]))).rstrip("\n") + "\n\n"
    assume(not names_go_on(bad))
    text = "".join([*stanzas[:at], bad, *stanzas[at + 1 :]])
    good = [entry for part in (*stanzas[:at], *stanzas[at + 1 :]) for entry in parse_mountstats(part)]
    assert [entry for entry in parse_mountstats(text) if entry in good] == good


READ_OPS = "\tper-op statistics\n\t        READ: 1 1 0 1 1 1 1 1 0\n"
XPRT = "\txprt:\ttcp 0 1 2 3 4 5 6 7 8 9 10 11 12\n"


def lines_of(text: str) -> Stanza:
    (found,) = parse_stanzas([text.encode()])
    return found


# as a file looks that somebody copied from a terminal, or out of a page
@pytest.mark.parametrize("blank", ["", " ", "        "])
def test_a_file_without_tabs_says_the_same(captured: Captured, blank: str) -> None:
    text = captured("mountstats").replace(",vers=3", ",fsc,vers=3")
    assert parse_mountstats(text.replace("\t", blank)) == parse_mountstats(text)
    data = text.encode("utf-8", "surrogateescape")
    known, bare = parse_stanzas([data]), parse_stanzas([data.replace(b"\t", blank.encode())])
    for usual, other in zip(known, bare, strict=True):
        assert other[:4] == usual[:4]
        assert parse_transports(other.transports) == parse_transports(usual.transports)
        assert other.operations == (usual.operations or b"").replace(b"\t", blank.encode())
        assert (other.nfsv4, other.cached, other.whole) == (usual.nfsv4, usual.cached, True)
    assert {parse_nfsv4(one.nfsv4) for one in known if one.nfsv4 is not None} == {Nfsv4State(90, 0, None)}
    assert {one.nfsv4 is None for one in known} == {one.cached for one in known} == {True, False}


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


@pytest.mark.parametrize(
    "lines",
    [
        ("\topts:\trw", "\tage:\t7", "\tbytes:\t1 2", "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)"),
        ("\tbytes:\t1 2", "\tnew:\tx", "\tage:\t7"),
        ("\tage:\t6", "\tage:\t7", "\tbytes:\t5", "\tbytes:\t1 2"),
    ],
)
def test_sections_are_found_in_any_order(lines: tuple[str, ...]) -> None:
    found = lines_of(stanza(*lines, end=XPRT + READ_OPS + "\n"))
    assert (found.age_s, found.totals, found.whole) == (7, b"1 2", True)
    assert found.transports == b"tcp 0 1 2 3 4 5 6 7 8 9 10 11 12"
    assert found.operations == b"\t        READ: 1 1 0 1 1 1 1 1 0"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (stanza("\tage:\t7", end=READ_OPS + "\n"), True),
        (stanza("\tage:\t7", end=READ_OPS + "\nno device mounted on /x with fstype foo\n"), True),
        (stanza("\tage:\t7"), True),
        (stanza("\tage:\t7", end=READ_OPS), False),
        (stanza("\tage:\t7", end=READ_OPS.rstrip("\n")), False),
        (stanza("\tage:\t7", end=READ_OPS + "device tmpfs mounted on /t with fstype tmpfs\n\n"), False),
        (stanza("\tage:\t7", end=""), False),
        (HEADER, False),
    ],
)
def test_a_stanza_is_whole_when_it_ends_as_the_kernel_ends_it(text: str, whole: bool) -> None:  # noqa: FBT001
    assert lines_of(text).whole is whole
    (parsed,) = parse_mountstats(text)
    assert isinstance(parsed, MountStats)
    assert parsed.whole is whole


@pytest.mark.parametrize("age", ["", "-1", "7 ", "²", "9" * 20, "9" * 5000])
def test_a_damaged_age_is_not_taken_for_none(age: str) -> None:
    found = lines_of(stanza(f"\tage:\t{age}"))
    assert (found.age_s, found.whole) == (None, False)


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
    "a header behind the end": (b"n" + END + b"\ndevice a:/ mounted on /mnt/4 with fstype nfs4\n", b""),
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
    where = REAL_BYTES.index(b"\timpl_id:\t", REAL_BYTES.index(b" on /mnt/2 ")) + len(b"\timpl_id:\t")
    assert REAL_BYTES.startswith(real, where)
    text = REAL_BYTES[:where] + b"name='%b',domain='%b',date='%d,999999999'" % (name, domain, 2**64 - 1)
    text += REAL_BYTES[where + len(real) :]
    honest = parse_stanzas([REAL_BYTES])
    assert parse_stanzas([text]) == parse_stanzas([text], honest) == honest
    for end in range(where - 300, where + 3000, 7):
        assert parse_stanzas([text[:end], text[end:]]) == honest
    parsed = [entry for entry in parse_mountstats(text) if isinstance(entry, MountStats)]
    (named,) = (entry for entry in parsed if entry.implementation)
    assert named.point == "/mnt/2"
    assert [replace(entry, implementation=None) for entry in parsed] == list(parse_mountstats(REAL_BYTES))


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
    parts = [REAL_BYTES[at : at + 10_000] for at in range(0, len(REAL_BYTES), 10_000)] * 20
    tracemalloc.start()
    try:
        found = parse_stanzas(parts)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 20 * len(parse_stanzas([REAL_BYTES]))
    assert most - kept < 100_000


def test_the_operations_of_an_earlier_look_are_not_taken_for_longer_ones() -> None:
    """The text of before may be the beginning of what is there now."""
    short = stanza("\topts:\trw", end=READ_OPS + "\n")
    longer = stanza("\topts:\trw", end=READ_OPS + "\t       WRITE: 1 1 0 1 1 1 1 1 0\n\n")
    for text in (short, longer):
        real = REAL_BYTES.replace(b"\n\t        READ: 0 0 0 0 0 0 0 0 0", b"", 1)
        assert parse_stanzas([text.encode()], parse_stanzas([real])) == parse_stanzas([text.encode()])
    assert (lines_of(longer).operations or b"").count(b"\n") == 1
