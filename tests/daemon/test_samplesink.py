"""What the daemon says of its file of samples, and when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.daemon.sampler import SampleSink
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Sample
from nfstuned.parse.samples import parse_line
from tests.parse.test_samples import SAMPLE

POLICY = Policy((), sample_file="/logs/samples.jsonl")
OTHER = replace(POLICY, sample_file="/elsewhere/samples.jsonl")


class Told:
    """A sink over a tree, and what it told the journal."""

    def __init__(self, tree: Path) -> None:
        self.entries: list[dict[str, str]] = []
        self.sink = SampleSink(Root(str(tree)), Journal(self._write))

    def _write(self, *fields: bytes) -> None:
        self.entries.append(dict(field.decode().split("=", 1) for field in fields))

    def after(self, *samples: Sample, policy: Policy = POLICY) -> list[dict[str, str]]:
        """Write samples and return what was told."""
        self.entries.clear()
        self.sink.write(samples, policy)
        return list(self.entries)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def told(tree: Path) -> Told:
    return Told(tree)


def test_samples_become_lines_that_come_back(told: Told, tree: Path) -> None:
    later = replace(SAMPLE, time=SAMPLE.time + 60)
    assert told.after(SAMPLE, later) == []
    lines = (tree / "logs/samples.jsonl").read_bytes().splitlines(keepends=True)
    assert [parse_line(line, "x", 1) for line in lines] == [SAMPLE, later]


def test_idle_mounts_and_no_file_touch_nothing(told: Told, tree: Path) -> None:
    told.after()
    told.after(SAMPLE, policy=Policy(()))
    assert list((tree / "logs").iterdir()) == []


def test_a_failure_is_told_once_and_its_end_with_what_is_lacking(told: Told, tree: Path) -> None:
    (tree / "logs").rename(tree / "gone")
    (failed,) = told.after(SAMPLE, SAMPLE)
    assert failed["MESSAGE_ID"] == Message.SAMPLES_UNWRITTEN.id
    assert failed["NFSTUNED_FILE"] == "/logs/samples.jsonl"
    assert failed["NFSTUNED_REASON"] == "No such file or directory"
    assert told.after(SAMPLE) == []
    assert told.after() == []
    (tree / "gone").rename(tree / "logs")
    (back,) = told.after(SAMPLE)
    assert back["MESSAGE_ID"] == Message.SAMPLES_WRITTEN.id
    assert back["NFSTUNED_LOST"] == "3"
    assert told.after(SAMPLE) == []


def test_another_reason_is_told_as_well(told: Told, tree: Path) -> None:
    (tree / "logs").rmdir()
    told.after(SAMPLE)
    (tree / "logs").symlink_to(tree)
    (failed,) = told.after(SAMPLE)
    assert failed["NFSTUNED_REASON"] == "/logs is a symbolic link; name what it leads to"


def test_another_file_begins_a_count_of_its_own(told: Told, tree: Path) -> None:
    (tree / "logs").rmdir()
    told.after(SAMPLE)
    (failed,) = told.after(SAMPLE, policy=OTHER)
    assert failed["NFSTUNED_FILE"] == OTHER.sample_file
    (tree / "elsewhere").mkdir()
    (back,) = told.after(SAMPLE, policy=OTHER)
    assert back["NFSTUNED_LOST"] == "1"


def test_a_file_that_was_taken_out_of_the_configuration_is_forgotten(told: Told, tree: Path) -> None:
    (tree / "logs").rmdir()
    told.after(SAMPLE)
    assert told.after(SAMPLE, policy=Policy(())) == []
    (tree / "logs").mkdir()
    assert told.after(SAMPLE) == []
