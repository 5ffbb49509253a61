"""The daemon's metrics over real kernel files, as promtool and Prometheus' own parser read them."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nfstuned.daemon.metrics import EXPORTER, FINDINGS, Metrics
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.daemon.tuner import Tuner
from nfstuned.host.config import builtin_policy
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Message
from nfstuned.host.telemetry.sinks import EXPORTED, MetricsFile
from nfstuned.model.policy import Prometheus
from tests.check import hosts
from tests.host.entries import Entries
from tests.promtool import needs_promtool, promtool

CAPTURE = hosts.load("debian-13-6.12")
PATH = "/srv/nfstuned.prom"
FAILED = Message.METRICS_FAILED
ABSENT = f"prometheus.textfile: {PATH}: No such file or directory"


class Host:
    """A copy of a captured host, and a daemon's parts on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "root"
        CAPTURE.build(self.folder)
        (self.folder / "run/nfstuned").mkdir(parents=True, exist_ok=True)
        # The service's own mount namespace, in which it writes.
        (self.folder / "proc/self").mkdir()
        shutil.copy(self.folder / "proc/1/mountinfo", self.folder / "proc/self")
        self.entries = Entries()
        root, journal = Root(str(self.folder)), self.entries.journal
        reporter = Reporter(journal)
        # Metrics are asked for in a reload, some time after the start.
        journal.since -= 100.0
        self.tuner = Tuner(root, reporter, time.monotonic)
        self.sampler = Sampler(root, journal, reporter)
        self.metrics = Metrics(root, (journal, reporter, self.tuner, self.sampler))
        self.configure()

    def configure(self, textfile: str = "") -> None:
        self.tuner.policy = replace(builtin_policy(), prometheus=Prometheus(textfile))

    def sample(self) -> None:
        """Take a sample, and wait until the children that it starts have ended; they are not reaped."""
        before = children()
        self.tuner.look(deep=False)
        self.sampler.sample(self.tuner.snapshot, builtin_policy())
        self.metrics.update()
        for child in children() - before:
            os.waitid(os.P_PID, int(child), os.WEXITED | os.WNOWAIT)

    def sample_until(self, seen: Callable[[], bool]) -> None:
        """Take samples until something is so, and another one that sees it."""
        end = time.monotonic() + 20
        while not seen():
            assert time.monotonic() < end
            self.sample()
        self.sample()

    def text(self, path: str = PATH) -> str:
        self.sample()
        return (self.folder / path[1:]).read_text()

    def grow(self, more: int) -> None:
        path = self.folder / "proc/1/mountstats"
        text = path.read_text()
        path.write_text(re.sub(r"(\tbytes:\t)(\d+)", lambda found: f"{found[1]}{int(found[2]) + more}", text))


