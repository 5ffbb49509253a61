"""bench puts all back, finds the effects that vendors publish, and reports no noise as one."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nfstuned.host.bench import fio
from nfstuned.host.bench.guard import Guard, new_record
from nfstuned.model.bench import Job, Pattern
from tests.lab.kit import faults
from tests.lab.kit.clones import Clone, clone, shaped_link
from tests.lab.kit.daemon import Daemon, nfstuned
from tests.lab.kit.load import nfsd
from tests.lab.kit.mounts import Mounted, Mounts, nfs_clients, set_read_ahead_kb
from tests.lab.kit.server import Server
from tests.lab.kit.shell import Say, attempt, run, wait_for

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon"),
]

HERE = "/run/clone"  # where a clone mounts
SHORT = ("--yes", "--format", "json", "--size", "64M")
SHARE = "d"


def measured(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    for one in document["results"]:
        speed = one["bytes_per_s"]
        print(
            f"{one['job']}, {one['setting']}: {speed['median'] / 1e6:.1f} MB/s "
            f"({speed['least'] / 1e6:.1f} to {speed['most'] / 1e6:.1f})"
        )
    return document


def outcomes(document: Mapping[str, Any]) -> dict[str, tuple[str, float]]:
    assert document["ended"] == ""
    return {one["job"]: (one["outcome"], one["ratio"]) for one in document["differences"]}


def left(share: Path) -> list[str]:
    """Return bench's files on the server, and in its records."""
    records = Path("/var/lib/nfstuned/bench")
    return [str(path) for folder in (share, records) if folder.exists() for path in folder.rglob("*")]


