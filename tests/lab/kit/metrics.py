"""What the service's metrics say, and a real Prometheus that scrapes them."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client.parser import text_string_to_metric_families

from tests.lab.kit.shell import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOCKET = "/run/nfstuned/metrics.sock"
ADDRESS = "127.0.0.1:9814"
RULES = Path("/lab/docs/prometheus/nfstuned.rules.yml")
_PROMETHEUS = "127.0.0.1:9090"
_TIMEOUT_S = 20.0

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(address: str) -> str:
    """Return what GET /metrics answers, over TCP or at "unix:PATH"."""
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        target: Any = address.removeprefix("unix:")
    else:
        sock = socket.socket()
        host, _, port = address.rpartition(":")
        target = (host, int(port))
    with sock:
        sock.settimeout(_TIMEOUT_S)
        sock.connect(target)
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: sock.recv(1 << 16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return body.decode()


def series(text: str) -> Series:
    """Return each series of an exposition with its value."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(found: Series, name: str, **labels: str) -> float:
    """Return the sum of the series of that name with these labels."""
    wanted = labels.items()
    return sum(value for (each, has), value in found.items() if each == name and wanted <= set(has))


@contextlib.contextmanager
def storm(address: str) -> Iterator[None]:
    """Scrape again and again, as fast as it answers, while the block runs."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            scrape(address)

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(again)
        try:
            yield
        finally:
            over.set()
        job.result(_TIMEOUT_S)


@contextlib.contextmanager
def prometheus() -> Iterator[None]:
    """Scrape ADDRESS each second with Debian's Prometheus and the project's own alert rules."""
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [{"job_name": "nfstuned", "static_configs": [{"targets": [ADDRESS]}]}],
        "rule_files": [str(RULES)],
    }
    with tempfile.TemporaryDirectory(prefix="lab-prometheus-") as name:
        file = Path(name) / "prometheus.yml"
        file.write_text(json.dumps(configuration))  # which is YAML
        argv = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={name}/data"]
        argv += [f"--web.listen-address={_PROMETHEUS}", "--log.level=warn"]
        with subprocess.Popen(argv) as process:
            try:
                wait_for("Prometheus answers", _ready, 60)
                yield
            finally:
                process.terminate()


def query(expression: str) -> list[Mapping[str, Any]]:
    """Return what Prometheus answers to an instant query."""
    where = f"http://{_PROMETHEUS}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(where, timeout=_TIMEOUT_S) as answer:
        document = json.load(answer)
    assert document["status"] == "success", document
    found: list[Mapping[str, Any]] = document["data"]["result"]
    return found


def _ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://{_PROMETHEUS}/-/ready", timeout=_TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
