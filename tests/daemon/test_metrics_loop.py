"""The whole daemon on a tree of real kernel files, in a process of its own, with scrapers good and bad."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nfstuned.host.telemetry.journal import Message
from tests.ports import free_port
from tests.promtool import PROMETHEUS, needs_prometheus

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

CAPTURE = Path(__file__).parents[1] / "hosts/debian-13-6.12"
RUN = """
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


class Service:
    """A daemon with metrics, and what it says."""

    def __init__(self, folder: Path, *first: str) -> None:
        """Start it, with modules of the folders `first` before all others.

        `is_ready` is to be asked then: nobody may listen who does not read, or the service waits.
        """
        self.folder = folder / "root"
        shutil.copytree(CAPTURE, self.folder, symlinks=True)
        self.port = free_port()
        self.configure(self.listening())
        self.log = folder / "log"
        with self.log.open("wb") as log:
            command = [sys.executable, "-c", RUN, str(self.folder)]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*first, *sys.path])}
            for name in ("NOTIFY_SOCKET", "JOURNAL_STREAM", "WATCHDOG_USEC"):
                environment.pop(name, None)
            self.notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            if first:
                self.notified.settimeout(20)
                self.notified.bind(environment.setdefault("NOTIFY_SOCKET", str(folder / "notify")))
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def listening(self, keys: str = "") -> str:
        """Return a configuration with metrics on the port."""
        return f'[daemon]\nsample_interval = "1s"\n[prometheus]\nlisten = "127.0.0.1:{self.port}"\n{keys}'

    def configure(self, text: str) -> None:
        file = self.folder / "etc/nfstuned/nfstuned.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def scrape(self, within_s: float = 20.0) -> str:
        end = time.monotonic() + within_s
        while time.monotonic() < end and self.process.poll() is None:
            with (
                suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer,
            ):
                return str(answer.read().decode())
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def says(self, text: str, times: int = 1, within_s: float = 20.0) -> float:
        """Wait until the log has the text that often; return how long that took."""
        began = time.monotonic()
        while self.log.read_text().count(text) < times:
            assert time.monotonic() - began < within_s, self.log.read_text()
            time.sleep(0.005)
        return time.monotonic() - began

    def is_ready(self) -> bool:
        """Wait until it says so to the service manager."""
        with suppress(TimeoutError):
            while self.notified.recv(4096) != b"READY=1":
                pass
            return True
        return False

    def close(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.notified.close()
        return self.process.wait(10)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    if made.process.poll() is None:
        made.close()


def value(text: str, name: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


def test_the_loop_serves_what_each_sample_counted(service: Service) -> None:
    first = service.scrape()
    assert first.count("\nnfstuned_mount_info{") > 3
    taken = value(first, "nfstuned_last_sample_timestamp_seconds")
    end = time.monotonic() + 20
    while value(service.scrape(), "nfstuned_last_sample_timestamp_seconds") == taken:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert service.close() == 0


def test_a_library_that_cannot_even_be_loaded_does_not_hold_up_the_boot(tmp_path: Path) -> None:
    broken = tmp_path / "broken/prometheus_client"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('broken')\n")
    service = Service(tmp_path, str(broken.parent))
    try:
        service.says("RuntimeError: broken")
        assert service.is_ready()
    finally:
        service.close()


def test_a_reload_takes_the_metrics_away_and_brings_them_back(service: Service) -> None:
    service.scrape()
    wanted = (service.folder / "etc/nfstuned/nfstuned.toml").read_text()
    service.configure("")
    service.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", service.port), timeout=5).close()
        except ConnectionRefusedError:
            break
        assert time.monotonic() < end
        time.sleep(0.05)
    service.configure(wanted)
    service.process.send_signal(signal.SIGHUP)
    assert "nfstuned_mount_info{" in service.scrape()


def test_a_reload_that_changes_only_how_many_or_where_goes_on_being_served(service: Service) -> None:
    service.scrape()
    for port, keys in ((service.port, "max_mounts = 1\n"), (free_port(), "max_mounts = 2\n")):
        service.port = port
        service.configure(service.listening(keys))
        service.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 20
        while service.scrape().count("\nnfstuned_mount_info{") != int(keys.split()[-1]):
            assert time.monotonic() < end
            time.sleep(0.1)


def test_scrapers_that_read_nothing_do_not_delay_the_loop(service: Service) -> None:
    """SIGHUP stands for an event: its answer, a validated configuration, takes as long as without them."""
    service.scrape()
    service.process.send_signal(signal.SIGHUP)
    alone = service.says("configuration: ", 2)
    slow = []
    for _ in range(40):
        client = socket.create_connection(("127.0.0.1", service.port), timeout=5)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        slow.append(client)
    service.process.send_signal(signal.SIGHUP)
    beside = service.says("configuration: ", 3)
    for client in slow:
        client.close()
    assert beside < 3 * alone + 1
    assert Message.CYCLE_FAILED.id not in service.log.read_text()


@needs_prometheus
def test_a_real_prometheus_scrapes_it(service: Service, tmp_path: Path) -> None:
    service.scrape()
    port = free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: nfstuned\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{service.port}']}}]\n"
    )
    command = [
        str(PROMETHEUS),
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "prometheus.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 40
        found: list[dict[str, Any]] = []
        while not found and time.monotonic() < end:
            time.sleep(0.5)
            url = f"http://127.0.0.1:{port}/api/v1/query?query=count(nfstuned_mount_info)"
            with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
                found = json.load(answer)["data"]["result"]
        assert int(found[0]["value"][1]) == service.scrape().count("\nnfstuned_mount_info{")
    finally:
        server.terminate()
        server.wait(20)