@pytest.fixture(autouse=True)
def _empty_shares(server: Server) -> None:
    """The shares have no file of other scenarios, so that each file there is bench's."""
    for path in (*server.path("a").iterdir(), *server.path(SHARE).iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def compared(client: Clone, *words: str) -> dict[str, tuple[str, float]]:
    """Measure one connection against several on a clone; return each job's outcome and ratio."""
    document = measured(client.enter("nfstuned", "bench", HERE, *SHORT, *words, timeout=840))
    assert [one["problem"] for one in document["runs"] if one["problem"]] == []
    return outcomes(document)


def test_the_kernel_reads_ahead_of_a_job_as_far_as_its_setting(mount: Mounts) -> None:
    """fio's own advice to the kernel would double it: the requests show it."""
    mounted = mount("a", "vers=4.1")
    set_read_ahead_kb(mounted.device, 128)
    job = Job("reader", Pattern.READ, 1 << 16, file_bytes=32 << 20, runtime_s=1)
    folder = mounted.point / "read"
    folder.mkdir()
    guard = Guard(new_record("/run/bench"), str(mounted.point))
    assert fio.lay_out(job, str(folder), guard.run) == ""
    before = nfsd()
    delivered, problem = fio.run_job(job, str(folder), guard.run)
    grown = nfsd() - before
    assert guard.end() == ()
    shutil.rmtree(folder)
    assert (problem, delivered is None) == ("", False)
    assert 64 << 10 < grown.read_bytes / grown.reads <= 128 << 10


def bench(mounted: Mounted, *words: str) -> subprocess.Popen[str]:
    """Start a measurement; its output has both streams."""
    argv = ["nfstuned", "bench", str(mounted.point), "--yes", *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def begun(mounted: Mounted, server: Server, runtime_s: int = 60) -> subprocess.Popen[str]:
    """Begin a comparison that takes long, and return when it runs under its first setting."""
    process = bench(mounted, "--compare", "--size", "32M", "--runtime", str(runtime_s))
    wait_for("a read-ahead of bench's", lambda: mounted.read_ahead_kb != 4096, 120)
    assert left(server.path("a")) != []
    return process


@pytest.mark.release
@pytest.mark.parametrize("ending", ["INT", "KILL"])
def test_however_it_is_ended_all_is_put_back(mount: Mounts, server: Server, ending: str) -> None:
    mounted = mount("a", "vers=4.1")
    set_read_ahead_kb(mounted.device, 4096)
    with begun(mounted, server) as process:
        run("kill", f"-{ending}", str(process.pid))
        process.wait(60)
    wait_for("the read-ahead of before", lambda: mounted.read_ahead_kb == 4096)
    wait_for("no file of bench's", lambda: left(server.path("a")) == [])
    run("umount", str(mounted.point))


@pytest.mark.release
def test_without_a_server_read_ahead_is_back_at_once_and_files_later(mount: Mounts, server: Server) -> None:
    mounted = mount("a", "vers=4.1")
    set_read_ahead_kb(mounted.device, 4096)
    with begun(mounted, server) as process:
        server.stop()
        time.sleep(5)
        run("kill", "-INT", str(process.pid))
        process.wait(180)
    assert mounted.read_ahead_kb == 4096
    server.start()
    wait_for("no program of bench's", lambda: attempt("pgrep", "-x", "fio").returncode == 1, 120)
    words = ("--suite", "netapp", "--repeats", "1", "--runtime", "1")
    done = nfstuned("bench", str(mounted.point), *SHORT, *words, timeout=300)
    assert done.returncode == 0, done.stderr
    assert left(server.path("a")) == []


@pytest.mark.release
def test_an_unmount_is_reported_and_the_next_start_removes_its_files(mount: Mounts, server: Server) -> None:
    mounted = mount("a", "vers=4.1")
    set_read_ahead_kb(mounted.device, 4096)
    with begun(mounted, server, runtime_s=10) as process:
        mount.umount(mounted, lazy=True)
        output, _ = process.communicate(timeout=180)
    assert process.returncode == 1
    assert f"{mounted.point} was unmounted" in output
    assert "still on the server: the next bench of the same folder removes it" in output
    assert list(mounted.point.iterdir()) == []
    assert left(server.path("a")) != []
    again = mount("a", "vers=4.1", point=mounted.point)
    set_read_ahead_kb(again.device, 256)
    words = ("--suite", "netapp", "--job", "64k-sequential-reads", "--repeats", "1", "--runtime", "1")
    done = nfstuned("bench", str(again.point), *SHORT, *words, timeout=300)
    assert done.returncode == 0, done.stderr
    assert left(server.path("a")) == []
    assert again.read_ahead_kb == 256


def a_job_runs() -> bool:
    """Whether an fio measures; one that makes its files does not yet."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            if words[0] == "fio":
                return "--create_only=1" not in words
    return False


@pytest.mark.release
@pytest.mark.parametrize(("ending", "version"), [("INT", "4.1"), ("KILL", "3")])
def test_no_end_leaves_a_temporary_mount(mount: Mounts, server: Server, ending: str, version: str) -> None:
    mounted = mount("a", f"vers={version},nconnect=2")
    assert len(nfs_clients()) == 1
    before = Path("/proc/self/mounts").read_text()
    words = ("--suite", "nconnect", "--job", "read-4k", "--size", "32M", "--runtime", "60")
    with bench(mounted, *words) as process:
        # The settings are tried before the files are made, so that a mount alone is not yet the measurement.
        wait_for("a job", lambda: len(nfs_clients()) == 2 and len(left(server.path("a"))) > 4, 120)
        time.sleep(3)
        assert Path("/proc/self/mounts").read_text() == before
        run("kill", f"-{ending}", str(process.pid))
        process.wait(60)
    wait_for("no client of bench's", lambda: len(nfs_clients()) == 1)
    wait_for("no file of bench's", lambda: left(server.path("a")) == [])
    assert attempt("pgrep", "-x", "fio").returncode == 1
    run("umount", str(mounted.point))
    assert len(nfs_clients()) == 0


@pytest.mark.release
def test_a_full_disk_and_one_that_fills_are_reported_and_leave_nothing(server: Server, mount: Mounts) -> None:
    with faults.exported(server, 1) as (share,):
        mounted = mount(share, "vers=4.1")
        room = int(run("df", "--output=avail", "--block-size=1M", str(mounted.point)).split()[-1])
        done = nfstuned("bench", str(mounted.point), "--yes", "--size", f"{room + 64}M", timeout=120)
        assert done.returncode == 2
        assert "MiB are free: --size makes the files smaller" in done.stderr
        assert list(server.path(share).iterdir()) == []
        words = ("--suite", "netapp", "--job", "8k-random-writes", "--size", "16M", "--runtime", "60")
        with bench(mounted, *words) as process:
            wait_for("a job", a_job_runs, 120)
            attempt("dd", "if=/dev/zero", f"of={server.path(share)}/full", "bs=64k", timeout=120)
            output, _ = process.communicate(timeout=180)
        print(output)
        assert process.returncode == 1
        assert "No space left on device" in output
        assert [path.name for path in server.path(share).iterdir()] == ["full"]
        server.path(share).joinpath("full").unlink()
        mount.clean()


RTT_20_MS = ("netem", "delay", "10ms", "limit", "100000")
TURNS = 3
PER_FLOW = ("fq", "maxrate", "40mbit")
"""As a cloud holds each connection by itself: 4.7 MB/s of data a connection."""


@pytest.mark.release
def test_at_a_distance_read_ahead_is_worth_a_multiple_and_random_reads_gain_nothing(
    server: Server, tmp_path: Path, say: Say
) -> None:
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as far, shaped_link(far, *RTT_20_MS):
        far.mount(f"sa1.file.core.windows.net:/srv/{SHARE}", "vers=4.1,nconnect=4")
        found = outcomes(measured(far.enter("nfstuned", "bench", HERE, *SHORT, "--compare", timeout=600)))
        far.umount()
    say(found)
    assert found["sequential-read"][0] == "faster"
    assert found["sequential-read"][1] >= 3
    assert found["random-read-4k"][0] == "no difference"
    assert left(server.path(SHARE)) == []


@pytest.mark.release
@pytest.mark.parametrize("version", ["4.1", "3"])
def test_where_each_connection_is_held_four_carry_nearly_four_times_as_much(
    server: Server, tmp_path: Path, say: Say, version: str
) -> None:
    jobs = ("read-64k", "write-1024k")
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as held, shaped_link(held, *PER_FLOW):
        held.mount(f"sa1.file.core.windows.net:/srv/{SHARE}", f"vers={version},nconnect=4")
        before = held.enter("cat", "/proc/self/mounts")
        words = ("--suite", "nconnect", "--runtime", "5")
        found: dict[str, tuple[str, float]] = {}
        for job in jobs:
            found |= compared(held, *words, "--job", job)
        assert held.enter("cat", "/proc/self/mounts") == before
        held.umount()
    say(found)
    assert found.keys() == set(jobs)
    for outcome, ratio in found.values():
        assert (outcome, ratio >= 3.3) == ("faster", True)
    assert left(server.path(SHARE)) == []


@pytest.mark.release
@pytest.mark.timeout(2400)
def test_an_unchanged_mount_has_no_difference(
    mount: Mounts, server: Server, stopped_daemon: Daemon, say: Say
) -> None:
    mounted = mount("a", "vers=4.1")
    # The comparison is of the kernel's value with nearly the same one; the daemon's fixture removes the file.
    stopped_daemon.configure("[profile.azure-files]\nread_ahead_kb = 132\n")
    for turn in range(TURNS):
        words = (*SHORT, "--compare", "--runtime", "1")
        found = outcomes(measured(nfstuned("bench", str(mounted.point), *words, timeout=300).stdout))
        say(f"{turn + 1}: {found}")
        assert {outcome for outcome, _ in found.values()} == {"no difference"}
    assert left(server.path("a")) == []
