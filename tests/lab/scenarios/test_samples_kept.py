"""Samples that are kept: the journal and the file have the same, and `nfstuned samples` shows them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.daemon import nfstuned, nfstuned_json
from tests.lab.kit.load import Job, fio
from tests.lab.kit.shell import attempt, becomes, run, tuned
from tests.lab.kit.unit import let_tick, override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounts

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("quiet_udev")]
SIZE = 4 << 20
FOLDER = Path("/var/log/nfstuned")
FILE = FOLDER / "samples.jsonl"
OFTEN = f'[daemon]\nsample_interval = "1s"\n\n[samples]\nfile = "{FILE}"\n'


@pytest.fixture
def folder() -> Iterator[None]:
    """The folder and its files are gone after the test."""
    yield
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.mark.release
@pytest.mark.usefixtures("folder")
def test_the_file_and_the_journal_have_the_same_samples_and_show_what_fio_wrote(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    stopped_daemon.configure(OFTEN)
    Path("/srv/a/load").write_bytes(os.urandom(SIZE))
    with override("[Service]\nLogsDirectory=nfstuned\n"):
        stopped_daemon.start()
        used = mount("a", "vers=4.1,nconnect=2")
        tuned(15360, used)
        let_tick(stopped_daemon)
        fio(used, Job("write", "1M", direct=True, size="4M"))
        becomes(SIZE, lambda: _written(_lines(FILE), str(used.point)))
        # Another look, so that the sample that was seen first is not the one being written.
        let_tick(stopped_daemon)
        stopped_daemon.stop()
    kept = _lines(FILE)
    since = f"@{kept[0]['time'] - 1:.0f}"  # type: ignore[operator]
    assert nfstuned_json("samples", "--file", str(FILE))["samples"] == kept
    assert nfstuned_json("samples", "--since", since)["samples"] == kept
    output = nfstuned("samples", "--since", since, "--mount", str(used.point))
    assert output.returncode == 0, output.stderr
    assert f"{used.point}  {used.source}" in output.stdout
    rows = nfstuned("samples", "--file", str(FILE), "--format", "csv").stdout.splitlines()
    assert len(rows) == 1 + len(kept)
    page = FOLDER / "page.html"
    done = nfstuned("report", "--offline", "--since", since, "--output", str(page))
    assert done.returncode == 0, done.stderr
    assert f">{used.point}</h2>" in page.read_text()
    assert stopped_daemon.entries(MESSAGE_ID=Message.SAMPLES_UNWRITTEN.id) == []


@pytest.mark.usefixtures("folder")
def test_without_a_drop_in_the_sandbox_refuses_and_the_journal_says_it_once(
    stopped_daemon: Daemon, mount: Mounts
) -> None:
    FOLDER.mkdir()
    stopped_daemon.configure(OFTEN)
    stopped_daemon.start()
    used = mount("a")
    tuned(15360, used)
    let_tick(stopped_daemon)
    for number in range(3):
        (used.point / f"new{number}").write_bytes(b"x" * 100_000)
        let_tick(stopped_daemon)
    (entry,) = stopped_daemon.entries(MESSAGE_ID=Message.SAMPLES_UNWRITTEN.id)
    assert "Read-only file system" in entry["MESSAGE"]
    assert len(stopped_daemon.entries(MESSAGE_ID=Message.SAMPLE.id)) >= 2
    assert not FILE.exists()


def test_top_shows_what_is_read_beside_it_and_needs_no_service(mount: Mounts) -> None:
    Path("/srv/a/load").write_bytes(os.urandom(SIZE))
    used = mount("a", "vers=4.1,nconnect=2")
    command = ["nfstuned", "top", "--interval", "10", "--count", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
        # It needs seconds to start here: whenever its two looks are, something is read between them.
        while top.poll() is None:
            fio(used, Job("read", "1M", direct=True, size="4M"))
        output = top.stdout.read() if top.stdout is not None else ""
    assert top.returncode == 0
    (row,) = [line for line in output.splitlines() if line.startswith(f"{used.point} ")]
    assert float(row.split()[1]) > 0, output
    assert "\x1b" not in output


def test_a_path_on_an_nfs_mount_is_refused(stopped_daemon: Daemon, mount: Mounts) -> None:
    used, kept = mount("a", "vers=4.1"), mount("b", "vers=3,nolock")
    stopped_daemon.configure(OFTEN.replace(str(FILE), f"{kept.point}/samples.jsonl"))
    with override(f"[Service]\nReadWritePaths=-{kept.point}\n"):
        stopped_daemon.start()
        tuned(15360, used)
        let_tick(stopped_daemon)
        (used.point / "new").write_bytes(b"x" * 100_000)
        entry = stopped_daemon.wait_for_entry(MESSAGE_ID=Message.SAMPLES_UNWRITTEN.id)
        stopped_daemon.stop()
    assert f"{kept.point} is on nfs" in entry["MESSAGE"]
    assert not (kept.point / "samples.jsonl").exists()


def test_who_may_not_read_the_journal_is_told_so(daemon: Daemon) -> None:
    """The command of a user without groups, and of one in systemd-journal."""
    assert daemon.active
    refused = attempt("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "nfstuned", "samples")
    assert refused.returncode == 2
    assert "systemd-journal" in refused.stderr
    run("setpriv", "--reuid=65534", "--regid=systemd-journal", "--clear-groups", "nfstuned", "samples")


def _lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _written(samples: list[dict[str, object]], point: str) -> int:
    """Return how many bytes the samples say were written through a mount."""
    mine = [sample for sample in samples if point in sample["mount_points"]]  # type: ignore[operator]
    return round(sum(sample["write_bytes_per_s"] * sample["interval_s"] for sample in mine))  # type: ignore[operator]
