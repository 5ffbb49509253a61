"""Random kernel files through the cutter, the parser and the rates: both ways of reading say the same."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, pairwise, zip_longest
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfstuned.core.samples import delta
from nfstuned.core.samples.delta import OpDelta, Operations, ResetError, Span
from nfstuned.core.samples.rates import make_look, op_rates, rates
from nfstuned.core.samples.sample import sample_to_json
from nfstuned.errors import ParseError
from nfstuned.model.kernel import Mount, MountStats, OpCounters, Options, Stanza
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.samples import Look, OpRate, Sample
from nfstuned.parse.proc.mounts import parse_mountinfo
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_stanzas, parse_transports
from tests.check import hosts
from tests.core.counters import cut, stats
from tests.core.test_rates import figures, lasting
from tests.parse.conftest import DATA
from tests.parse.damage import damaged, names_go_on, tokens_damaged

unhurried = settings(deadline=None)
"""What is promised here is no time, and a busy machine takes its own."""
NFS = re.compile(r"device .* with fstype nfs4? ")


def _parts(text: str) -> list[str]:
    return re.split(r"(?<=\n)(?=device )", text)


def _few(text: str) -> str:
    """A real file without most of its mounts: NFSv3, 4.1 and 4.2, and the end of what stands before them."""
    parts = _parts(text)
    first = next((n for n, part in enumerate(parts) if NFS.match(part)), None)
    return "" if first is None else "".join(parts[first - 2 : first + 3])


REAL = {kernel: _few((DATA / kernel / "mountstats").read_text()) for kernel in ("5.10", "6.12")}
HOSTS = sorted({_few(text) for text in hosts.texts("mountstats")} - {*REAL.values(), ""})
"""What else kernels printed: one mount of TLS, of Kerberos, of 16 connections, in use and not."""
OPTIONS = Options((("vers", "4.1"), ("proto", "tcp"), ("addr", "10.10.10.10")))
NUMBERS = re.compile(r"(?<= )[0-9]+(?= )")
SPAN = Span.of(10.0)
UNUSED = OpCounters(0, 0, 0, 0, 0, 0, 0, 0, 0)


def host(text: str) -> Snapshot:
    """The mounts of that file, each a superblock of its own."""
    stanzas = [stanza for stanza in parse_mountstats(text) if isinstance(stanza, MountStats)]
    mounts = [
        Mount(n, 1, f"0:{n}", "/", stanza.point, stanza.fstype, stanza.source, OPTIONS)
        for n, stanza in enumerate(stanzas)
    ]
    return Snapshot(tuple(Superblock(mount.device, n, 128, (mount,)) for n, mount in enumerate(mounts)))


def data(text: str) -> bytes:
    """The bytes of a damaged file; those of surrogates are no UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def readable(file: bytes) -> dict[str, MountStats]:
    """The mounts of which the full parser understands every line, by mount point."""
    parsed = parse_mountstats(file)
    # Errors stand behind their mount.
    errors = (isinstance(item, ParseError) and "not the header" not in item.message for item in parsed[1:])
    pairs = zip_longest(parsed, errors, fillvalue=False)
    undamaged = (item for item, is_damaged in pairs if isinstance(item, MountStats) and not is_damaged)
    return {stats.point: stats for stats in undamaged}


def wholly_different(stanza: Stanza) -> Stanza:
    """The same numbers in a text of which nothing is as before: one column and one line more."""
    totals = stanza.totals + b"0" if stanza.totals is not None else None
    operations = stanza.operations + b"\n" if stanza.operations is not None else None
    return stanza._replace(totals=totals, operations=operations)


def looks(snapshot: Snapshot, texts: tuple[str, str], seconds: float) -> tuple[Look, Look]:
    """Two looks, of which the later reads what differs."""
    before = parse_stanzas([data(texts[0])])
    now = parse_stanzas([data(texts[1])], before)
    return make_look(snapshot, before, 0.0, 0.0), make_look(snapshot, now, seconds, seconds)


def alone(earlier: Look, later: Look) -> dict[str, Sample]:
    """The sample of each superblock as if it were the only one: nothing is counted at another."""
    each = (replace(later, superblocks=(now,)) for now in later.superblocks)
    return {sample.device: sample for only in each for sample in rates(earlier, only)}


@st.composite
def seconds_on(draw: st.DrawFn, text: str) -> str:
    """The same file some seconds on: the ages that belong to it, and some numbers that did anything."""
    seconds = draw(st.sampled_from([1, 10, 60]))
    text = re.sub(r"\tage:\t([0-9]+)", lambda age: f"\tage:\t{int(age[1]) + seconds}", text)
    places = [match.span() for match in NUMBERS.finditer(text)]
    numbers = st.integers(0, 10_000) | st.sampled_from([2**32 - 1, 2**63, 2**64 - 1, 2**64, 10**30])
    for start, end in sorted(draw(st.sets(st.sampled_from(places), max_size=40)), reverse=True):
        more = draw(numbers)
        text = text[:start] + str(int(text[start:end]) + more) + text[end:]
    return text


