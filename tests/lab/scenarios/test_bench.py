"""bench finds the effects that vendors publish, calls nothing else one, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nfstuned.host.bench import fio
from nfstuned.model.bench import Job, Pattern
from tests.lab.kit import disks
from tests.lab.kit.clones import clone
from tests.lab.kit.daemon import nfstuned
from tests.lab.kit.link import shaped
from tests.lab.kit.load import nfsd
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.shell import attempt, run, wait_for

if TYPE_CHECKING:
    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

RTT_20_MS = ("netem", "delay", "10ms", "limit", "100000")
pytestmark = [
    pytest.mark.once,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon"),
]
HERE = "/run/clone"
SHORT = ("--yes", "--format", "json", "--size", "64M")


def measured(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    for one in document["results"]:
        speed = one["bytes_per_s"]
        print(
            f"{one['job']}, {one['setting']}: {speed['median'] / 1e6:.1f} MB/s "
            f"({speed['least'] / 1e6:.1f} to {speed['most'] / 1e6:.1f}); {one['limit']}"
        )
    return document


def left(share: Path) -> list[str]:
    """What bench left on the server, and in its records."""
    records = Path("/var/lib/nfstuned/bench")
    return [str(path) for folder in (share, records) if folder.exists() for path in folder.rglob("*")]


def test_at_a_distance_read_ahead_is_worth_a_multiple_and_random_reads_gain_nothing(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, full: bool
) -> None:
    """Three times where the guest has the machine; beside other guests in CI it is too slow to show more."""
    with clone(1, "0123456789abcdef0123456789abcdef", tmp_path) as far, shaped(far, *RTT_20_MS):
        far.mount("sa1.file.core.windows.net:/srv/a", "vers=4.1,nconnect=4")
        words = ("nfstuned", "bench", HERE, *SHORT, "--compare")
        document = measured(far.enter(*words, timeout=600))
        far.umount()
    outcomes = {one["job"]: (one["outcome"], one["ratio"]) for one in document["differences"]}
    with capsys.disabled():
        print(f"\n  {outcomes}", flush=True)
    assert outcomes["sequential-read"][0] == "faster"
    assert outcomes["sequential-read"][1] >= (3 if full else 1.5)
    assert outcomes["random-read-4k"][0] == "no difference"
    assert document["ended"] == ""
    assert left(server.path("a")) == []


def test_an_unchanged_mount_has_no_difference(mount: Mounts, server: Server, *, full: bool) -> None:
    mounted = mount("a", "vers=4.1")
    with_target = Path("/etc/nfstuned/nfstuned.toml")
    with_target.parent.mkdir(exist_ok=True)
    # What is compared is the kernel's value with nearly the same one.
    with_target.write_text("[profile.azure-files]\nread_ahead_kb = 132\n")
    try:
        for _ in range(20 if full else 1):
            document = measured(
                nfstuned(
                    "bench", str(mounted.point), *SHORT, "--compare", "--runtime", "1", timeout=300
                ).stdout
            )
            assert {one["outcome"] for one in document["differences"]} == {"no difference"}
    finally:
        with_target.unlink()
    assert left(server.path("a")) == []


def test_a_job_is_read_ahead_of_as_far_as_its_setting_says(mount: Mounts) -> None:
    """fio's own advice to the kernel would double it: the requests tell."""
    mounted = mount("a", "vers=4.1")
    set_read_ahead_kb(mounted.device, 128)
    job = Job("reader", Pattern.READ, 1 << 16, file_bytes=32 << 20, runtime_s=1)
    assert fio.lay_out(job, str(mounted.point), lambda _: None, lambda _: None) == ""
    before = nfsd()
    delivered, problem = fio.measure(job, str(mounted.point), None, lambda _: None, lambda _: None)
    grown = nfsd() - before
    assert (problem, delivered is None) == ("", False)
    assert 64 << 10 < grown.read_bytes / grown.reads <= 128 << 10


def begun(mounted: Mounted, server: Server) -> subprocess.Popen[str]:
    """Begin a comparison that takes long, and return when it runs under its first setting."""
    words = [
        "nfstuned",
        "bench",
        str(mounted.point),
        "--yes",
        "--compare",
        "--size",
        "32M",
        "--runtime",
        "60",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for("a read-ahead of bench's", lambda: mounted.read_ahead_kb != 4096, 120)
    assert left(server.path("a")) != []
    return process


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


def test_where_the_server_is_stopped_the_read_ahead_is_back_at_once_and_the_files_go_later(
    mount: Mounts, server: Server
) -> None:
    mounted = mount("a", "vers=4.1")
    set_read_ahead_kb(mounted.device, 4096)
    with begun(mounted, server) as process:
        server.stop(grace_s=10)
        time.sleep(5)
        run("kill", "-INT", str(process.pid))
        process.wait(180)
    assert mounted.read_ahead_kb == 4096
    server.start()
    wait_for("no program of bench's", lambda: attempt("pgrep", "-x", "fio").returncode == 1, 120)
    done = nfstuned(
        "bench",
        str(mounted.point),
        *SHORT,
        "--suite",
        "netapp",
        "--repeats",
        "1",
        "--runtime",
        "1",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert left(server.path("a")) == []


def test_a_full_disk_is_said_and_nothing_is_left(server: Server, mount: Mounts) -> None:
    with disks.exported(server, 1) as (share,):
        mounted = mount(share, "vers=4.1")
        room = int(run("df", "--output=avail", "--block-size=1M", str(mounted.point)).split()[-1])
        done = nfstuned("bench", str(mounted.point), "--yes", "--size", f"{room + 64}M", timeout=120)
        assert done.returncode == 2
        assert "MiB are free: --size makes the files smaller" in done.stderr
        assert [path.name for path in mounted.point.iterdir() if path.name.startswith(".nfstuned")] == []
        mount.clean()
