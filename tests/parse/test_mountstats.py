from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import ByteCounters, Mount, MountStats, OpCounters, Transport
from nfstuned.parse.proc.mountinfo import parse_mountinfo
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_transports
from tests.parse.conftest import DATA, Captured
from tests.parse.damage import any_text, damaged, names_go_on, tokens_damaged

REAL = (DATA / "6.12" / "mountstats").read_text()
HEADER = "device s:/a mounted on /m with fstype nfs4 statvers=1.1"
BYTES = "\tbytes:\t1 2 3 4 5 6 7 8 "
OPS = "\tper-op statistics"


def stanza(*lines: str, header: str = HEADER) -> str:
    return "\n".join([header, *lines, "\n"])


def only(text: str) -> MountStats:
    (mount,) = parse_mountstats(text)
    assert isinstance(mount, MountStats), mount
    return mount


def error(text: str) -> str:
    (found,) = parse_mountstats(text)
    assert isinstance(found, ParseError)
    return str(found)


def transport(columns: str) -> Transport:
    (found,) = only(stanza(f"\txprt:\t{columns}")).transports
    return found


def test_each_mount_of_mountinfo_has_its_stanza(captured: Captured) -> None:
    mounts = [entry for entry in parse_mountinfo(captured("mountinfo")) if isinstance(entry, Mount)]
    stats = [entry for entry in parse_mountstats(captured("mountstats")) if isinstance(entry, MountStats)]
    assert [(stat.source, stat.point, stat.fstype) for stat in stats] == [
        (mount.source, mount.point, mount.fstype) for mount in mounts
    ]


def test_a_real_mount_is_read_whole(captured: Captured) -> None:
    for stat in parse_mountstats(captured("mountstats")):
        assert isinstance(stat, MountStats)
        assert stat.statvers == "1.1"
        assert stat.age_s is not None
        assert stat.bytes is not None
        assert stat.options.number("rsize") == 262144
        assert len(stat.events) == 27
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


def test_no_stanza_no_mount() -> None:
    assert parse_mountstats("") == ()
    assert parse_mountstats("device tmpfs mounted on /tmp with fstype tmpfs\n") == ()
    assert (
        parse_mountstats(
            "no device mounted on /x with fstype nfs\ndevice nfsd mounted on /n with fstype nfsd"
        )
        == ()
    )


def test_a_header_alone_is_a_mount_without_figures() -> None:
    mount = only("no device mounted on /x with fstype foo\ndevice s:/a mounted on /m with fstype nfs")
    assert (mount.source, mount.point, mount.fstype, mount.statvers) == ("s:/a", "/m", "nfs", "")
    assert (mount.bytes, mount.age_s, mount.events, mount.transports, mount.ops) == (None, None, (), (), {})


def test_any_statvers_and_unknown_lines_are_fine() -> None:
    mount = only(
        stanza(
            "\tfsc:\t0 0 0 0 0 ",  # nfs_show_stats of fs/nfs/super.c, until FS-Cache was rewritten
            "\tnew:\tsomething",
            "no colon",
            BYTES,
            "no device mounted on /x with fstype foo",
            OPS,
            "no colon",
            header=HEADER.replace("1.1", "2.0-vendor"),
        )
    )
    assert mount.statvers == "2.0-vendor"
    assert mount.bytes == ByteCounters(1, 2, 3, 4, 5, 6, 7, 8)


def test_escapes_in_source_and_mount_point_are_decoded() -> None:
    mount = only(r"device s:/a\040b mounted on /m\134\011n with fstype nfs4 statvers=1.1")
    assert (mount.source, mount.point) == ("s:/a b", "/m\\\tn")


