"""The daemon's reports about its file of samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.daemon.sampler import SampleSink
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Sample
from tests.host.entries import Entries
from tests.parse.test_samples import SAMPLE
from tests.tree import put

POLICY = Policy((), sample_file="/logs/samples.jsonl")
OTHER = replace(POLICY, sample_file="/elsewhere/samples.jsonl")


class Reports:
    """A sink over a tree, and what it told the journal."""

    def __init__(self, tree: Path) -> None:
        self.entries = Entries()
        self.sink = SampleSink(Root(str(tree)), self.entries.journal)

    def after(self, *samples: Sample, policy: Policy = POLICY) -> list[dict[str, str]]:
        """Write samples and return what was told."""
        self.entries.clear()
        self.sink.write(samples, policy)
        return list(self.entries)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    put(tmp_path / "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def reports(tree: Path) -> Reports:
    return Reports(tree)


def test_idle_mounts_and_no_file_touch_nothing(reports: Reports, tree: Path) -> None:
    reports.after()
    reports.after(SAMPLE, policy=Policy(()))
    assert list((tree / "logs").iterdir()) == []


def test_a_failure_is_reported_once_and_its_end_with_the_lost_samples(reports: Reports, tree: Path) -> None:
    (tree / "logs").rename(tree / "gone")
    (failed,) = reports.after(SAMPLE, SAMPLE)
    assert failed["MESSAGE_ID"] == Message.SAMPLES_UNWRITTEN.id
    assert failed["NFSTUNED_FILE"] == "/logs/samples.jsonl"
    assert failed["NFSTUNED_REASON"] == "No such file or directory"
    assert reports.after(SAMPLE) == []
    assert reports.after() == []
    (tree / "gone").rename(tree / "logs")
    (back,) = reports.after(SAMPLE)
    assert back["MESSAGE_ID"] == Message.SAMPLES_WRITTEN.id
    assert back["NFSTUNED_LOST"] == "3"
    assert reports.after(SAMPLE) == []


def test_another_reason_is_reported(reports: Reports, tree: Path) -> None:
    (tree / "logs").rmdir()
    reports.after(SAMPLE)
    (tree / "logs").symlink_to(tree)
    (failed,) = reports.after(SAMPLE)
    assert failed["NFSTUNED_REASON"] == "/logs is a symbolic link; name its target"


def test_another_file_begins_a_count_of_its_own(reports: Reports, tree: Path) -> None:
    (tree / "logs").rmdir()
    reports.after(SAMPLE)
    (failed,) = reports.after(SAMPLE, policy=OTHER)
    assert failed["NFSTUNED_FILE"] == OTHER.sample_file
    (tree / "elsewhere").mkdir()
    (back,) = reports.after(SAMPLE, policy=OTHER)
    assert back["NFSTUNED_LOST"] == "1"


def test_a_file_that_was_taken_out_of_the_configuration_is_forgotten(reports: Reports, tree: Path) -> None:
    (tree / "logs").rmdir()
    reports.after(SAMPLE)
    assert reports.after(SAMPLE, policy=Policy(())) == []
    (tree / "logs").mkdir()
    assert reports.after(SAMPLE) == []
