"""Saved copies of mountstats as people cut, damage and append them, and the time between two."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.copies import SavedCopy, frame_between, frame_since_mounted, parse_copies
from nfstuned.core.samples.top import Frame, TopState
from nfstuned.model.kernel import MountStats, Options
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_stanzas
from nfstuned.view.top import plain_lines
from tests.core.counters import cut, line, moved, op, stats, written
from tests.parse.damage import damaged, tokens_damaged

KERNELS = Path(__file__).parents[1] / "parse/data"
MIB = 1 << 20
USED = stats(100, moved(50 * MIB), READ=op(50, 100))


def saved(*mounts: MountStats) -> SavedCopy:
    return SavedCopy.of("copy", cut(*mounts), mounts)


def placed(point: str, mount: MountStats) -> MountStats:
    return replace(mount, point=point)


def test_mounts_with_the_same_counters_are_one_superblock_where_bytes_moved() -> None:
    idle = stats(100, GETATTR=op(3))
    mounts = (placed("/a", USED), placed("/b", idle), placed("/folder", USED), placed("/c", idle))
    shown = frame_since_mounted(saved(*(replace(mount, source=f"server:{mount.point}") for mount in mounts)))
    assert [entry.counted.mount_points for entry in shown.entries] == [("/a", "/folder"), ("/b",), ("/c",)]
    other = replace(USED, age_s=101)
    assert len(frame_since_mounted(saved(placed("/a", USED), placed("/b", other))).entries) == 2


def test_mounts_of_one_source_are_one_superblock_also_while_it_is_busy() -> None:
    """The second was printed a moment after the first."""
    busier = placed("/bound", replace(USED, bytes=moved(51 * MIB)))
    (entry,) = frame_since_mounted(saved(placed("/a", USED), busier)).entries
    assert entry.counted.mount_points == ("/a", "/bound")
    alone = Options((*USED.options.pairs, ("nosharecache", "")))
    apart = (replace(mount, options=alone) for mount in (placed("/a", USED), busier))
    assert len(frame_since_mounted(saved(*apart)).entries) == 2


def bound(age_s: int, read: int) -> SavedCopy:
    """A copy of an export and of a bind of a folder in it; Linux 6.12 prints options without an address."""
    real = (KERNELS / "6.12/mountstats").read_text()
    opts = next(line for line in real.splitlines() if "opts:" in line and "vers=4.2" in line)
    text = "".join(
        written(replace(stats(age_s, moved(read)), source=source, point=point)).replace("\topts:\trw", opts)
        for source, point in (("nas:/a", "/data"), ("nas:/a/home", "/home"))
    )
    mounts = (mount for mount in parse_mountstats(text) if isinstance(mount, MountStats))
    return SavedCopy.of("copy", parse_stanzas([text.encode()]), mounts)


def test_a_bind_of_a_folder_is_no_superblock_of_its_own() -> None:
    (entry,) = frame_since_mounted(bound(100, 50 * MIB)).entries
    assert (entry.counted.mount_points, entry.counted.group) == (("/data", "/home"), "v4.2 tcp nas:2049")
    (entry,) = frame_between(bound(100, 50 * MIB), bound(110, 60 * MIB)).entries
    assert entry.sample is not None
    assert (entry.counted.mount_points, entry.sample.read_bytes_per_s) == (("/data", "/home"), MIB)


def test_the_means_since_a_mount_are_of_its_own_age() -> None:
    shown = frame_since_mounted(saved(placed("/a", USED), placed("/b", replace(USED, age_s=50))))
    rates = [entry.sample.read_bytes_per_s for entry in shown.entries if entry.sample is not None]
    assert rates == [MIB / 2, MIB]
    sample = shown.entries[0].sample
    assert sample is not None
    assert (sample.ops["READ"].per_s, sample.ops["READ"].rtt_ms) == (0.5, 2.0)


def test_a_mount_without_an_age_or_made_this_second_has_no_rates() -> None:
    for age in (None, 0):
        (entry,) = frame_since_mounted(saved(replace(USED, age_s=age))).entries
        assert entry.sample is None


def test_mounts_that_lie_on_each_other_are_ambiguous() -> None:
    """Their stanzas have the same source and mount point, and nothing says which is whose."""
    shown = frame_since_mounted(saved(USED, replace(USED, age_s=90), placed("/b", USED)))
    assert (len(shown.entries), shown.silent, shown.ambiguous) == (1, 0, 2)


@pytest.mark.parametrize(
    ("options", "points"),
    [
        (("vers=4.1,proto=tcp", "vers=3,proto=udp"), ["/a (vers=4.1)", "/a (vers=3)"]),
        (("vers=3,port=1,sec=sys", "vers=3,port=2,sec=sys"), ["/a (port=1)", "/a (port=2)"]),
        (("vers=4.1", "vers=4.1"), []),
        (("vers=3,ro", "vers=3,rw"), []),
    ],
)
def test_stacked_mounts_are_named_by_a_differing_option(options: tuple[str, str], points: list[str]) -> None:
    copies = [
        "".join(
            written(placed("/a", replace(USED, age_s=age - less, bytes=moved(age * MIB - less)))).replace(
                "opts:\trw", f"opts:\t{text}"
            )
            for less, text in enumerate(options)
        )
        for age in (100, 160)
    ]
    (earlier,), (later,) = (parse_copies("copy", copy.encode())[0] for copy in copies)
    shown = frame_since_mounted(later)
    assert [point for entry in shown.entries for point in entry.counted.mount_points] == points
    if points:
        assert ages(frame_between(earlier, later)) == [(60.0, "")] * 2


def test_a_superblock_is_found_again_under_any_of_its_mount_points() -> None:
    later = replace(USED, age_s=110, bytes=moved(60 * MIB))
    shown = frame_between(saved(placed("/b", USED)), saved(placed("/a", later), placed("/b", later)))
    (entry,) = shown.entries
    assert (shown.seconds, entry.counted.mount_points) == (10.0, ("/a", "/b"))
    assert entry.sample is not None
    assert entry.sample.read_bytes_per_s == MIB


def ages(frame: Frame) -> list[tuple[float | None, str]]:
    """The interval of each superblock's rates, and its note."""
    return [(entry.sample.interval_s if entry.sample else None, entry.note) for entry in frame.entries]