# _print_rpc_iostats of net/sunrpc/stats.c: eight columns until Linux 5.3, then nine
def test_eight_nine_and_more_columns_of_an_operation_are_understood() -> None:
    mount = only(
        stanza(
            OPS,
            "\t        READ: 1 2 3 4 5 6 7 8",
            "\t       WRITE: 1 2 3 4 5 6 7 8 9",
            "\t   READ_PLUS: 1 2 3 4 5 6 7 8 9 10 11",
            "\t          77: 1 2 3 4 5 6 7 8 9",
            "\t        OPEN: 0 0 0 0 0 0 0 0 0 0",
            "\t       CLOSE: 0 0 0 0 0 0 0 0",
            "\t        LOCK: 0 0 0 0 0 0 0 0 0",
        )
    )
    assert mount.ops == {
        "READ": OpCounters(1, 2, 3, 4, 5, 6, 7, 8),
        "WRITE": OpCounters(1, 2, 3, 4, 5, 6, 7, 8, 9),
        "READ_PLUS": OpCounters(1, 2, 3, 4, 5, 6, 7, 8, 9),
        "77": OpCounters(1, 2, 3, 4, 5, 6, 7, 8, 9),
    }


# om_queue, om_rtt and om_execute are ktime_t, printed with %Lu (net/sunrpc/stats.c)
def test_times_that_went_negative_are_negative() -> None:
    line = "\t        READ: 5 4 0 0 0 18446743919241604546 18446744073709551615 9223372036854775807 0"
    read = only(stanza(OPS, line)).ops["READ"]
    assert (read.queue_ms, read.rtt_ms, read.execute_ms) == (-154467947070, -1, 2**63 - 1)
    assert read.transmissions < read.ops


def test_what_only_rdma_counts_has_names() -> None:
    """Earlier kernels print fewer; the order never changed."""
    line = "rdma 0 1 2 3 4 5 6 7 8 9 " + " ".join(str(10 + number) for number in range(17))
    (rdma,) = parse_transports(line.encode())
    assert (rdma.rdma["read chunks"], rdma.rdma["failed marshals"], rdma.rdma["waits for a send"]) == (
        10,
        18,
        26,
    )
    (older,) = parse_transports(line.partition(" 24 ")[0].encode())
    assert older.rdma["allocated regions"] == 23
    assert "waits for a send" not in older.rdma
    (tcp,) = parse_transports(b"tcp 1 1 2 3 4 5 6 7 8 9 10 11 12 13")
    assert tcp.rdma == {}


# net/sunrpc/xprtsock.c, xs_{tcp,udp,local}_print_stats; the short forms are those of statvers 1.0
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
        # net/sunrpc/xprtrdma/transport.c, xprt_rdma_print_stats: a 0, nine counters, then its own
        (
            "rdma 0 1 2 3 4 5 6 7 8 9 " + " ".join(str(10 + n) for n in range(17)),
            Transport("rdma", None, 2, 4, 5, 6, 7, 8, 9, extra=tuple(range(10, 27))),
        ),
    ],
)
def test_transports_of_every_protocol_are_understood(columns: str, expected: Transport) -> None:
    assert transport(columns) == expected


def test_every_transport_line_is_kept_and_unknown_protocols_do_not_count() -> None:
    line = "\txprt:\ttcp 0 1 2 3 4 5 6 7 8 9 10 11 12"
    assert len(only(stanza(*[line] * 16, "\txprt:\tquic 1 2 3", "\txprt:\t")).transports) == 16


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
    assert (mount.age_s, mount.events, mount.bytes) == (7, (1, 2), ByteCounters(1, 2, 3, 4, 5, 6, 7, 8))
    assert parse_mountstats(text + after)[1:] == parse_mountstats(after)


def test_lines_after_a_name_of_many_lines_keep_their_numbers() -> None:
    text = stanza("\timpl_id:\tname='a\nb\nc',domain='d',date='0,0'", "\tbytes:\t1 2")
    assert (
        str(parse_mountstats(text)[1])
        == "/proc/self/mountstats:5: bytes has 2 numbers, at least 8 expected: '1 2'"
    )