def children() -> set[str]:
    """Return the processes that this one started and did not ask after since, zombies among them."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    yield Host(tmp_path)
    for child in children():
        os.waitpid(int(child), 0)


@pytest.fixture
def writing(host: Host) -> Host:
    host.configure(PATH)
    (host.folder / "srv").mkdir()
    return host


def parsed(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def total(text: str, name: str) -> float:
    return float(sum(sample.value for sample in parsed(text)[name.removesuffix("_total")].samples))


def test_prometheus_own_parser_reads_every_family(writing: Host) -> None:
    text = writing.text()
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
    rows = [line for line in text.splitlines() if line.startswith(("nfstuned_mount_", "nfstuned_transport_"))]
    assert len(rows) <= superblocks * 34 + groups * 7 <= superblocks * 41
    # increase() sees nothing of a counter that begins with its first event.
    entries = {s.labels["message"]: s.value for s in found["nfstuned_journal_messages"].samples}
    assert entries.keys() == {message.name.lower() for message in Message}
    assert entries["cycle_failed"] == 0
    assert total(text, "nfstuned_start_time_seconds") == writing.entries.journal.since


@needs_promtool
def test_promtool_finds_nothing_wrong(writing: Host) -> None:
    assert promtool("check", "metrics", stdin=writing.text().encode()) == (0, "")


def test_counters_grow_with_the_kernels_and_outlive_a_time_in_which_nobody_asks(writing: Host) -> None:
    name = "nfstuned_mount_read_bytes_total"
    text = writing.text()
    before, superblocks = total(text, name), len(parsed(text)["nfstuned_mount_info"].samples)
    writing.grow(1000)
    assert total(writing.text(), name) == before + 1000 * superblocks
    writing.configure()
    writing.sample()
    writing.configure(PATH)
    assert total(writing.text(), name) == before + 1000 * superblocks


def test_the_exporters_file_is_written_while_its_unit_runs(host: Host) -> None:
    folder, file = host.folder / EXPORTER, host.folder / EXPORTED[1:]
    host.sample()
    assert not file.exists()
    folder.symlink_to("private/nfstuned-exporter")  # as systemd has it with DynamicUser=
    assert total(host.text(EXPORTED), "nfstuned_build_info") == 1
    (host.folder / "srv").mkdir()
    host.configure(PATH)
    assert host.text() == file.read_text(), "both are written where both are wanted"
    folder.unlink()
    file.unlink()
    host.sample()
    assert not file.exists()


def test_findings_are_taken_over_and_nothing_else_from_that_file(writing: Host) -> None:
    rule = '{rule="NFS204",name="nconnect-inherited",severity="warning"}'
    head = "# HELP nfstuned_findings F.\n# TYPE nfstuned_findings gauge\n"
    (writing.folder / FINDINGS).write_text(f"{head}nfstuned_findings{rule} 2.0\nnfstuned_build_info 7\n")
    text = writing.text()
    assert text.endswith(f"{head}nfstuned_findings{rule} 2.0\n")
    assert total(text, "nfstuned_build_info") == 1


@pytest.mark.parametrize(
    "text",
    [
        *("nfstuned_findings{", "nfstuned_findings x\n", "#" * 70_000, "a b c d"),
        *("nfstuned_findings 1 Inf\n", f"nfstuned_findings 1{'0' * 400}\n", 'nfstuned_findings{a="\\} 1\n'),
    ],
)
def test_damaged_findings_are_reported_and_left_out(writing: Host, text: str) -> None:
    (writing.folder / FINDINGS).write_text(text)
    assert "nfstuned_findings" not in writing.text()
    (unreadable,) = writing.entries.texts(Message.UNREADABLE)
    assert unreadable.startswith("/run/nfstuned/findings.prom")


def test_a_mount_point_with_any_bytes_is_a_label(writing: Host) -> None:
    for name in ("mountinfo", "mountstats"):
        path = writing.folder / "proc/1" / name
        path.write_bytes(path.read_bytes().replace(b" /mnt/2 ", b' /mnt/\xff"\\134\\012 '))
    points = {s.labels["mount_point"] for s in parsed(writing.text())["nfstuned_mount_info"].samples}
    assert '/mnt/\\xff"\\\n' in points


def test_a_failure_is_reported_once_and_each_is_counted(host: Host) -> None:
    host.configure(PATH)
    for _ in range(3):
        host.sample()
    assert host.entries.texts(FAILED) == [ABSENT]
    (host.folder / "srv").mkdir()
    assert total(host.text(), "nfstuned_textfile_failures_total") == 3


def test_a_failure_after_a_success_is_news(host: Host) -> None:
    """It hung for a while months ago: that must not keep the journal silent about today."""
    host.configure(PATH)
    for number in (1, 2):
        host.sample_until(partial(reported, host, ABSENT, number))
        (host.folder / "srv").mkdir()
        host.sample_until((host.folder / PATH[1:]).exists)
        (host.folder / "srv").rename(host.folder / f"gone{number}")


def reported(host: Host, text: str, times: int) -> bool:
    return host.entries.texts(FAILED).count(text) == times


def test_a_write_that_ends_late_is_a_success(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.configure(PATH)
    host.sample()
    (host.folder / "srv").mkdir()
    host.sample()
    with monkeypatch.context() as patched:
        patched.setattr(MetricsFile, "finished", lambda _: None)
        before = children()
        host.sample()
        assert children() == before, "one child at a time"
        assert host.entries.texts(FAILED) == [ABSENT], "it may go on until the next sample"
        patched.setattr(MetricsFile, "age_s", builtin_policy().sample_interval_s)
        host.sample()
    (host.folder / "srv").rename(host.folder / "gone")
    hanging = f"prometheus.textfile: {PATH}: the last write has not ended: does its disk answer?"
    assert host.entries.texts(FAILED) == [ABSENT, hanging]
    host.sample_until(partial(reported, host, ABSENT, 2))


def test_without_samples_no_new_write_is_slow(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter's file is written at a reload all the same."""
    (host.folder / EXPORTER).mkdir(parents=True)
    host.sample()
    monkeypatch.setattr(MetricsFile, "finished", lambda _: None)
    host.tuner.policy = replace(builtin_policy(), sample_interval_s=0.0)
    host.metrics.update()
    assert host.entries.texts(FAILED) == []
    monkeypatch.setattr(MetricsFile, "age_s", builtin_policy().sample_interval_s)
    host.metrics.update()
    assert len(host.entries.texts(FAILED)) == 1


def test_no_child_is_left_over_however_often_the_configuration_changes(writing: Host) -> None:
    before = children()
    for number in range(5):
        writing.configure(f"/srv/{number}.prom")
        writing.sample_until((writing.folder / f"srv/{number}.prom").exists)
    assert len(children() - before) <= 1


def test_nothing_is_ever_put_on_an_nfs_mount(host: Host) -> None:
    host.configure("/mnt/2/deep/nfstuned.prom")
    host.sample()
    (message,) = host.entries.texts(FAILED)
    assert "/mnt/2/deep/nfstuned.prom: /mnt/2 is on nfs" in message
