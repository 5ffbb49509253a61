"""`nfstuned bench` with the real fio, on a folder that a tree of kernel files calls a mount."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import MethodType

import pytest

from nfstuned.host.bench import fio
from nfstuned.host.bench.guard import Guard
from nfstuned.model.bench import Delivered, Job
from tests.cli.conftest import REPOSITORY, Host, Run

MakeHost = Callable[[str], Host]
DEVICE = "0:46"
QUICK = ("--yes", "--size", "1M", "--runtime", "0.2", "--repeats", "1")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to measure, with the records beside it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "mount"
    folder.mkdir()
    return folder


@pytest.fixture
def here(host: MakeHost, place: Path) -> Host:
    """A host on which the folder is the mount of Azure Files."""
    made = host("clean")
    for name in ("proc/1/mountinfo", "proc/1/mountstats", "run/mount/utab"):
        made.edit(name, "/mnt/share", str(place))
    made.set_read_ahead(DEVICE, 4096)
    return made


def bench(here: Host, place: Path, *args: str) -> Run:
    return here.run("bench", str(place), *QUICK, *args)


def records(here: Host, place: Path) -> list[Path]:
    """What a guard left: a user's records are below the home, root's below the root."""
    folders = (here.tree / "var/lib/nfstuned/bench", place.parent / "state/nfstuned/bench")
    return [file for folder in folders if folder.is_dir() for file in folder.iterdir()]


def test_a_comparison_keeps_its_schema_and_leaves_nothing(here: Host, place: Path) -> None:
    run = bench(here, place, "--compare", "--format", "json")
    assert run.status == 0, run.err
    document = run.document
    assert [setting["read_ahead_kb"] for setting in document["settings"]] == [128, 15360]
    assert {(one["job"], one["turn"]) for one in document["runs"]} == {
        (job, 1) for job in ("sequential-read", "random-read-4k")
    }
    assert len(document["differences"]) == 2
    assert all(one["bytes_per_s"]["count"] == 1 for one in document["results"])
    assert list(place.iterdir()) == []
    assert records(here, place) == []
    assert here.read_ahead(DEVICE) == 4096


def test_over_a_long_round_trip_its_runs_are_longer(here: Host, place: Path) -> None:
    stats = here.tree / "proc/1/mountstats"
    counters = re.compile(r"(\w+: )(\d+)((?: \d+){5}) \d+")
    stats.write_text(counters.sub(lambda op: f"{op[1]}{op[2]}{op[3]} {int(op[2]) * 100}", stats.read_text()))
    words = ("--yes", "--job", "sequential-read", "--repeats", "1", "--size", "1M", "--format", "json")
    run = here.run("bench", str(place), *words)
    assert run.status == 0, run.err
    (job,) = run.document["suite"]["jobs"]
    assert job["runtime_s"] == 8


def test_the_document_can_go_to_a_file(here: Host, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    run = bench(here, place, "--suite", "netapp", "--format", "json", "--output", str(file))
    assert (run.status, run.out) == (0, "")
    assert json.loads(file.read_text())["suite"]["name"] == "netapp"
    # Past the page cache no read-ahead matters, and none is touched.
    assert here.read_ahead(DEVICE) == 4096


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "netapp", "--compare"), "past the page cache"),
        (("--size", "900T"), "MiB are needed"),
        (("--size", "many"), "'many' is no size"),
        (("--output", "x"), "add --format json or --format html"),
        (("--nconnect", "4"), "suite quick does not compare connections: --suite nconnect does"),
        (("--nconnect", "17", "--suite", "nconnect"), "17"),
        (("--job", "read-64k"), "no job 'read-64k', but sequential-read, random-read-4k"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_done(
    here: Host, place: Path, arguments: tuple[str, ...], said: str
) -> None:
    run = bench(here, place, *arguments)
    assert run.status == 2
    assert said in run.err
    assert list(place.iterdir()) == []


def test_where_no_second_set_of_connections_can_be_had_the_reason_is_said(here: Host, place: Path) -> None:
    here.edit("proc/1/mountinfo", ",addr=10.10.10.10", ",addr=fd00::4")
    run = bench(here, place, "--suite", "nconnect")
    assert run.status == 2
    assert "can have no second set of connections: its server's address is fd00::4" in run.err
    assert list(place.iterdir()) == []


def test_what_is_no_mount_is_refused(here: Host, tmp_path: Path) -> None:
    run = here.run("bench", str(tmp_path), *QUICK)
    assert run.status == 2
    assert "is on no NFS mount" in run.err


def test_nobody_to_ask_needs_yes(here: Host, place: Path) -> None:
    run = here.run("bench", str(place))
    assert run.status == 2
    assert "add --yes" in run.err
    assert list(place.iterdir()) == []


def test_without_fio_it_names_the_package(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = bench(here, place)
    assert run.status == 2
    assert "apt install fio" in run.err


PROGRAM = """
import signal, sys
# A shell has what it runs in the background ignore ^C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from nfstuned.cli.app import main
from nfstuned.host.root import Root
sys.exit(main(sys.argv[2:], Root(sys.argv[1])))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_all_is_put_back(here: Host, place: Path, number: signal.Signals) -> None:
    argv = [sys.executable, "-c", PROGRAM, str(here.tree), "bench", str(place)]
    argv += ["--yes", "--compare", "--size", "8M", "--runtime", "20"]
    with subprocess.Popen(argv, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        try:
            while here.read_ahead(DEVICE) == 4096 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert list(place.iterdir()) != []
            process.send_signal(number)
            process.wait(30)
        finally:
            process.kill()
    # The guard outlives a killed bench for a moment.
    while (list(place.iterdir()) or records(here, place)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(place.iterdir()) == []
    assert records(here, place) == []
    assert here.read_ahead(DEVICE) == 4096


Accident = Callable[[Guard], None]
KILLED = "the guard has ended, and the next bench of the same folder puts them back"


def kill(keeper: Guard) -> None:
    """Kill the guard, as the kernel does where memory ends."""
    os.kill(keeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, keeper.pid, os.WEXITED | os.WNOWAIT)


def fill(_keeper: Guard) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "output")


def interrupt(_keeper: Guard) -> None:
    raise KeyboardInterrupt


def kill_and_interrupt(keeper: Guard) -> None:
    kill(keeper)
    interrupt(keeper)


def befall(monkeypatch: pytest.MonkeyPatch, accident: Accident, run: int) -> None:
    """Have an accident happen before so many runs of fio were made, the warm-ups among them."""
    runs, real = count(1), fio.run_job

    def measure(job: Job, folder: str, run_fio: fio.Runner) -> tuple[Delivered | None, str]:
        if next(runs) == run:
            assert isinstance(run_fio, MethodType)
            assert isinstance(run_fio.__self__, Guard)
            accident(run_fio.__self__)
        return real(job, folder, run_fio)

    monkeypatch.setattr(fio, "run_job", measure)


@pytest.mark.parametrize(
    ("accident", "reason"), [(kill, "the guard has ended"), (fill, "output: No space left on device")]
)
def test_what_was_measured_before_an_accident_is_kept(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch, accident: Accident, reason: str
) -> None:
    befall(monkeypatch, accident, run=4)
    run = bench(here, place, "--compare", "--job", "sequential-read", "--format", "json")
    assert run.status == 1, run.err
    assert [each["turn"] for each in run.document["runs"]] == [1]
    assert reason in run.document["ended"]


def test_what_a_killed_guard_did_not_put_back_is_said_and_the_next_start_does(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        befall(patch, kill, run=3)
        run = bench(here, place, "--compare", "--job", "sequential-read", "--format", "json")
    assert run.document["ended"].endswith(KILLED)
    assert len(records(here, place)) == 1
    assert here.read_ahead(DEVICE) != 4096
    assert bench(here, place, "--suite", "netapp").status == 0
    assert here.read_ahead(DEVICE) == 4096
    assert list(place.iterdir()) == records(here, place) == []


def test_an_interrupt_that_leaves_something_says_what_is_left(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    befall(monkeypatch, kill_and_interrupt, run=1)
    run = bench(here, place, "--compare")
    (record,) = records(here, place)
    assert f"interrupted; not put back: the changes in {record}: {KILLED}" in run.err
    assert run.status == 2


def test_an_interrupt_that_leaves_nothing_is_just_that(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    befall(monkeypatch, interrupt, run=1)
    run = bench(here, place, "--compare")
    assert (run.status, "not put back" in run.err) == (130, False)
    assert here.read_ahead(DEVICE) == 4096
    assert list(place.iterdir()) == records(here, place) == []


def test_a_page_is_written(here: Host, place: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run = bench(here, place, "--suite", "read-ahead", "--format", "html", "-o", str(page))
    assert (run.status, run.out) == (0, ""), run.err
    assert f"{page}: written" in run.err
    assert "over the read-ahead" in page.read_text()
    assert here.read_ahead(DEVICE) == 4096


def test_an_earlier_document_is_compared_with(here: Host, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    words = ("--suite", "netapp", "--job", "8k-random-reads")
    first = bench(here, place, *words, "--format", "json")
    assert first.document["against"] is None
    file.write_text(first.out)
    second = bench(here, place, *words, "--format", "json", "--against", str(file))
    assert second.status == 0, second.err
    compared = second.document["against"]
    assert compared["time"] == first.document["time"]
    assert {one["outcome"] for one in compared["differences"]} == {"too few runs"}
    assert compared["changed"] == []
    assert "has 1 runs of each job, and a difference takes 5" in second.err
    third = bench(here, place, *words, "--against", str(file))
    assert third.status == 0, third.err
    assert "Against the measurement of" in third.out
    assert "8k-random-reads, as it is: too few runs count" in third.out
    longer = bench(here, place, *words, "--runtime", "0.3", "--against", str(file))
    assert longer.status == 2
    assert f"{file}: job 8k-random-reads: runtime_s was 0.2 and is now 0.3" in longer.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "old.json: schema is missing, expected nfstuned.bench/1"),
        (None, "old.json: No such file or directory"),
    ],
)
def test_another_file_is_refused_before_anything_is_done(
    here: Host, place: Path, tmp_path: Path, text: str | None, said: str
) -> None:
    file = tmp_path / "old.json"
    if text is not None:
        file.write_text(text)
    run = bench(here, place, "--against", str(file))
    assert run.status == 2
    assert said in run.err


def test_a_folder_that_cannot_be_written_is_reported_before(here: Host, place: Path, tmp_path: Path) -> None:
    run = bench(here, place, "--format", "html", "-o", str(tmp_path / "none" / "x.html"))
    assert run.status == 2
    assert "makes files of" not in run.err


def test_for_people_it_prints_plan_table_and_verdicts_as_wide_as_the_terminal(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    run = bench(here, place, "--compare")
    assert run.status == 0, run.err
    assert "makes files of" in run.err
    assert re.search(r"(?m)^sequential-read: ", run.out)
    first, *lines = run.out.splitlines()
    assert first.split() == ["JOB", "SETTING", "THROUGHPUT", "FROM", "TO", "OPS/S", "LATENCY", "OVER-FETCH"]
    sentences = [line for line in lines if not line.startswith(("sequential-read  ", "random-read-4k  "))]
    assert max(map(len, sentences)) <= 80


def test_a_terminal_shows_each_step_and_clears_it(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    run = bench(here, place, "--compare", "--job", "sequential-read", "--format", "json")
    assert run.status == 0, run.err
    assert "making 1 files of 1 MiB" in run.err
    assert "sequential-read, kernel's default, run 1"[:30] in run.err
    assert run.err.endswith("\x1b[2K")