def test_a_name_without_an_end_is_passed_over() -> None:
    mount = only(stanza("\timpl_id:\tname='a", BYTES))
    assert mount.implementation is None
    assert mount.bytes is not None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("\tbytes:\t1 2 3 4 5 6 7 ", "3: bytes has 7 numbers, at least 8 expected: '1 2 3 4 5 6 7 '"),
        ("\tbytes:\t", "3: bytes holds something that is not a number: ''"),
        (f"\tbytes:\t1 2 3 4 5 6 7 {2**64}", f"3: bytes does not fit 64 bits: '1 2 3 4 5 6 7 {2**64}'"),
        ("\tevents:\t1 x", "3: events holds something that is not a number: '1 x'"),
        ("\tage:\t-1", "3: age is not a number: '-1'"),
        ("\tbytes:\t1 2 3 -4 5 6 7 8 ", "3: bytes holds a negative number: '1 2 3 -4 5 6 7 8 '"),
        ("\tevents:\t1 -2 ", "3: events holds a negative number: '1 -2 '"),
        (
            "\txprt:\ttcp 829 1 -1 0 4 5 6 7 8 9",
            "3: xprt tcp holds a negative number: '829 1 -1 0 4 5 6 7 8 9'",
        ),
        ("\txprt:\ttcp 1 2 3", "3: xprt tcp has 3 numbers, at least 10 expected: '1 2 3'"),
        (
            "\txprt:\ttcp 1 2 3 4 5 6 7 8 9 10 11",
            "3: xprt tcp has 11 numbers, 13 expected: 'tcp 1 2 3 4 5 6 7 8 9 10 11'",
        ),
        (
            "\txprt:\trdma 1 2 3 4 5 6 7 8 9",
            "3: xprt rdma has 9 numbers, at least 10 expected: '1 2 3 4 5 6 7 8 9'",
        ),
        (f"{OPS}\n\tREAD: 1 2 3 4 5 6 7", "4: READ has 7 numbers, at least 8 expected: '1 2 3 4 5 6 7'"),
        (
            f"{OPS}\n\tREAD: 1 2 3 4 5 6 7 8 -9",
            "4: READ holds a negative number: '1 2 3 4 5 6 7 8 -9'",
        ),
        (
            f"{OPS}\n\tREAD: 0 0 0 0 0 0 0 0\n\tNULL: 1 a",
            "5: NULL holds something that is not a number: '1 a'",
        ),
        (
            f"{OPS}\n\tREAD: 1" + " " + "9" * 5000,
            "4: READ holds something that is not a number: '1 " + "9" * 78 + "'...",
        ),
    ],
)
def test_a_damaged_line_costs_itself_only(line: str, message: str) -> None:
    good = stanza("\tage:\t1", BYTES)
    before, kept, damage, after = parse_mountstats(good + stanza("\tage:\t1", line) + good)
    assert before == after == only(good)
    assert kept == only(stanza("\tage:\t1"))
    assert isinstance(damage, ParseError)
    number, _, rest = message.partition(":")
    assert str(damage) == f"/proc/self/mountstats:{int(number) + 4}:{rest}"


def test_beside_a_damaged_line_the_others_are_read() -> None:
    xprt = "\txprt:\ttcp 829 1 2 3 4 5 6 7 8 9 10 11 12"
    lines = BYTES, xprt, OPS, "\tREAD: 1 2 3 4 5 6 7 8", "\tWRITE: 1 x", "\tNULL: 1 2 3 4 5 6 7 8"
    kept, damage = parse_mountstats(stanza("\tage:\t1", *lines))
    assert isinstance(kept, MountStats)
    assert (kept.age_s, kept.bytes, len(kept.transports)) == (1, ByteCounters(1, 2, 3, 4, 5, 6, 7, 8), 1)
    assert list(kept.ops) == ["READ", "NULL"]
    assert str(damage) == "/proc/self/mountstats:7: WRITE holds something that is not a number: '1 x'"


