"""The service's metrics and its exporter, and a real Prometheus that scrapes it and a real node_exporter."""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.lab.kit.alerts import RULES, shortened
from tests.lab.kit.shell import program, run, wait_for

ADDRESS = "127.0.0.1:9814"
TEXTFILE = Path("/run/nfstuned/node.prom")
LINK = Path("/var/lib/prometheus/node-exporter/nfstuned.prom")
"""As the manual has it: the sandbox allows the first, and node_exporter follows the link to it."""
_PROMETHEUS, _NODE_EXPORTER = "127.0.0.1:9090", "127.0.0.1:9100"
_TIMEOUT_S = 20.0

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def configured(**keys: str | int) -> str:
    """Return a configuration with these keys of its table `prometheus`, and samples each second."""
    table = "".join(f"{name} = {json.dumps(value)}\n" for name, value in keys.items())
    return f'[daemon]\nsample_interval = "1s"\n\n[prometheus]\n{table}'


def scrape() -> str:
    return _get(f"{ADDRESS}/metrics")


def _get(place: str) -> str:
    with urllib.request.urlopen(f"http://{place}", timeout=_TIMEOUT_S) as answer:
        return str(answer.read().decode())


@contextlib.contextmanager
def exporter() -> Iterator[None]:
    """Run the exporter's unit, from the first sample that it has."""
    run("systemctl", "start", "nfstuned-exporter.service")
    try:
        wait_for("the exporter has a sample", _has_a_sample, 60)
        yield
    finally:
        run("systemctl", "stop", "nfstuned-exporter.service")


def _has_a_sample() -> bool:
    try:
        return "\nnfstuned_exporter_file_usable 1.0\n" in scrape()
    except OSError:
        return False


def series(text: str) -> Series:
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
def storm() -> Iterator[None]:
    """Scrape again and again, as fast as it answers, while the block runs."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            scrape()

    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(again)
        try:
            yield
        finally:
            over.set()
        job.result(_TIMEOUT_S)


@contextlib.contextmanager
def prometheus() -> Iterator[None]:
    """Run Debian's Prometheus and node_exporter, with the project's alert rules as `shortened` makes them.

    Prometheus scrapes ADDRESS as the job "nfstuned", and as "node" the TEXTFILE by node_exporter.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lab-prometheus-")))
        rules, file = folder / "rules.yml", folder / "prometheus.yml"
        rules.write_text(shortened(RULES.read_text()))
        file.write_text(json.dumps(_configuration(rules)))  # which is YAML
        argv = ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile"]
        argv += [f"--collector.textfile.directory={LINK.parent}"]
        stack.enter_context(program(*argv, f"--web.listen-address={_NODE_EXPORTER}", "--log.level=warn"))
        argv = ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/data"]
        stack.enter_context(program(*argv, f"--web.listen-address={_PROMETHEUS}", "--log.level=warn"))
        wait_for("Prometheus scrapes both", lambda: _ready() and len(query("up == 1")) == len(_JOBS), 120)
        yield


_JOBS = {"nfstuned": ADDRESS, "node": _NODE_EXPORTER}


def _configuration(rules: Path) -> Mapping[str, object]:
    # A guest that stands still for a moment must not look as if the service were down.
    often = {"scrape_interval": "4s", "evaluation_interval": "1s"}
    jobs = [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in _JOBS.items()]
    return {"global": often, "scrape_configs": jobs, "rule_files": [str(rules)]}


def fired() -> set[str]:
    """Return the names of all alerts that have fired since Prometheus began."""
    found = query('count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1h]))')
    return {one["metric"]["alertname"] for one in found}


@contextlib.contextmanager
def fires(alert: str) -> Iterator[None]:
    """Hold the block to be why an alert fires: it never did before, and does at the end or soon after."""
    assert alert not in fired()
    yield
    wait_for(f"{alert} fires", lambda: alert in fired(), 150)


def query(expression: str) -> list[Mapping[str, Any]]:
    asked = urllib.parse.urlencode({"query": expression})
    document = json.loads(_get(f"{_PROMETHEUS}/api/v1/query?{asked}"))
    assert document["status"] == "success", document
    found: list[Mapping[str, Any]] = document["data"]["result"]
    return found


def _ready() -> bool:
    try:
        return bool(_get(f"{_PROMETHEUS}/-/ready"))
    except OSError:
        return False
