"""The daemon's metrics over real kernel files, as scrapers, promtool and the library's parser see them."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nfstuned.daemon.metrics_writer import FINDINGS, Metrics
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.daemon.stall_watch import StallWatch
from nfstuned.daemon.tuner import Tuner
from nfstuned.host.config import builtin_policy
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message
from nfstuned.host.telemetry.text_file import TextfileWriter
from nfstuned.model.policy import Prometheus
from nfstuned.view.metrics import MOST_SERIES
from tests.ports import free_port
from tests.promtool import needs_promtool, promtool

CAPTURE = Path(__file__).parents[1] / "hosts/debian-13-6.12"


class Host:
    """A copy of a captured host, and a daemon's parts on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "root"
        shutil.copytree(CAPTURE, self.folder, symlinks=True)
        (self.folder / "run/nfstuned").mkdir(parents=True, exist_ok=True)
        # The service's own mount namespace, in which it writes.
        (self.folder / "proc/self").mkdir()
        shutil.copy(self.folder / "proc/1/mountinfo", self.folder / "proc/self")
        self.entries: list[dict[str, str]] = []
        root, journal = Root(str(self.folder)), Journal(self._keep)
        self.journal, reporter = journal, Reporter(journal)
        # Metrics are asked for in a reload, some time after the start.
        journal.since -= 100.0
        self.tuner = Tuner(root, reporter, time.monotonic)
        self.tuner.policy = builtin_policy()
        self.sampler = Sampler(root, journal, StallWatch(root, reporter), reporter)
        self.metrics = Metrics(root, (journal, reporter, self.tuner, self.sampler))

    def sample(self) -> None:
        self.tuner.look(deep=False)
        self.sampler.sample(self.tuner.snapshot, builtin_policy())
        self.metrics.update()

    def sample_and_write(self) -> None:
        """Take a sample, and wait for the end of the child that it starts; who started it still sees how."""
        before = children()
        self.sample()
        for child in children() - before:
            os.waitid(os.P_PID, int(child), os.WEXITED | os.WNOWAIT)

    def sample_until(self, seen: Callable[[], bool]) -> None:
        """Take samples until something is so, and another one that sees it."""
        end = time.monotonic() + 20
        while not seen():
            assert time.monotonic() < end
            self.sample_and_write()
        self.sample()

    def messages(self) -> list[str]:
        return [e["MESSAGE"] for e in self.entries if e["MESSAGE_ID"] == Message.METRICS_FAILED.id]

    def grow(self, more: int) -> None:
        """Let every mount read that many bytes more."""
        path = self.folder / "proc/1/mountstats"
        text = path.read_text()
        path.write_text(re.sub(r"(\tbytes:\t)(\d+)", lambda found: f"{found[1]}{int(found[2]) + more}", text))

    def scrape(self, address: str) -> tuple[int, str, str]:
        """Return status, type and text of a real HTTP client's request, served in this thread."""
        found: list[Any] = []

        def ask() -> None:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
                found.extend((answer.status, answer.headers["Content-Type"], answer.read().decode()))

        client = threading.Thread(target=ask)
        client.start()
        while client.is_alive():
            self.metrics.serve()
            time.sleep(0.001)
        client.join()
        status, kind, text = found
        return status, kind, text

    def file(self, name: str) -> str:
        """Wait for a file, and return it."""
        path, end = self.folder / name, time.monotonic() + 20
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return path.read_text()

    def _keep(self, *fields: bytes) -> None:
        self.entries.append(dict(field.decode().split("=", 1) for field in fields))