def test_of_connections_all_are_known_or_none() -> None:
    good = "\txprt:\ttcp 829 1 2 3 4 5 6 7 8 9 10 11 12"
    kept, damage = parse_mountstats(stanza(good, good.replace("829", "?"), good, BYTES))
    assert isinstance(kept, MountStats)
    assert (kept.transports, kept.bytes) == ((), ByteCounters(1, 2, 3, 4, 5, 6, 7, 8))
    assert isinstance(damage, ParseError)


def test_of_very_many_damaged_lines_the_first_are_told() -> None:
    kept, *damage = parse_mountstats(stanza(OPS, *(f"\tOP{n}: x" for n in range(20))))
    assert isinstance(kept, MountStats)
    assert [str(error).partition(" ")[0] for error in damage] == [
        f"/proc/self/mountstats:{line}:" for line in range(3, 12)
    ]
    assert str(damage[-1]).endswith(": 12 lines more of this mount cannot be read")


# as a file looks that somebody copied from a terminal, or out of a page
@pytest.mark.parametrize("blank", ["", " ", "        "])
def test_a_file_without_tabs_says_the_same(captured: Captured, blank: str) -> None:
    text = captured("mountstats")
    assert parse_mountstats(text.replace("\t", blank)) == parse_mountstats(text)


def test_a_column_that_no_kernel_has_yet_may_have_a_sign() -> None:
    lines = "\txprt:\ttcp 829 1 2 3 4 5 6 7 8 9 10 11 12 -13", "\tbytes:\t1 2 3 4 5 6 7 8 -9"
    mount = only(stanza(*lines, OPS, "\tREAD: 1 2 3 4 5 6 7 8 9 -10"))
    assert mount.transports[0].extra == (-13,)
    assert mount.bytes == ByteCounters(1, 2, 3, 4, 5, 6, 7, 8)
    assert mount.ops["READ"] == OpCounters(1, 2, 3, 4, 5, 6, 7, 8, 9)


def test_a_header_that_does_not_name_a_mount_is_an_error() -> None:
    text = "device x\n\ndevice s:/a mounted off /m with fstype nfs4 statvers=1.1\n"
    assert error(text).startswith(
        "/proc/self/mountstats:3: not the header of a mount: 'device s:/a mounted off"
    )


def test_figures_under_a_header_that_is_lost_are_not_taken_for_the_mount_before() -> None:
    good = stanza("\tage:\t1", BYTES, OPS, "\tREAD: 1 2 3 4 5 6 7 8")
    assert only(good + good.replace("device", "?", 1).replace("1 2 3", "7 7 7")) == only(good)


def test_a_file_cut_between_two_lines_of_a_mount_is_no_error() -> None:
    assert only(stanza("\tage:\t1").rstrip("\n")).age_s == 1
    assert only(stanza("\tage:\t1", OPS).rstrip("\n")).age_s == 1


@given(st.one_of(damaged(REAL), tokens_damaged(REAL), any_text, any_text.map(lambda text: HEADER + text)))
def test_nothing_but_parse_errors_comes_out(text: str) -> None:
    for entry in parse_mountstats(text):
        assert isinstance(entry, (MountStats, ParseError))
        if isinstance(entry, ParseError):
            assert 1 <= entry.line <= text.count("\n") + 1


@given(st.data())
def test_mounts_beside_a_damaged_one_survive(data: st.DataObject) -> None:
    stanzas = [
        "device " + part for part in REAL.split("device ")[1:] if " with fstype nfs" in part.split("\n")[0]
    ]
    at = data.draw(st.integers(0, len(stanzas) - 1))
    bad = data.draw(st.one_of(damaged(stanzas[at]), tokens_damaged(stanzas[at]))).rstrip("\n") + "\n\n"
    assume(not names_go_on(bad))
    text = "".join([*stanzas[:at], bad, *stanzas[at + 1 :]])
    good = [entry for part in (*stanzas[:at], *stanzas[at + 1 :]) for entry in parse_mountstats(part)]
    assert [entry for entry in parse_mountstats(text) if entry in good] == good
