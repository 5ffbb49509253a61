"""Values to text: words, names, commands and differences."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.core.mounts.status import StatusRow
from nfstuned.model.change import Change, ChangeKind, NconnectStep
from nfstuned.model.facts import Diagnosis, Facts, Finding, Report, Severity
from nfstuned.model.mounts import Hold, Result, Snapshot
from nfstuned.model.policy import Policy, Profile, ReadAhead, Source
from nfstuned.parse.fields import count, quote, shell_line
from nfstuned.view.change import cells, diff_lines, summary
from nfstuned.view.check import report_lines
from nfstuned.view.policy import policy_document, policy_text
from nfstuned.view.status import hints, nconnect_mark, read_ahead_mark, status_cells
from nfstuned.view.words import printable, shorten

ROW = StatusRow(
    "/mnt/a", "server:/a", "nfs4", "0:43", "azure-files", "azure-files",
    read_ahead_kb=15360, read_ahead_target_kb=15360,
    nconnect_requested=4, nconnect=4, nconnect_target=4, connections=4, nconnect_max=4,
)  # fmt: skip
CHANGE = Change(ChangeKind.READ_AHEAD, "/mnt/a", 128, 15360, Result.DONE, "because")


LOWER, ADAPTED = replace(ROW, lower=True), replace(ROW, adapted=True)
UNDONE = replace(ROW, hold=Hold.UNDONE)


@pytest.mark.parametrize(
    ("row", "now", "target", "mark"),
    [
        (ROW, 128, None, "-"),
        (ROW, None, 15360, "unknown"),
        (ROW, 15360, 15360, "ok"),
        (ROW, 16384, 15360, "ok"),
        (ADAPTED, 960, 960, "adapted"),
        (ADAPTED, 128, 960, "low"),
        (LOWER, 16384, 15360, "high"),
        (ROW, 128, 15360, "low"),
        (UNDONE, 128, 15360, "undone"),
        (replace(LOWER, hold=Hold.UNDONE), 16384, 15360, "undone"),
        (UNDONE, 15360, 15360, "ok"),
        (replace(ROW, hold=Hold.EXISTING), 128, 15360, "existing"),
    ],
)
def test_a_word_marks_the_read_ahead(row: StatusRow, now: int | None, target: int | None, mark: str) -> None:
    assert read_ahead_mark(replace(row, read_ahead_kb=now, read_ahead_target_kb=target)) == mark


@pytest.mark.parametrize(
    ("requested", "now", "target", "most", "mark"),
    [
        (None, 1, None, None, "-"),
        (None, 4, 4, 4, "ok"),
        (4, 4, 4, 4, "ok"),
        (4, 1, 4, 4, "low"),
        (8, 8, 4, 4, "high"),
        (None, 12, 8, 16, "ok"),
        (8, 4, 4, 4, "ignored"),
        (8, 1, None, None, "ignored"),
        (2, 2, None, None, "-"),
    ],
)
def test_a_word_says_how_nconnect_is(
    requested: int | None, now: int, target: int | None, most: int | None, mark: str
) -> None:
    row = replace(ROW, nconnect_requested=requested, nconnect=now, nconnect_target=target, nconnect_max=most)
    assert nconnect_mark(row) == mark


def test_a_number_that_depends_is_said_to() -> None:
    row = replace(ROW, nconnect_target=None, nconnect_depends="the capacity: 2 or 7")
    assert status_cells(row)[5] == "4/4/depends"
    assert status_cells(replace(row, nconnect_target=2))[5] == "4/4/2"


def test_what_is_not_known_is_a_hyphen() -> None:
    row = replace(ROW, profile=None, read_ahead_kb=None, read_ahead_target_kb=None, nconnect_requested=None)
    cells = status_cells(replace(row, nconnect_target=None, connections=None))
    assert cells[2:] == ("-", "-/-", "-", "-/4/-", "-", "-")


def test_each_thing_that_is_off_has_one_hint() -> None:
    low = replace(ROW, read_ahead_kb=128)
    few = replace(ROW, nconnect=1)
    rows = [
        low,
        replace(low, hold=Hold.UNDONE),
        replace(low, hold=Hold.EXISTING),
        few,
        replace(few, mount_point="/mnt/b"),
        replace(ROW, nconnect=8),
    ]
    steps = [NconnectStep((ROW.mount_point,), ChangeKind.PERSIST, "a\nb")]
    assert hints([ROW], []) == ()
    (line,) = hints([ADAPTED, replace(ADAPTED, mount_point="/b")], [])
    assert line == "2 mounts with a read-ahead that their reads moved: journalctl -u nfstuned"
    lines = hints(rows, ["0:51", "0:52"], steps)
    assert lines[3:5] == (
        "1 mount below the profile's nconnect: sudo nfstuned nconnect persist, for the next boot (a\\nb)",
        "1 mount below the profile's nconnect, as other mounts of the server decide",
    )
    assert len(lines) == 7
    assert lines[0] == "1 mount off the profile's read-ahead: sudo nfstuned apply"
    assert lines[-1] == "2 file systems without a visible mount: 0:51, 0:52"


def test_an_outcome_is_one_line() -> None:
    shown = cells(replace(CHANGE, reason="two\nlines"))
    assert shown == ("/mnt/a", "read-ahead 128 -> 15360 KiB", "done", "(two\\nlines)")


def test_the_summary_counts_what_came_of_it() -> None:
    results = [Result.FAILED, Result.DONE, Result.DONE]
    assert summary([replace(CHANGE, result=result) for result in results]) == "2 done, 1 failed"


def test_counts_have_their_plural() -> None:
    assert [count(number, "mount") for number in (0, 1, 2)] == ["0 mounts", "1 mount", "2 mounts"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/mnt/ä b", "/mnt/ä b"),
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("caf\udce9", "caf\\xe9"),
        ("\udc80\udcff", "\\x80\\xff"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_names_are_shown_without_what_moves_a_terminal(name: str, shown: str) -> None:
    assert printable(name) == shown


def test_a_long_name_loses_its_middle() -> None:
    for width, short in ((9, "server:/a"), (8, "ser.../a"), (7, "se.../a"), (20, "server:/a")):
        assert shorten("server:/a", width) == short


@pytest.mark.parametrize(("size", "text"), [(0, "0"), (65536, "64K"), (16 << 20, "16M"), (3 << 30, "3G")])
def test_a_policy_names_the_size_of_its_file_as_its_own_file_would(size: int, text: str) -> None:
    shown = policy_text(Policy(profiles=(), sample_file="/x", sample_file_bytes=size))
    assert f'[samples]\nfile = "/x"\nmax_size = "{text}"\nkeep = 4\n' in shown
    assert 'sample_interval = "0"' in policy_text(Policy(profiles=(), sample_interval_s=0.0))


def test_a_profile_s_numbers_point_to_their_sources() -> None:
    source = Source("https://example.com/", "2026-11", ("nconnect",), "Page")
    profile = Profile("x", ReadAhead(times_rsize=15), nconnect=4, sources=(source,))
    lines = policy_text(Policy(profiles=(profile,))).splitlines()
    assert lines[-5:] == [
        "[profile.x]",
        'read_ahead_kb = "15*rsize"',
        "nconnect = 4                 # [1]",
        "# [1] Page, read 2026-11",
        "#     https://example.com/",
    ]


def test_a_profile_without_an_opinion_has_no_numbers() -> None:
    assert policy_document(Policy(profiles=(Profile("x"),)))["profile"] == {"x": {"sources": []}}


@pytest.mark.skipif(shutil.which("diff") is None, reason="no diff")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nB"),
        ("a\nb", "a\nb\n"),
        ("-- a\n", "++ a\n"),
        *(("a", ""), ("", "a\n"), ("a\nb", "a\nb")),
        ("a\tb\n" * 20 + "x", "a\tb\n" * 20 + "y"),
    ],
)
def test_it_is_what_diff_prints(old: str, new: str, tmp_path: Path) -> None:
    for name, text in (("old", old), ("new", new)):
        (tmp_path / name).write_text(text)
    command = ["diff", "-u", "old", "new"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert list(diff_lines(old, new, "f"))[2:] == done.stdout.splitlines()[2:]


def test_control_characters_and_stray_bytes_are_escapes_but_tabs_stay() -> None:
    lines = list(diff_lines("a\t\x1b[2J\udcff\r\n", "b\n", "f"))
    assert lines[3:] == ["-a\t\\x1b[2J\\xff\\r", "+b"]


NAMES = [
    "/mnt/a",
    "/mnt/my data",
    "/mnt/it's a 'test' of 'many  blanks'",
    '/mnt/$HOME `id` !x \\ "y" ;&|',
    "-rf",
    "/mnt/a\nb\tc",
    "/mnt/a 'b'\n\\1",
    "/mnt/B\udcfcro 7",
    "/mnt/a\u200bb\u00a0c",
    "",
]


def words(command: str) -> list[str]:
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_back_what_a_terminal_shows(name: str) -> None:
    assert words(printable(quote(name))) == [name]
    assert words(printable(shell_line(("umount", "--", name)))) == ["umount", "--", name]


@pytest.mark.parametrize("width", [None, *range(40, 100, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_report_ends_within_a_quoted_word(name: str, width: int | None) -> None:
    remedy = f"remove it from the mounts' own line, then sudo umount {quote(name)} and mount it again"
    finding = Finding("NFS307", "soft-mount", Severity.WARNING, "/", "soft", "", "", remedy, "")
    facts = Facts(frozenset(), Snapshot(), Policy(profiles=()), ())
    lines = [line.text for line in report_lines(Report("/", facts, (), Diagnosis((finding,), ())), width)]
    assert any(printable(quote(name)) in line for line in lines)