@st.composite
def extended(draw: st.DrawFn, text: str) -> str:
    """The file of a later kernel: more columns, and lines that are not known yet."""
    lines = text.split("\n")
    for at in draw(st.sets(st.integers(0, len(lines) - 1), max_size=5)):
        column, line = f"{lines[at]} 7", f"{lines[at]}\n\tnew:\t1 2 3"
        lines[at] = draw(st.sampled_from([column, line])) if lines[at].startswith("\t") else lines[at]
    return "\n".join(lines)


@st.composite
def any_damage(draw: st.DrawFn, text: str) -> str:
    """Let up to three things happen to the file, one after the other."""
    for _ in range(draw(st.integers(0, 3))):
        text = draw(st.one_of(damaged(text), tokens_damaged(text), extended(text)))
    return text


@st.composite
def files(draw: st.DrawFn) -> tuple[str, tuple[str, str]]:
    """A real kernel's file, and two looks at it with anything happening to either."""
    real = draw(st.sampled_from([*REAL.values(), *HOSTS]))
    return real, (draw(any_damage(real)), draw(seconds_on(real).flatmap(any_damage)))


Growth = tuple[tuple[int, ...] | None, dict[str, OpDelta] | None]
"""The bytes, and the operations that ended; None where a counter began anew."""


def by_all(before: MountStats, now: MountStats, span: Span) -> Growth:
    """The growth by the numbers that the full parser understands, column by column."""

    def op(old: OpCounters | None, new: OpCounters) -> OpDelta:
        # Sums are without their sign, as the kernel prints them.
        pairs: list[tuple[Any, Any]] = list(zip(old or UNUSED, new, strict=True))
        counters = (delta.grown(*pair, span.most_ops) for pair in pairs[:3])
        sums = (delta.sum_grown(*pair) for pair in pairs[3:8])
        errors = None if None in pairs[8] else delta.grown(*pairs[8], span.most_ops)
        return OpDelta._make([*counters, *sums, errors])

    moved, ops = None, None
    if before.bytes is not None and now.bytes is not None:
        pairs = list(zip(before.bytes, now.bytes, strict=True))[:6]
        with suppress(ResetError):
            moved = tuple(delta.grown(*pair, span.most_bytes, (64,)) for pair in pairs)
    if before.ops.keys() <= now.ops.keys():
        used = {name: (before.ops.get(name), new) for name, new in now.ops.items()}
        with suppress(ResetError):
            ops = {name: op(old, new) for name, (old, new) in used.items() if new[:2] != (old or UNUSED)[:2]}
    return moved, ops


def by_differences(before: Stanza, now: Stanza, span: Span) -> Growth:
    """The same, of the text that differs."""
    grew = delta.delta(before, now, span)
    if grew.ops is None or grew.restarted:
        return grew.bytes, None
    return grew.bytes, {name: op for name, op in grew.ops.items() if op.ops or op.transmissions}


@unhurried
@given(files())
def test_the_text_that_differs_is_read_as_by_the_full_parser(written: tuple[str, tuple[str, str]]) -> None:
    before, now = map(data, written[1])
    first = {stanza.point: stanza for stanza in parse_stanzas([before])}
    second = {stanza.point: stanza for stanza in parse_stanzas([now])}
    understood_before, understood_now = readable(before), readable(now)
    for point in understood_before.keys() & understood_now.keys():
        pair, full = (first[point], second[point]), (understood_before[point], understood_now[point])
        moved, ops = by_all(*full, SPAN)
        listed = all(stanza.operations is not None for stanza in pair)
        assert by_differences(*pair, SPAN) == (moved, ops if listed else {})
        for stanza, parsed in zip(pair, full, strict=True):
            assert (stanza.age_s, stanza.whole) == (parsed.age_s, parsed.whole)
            assert parse_transports(stanza.transports) == parsed.transports


def shown(mountinfo: str) -> Snapshot:
    """The superblocks of that file, each with all of its mounts."""
    mounts = [mount for mount in parse_mountinfo(mountinfo) if isinstance(mount, Mount)]
    devices = dict.fromkeys(mount.device for mount in mounts)
    of = {device: tuple(mount for mount in mounts if mount.device == device) for device in devices}
    return Snapshot(tuple(Superblock(device, None, 128, of[device]) for device in devices))