AGAIN = "mounted again after copy"


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        ({"/a": 100, "/b": 90}, {"/a": 160, "/b": 150}, [(60.0, ""), (60.0, "")]),
        ({"/a": 100, "/b": 90}, {"/a": 160, "/b": 3}, [(60.0, ""), (3.0, AGAIN)]),
        # As autofs does with what nobody uses for a while.
        ({"/a": 100, "/b": 5}, {"/a": 160, "/b": 25}, [(60.0, ""), (25.0, AGAIN)]),
        ({"/a": 100}, {"/a": 160, "/b": 25}, [(60.0, ""), (25.0, "mounted after copy")]),
        ({"/a": 9, "/b": 99, "/c": 98}, {"/a": 69, "/b": 9, "/c": 8}, [(60, ""), (9, AGAIN), (8, AGAIN)]),
        ({"/a": 100}, {"/a": 160, "/b": 5000}, [(60.0, ""), (5000.0, "not in copy")]),
        ({"/a": 60, "/b": 61, "/c": 9}, {"/a": 5, "/b": 6, "/c": 69}, [(5, AGAIN), (6, AGAIN), (60, "")]),
    ],
)
def test_a_mount_that_was_made_between_copies_has_its_means_since_then(
    before: Mapping[str, int], now: Mapping[str, int], shown: list[tuple[float | None, str]]
) -> None:
    earlier, later = (
        saved(*(placed(point, replace(USED, source=f"s:{point}", age_s=age)) for point, age in copy.items()))
        for copy in (before, now)
    )
    frame = frame_between(earlier, later)
    assert (frame.seconds, ages(frame)) == (60.0, shown)


OPS = {"NULL": op(1), "READ": op(50, 100), "WRITE": op(10, 90, errors=2), "GETATTR": op(), "LOOKUP": op(3)}
BEFORE = written(stats(100, moved(50 * MIB), (line(5), line(5)), **OPS))
LATER = {**OPS, "READ": op(60, 140), "LOOKUP": op(4)}
NOW = written(stats(110, moved(60 * MIB), (line(15), line(25)), **LATER))
BYTES = {"total", "read", "write", "over-fetch", "server-read", "server-write"}
SUMS = {"ops", "queue", "retrans"}
NO_OPS = {*SUMS, "read-rtt", "write-rtt"}


def figures(*copies: str) -> Mapping[str, float]:
    """The figures of the only mount, which is in use."""
    parsed = [parse_copies("copy", copy.encode())[0][0] for copy in copies]
    (entry,) = (frame_between(*parsed) if len(parsed) > 1 else frame_since_mounted(parsed[0])).entries
    assert entry.used
    return entry.figures