def children() -> set[str]:
    """Return the processes that this one started and did not ask after since, zombies among them."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.metrics.close()


@pytest.fixture
def listening(host: Host) -> tuple[Host, str]:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    address = f"127.0.0.1:{free_port()}"
    host.metrics.configure(Prometheus(address))
    host.sample()
    return host, address


def parsed(text: str) -> dict[str, Any]:
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def total(text: str, name: str) -> float:
    return float(sum(sample.value for sample in parsed(text)[name.removesuffix("_total")].samples))


def test_a_scraper_gets_what_the_librarys_own_parser_reads(listening: tuple[Host, str]) -> None:
    host, address = listening
    status, kind, text = host.scrape(address)
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = parsed(text)
    assert found["nfstuned_build_info"].samples[0].value == 1
    for name, family in found.items():
        assert family.documentation, name
        assert family.type in {"counter", "gauge"}, name
        assert {sample.name for sample in family.samples} == {
            f"{name}_total" if family.type == "counter" else name
        }
    superblocks = len(found["nfstuned_mount_info"].samples)
    groups = len(found["nfstuned_transport_connections"].samples)
    lines = [
        line for line in text.splitlines() if line.startswith(("nfstuned_mount_", "nfstuned_transport_"))
    ]
    assert len(lines) <= superblocks * 34 + groups * 7 <= superblocks * MOST_SERIES
    assert text.count("# TYPE nfstuned_mount_operations_total counter\n") == 1


@needs_promtool
def test_promtool_finds_nothing_wrong(listening: tuple[Host, str]) -> None:
    host, address = listening
    text = host.scrape(address)[2]
    assert promtool("check", "metrics", stdin=text.encode()) == (0, "")


def test_counters_grow_with_the_kernels(listening: tuple[Host, str]) -> None:
    host, address = listening
    before = total(host.scrape(address)[2], "nfstuned_mount_read_bytes_total")
    host.grow(1000)
    assert total(host.scrape(address)[2], "nfstuned_mount_read_bytes_total") == before
    host.sample()
    text = host.scrape(address)[2]
    superblocks = len(parsed(text)["nfstuned_mount_info"].samples)
    assert total(text, "nfstuned_mount_read_bytes_total") == before + 1000 * superblocks


def test_what_is_asked_for_again_is_not_written_out_again(
    listening: tuple[Host, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, address = listening
    first = host.scrape(address)
    monkeypatch.setattr("nfstuned.daemon.metrics_writer.families", None)
    assert host.scrape(address) == first


def test_the_kernels_events_are_served_while_metrics_are_written_out(listening: tuple[Host, str]) -> None:
    host, address = listening
    calls = [time.monotonic()]
    host.tuner.between = lambda: calls.append(time.monotonic())
    host.metrics.update()
    calls[0] = time.monotonic()
    text = host.scrape(address)[2]
    assert len(calls) > text.count("# TYPE")


def test_findings_are_taken_over_and_nothing_else_from_that_file(listening: tuple[Host, str]) -> None:
    host, address = listening
    rule = '{name="nconnect-inherited",rule="NFS204",severity="warning"}'
    head = "# HELP nfstuned_findings F.\n# TYPE nfstuned_findings gauge\n"
    file = host.folder / FINDINGS
    file.write_text(f"{head}nfstuned_findings{rule} 2.0\nnfstuned_build_info 7\n")
    host.sample()
    found = parsed(host.scrape(address)[2])
    assert [s.value for s in found["nfstuned_findings"].samples] == [2.0]
    assert [s.value for s in found["nfstuned_build_info"].samples] == [1.0]


@pytest.mark.parametrize(
    "text",
    [
        *("nfstuned_findings{", "nfstuned_findings x\n", "#" * 70_000, "a b c d"),
        *("nfstuned_findings 1 Inf\n", f"nfstuned_findings 1{'0' * 400}\n"),
        f"nfstuned_findings 1 1{'0' * 400}\n",
    ],
)
def test_findings_that_are_damaged_are_told_and_left_out(listening: tuple[Host, str], text: str) -> None:
    host, address = listening
    (host.folder / FINDINGS).write_text(text)
    host.sample()
    assert "nfstuned_findings" not in parsed(host.scrape(address)[2])
    unreadable = [e for e in host.entries if e["MESSAGE_ID"] == Message.UNREADABLE.id]
    assert [e["NFSTUNED_FILE"] for e in unreadable] == ["/run/nfstuned/findings.prom"]


def test_a_mount_point_with_any_bytes_is_a_label(listening: tuple[Host, str]) -> None:
    host, address = listening
    for name in ("mountinfo", "mountstats"):
        path = host.folder / "proc/1" / name
        path.write_bytes(path.read_bytes().replace(b" /mnt/2 ", b' /mnt/\xff"\\134\\012 '))
    host.sample()
    text = host.scrape(address)[2]
    points = {s.labels["mount_point"] for s in parsed(text)["nfstuned_mount_info"].samples}
    assert '/mnt/\\xff"\\\n' in points


def test_a_port_in_use_is_told_once_and_tried_again(host: Host) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        host.metrics.configure(Prometheus(address))
        host.sample()
        host.sample()
        assert host.messages() == [f"prometheus.listen: {address}: Address already in use"]
    host.sample()
    assert host.scrape(address)[0] == 200


def test_without_the_library_there_is_a_message_with_the_remedy_and_all_else_goes_on(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("prometheus_client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    host.metrics.configure(Prometheus(f"127.0.0.1:{free_port()}"))
    host.sample()
    (message,) = host.messages()
    assert message.startswith("prometheus.listen: prometheus-client cannot be loaded (")
    assert "install Debian's python3-prometheus-client, or pip's prometheus-client" in message
    assert host.metrics.fileno() == -1
    assert host.sampler.last is not None


def test_the_file_for_node_exporter_is_what_a_scraper_gets(listening: tuple[Host, str]) -> None:
    host, address = listening
    host.metrics.configure(Prometheus(address, textfile="/srv/nfstuned.prom"))
    (host.folder / "srv").mkdir()
    host.sample()
    assert host.file("srv/nfstuned.prom") == host.scrape(address)[2]


def test_a_file_that_cannot_be_written_is_told_once_and_counted(listening: tuple[Host, str]) -> None:
    host, address = listening
    host.metrics.configure(Prometheus(address, textfile="/absent/nfstuned.prom"))
    for _ in range(3):
        host.sample_and_write()
    assert host.messages() == ["prometheus.textfile: /absent/nfstuned.prom: No such file or directory"]
    assert total(host.scrape(address)[2], "nfstuned_textfile_failures_total") == 2


def seen_times(host: Host, told: str, times: int) -> bool:
    return host.messages().count(told) == times


def test_a_file_that_could_be_written_and_then_cannot_is_told_anew(host: Host) -> None:
    """It hung for a while months ago: that must not keep the journal silent about today."""
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    told = "prometheus.textfile: /srv/nfstuned.prom: No such file or directory"
    host.metrics.configure(Prometheus(textfile="/srv/nfstuned.prom"))
    for number in (1, 2):
        host.sample_until(partial(seen_times, host, told, number))
        (host.folder / "srv").mkdir()
        host.sample_until((host.folder / "srv/nfstuned.prom").exists)
        (host.folder / "srv").rename(host.folder / f"gone{number}")


class Late(TextfileWriter):
    """One whose child ends right after it was asked after for the third time, and whose folder goes then."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._asked = 0

    def finished(self) -> str | None:
        self._asked += 1
        if self._asked != 3:
            return super().finished()
        os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
        self._folder.rename(self._folder.with_name("gone"))
        return None