@unhurried
@given(st.data(), st.sampled_from(sorted(REAL)))
def test_nor_where_mountinfo_is_damaged_as_well(draw: st.DataObject, kernel: str) -> None:
    """Lines that came apart can make one mount two, or two of one place."""
    mountinfo = (DATA / kernel / "mountinfo").read_text()
    texts = draw.draw(any_damage(REAL[kernel])), draw.draw(seconds_on(REAL[kernel]).flatmap(any_damage))
    assert make_look(shown(mountinfo), parse_stanzas([data(REAL[kernel])]), 0.0, 0.0).superblocks
    before, now = (
        make_look(shown(draw.draw(any_damage(mountinfo))), parse_stanzas([data(text)]), at, at)
        for at, text in zip((0.0, 10.0), texts, strict=True)
    )
    for sample in rates(before, now):
        assert all(math.isfinite(figure) and figure >= 0 for figure in figures(sample_to_json(sample)))


@unhurried
@given(st.data(), st.booleans())
def test_no_other_mount_is_lost(draw: st.DataObject, later: bool) -> None:  # noqa: FBT001 - hypothesis draws it
    real = REAL["6.12"]
    after = draw.draw(seconds_on(real))
    snapshot = host(real)
    expected = alone(*looks(snapshot, (real, after), 10.0))
    parts = _parts(after if later else real)
    at = draw.draw(st.sampled_from([n for n, part in enumerate(parts) if NFS.match(part)]))
    bad = draw.draw(st.one_of(damaged(parts[at]), tokens_damaged(parts[at]))).rstrip("\n") + "\n\n"
    text = "".join([*parts[:at], bad, *parts[at + 1 :]])
    found = alone(*looks(snapshot, (real, text) if later else (text, after), 10.0))
    mine = f"0:{sum(1 for part in parts[:at] if NFS.match(part))}"
    if names_go_on(bad):
        return
    assert {device: sample for device, sample in found.items() if device != mine} == {
        device: sample for device, sample in expected.items() if device != mine
    }


@unhurried
@given(st.data())
def test_a_file_that_ends_anywhere_gives_no_burst(draw: st.DataObject) -> None:
    """A counter that lost digits, or an operation that is not there, is not one that began at 0."""
    real = REAL["6.12"]
    cut = real[: draw.draw(st.integers(0, len(real)))]
    snapshot = host(real)
    for texts in ((cut, _aged(real)), (real, _aged(cut))):
        for sample in rates(*looks(snapshot, texts, 10.0)):
            assert (sample.read_bytes_per_s, sample.server_write_bytes_per_s, sample.ops) == (0, 0, {})
            assert not sample.transport.in_flight


def _aged(text: str) -> str:
    return re.sub(r"\tage:\t([0-9]+)\n", lambda age: f"\tage:\t{int(age[1]) + 10}\n", text)


@pytest.mark.parametrize("kernel", sorted(REAL))
def test_a_stanza_that_did_not_change_is_the_same_object(kernel: str) -> None:
    """Its text takes no memory twice, and comparing it no time."""
    before = parse_stanzas([data(REAL[kernel])])
    after = parse_stanzas([data(_aged(REAL[kernel]))], before)
    assert len(before) == len(host(REAL[kernel]).superblocks)
    assert all(a.operations is b.operations for a, b in zip(before, after, strict=True))
    assert [b.age_s for b in after] == [(a.age_s or 0) + 10 for a in before]


@unhurried
@given(files(), st.lists(st.integers(1, 5000), max_size=8))
def test_parts_of_a_file_are_cut_as_the_file(written: tuple[str, tuple[str, str]], sizes: list[int]) -> None:
    """Wherever a part ends: in a header, in a server's name that looks like a mount, within a character."""
    before, now = map(data, written[1])
    known = parse_stanzas([before])
    ends = [0, *accumulate(sizes)]
    parts = [now[start:end] for start, end in pairwise([*ends, max(ends[-1], len(now))])]
    assert parse_stanzas(parts, known) == parse_stanzas([now])
    assert parse_stanzas(_bytewise(now)) == parse_stanzas([now])


def _bytewise(file: bytes) -> Iterator[bytes]:
    """The end of a file byte by byte."""
    yield file[:-3000]
    yield from (file[-3000:][at : at + 1] for at in range(len(file[-3000:])))


BEFORE = OpCounters(10, 11, 1, 100, 100, 5, 50, 60, 2)
NOW = OpCounters(20, 23, 2, 200, 400, 15, 70, 90, 3)
"""Ten more of which two were sent again; one timed out, and one failed."""


def both(before: MountStats, now: MountStats, seconds: float = 10.0) -> list[dict[str, OpRate] | None]:
    """The rates of operations that are read in a few calls, and line by line; None where there are none."""
    (earlier,), (after,) = cut(before), cut(now)
    grew = [delta.delta(earlier, stanza, Span.of(seconds)) for stanza in (after, wholly_different(after))]
    return [None if each.ops is None or each.restarted else op_rates(each.ops, seconds) for each in grew]