def without(text: str, *names: str) -> str:
    """The text as somebody left it who cut these lines."""
    return "".join(row for row in text.splitlines(keepends=True) if not row.strip().startswith(names))


@pytest.mark.parametrize(
    ("copies", "unknown"),
    [
        ((BEFORE, without(NOW, "bytes")), BYTES),
        ((without(BEFORE, "bytes"), NOW), BYTES),
        ((BEFORE[: BEFORE.index("\tper-op")], NOW), NO_OPS),
        ((without(BEFORE, *OPS), NOW), NO_OPS),
        ((without(BEFORE, "LOOKUP"), NOW), SUMS),
        ((BEFORE, without(NOW, "READ")), {*SUMS, "read-rtt"}),
        ((without(BEFORE, "GETATTR"), NOW), set()),  # grep -v leaves out operations without use
        ((BEFORE.replace("READ: 50", "READ: ?"), NOW), {*SUMS, "read-rtt"}),
        ((BEFORE, NOW.replace("bytes:\t6", "bytes:\t?")), BYTES),
        ((BEFORE, NOW.replace("0 0 15 15", "0 0 ? 15")), {"connections"}),
        ((BEFORE, NOW.replace("0 0 15 15", "0 0 15")), {"connections"}),
        ((BEFORE, without(NOW, "xprt")), {"connections", "in-flight"}),
        ((BEFORE, NOW[: NOW.index("\tper-op")]), {*NO_OPS, "connections"}),
        ((without(NOW, *OPS),), NO_OPS),
        ((NOW.replace("READ: 60", "READ: ?"),), {*SUMS, "read-rtt"}),
        ((NOW[:-4],), SUMS),
        ((NOW.rstrip("\n"),), SUMS),
        ((NOW[: NOW.index("GETATTR")],), SUMS),
    ],
)
def test_only_a_missing_or_damaged_line_is_unknown(copies: tuple[str, ...], unknown: set[str]) -> None:
    complete = figures(BEFORE, NOW) if len(copies) > 1 else figures(NOW)
    shown = figures(*copies)
    assert complete.keys() - shown.keys() == unknown & complete.keys()
    assert {name: value for name, value in complete.items() if name in shown} == shown


ALL_OPS = ("per-op", *OPS)


@pytest.mark.parametrize(("lost", "end"), [((), ""), (tuple(OPS), "\n"), (ALL_OPS, "\n"), (ALL_OPS, "")])
def test_a_mount_with_few_lines_has_none_of_the_next_mounts_counters(lost: tuple[str, ...], end: str) -> None:
    """As grep leaves them: a server's name ends at its last possible end, but before the next mount."""
    names = "\timpl_id:\tname='',domain='',date='0,0'\n\tbytes"
    text = "".join(
        without(written(placed(point, replace(USED, source=point, bytes=moved(read)))), *lost).rstrip("\n")
        + "\n"
        + end
        for point, read in (("/home", MIB), ("/data", 50 * MIB))
    ).replace("\tbytes", names)
    (copy,), problems = parse_copies("copy", text.encode())
    read = [entry.figures["read"] for entry in frame_since_mounted(copy).entries]
    assert (read, problems) == ([MIB / 100, MIB / 2], [])


def two(age: int, read: int) -> str:
    mounts = (replace(stats(age, moved(read * MIB), READ=op(reads)), source=f"s:{reads}") for reads in (5, 6))
    return "".join(written(placed(point, mount)) for point, mount in zip(("/a", "/b"), mounts, strict=True))


@pytest.mark.parametrize(
    ("lost", "sends", "title", "named"),
    [
        ((), 9, "5 NFS superblocks, 0 in use, means", "not in use: /a, /b, /c and 2 more"),
        (("READ", "NULL"), 0, "5 NFS superblocks, 0 in use, means", "not in use: /a, /b, /c and 2 more"),
        (("READ", "NULL"), 9, "5 NFS superblocks, 5 of unknown use, means", "/a                "),
        (("READ", "NULL", "xprt"), 9, "5 NFS superblocks, 5 of unknown use, means", "/a                "),
    ],
)
def test_unused_superblocks_are_named(lost: tuple[str, ...], sends: int, title: str, named: str) -> None:
    idle = stats(100, moved(0), (line(sends),), READ=op(), NULL=op(1))
    text = "".join(without(written(replace(idle, source=f"s:{n}", point=f"/{n}")), *lost) for n in "abcde")
    shown = frame_since_mounted(parse_copies("copy", text.encode())[0][0])
    lines = list(plain_lines(shown, TopState(), 120))
    assert title in lines[0]
    assert any(line.startswith(named) for line in lines)


