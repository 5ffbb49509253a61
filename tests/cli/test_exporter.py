"""`nfstuned exporter`: the service's metrics over HTTP, and never old numbers as if they were new."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from nfstuned.cli.service import AGE, INTERVAL, SAMPLED, USABLE, MetricsCollector
from nfstuned.host.root import Root
from tests.check import hosts
from tests.ports import free_port
from tests.promtool import PROMETHEUS, needs_prometheus, needs_promtool, promtool
from tests.tree import put

NOW = 1_800_000_000.0
FILE = "run/nfstuned/metrics.prom"
ABSENT = "it is absent; nfstuned.service writes it at each sample while nfstuned-exporter.service runs"
OLDER = "its sample is older than three intervals; does"


def whole(ago: float) -> bytes:
    """Return a file whose sample is that many seconds old."""
    series = f"{SAMPLED} {NOW - ago}", f"{INTERVAL} 60", 'nfstuned_mounts{exported="true"} 3'
    return "".join(f"{one}\n" for one in series).encode()


CAPTURE = hosts.load("debian-13-6.12")
DAEMON = """
import socket, sys
from nfstuned.daemon import loop
from nfstuned.host.telemetry.journal import Journal
from nfstuned.host.root import Root

class Quiet:
    # The kernel gives its events to root alone; the lab has real ones.
    def __init__(self): self.pair = socket.socketpair()
    def fileno(self): return self.pair[0].fileno()
    def next(self): return None
    def drain(self): return ()

loop.KernelEvents = loop.UdevEvents = Quiet
loop.MountTable = lambda root: Quiet()  # a file has no changes to wait for
loop.Daemon(Root(sys.argv[1]), Journal()).run()
"""


def served(folder: Path, text: bytes | None) -> dict[str, float]:
    """Return the values of all series that the exporter has of a file with that text."""
    if text is not None:
        put(folder / FILE, text)
    families = list(MetricsCollector(Root(str(folder)), f"/{FILE}", lambda: NOW).collect())
    return {sample.name: sample.value for family in families for sample in family.samples}


@pytest.mark.parametrize("age_s", [-30, 0, 209])
def test_a_fresh_file_is_served_whole_with_its_age(tmp_path: Path, age_s: int) -> None:
    found = served(tmp_path, whole(age_s))
    assert found == {USABLE: 1, AGE: age_s, SAMPLED: NOW - age_s, INTERVAL: 60, "nfstuned_mounts": 3}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(None, ABSENT, id="absent"),
        pytest.param(whole(211), OLDER, id="stale"),
        pytest.param(whole(-211), OLDER, id="of the future"),
        pytest.param(b"", "it is damaged: KeyError", id="empty"),
        pytest.param(b"nfstuned_mounts 3\n", "it is damaged: KeyError", id="half"),
        pytest.param(whole(0) + b"nfstuned_mount_info{device=", "it is damaged: ", id="cut"),
        pytest.param(whole(0) + b"nfstuned_mounts x\n", "it is damaged: ValueError", id="no number"),
        pytest.param(whole(0) + b"# \xff\n", "it is damaged: UnicodeDecodeError", id="no text"),
    ],
)
def test_no_number_of_a_file_that_is_absent_stale_or_damaged_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes | None, reason: str
) -> None:
    found = served(tmp_path, text)
    assert found.pop(USABLE) == 0
    assert found.keys() <= {AGE}
    assert f"/{FILE}: no metrics are served: {reason}" in capsys.readouterr().err


@pytest.mark.parametrize("text", [b"", whole(0)], ids=["empty", "stale"])
def test_a_reason_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes) -> None:
    put(tmp_path / FILE, text)
    clock = iter((NOW + 1e5, NOW + 2e5, NOW + 3e5))
    collector = MetricsCollector(Root(str(tmp_path)), f"/{FILE}", lambda: next(clock))
    for _ in range(3):
        list(collector.collect())
    assert capsys.readouterr().err.count("no metrics are served") == 1


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in ("NOTIFY_SOCKET", "JOURNAL_STREAM", "WATCHDOG_USEC"):
        environment.pop(name, None)
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def got(url: str) -> str:
    """Return the text at a URL of this machine; "" where nobody answers."""
    with suppress(OSError), urllib.request.urlopen(f"http://{url}", timeout=10) as answer:
        return str(answer.read().decode())
    return ""


def waited_for(text: Callable[[], str], part: str) -> str:
    end = time.monotonic() + 40
    while part not in (seen := text()):
        assert time.monotonic() < end, seen
        time.sleep(0.1)
    return seen


@pytest.fixture
def exported(tmp_path: Path) -> Iterator[str]:
    """A daemon on a captured host that samples each second, and the address of its exporter."""
    host, address = CAPTURE.build(tmp_path / "root"), f"127.0.0.1:{free_port()}"
    put(host / "etc/nfstuned/nfstuned.toml", 'daemon.sample_interval = "1s"\n')
    (host / "run/nfstuned-exporter").mkdir(parents=True)
    put(host / "proc/self/mountinfo", (host / "proc/1/mountinfo").read_bytes())
    exporter = ("-m", "nfstuned", "exporter", "--listen", address, "--file", str(host / FILE))
    with running(sys.executable, "-c", DAEMON, str(host)), running(sys.executable, *exporter):
        yield f"{address}/metrics"


@needs_promtool
@needs_prometheus
def test_a_real_prometheus_scrapes_the_daemons_samples(exported: str, tmp_path: Path) -> None:
    text = waited_for(lambda: got(exported), "nfstuned_mount_info")
    assert promtool("check", "metrics", stdin=text.encode()) == (0, "")
    mounts = text.count("\nnfstuned_mount_info{")
    assert mounts > 3
    port, config = free_port(), tmp_path / "prometheus.yml"
    targets = [{"targets": [exported.partition("/")[0]]}]
    jobs = [{"job_name": "nfstuned", "static_configs": targets}]
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    options = (f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/tsdb")
    query = f"127.0.0.1:{port}/api/v1/query?query=count(nfstuned_mount_info)"
    with running(str(PROMETHEUS), *options, f"--web.listen-address=127.0.0.1:{port}"):
        answer = json.loads(waited_for(lambda: got(query), '"value"'))
    assert answer["data"]["result"][0]["value"][1] == str(mounts)


@pytest.mark.parametrize(
    ("listen", "status"), [("9814", 2), ("127.0.0.1:http", 2), ("127.0.0.1:99999", 1), ("192.0.2.1:9814", 1)]
)
def test_an_address_that_cannot_be_had_is_named(listen: str, status: int) -> None:
    command = [sys.executable, "-m", "nfstuned", "exporter", "--listen", listen]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status
    assert done.stderr.startswith(f"--listen {listen}: ")
