"""Samples agree with fio, the server and the sockets; verdicts on read-ahead fit the ways of reading."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nfstuned.core.samples import evidence
from nfstuned.core.samples.evidence import Reads, Use, read_ahead_use, reads_of
from nfstuned.core.samples.rates import rates
from nfstuned.core.samples.sample import kinds
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.kernel import MountStats
from nfstuned.model.samples import Sample
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab.kit.daemon import Daemon, nfstuned, nfstuned_json
from tests.lab.kit.load import Job, fio, look, nfsd, sockets
from tests.lab.kit.mounts import Mounts, set_read_ahead_kb
from tests.lab.kit.server import Server
from tests.lab.kit.shell import Say, attempt, becomes, run, tuned
from tests.lab.kit.unit import let_tick, override

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.newest,
    pytest.mark.usefixtures("quiet_udev", "stopped_daemon"),
]

SIZE = 4 << 20
JOBS = tuple(
    Job(f"{order}{way}", block, direct=direct, size=size)
    for way in ("read", "write")
    for order, block, size in (("", "1M", "4M"), ("rand", "4k", "1M"))
    for direct in (False, True)
)
FEW = (JOBS[1], JOBS[2], JOBS[4], JOBS[7])
"""Both ways, sizes and patterns, direct and buffered: for more than one connection."""
HEADERS = 1000
"""Bytes of TCP payload that a request and its reply have next to their data, at the most."""


@pytest.mark.parametrize(
    ("version", "nconnect"),
    [
        *(("vers=3,nolock", 1), ("vers=4.2", 16)),
        *(pytest.param("vers=3,nolock", number, marks=pytest.mark.release) for number in (4, 16)),
        *(pytest.param("vers=4.1", number, marks=pytest.mark.release) for number in (1, 4, 16)),
        *(pytest.param("vers=4.2", number, marks=pytest.mark.release) for number in (1, 4)),
    ],
)
def test_a_sample_agrees_with_fio_server_and_sockets(version: str, nconnect: int, mount: Mounts) -> None:
    Path("/srv/a/load").write_bytes(os.urandom(SIZE))
    mounted = mount("a", f"{version},nconnect={nconnect}")
    for job in JOBS if nconnect == 1 else FEW:
        before, counted, carried = look(), nfsd(), sockets()
        asked = fio(mounted, job)
        (sample,) = rates(before, look())
        counted, carried = nfsd() - counted, sockets() - carried
        output = f"{job}: {asked}, {counted}, {carried}, {sample}"
        print(output)
        assert programs(sample) == (asked.read_bytes, asked.write_bytes), output
        assert server_bytes(sample) == (counted.read_bytes, counted.write_bytes), output
        assert requests(sample) == (counted.reads, counted.writes), output
        every = whole(sample, sum(op.per_s for op in sample.ops.values()))
        assert counted.read_bytes <= carried.received <= counted.read_bytes + HEADERS * every, output
        assert counted.write_bytes <= carried.sent <= counted.write_bytes + HEADERS * every, output
        assert sample.transport.connections == nconnect
    assert sockets().number == nconnect


def test_bytes_seen_at_several_places_are_counted_once(mount: Mounts, server: Server) -> None:
    """A bind mount, the same export twice, and ten shares of one server."""
    shares = [f"s{number}" for number in range(10)]
    server.export(*shares)
    for share in shares:
        Path(f"/srv/{share}/load").write_bytes(bytes(SIZE))
    mounts = [mount(share, "vers=4.1,nconnect=4") for share in shares]
    mount.bind(mounts[0])
    mount(shares[0], "vers=4.1,nconnect=4")
    before, counted = look(), nfsd()
    for mounted in mounts:
        with (mounted.point / "load").open("r+b", buffering=0) as file:
            file.write(bytes(SIZE))
            os.fsync(file)
    samples = rates(before, look())
    counted = nfsd() - counted
    assert len(samples) == len(shares)
    sums = [tuple(map(sum, zip(*map(of, samples), strict=True))) for of in (programs, server_bytes, requests)]
    assert sums == [(0, len(shares) * SIZE), (0, counted.write_bytes), (0, counted.writes)]
    assert {sample.transport for sample in samples} == {samples[0].transport}
    assert samples[0].transport.connections == sockets().number == 4
    assert len(samples[0].mount_points) == 3
    assert [name for sample in samples[1:] for name in sample.ops if name == "SEQUENCE"] == []


def programs(sample: Sample) -> tuple[int, int]:
    return whole(sample, sample.read_bytes_per_s), whole(sample, sample.write_bytes_per_s)


def server_bytes(sample: Sample) -> tuple[int, int]:
    return whole(sample, sample.server_read_bytes_per_s), whole(sample, sample.server_write_bytes_per_s)


def requests(sample: Sample) -> tuple[int, int]:
    ops = kinds(sample)
    reads, writes = (whole(sample, ops[kind].per_s) if kind in ops else 0 for kind in ("read", "write"))
    return reads, writes


def whole(sample: Sample, per_s: float | None) -> int:
    """Return a rate's total over its interval: the kernel counted whole bytes and requests."""
    assert per_s is not None
    return round(per_s * sample.interval_s)


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
def test_file_and_journal_have_the_same_samples_and_fios_bytes(stopped_daemon: Daemon, mount: Mounts) -> None:
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
    since = f"@{kept[0]['time'] - 1:.0f}"
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