SPLIT = ["copy (copy 1)", "copy (copy 2)"]


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        (two(100, 50) + two(160, 110), SPLIT, ""),
        ("date\n" + two(100, 50) + "date\n" + two(160, 110) + "$ ", SPLIT, ""),
        (two(100, 50) * 2, ["copy"], ""),
        (two(100, 50) + two(100, 51), ["copy"], ""),
        (two(160, 110) + two(100, 50), ["copy"], "has /a, /b more than once, with other counters"),
        (two(100, 50) + two(160, 110).replace("/b", "/c"), ["copy"], "has /a more than once"),
    ],
)
def test_copies_in_one_file_are_split_where_it_is_certain(text: str, names: list[str], problem: str) -> None:
    copies, problems = parse_copies("copy", text.encode())
    assert [copy.name for copy in copies] == names
    assert problem in "".join(problems)
    assert bool(problem) == bool(problems)
    if len(copies) > 1:
        assert [entry.figures["read"] for entry in frame_between(*copies).entries] == [MIB, MIB]


def test_a_file_that_was_saved_onto_its_own_mount_shows_one_superblock() -> None:
    """Of the second stanza the bytes have grown by the first."""
    docs, setup = (placed(point, replace(USED, source=f"s:/v{point}")) for point in ("/docs", "/setup"))
    (entry,) = frame_since_mounted(saved(docs, replace(setup, bytes=moved(50 * MIB, 3657)))).entries
    assert (entry.counted.mount_points, entry.figures["read"]) == (("/docs", "/setup"), MIB / 2)


REAL = (KERNELS / "6.12/mountstats").read_text()


def real_figures(text: str) -> dict[str, Mapping[str, float]]:
    """The figures of each superblock since it was mounted, by its first mount point."""
    (copy, *_), _ = parse_copies("copy", text.encode("utf-8", "surrogatepass"))
    return {entry.counted.mount_points[0]: entry.figures for entry in frame_since_mounted(copy).entries}


@given(st.integers(0, len(REAL)))
def test_a_file_that_is_cut_anywhere_has_no_other_figure(end: int) -> None:
    """But sums of operations: nothing shows that lines were cut off behind the last that is whole."""
    complete = real_figures(REAL)
    for point, shown in real_figures(REAL[:end]).items():
        known = {name: value for name, value in shown.items() if name not in SUMS}
        assert known.items() <= complete[point].items()


@given(st.one_of(damaged(REAL), tokens_damaged(REAL)))
def test_no_damage_makes_a_figure_that_is_no_number(text: str) -> None:
    assert all(0 <= value < math.inf for shown in real_figures(text).values() for value in shown.values())


@pytest.mark.parametrize("lines", [12, 14, 21, 60])
def test_mounts_that_grep_cut_have_no_other_figure(lines: int) -> None:
    """As `grep -A` leaves them, without the last lines of each."""
    complete = real_figures(REAL)
    mounts = [part.splitlines()[:lines] for part in re.findall(r"device .* nfs4? .*\n(?:\t.*\n)+", REAL)]
    shown = real_figures("\n--\n".join(map("\n".join, mounts)) + "\n")
    assert shown.keys() >= {"/mnt/1", "/mnt/2"}
    assert all(figures.items() <= complete[point].items() for point, figures in shown.items())


@pytest.mark.parametrize(("last", "known"), [("OFFLOAD_CANCEL", False), ("READ_PLUS", True)])
def test_a_mount_without_its_end_is_complete_after_the_last_operation(last: str, *, known: bool) -> None:
    end = REAL.index("\n", REAL.index(f"{last}: ")) + 1
    assert (real_figures(REAL[:end])["/mnt/2"].keys() >= SUMS) is known


def test_faults_have_the_line_of_the_users_own_file() -> None:
    """Also where empty lines, which are put in to read it, would move those behind."""
    text = (two(100, 50) + two(100, 50).replace("/a", "/c").replace("/b", "/d")).replace("\n\n", "\n")
    text = text.replace("age:\t100", "age:\tx")
    places = [number for number, row in enumerate(text.splitlines(), 1) if "age:" in row]
    _, problems = parse_copies("copy", text.encode())
    assert problems == [f"copy:{number}: age is not a number: 'x'" for number in places]
