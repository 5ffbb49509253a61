from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler
from nfstuned.host.observe import observe_superblocks
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Sample
from nfstuned.parse.samples import parse_entry, parse_line
from tests.check import hosts
from tests.host.entries import Entries
from tests.tree import put

POLICY = Policy(())
CAPTURE = "debian-13-6.12"


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The only entry of two looks, ten seconds apart, between which programs read 80 MB of /mnt/2."""
    (found,) = two_looks(tmp_path, monkeypatch, POLICY)
    return found


def two_looks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    policy: Policy,
    between: Callable[[Sampler, Root, Snapshot], None] | None = None,
    times: tuple[float, ...] = (100.0, 110.0),
) -> list[dict[str, str]]:
    found = Entries()
    clock = iter(times)
    monkeypatch.setattr("nfstuned.daemon.sampler.time.monotonic", lambda: next(clock))
    for name in ("mountinfo", "mountstats"):
        put(tmp_path / "proc/1" / name, hosts.text(CAPTURE, f"proc/1/{name}"))
    root = Root(str(tmp_path))
    sampler = Sampler(root, found.journal, Reporter(found.journal))
    snapshot = observe_superblocks(root, deep=False)
    sampler.sample(snapshot, policy)
    if between is not None:
        between(sampler, root, snapshot)
    (tmp_path / "proc/1/mountstats").write_text(_later(hosts.text(CAPTURE, "proc/1/mountstats")))
    sampler.sample(observe_superblocks(root, deep=False), policy)
    return found


def _later(text: str) -> str:
    """Return the same mountstats ten seconds on."""
    text = re.sub(r"\tage:\t(\d+)", lambda age: f"\tage:\t{int(age[1]) + 10}", text)
    head, mine, rest = re.split(
        r"(device \S+ mounted on /mnt/2 .*?bytes:\t)", text, maxsplit=1, flags=re.DOTALL
    )
    normal, *others = rest.split(" ")
    others[3] = str(int(others[3]) + 88_000_000)
    return head + mine + " ".join([str(int(normal) + 80_000_000), *others])


def test_only_the_mount_in_use_has_a_sample(entry: dict[str, str]) -> None:
    assert entry["MESSAGE_ID"] == Message.SAMPLE.id
    assert entry["MESSAGE"].startswith("/mnt/2 and 1 more: read 8.0 MB/s (server 8.8 MB/s), write 0")


def test_the_numbers_and_the_cost_of_sampling_are_fields_of_their_own(entry: dict[str, str]) -> None:
    assert float(entry["NFSTUNED_READ_BYTES_PER_S"]) == 8_000_000
    assert float(entry["NFSTUNED_SERVER_READ_BYTES_PER_S"]) == 8_800_000
    assert float(entry["NFSTUNED_OVER_FETCH_RATIO"]) == pytest.approx(1.1)
    assert float(entry["NFSTUNED_INTERVAL_S"]) == 10
    assert entry["NFSTUNED_CONNECTIONS"] == "4"
    assert isinstance(json.loads(entry["NFSTUNED_OPS"]), dict)
    assert isinstance(json.loads(entry["NFSTUNED_KINDS"]), dict)
    assert 0 < float(entry["NFSTUNED_SAMPLING_MS"]) < 10_000


def test_the_rates_after_counters_that_could_not_be_read_are_of_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str] = []

    def fail(sampler: Sampler, root: Root, snapshot: Snapshot) -> None:
        file = tmp_path / "proc/1/mountstats"
        file.unlink()
        file.symlink_to("mountstats")
        sampler.sample(snapshot, POLICY)
        assert sampler.due_at(10.0) == 115.0
        problems.extend(problem.file for problem in tuple(root.faults))
        file.unlink()

    (entry,) = two_looks(tmp_path, monkeypatch, POLICY, fail, times=(100.0, 105.0, 110.0))
    assert problems == ["/proc/1/mountstats"]
    assert (float(entry["NFSTUNED_INTERVAL_S"]), float(entry["NFSTUNED_READ_BYTES_PER_S"])) == (10, 8_000_000)


def test_looks_between_two_samples_cost_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[float] = []
    clock = iter(range(100))
    monkeypatch.setattr("nfstuned.daemon.sampler.time.thread_time", lambda: next(clock))

    def look(sampler: Sampler, _: Root, snapshot: Snapshot) -> None:
        costs.append(sampler.all_cost_s)
        sampler.follow_requests(snapshot, POLICY)
        costs.extend((sampler.all_cost_s, sampler.cost_s))

    two_looks(tmp_path, monkeypatch, POLICY, look, times=(100.0, 105.0, 110.0))
    assert costs == [1, 2, 1]


def test_an_entry_of_the_journal_is_a_line_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    (entry,) = two_looks(tmp_path, monkeypatch, replace(POLICY, sample_file="/samples.jsonl"))
    (line,) = (tmp_path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    sample = parse_line(line, "samples.jsonl", 1)
    assert isinstance(sample, Sample)
    assert sample == parse_entry(entry, "journal")
    assert sample.read_bytes_per_s == 8_000_000


def test_a_mount_with_damaged_counters_has_no_sample_and_one_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage(sampler: Sampler, _: Root, snapshot: Snapshot) -> None:
        file = tmp_path / "proc/1/mountstats"
        text = file.read_text()
        for damaged in ("x", "xy"):
            text = _later(text)
            file.write_text(text.replace("\tbytes:\t", f"\tbytes:\t{damaged}", 1))
            sampler.sample(snapshot, POLICY)

    entries = two_looks(tmp_path, monkeypatch, POLICY, damage, times=(100.0, 110.0, 120.0, 130.0))
    (entry,) = [entry for entry in entries if entry["MESSAGE_ID"] == Message.UNREADABLE.id]
    assert entry["NFSTUNED_REASON"].startswith("no sample of ")
    assert entry["NFSTUNED_FILE"] == "/proc/self/mountstats"


def test_a_look_is_due_an_interval_after_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's loop ticks more often than that where the watchdog wants it."""
    monkeypatch.setattr("nfstuned.daemon.sampler.time.monotonic", lambda: 100.0)
    root = Root(str(tmp_path))
    journal = Entries().journal
    sampler = Sampler(root, journal, Reporter(journal))
    assert sampler.due_at(60.0) < 0
    sampler.sample(observe_superblocks(root, deep=False), POLICY)
    assert (sampler.due_at(60.0), sampler.due_at(2.0)) == (160.0, 102.0)
