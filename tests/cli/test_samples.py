"""`nfstuned samples` over files, and over a journal that journald has written."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.cli import terminal
from nfstuned.core.samples.sample import sample_to_json, to_line
from nfstuned.model.samples import Sample
from nfstuned.view.history import CSV_HEADER
from tests.cli.conftest import REPOSITORY, Host, MakeHost, Run
from tests.host.journald import demand_journald, record
from tests.parse.test_samples import SAMPLE

NOW = time.time()
OLD, NEW = (replace(SAMPLE, time=NOW - ago) for ago in (90_000, 600))
OTHER = replace(NEW, mount_points=(os.fsdecode(b"/srv/\xff,x"),), source="other:/x")
HOUR_AGO = ("--since", "1h ago")


HEAD = '"time": "2026-11-20T13:00:00Z", "host": "HOST"'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of three samples, the first of them put aside."""
    (tmp_path / "samples.jsonl.1").write_bytes(to_line(OLD))
    (tmp_path / "samples.jsonl").write_bytes(to_line(NEW) + to_line(OTHER))
    return tmp_path / "samples.jsonl"


@pytest.fixture
def run(host: MakeHost, file: Path) -> Callable[..., Run]:
    here = host("no-nfs")
    return lambda *args: here.run("samples", "--file", str(file), *args)


def json_of(*samples: Sample) -> list[dict[str, object]]:
    return [sample_to_json(sample) for sample in samples]


def test_json_has_every_key_of_every_sample_and_counts_the_means(run: Callable[..., Run]) -> None:
    done = run("--format", "json")
    assert (done.status, done.err) == (0, "")
    document = done.document
    assert document["samples"] == json_of(OLD, NEW, OTHER)
    assert {(one["source"], one["kind"]) for one in document["mean_rtt"]} == {
        (sample["source"], kind) for sample in document["samples"] for kind in sample["kinds"]
    }
    assert all(len(one["at_most_ms"]) == len(one["samples"]) for one in document["mean_rtt"])


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (HOUR_AGO, (NEW, OTHER)),
        (("--mount", "/mnt/b"), (OLD, NEW)),
        (("--mount", "/mnt//b/", *HOUR_AGO), (NEW,)),
        (("--mount", OTHER.mount_points[0]), (OTHER,)),
    ],
)
def test_since_and_mount_choose(
    run: Callable[..., Run], words: tuple[str, ...], chosen: tuple[Sample, ...]
) -> None:
    assert run(*words, "--format", "json").document["samples"] == json_of(*chosen)


def test_csv_has_one_header_and_the_names_of_the_keys(run: Callable[..., Run]) -> None:
    done = run("--format", "csv")
    assert (done.status, done.err) == (0, "")
    header, *rows = csv.reader(io.StringIO(done.out))
    assert tuple(header) == CSV_HEADER
    assert [row[header.index("mount_point")] for row in rows] == ["/mnt/a", "/mnt/a", "/srv/\\xff,x"]
    assert float(rows[0][0]) == OLD.time
    assert rows[0][header.index("write_rtt_ms")] == ""


def test_text_has_a_block_for_each_mount(run: Callable[..., Run]) -> None:
    done = run(*HOUR_AGO)
    assert (done.status, done.err) == (0, "")
    assert "\n/mnt/a and 1 more  server:/a\n  1 sample, in use for 60 s " in done.out
    assert "\n/srv/\\377,x  other:/x\n" in done.out
    assert "\n  read        █ " in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize(("encoding", "bar"), [("ascii", "#"), ("utf-8", "█"), ("latin-1", "#")])
def test_stdin_is_read_and_bars_are_those_that_the_output_shows(file: Path, encoding: str, bar: str) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "nfstuned", "samples", "--file", "-"]
    with file.open("rb") as samples:
        done = subprocess.run(
            command, cwd=REPOSITORY, env=environ, stdin=samples, capture_output=True, check=True
        )
    assert f"  read        {bar}" in done.stdout.decode(encoding)
    assert b"/mnt/a and 1 more" in done.stdout


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_damaged_lines_are_named_and_the_status_is_1(run: Callable[..., Run], file: Path, form: str) -> None:
    file.write_bytes(to_line(NEW) + b"{\n" * 12 + to_line(OTHER))
    done = run("--format", form)
    assert done.status == 1
    errors = done.err.splitlines()
    assert errors[0].startswith(f"{file}:2: not JSON (")
    assert (len(errors), errors[-1]) == (11, "2 more problems of this kind")
    assert "other:/x" in done.out


def test_in_a_file_of_mere_damage_the_damage_is_the_reason(run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("torn\n")
    done = run("--file", str(tmp_path / "s.jsonl"))
    assert (done.status, done.err.splitlines()[-1]) == (1, "no samples: all lines or entries are damaged")


@pytest.mark.parametrize(
    ("form", "empty"),
    [
        ("text", ""),
        ("json", f'{{"schema": "nfstuned.samples/1", {HEAD}, "samples": [], "mean_rtt": []}}\n'),
        ("csv", ",".join(CSV_HEADER) + "\n"),
    ],
)
def test_where_there_is_nothing_it_says_what_there_is(
    run: Callable[..., Run], form: str, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "host_name", lambda: "HOST")
    monkeypatch.setattr(terminal, "utc", lambda _: "2026-11-20T13:00:00Z")
    done = run("--mount", "/absent", *HOUR_AGO, "--format", form)
    assert (done.status, done.out) == (0, empty)
    first, second = done.err.splitlines()
    assert first.startswith("no samples of /absent since ")
    assert second == "there are samples of /mnt/a, /mnt/b, /srv/\\xff,x"


def test_a_time_that_is_yet_to_come_is_said_to_be(run: Callable[..., Run]) -> None:
    done = run("--since", "2999-01-01")
    assert (done.status, done.out) == (0, "")
    assert done.err == "no samples since 2999-01-01 00:00:00: that time is in the future\n"


class TestJournal:
    @pytest.fixture
    def here(self, host: MakeHost) -> Host:
        demand_journald()
        return host("no-nfs")

    def test_the_journal_is_read_where_no_file_is_named(self, here: Host) -> None:
        record(here.tree / "var/log/journal", [NEW, OTHER])
        done = here.run("samples", "--format", "json")
        assert (done.status, done.err) == (0, "")
        assert done.document["samples"] == json_of(NEW, OTHER)
        assert "/mnt/a and 1 more  server:/a\n" in here.run("samples", *HOUR_AGO).out

    def test_a_host_without_a_journal_is_2(self, here: Host) -> None:
        done = here.run("samples")
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("there is no journal in /var/log/journal or /run/log/journal; ")
