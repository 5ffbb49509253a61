"""`nfstuned bench` with the real fio, on a folder that a tree of kernel files calls a mount."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from types import MethodType

import pytest

from nfstuned.host.bench import fio
from nfstuned.host.bench.guard import Guard
from nfstuned.model.bench import Delivered, Job
from tests.cli.conftest import PROGRAM, REPOSITORY, Host, MakeHost, Run

DEVICE = "0:46"
QUICK = ("--yes", "--size", "1M", "--runtime", "0.2", "--repeats", "1")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("fio") is None, reason="fio is missing")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to measure, with the records of a user next to it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "mount"
    folder.mkdir()
    return folder


@pytest.fixture
def here(host: MakeHost, place: Path) -> Host:
    made = mounted_at(place, host)
    made.set_read_ahead(DEVICE, 4096)
    return made


def mounted_at(folder: Path, host: MakeHost) -> Host:
    """Return a host on which the folder is the mount of Azure Files."""
    made = host("clean")
    for name in ("proc/1/mountinfo", "proc/1/mountstats", "run/mount/utab"):
        made.edit(name, "/mnt/share", str(folder))
    return made


def bench(here: Host, place: Path, *args: str) -> Run:
    return here.run("bench", str(place), *QUICK, *args)


def records(here: Host, place: Path) -> list[Path]:
    """Return the records: a user's records are below the home, root's below the root."""
    folders = (here.tree / "var/lib/nfstuned/bench", place.parent / "state/nfstuned/bench")
    return [file for folder in folders if folder.is_dir() for file in folder.iterdir()]


def nothing_is_left(here: Host, place: Path, kb: int = 4096) -> bool:
    return list(place.iterdir()) == records(here, place) == [] and here.read_ahead(DEVICE) == kb


def test_a_comparison_keeps_its_schema_and_leaves_nothing(here: Host, place: Path) -> None:
    run = bench(here, place, "--compare", "--format", "json")
    assert run.status == 0, run.err
    document = run.document
    assert [setting["read_ahead_kb"] for setting in document["settings"]] == [128, 15360]
    jobs = {(one["job"], one["turn"]) for one in document["runs"]}
    assert jobs == {(job, 1) for job in ("sequential-read", "random-read-4k")}
    assert len(document["differences"]) == 2
    assert all(one["bytes_per_s"]["count"] == 1 for one in document["results"])
    assert nothing_is_left(here, place)


def test_over_a_long_round_trip_its_runs_are_longer(here: Host, place: Path) -> None:
    stats = here.tree / "proc/1/mountstats"
    counters = re.compile(r"(\w+: )(\d+)((?: \d+){5}) \d+")
    stats.write_text(counters.sub(lambda op: f"{op[1]}{op[2]}{op[3]} {int(op[2]) * 100}", stats.read_text()))
    words = ("--yes", "--job", "sequential-read", "--repeats", "1", "--size", "1M", "--format", "json")
    run = here.run("bench", str(place), *words)
    assert run.status == 0, run.err
    (job,) = run.document["suite"]["jobs"]
    assert job["runtime_s"] == 8


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--suite netapp --compare", "bypasses the page cache"),
        ("--size 900T", "MiB are needed"),
        ("--size many", "'many' is not a size"),
        ("--output x", "add --format json or --format html"),
        ("--format html --output /nonexistent/x.html", "nonexistent: No such file or directory\n"),
        ("--nconnect 4", "suite quick does not compare connections: use --suite nconnect"),
        ("--nconnect 17 --suite nconnect", "17"),
        ("--job read-64k", "no job 'read-64k', but sequential-read, random-read-4k"),
        ("--suite nconnect", "cannot have a second set of connections: its server's address is fd00::4"),
        ("--against old.json", "old.json: schema is missing, expected nfstuned.bench/1"),
        ("--against absent.json", "absent.json: No such file or directory"),
    ],
)
def test_a_refusal_has_a_reason_and_no_effect(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, reason: str
) -> None:
    monkeypatch.chdir(place.parent)
    Path("old.json").write_text("{}")
    here.edit("proc/1/mountinfo", ",addr=10.10.10.10", ",addr=fd00::4")
    run = bench(here, place, *arguments.split())
    assert (run.status, "makes files of" in run.err) == (2, False)
    assert reason in run.err
    assert list(place.iterdir()) == []


def test_a_profile_without_a_number_has_nothing_to_compare(here: Host, place: Path) -> None:
    here.configure('[[policy]]\nmatch = {}\nprofile = "generic"\n')
    run = bench(here, place, "--compare")
    assert (run.status, "generic names no read-ahead; --suite read-ahead looks" in run.err) == (2, True)


def test_a_folder_of_no_mount_and_an_unasked_measurement_are_refused(here: Host, place: Path) -> None:
    run = here.run("bench", str(place.parent), *QUICK)
    assert (run.status, "is not on an NFS mount" in run.err) == (2, True)
    run = here.run("bench", str(place))
    assert (run.status, "add --yes" in run.err) == (2, True)
    assert list(place.iterdir()) == []


def test_without_fio_it_names_the_package(here: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place))
    run = bench(here, place)
    assert (run.status, "apt install fio" in run.err) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_all_is_put_back(here: Host, place: Path, number: signal.Signals) -> None:
    # A shell has its programs in the background ignore ^C.
    script = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {PROGRAM}"
    argv = [sys.executable, "-c", script, str(here.tree), "bench", str(place)]
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
    assert nothing_is_left(here, place)


KILLED = "the guard has ended, and the next bench of the same folder puts them back"


def befall(monkeypatch: pytest.MonkeyPatch, run: int, error: BaseException | None = None) -> None:
    """Before so many runs of fio, the warm-ups among them, raise the error, or let the guard be killed."""
    runs, real = count(1), fio.run_job

    def measure(job: Job, folder: str, run_fio: fio.Runner) -> tuple[Delivered | None, str]:
        if next(runs) == run:
            assert isinstance(run_fio, MethodType)
            keeper = run_fio.__self__
            assert isinstance(keeper, Guard)
            if error is None or isinstance(error, KilledToo):
                os.kill(keeper.pid, signal.SIGKILL)
                os.waitid(os.P_PID, keeper.pid, os.WEXITED | os.WNOWAIT)
            if error is not None:
                raise error
        return real(job, folder, run_fio)

    monkeypatch.setattr(fio, "run_job", measure)


class KilledToo(KeyboardInterrupt):
    """An interrupt that killed the guard, too."""


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "the guard has ended"),
        (OSError(errno.ENOSPC, "No space left on device", "output"), "output: No space left on device"),
    ],
)
def test_runs_before_an_accident_are_kept(
    here: Host, place: Path, monkeypatch: pytest.MonkeyPatch, error: OSError | None, reason: str
) -> None:
    befall(monkeypatch, 4, error)
    run = bench(here, place, "--compare", "--job", "sequential-read", "--format", "json")
    assert run.status == 1, run.err
    assert [each["turn"] for each in run.document["runs"]] == [1]
    assert reason in run.document["ended"]


def test_a_killed_guards_changes_are_undone(here: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        befall(patch, 3)
        run = bench(here, place, "--compare", "--job", "sequential-read", "--format", "json")
    assert run.document["ended"].endswith(KILLED)
    assert (len(records(here, place)), here.read_ahead(DEVICE) != 4096) == (1, True)
    assert bench(here, place, "--suite", "netapp").status == 0
    assert nothing_is_left(here, place)


def test_changes_at_an_interrupt_are_named(here: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    befall(monkeypatch, 1, KilledToo())
    run = bench(here, place, "--compare")
    (record,) = records(here, place)
    assert f"interrupted; not put back: the changes in {record}: {KILLED}" in run.err
    assert run.status == 2


def test_an_interrupt_may_leave_no_changes(here: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    befall(monkeypatch, 1, KeyboardInterrupt())
    run = bench(here, place, "--compare")
    assert (run.status, "not put back" in run.err) == (130, False)
    assert nothing_is_left(here, place)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--suite read-ahead --format html", "over the read-ahead"),
        ("--suite netapp --format json", '"netapp"'),
    ],
)
def test_it_writes_a_page_or_document(here: Host, place: Path, tmp_path: Path, words: str, part: str) -> None:
    file = tmp_path / "result"
    run = bench(here, place, *words.split(), "-o", str(file))
    assert (run.status, run.out) == (0, ""), run.err
    assert f"{file}: written" in run.err
    assert part in file.read_text()
    # Past the page cache no read-ahead matters, and none is touched.
    assert here.read_ahead(DEVICE) == 4096


def test_an_earlier_document_is_compared(here: Host, place: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    words = ("--suite", "netapp", "--job", "8k-random-reads")
    first = bench(here, place, *words, "--format", "json")
    assert first.document["against"] is None
    file.write_text(first.out)
    second = bench(here, place, *words, "--format", "json", "--against", str(file))
    assert second.status == 0, second.err
    compared = second.document["against"]
    assert (compared["time"], compared["changed"]) == (first.document["time"], [])
    assert {one["outcome"] for one in compared["differences"]} == {"too few runs"}
    assert "has 1 runs of each job, and a comparison needs 5" in second.err
    third = bench(here, place, *words, "--against", str(file))
    assert third.status == 0, third.err
    assert "Against the measurement of" in third.out
    assert "8k-random-reads, as it is: too few runs count" in third.out
    longer = bench(here, place, *words, "--runtime", "0.3", "--against", str(file))
    reason = f"{file}: job 8k-random-reads: runtime_s was 0.2 and is now 0.3"
    assert (longer.status, reason in longer.err) == (2, True)


def test_output_for_people_fits_a_terminal(here: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_terminals_show_and_clear_steps(here: Host, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    run = bench(here, place, "--compare", "--job", "sequential-read", "--format", "json")
    assert run.status == 0, run.err
    assert "making 1 files of 1 MiB" in run.err
    assert "sequential-read, kernel's default, run 1"[:30] in run.err
    assert run.err.endswith("\x1b[2K")