@pytest.mark.release
@pytest.mark.usefixtures("folder")
def test_without_a_drop_in_the_journal_reports_a_refusal_once(stopped_daemon: Daemon, mount: Mounts) -> None:
    FOLDER.mkdir()
    stopped_daemon.start(OFTEN)
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


@pytest.mark.system
def test_top_shows_the_reads_of_another_program_and_needs_no_service(mount: Mounts) -> None:
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


@pytest.mark.system
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


@pytest.mark.release
def test_a_user_who_may_not_read_the_journal_gets_the_reason(daemon: Daemon) -> None:
    """The command of a user without groups, and of one in systemd-journal."""
    assert daemon.active
    refused = attempt("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "nfstuned", "samples")
    assert refused.returncode == 2
    assert "systemd-journal" in refused.stderr
    run("setpriv", "--reuid=65534", "--regid=systemd-journal", "--clear-groups", "nfstuned", "samples")


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _written(samples: list[dict[str, Any]], point: str) -> int:
    """Return the bytes that were written through a mount, by its samples."""
    mine = [sample for sample in samples if point in sample["mount_points"]]
    total: int = round(sum(sample["write_bytes_per_s"] * sample["interval_s"] for sample in mine))
    return total


LARGE = 48 << 20
KIB = 1 << 10
RSIZE = 256 * KIB
READPAGES = 9
"""Of the events; nfsiostat calls it vfsreadpages."""


def read_ahead() -> tuple[int, int]:
    """How often the kernel's read-ahead called NFS, and the pages that were read (fs/nfs/read.c)."""
    (one,) = parse_mountstats(Path("/proc/self/mountstats").read_bytes())
    assert isinstance(one, MountStats), one
    assert one.bytes is not None
    return one.events[READPAGES], one.bytes.pages_read


def during(work: Callable[[], None], say: Say) -> Reads:
    """Return the superblock's reads during some work; nothing of the file is cached before."""
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    before, (calls, pages) = look(), read_ahead()
    work()
    (sample,) = rates(before, look())
    reads = reads_of(sample)
    assert reads is not None, sample
    calls, pages = read_ahead()[0] - calls, read_ahead()[1] - pages
    say(
        f"{read_ahead_use(reads)}: {reads.ratio} times the bytes read, "
        f"{reads.request_bytes / KIB:.0f} KiB a READ, "
        f"{pages} pages in {calls} calls of read-ahead"
    )
    return reads


def test_verdicts_fit_the_reads(mount: Mounts, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """All on one mount, so that nothing differs but how the file is read and the read-ahead."""
    monkeypatch.setattr(evidence, "ENOUGH_BYTES", LARGE)  # a guest takes long to read 256 MiB
    Path("/srv/a/file").write_bytes(os.urandom(LARGE))
    mounted = mount("a", f"vers=4.1,rsize={RSIZE}")
    file = str(mounted.point / "file")

    def read(*how: str) -> None:
        run("dd", f"if={file}", "of=/dev/null", "status=none", *how)

    def mapped(step: int = 4 * KIB) -> None:
        with Path(file).open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as data:
            assert sum(len(data[at : at + 1]) for at in range(0, LARGE, step)) == LARGE // step

    def twice() -> None:
        read("bs=64K")
        read("bs=64K")

    set_read_ahead_kb(mounted.device, 128)
    narrow = during(lambda: read("bs=4K"), say)
    assert read_ahead_use(narrow) is Use.TOO_SMALL, narrow
    assert narrow.rsize_bytes == RSIZE, narrow
    assert narrow.read_bytes == pytest.approx(LARGE), narrow
    large = during(lambda: read("bs=1M"), say)
    assert read_ahead_use(large) is None, large
    assert large.request_bytes > 1.5 * narrow.request_bytes, (narrow, large)
    assert read_ahead_use(during(lambda: read("bs=64K", "iflag=direct"), say)) is None
    assert read_ahead_use(during(twice, say)) is None
    of_map = during(mapped, say)
    assert read_ahead_use(of_map) is None
    assert of_map.read_bytes == 0 < of_map.fetched_bytes, of_map

    set_read_ahead_kb(mounted.device, 1024)

    def again_and_again() -> None:
        for _ in range(2):
            Path("/proc/sys/vm/drop_caches").write_text("3\n")
            read("bs=64K")

    wide = during(again_and_again, say)
    assert read_ahead_use(wide) is Use.HELPS, wide

    def mapped_again(step: int) -> None:
        for _ in range(2):
            Path("/proc/sys/vm/drop_caches").write_text("3\n")
            mapped(step)

    in_order = during(lambda: mapped_again(4 * KIB), say)
    assert read_ahead_use(in_order) is None, in_order
    here_and_there = during(lambda: mapped_again(1024 * KIB), say)
    assert read_ahead_use(here_and_there) is Use.WASTED, here_and_there
    assert here_and_there.faults == pytest.approx(here_and_there.calls, rel=0.1), here_and_there