def test_each_column_of_an_operation_has_its_rate() -> None:
    rate = OpRate(1.0, 2.0, 1.0, 3.0, 0.2, 0.1, 0.1, 10.0, 30.0)
    expected = {"READ": rate, "WRITE": rate}
    assert both(stats(READ=BEFORE, WRITE=BEFORE), stats(READ=NOW, WRITE=NOW)) == [expected, expected]


@pytest.mark.parametrize(
    "now",
    [
        *(NOW, BEFORE, UNUSED, BEFORE._replace(bytes_sent=5000), NOW._replace(bytes_sent=99)),
        *(NOW._replace(errors=None), NOW._replace(ops=10), NOW._replace(ops=9), NOW._replace(rtt_ms=49)),
        *(NOW._replace(ops=2**40, transmissions=2**40), NOW._replace(ops=2**40), NOW._replace(errors=2**40)),
        *(NOW._replace(bytes_received=7), NOW._replace(queue_ms=2**64 - 1)),
    ],
)
def test_unusual_numbers_have_the_same_rates_read_in_either_way(now: OpCounters) -> None:
    for old in (BEFORE, BEFORE._replace(errors=None)):
        together, alone = both(stats(READ=old, WRITE=old), stats(READ=now, WRITE=NOW))
        assert together == alone


@given(lasting(), st.floats(0.01, 1000))
def test_both_ways_to_read_have_the_same_rates(pair: tuple[MountStats, MountStats], seconds: float) -> None:
    together, alone = both(*pair, seconds)
    assert together == alone


@pytest.mark.parametrize("place", [0, 1, 2, 20, 39])
def test_an_operation_is_found_wherever_it_stands(place: int) -> None:
    names = [f"OP{number}" for number in range(40)]
    before = replace(stats(), ops=dict.fromkeys(names, BEFORE))
    now = replace(stats(), ops={name: NOW if at == place else BEFORE for at, name in enumerate(names)})
    together, alone = both(before, now)
    assert together == alone
    assert together is not None
    assert list(together) == [names[place]]


NOBODY = frozenset[str]()
READ, WRITE = b"\t        READ: 1 1 0 4 5 6 7 8 9", b"\t       WRITE: 2 2 0 4 5 6 7 8 9"
LATER = [b"\t        READ: 3 3 0 4 5 6 7 8 9", b"\t       WRITE: 5 5 0 4 5 6 7 8 9"]


@pytest.mark.parametrize(
    "line",
    [
        *("1 2", "1 2 3 4", "1 2 ", " 1 2", "1  2", "", "1 2 -3", "1 2 +3", "1 2 3_0", "1 2\t3", "1 2 x"),
        *("1 2 \u00b2", "1 2 18446744073709551616", f"1 2 {'9' * 5000}", "1 2 3|4", "1 2 3 | 4 5 6", "1 2 |"),
        *("1 2 3\n", "1 2 3\r"),
    ],
)
def test_what_is_not_plain_is_left_to_others(line: str) -> None:
    assert delta.plain_numbers([b"1 2 3", line.encode("latin-1")]) is None
    assert delta.plain_numbers([line.encode("latin-1"), b"1 2 3"]) is None


def test_operations_are_named_and_those_not_wanted_left_out() -> None:
    same = [0, 4, 5, 6, 7, 8, 9]
    read, written = ([1, 1, *same], [3, 3, *same]), ([2, 2, *same], [5, 5, *same])
    for unwanted, operations in (
        (NOBODY, Operations(["READ", "WRITE"], read[0] + written[0], read[1] + written[1])),
        (frozenset({"READ", "NULL"}), Operations(["WRITE"], *written)),
        (frozenset({"READ", "WRITE"}), Operations([], [], [])),
    ):
        assert delta.plain_operations([READ, WRITE], LATER, unwanted) == operations


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        *(([READ, WRITE], [LATER[1], LATER[0]]), ([READ, READ], [LATER[0], LATER[0]])),
        *(([READ], [LATER[0][1:]]), ([READ], [b"\t        READ: : 3 3 0 4 5 6 7 8 9"])),
        ([b"\t: 1 1", b"\t: 2 2"], [b"\t: 3 3", b"\t: 4 4"]),
        ([b"\tno operation", b"\t1 2: WRITE: 1 2"], [b"\tno operation", b"\t1 2: WRITE: 3 4"]),
        ([b"\tREAD\xff: 1"], [b"\tREAD\xff: 2"]),
    ],
)
def test_lines_of_other_operations_are_left_to_others(earlier: list[bytes], later: list[bytes]) -> None:
    assert delta.plain_operations(earlier, later, NOBODY) is None