def test_a_write_that_ends_right_after_it_was_asked_after_counts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    host, told = Host(tmp_path), "prometheus.textfile: /srv/nfstuned.prom: No such file or directory"
    monkeypatch.setattr(host.metrics, "_writer", Late(host.folder / "srv"))
    host.metrics.configure(Prometheus(textfile="/srv/nfstuned.prom"))
    host.sample_and_write()
    (host.folder / "srv").mkdir()
    host.sample_and_write()
    host.sample()
    assert host.messages() == [
        told,
        "prometheus.textfile: /srv/nfstuned.prom: the last write still goes on: is its disk well?",
    ]
    host.sample_until(partial(seen_times, host, told, 2))


def test_the_start_is_the_services_also_where_metrics_are_asked_for_later(
    listening: tuple[Host, str],
) -> None:
    host, address = listening
    assert total(host.scrape(address)[2], "nfstuned_start_time_seconds") == host.journal.since


def test_no_child_is_left_over_however_often_the_configuration_changes(host: Host) -> None:
    (host.folder / "srv").mkdir()
    before = children()
    for number in range(5):
        host.metrics.configure(Prometheus(textfile=f"/srv/{number}.prom"))
        # On a busy machine the last child may not have ended yet: the next sample tries again.
        host.sample_until((host.folder / f"srv/{number}.prom").exists)
    assert len(children() - before) <= 1


def test_findings_that_are_damaged_are_told_also_where_only_a_file_is_written(host: Host) -> None:
    host.metrics.configure(Prometheus(textfile="/srv/nfstuned.prom"))
    (host.folder / "srv").mkdir()
    (host.folder / FINDINGS).write_text("nfstuned_findings{")
    host.sample()
    host.file("srv/nfstuned.prom")
    (unreadable,) = [e for e in host.entries if e["MESSAGE_ID"] == Message.UNREADABLE.id]
    assert unreadable["NFSTUNED_FILE"] == "/run/nfstuned/findings.prom"


def test_a_unix_socket_serves_the_same_and_is_gone_afterwards(host: Host) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    host.metrics.configure(Prometheus("unix:/run/nfstuned/m.sock"))
    host.sample()
    path = host.folder / "run/nfstuned/m.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        client.setblocking(False)
        received = b""
        end = time.monotonic() + 20
        while b"nfstuned_transport_upkeep" not in received and time.monotonic() < end:
            host.metrics.serve()
            with suppress(BlockingIOError):
                received += client.recv(1 << 16)
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    host.metrics.configure(Prometheus())
    assert not path.exists()


def test_every_message_has_its_series_before_it_is_sent_for_the_first_time(
    listening: tuple[Host, str],
) -> None:
    """increase() sees nothing of a counter that begins with its first event."""
    host, address = listening
    family = parsed(host.scrape(address)[2])["nfstuned_journal_messages"]
    shown = {sample.labels["message"]: sample.value for sample in family.samples}
    assert shown.keys() == {message.name.lower() for message in Message}
    assert shown["cycle_failed"] == 0


def test_nothing_is_ever_put_on_an_nfs_mount(listening: tuple[Host, str]) -> None:
    host, address = listening
    host.metrics.configure(Prometheus(address, textfile="/mnt/2/deep/nfstuned.prom"))
    host.sample()
    host.metrics.configure(Prometheus("unix:/mnt/2/metrics.sock"))
    host.sample()
    first, second = host.messages()
    assert "/mnt/2/deep/nfstuned.prom: /mnt/2 is on nfs" in first
    assert "unix:/mnt/2/metrics.sock: /mnt/2 is on nfs" in second


def test_metrics_that_are_not_wanted_any_more_are_gone_and_numbers_stay(listening: tuple[Host, str]) -> None:
    host, address = listening
    before = total(host.scrape(address)[2], "nfstuned_mount_operations_total")
    host.metrics.configure(Prometheus())
    assert (host.metrics.fileno(), host.metrics.deadline) == (-1, float("inf"))
    host.sample()
    host.metrics.configure(Prometheus(address))
    host.sample()
    assert total(host.scrape(address)[2], "nfstuned_mount_operations_total") == before
