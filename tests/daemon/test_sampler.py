"""Samples of a host, the sink of samples, and the reports of stalls."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.sampler import Sampler, SampleSink, StallWatch
from nfstuned.host.observe import observe_superblocks, read_seen, read_stalls
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Message
from nfstuned.model.effect import Seen
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Counted, Sample
from nfstuned.model.stalls import LATE_S, Stall
from nfstuned.parse.samples import parse_entry, parse_line
from tests.check import hosts
from tests.core.test_stalls import at, superblock, xprt
from tests.host.entries import Entries
from tests.parse.test_samples import SAMPLE
from tests.parse.test_sunrpc import WAITS, asked
from tests.tree import put

POLICY = Policy(())
CAPTURE = "debian-13-6.12"
SPENT_S = 0.05
MOUNTINFO = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(tmp_path, monkeypatch)


class Looks:
    """A tree of a host with mounts, at which a sampler looks at the times of a clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.file = folder / "proc/1/mountstats"
        for name in ("mountinfo", "mountstats"):
            put(folder / "proc/1" / name, hosts.text(CAPTURE, f"proc/1/{name}"))
        self.entries = Entries()
        self.root = Root(str(folder))
        self.sampler = Sampler(self.root, self.entries.journal, Reporter(self.entries.journal))
        self.snapshot = observe_superblocks(self.root, deep=False)

    def two(
        self,
        policy: Policy = POLICY,
        between: Callable[[], None] | None = None,
        times: tuple[float, ...] = (100.0, 110.0),
    ) -> list[dict[str, str]]:
        """Return the entries of two looks, ten seconds apart, between which programs read 80 MB of /mnt/2."""
        clock = iter(times)
        self.monkeypatch.setattr("nfstuned.daemon.sampler.time.monotonic", lambda: next(clock))
        self.sampler.sample(self.snapshot, policy)
        if between is not None:
            between()
        self.file.write_text(_later(hosts.text(CAPTURE, "proc/1/mountstats")))
        self.sampler.sample(observe_superblocks(self.root, deep=False), policy)
        return self.entries


def _later(text: str) -> str:
    """Return the same mountstats ten seconds on."""
    text = re.sub(r"\tage:\t(\d+)", lambda age: f"\tage:\t{int(age[1]) + 10}", text)
    head, mine, rest = re.split(
        r"(device \S+ mounted on /mnt/2 .*?bytes:\t)", text, maxsplit=1, flags=re.DOTALL
    )
    normal, *others = rest.split(" ")
    others[3] = str(int(others[3]) + 88_000_000)
    return head + mine + " ".join([str(int(normal) + 80_000_000), *others])


def test_only_the_mount_in_use_has_a_sample_with_its_numbers_and_its_cost_as_fields(looks: Looks) -> None:
    (entry,) = looks.two()
    assert entry["MESSAGE_ID"] == Message.SAMPLE.id
    assert entry["MESSAGE"].startswith("/mnt/2 and 1 more: read 8.0 MB/s (server 8.8 MB/s), write 0")
    assert float(entry["NFSTUNED_READ_BYTES_PER_S"]) == 8_000_000
    assert float(entry["NFSTUNED_SERVER_READ_BYTES_PER_S"]) == 8_800_000
    assert float(entry["NFSTUNED_OVER_FETCH_RATIO"]) == pytest.approx(1.1)
    assert float(entry["NFSTUNED_INTERVAL_S"]) == 10
    assert entry["NFSTUNED_CONNECTIONS"] == "4"
    assert isinstance(json.loads(entry["NFSTUNED_OPS"]), dict)
    assert isinstance(json.loads(entry["NFSTUNED_KINDS"]), dict)
    assert 0 < float(entry["NFSTUNED_SAMPLING_MS"]) < 10_000


def test_a_sample_of_many_superblocks_serves_events_after_each(looks: Looks) -> None:
    served: list[int] = []
    looks.sampler.serve_events = lambda: served.append(len(looks.entries))
    looks.two()
    assert looks.sampler.last is not None
    assert len(served) == len(looks.sampler.last.superblocks) + len(looks.entries) > 2


def test_new_mounts_during_a_sample_are_no_cost_of_it(looks: Looks) -> None:
    looks.sampler.serve_events = spend
    (entry,) = looks.two()
    assert 0 < float(entry["NFSTUNED_SAMPLING_MS"]) < SPENT_S * 1e3
    assert 0 < looks.sampler.all_cost_s < SPENT_S


def spend() -> None:
    end = time.thread_time() + SPENT_S
    while time.thread_time() < end:
        pass


def test_a_sample_of_a_kubelet_s_volume_has_its_names(looks: Looks) -> None:
    """Its pod's folder of logs comes after the mount, and goes before it."""
    uid = "5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6"
    point = f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~csi/pvc-1/mount"
    folder = Path(looks.root.path(f"var/log/pods/media_web-0_{uid}"))
    for name in ("mountinfo", "mountstats"):
        file = looks.file.with_name(name)
        file.write_text(file.read_text().replace(" /mnt/2 ", f" {point} "))
    looks.snapshot = observe_superblocks(looks.root, deep=False)
    texts = looks.file.read_text(), _later(hosts.text(CAPTURE, "proc/1/mountstats"))
    clock = iter((100.0, 110.0, 120.0, 130.0))
    looks.monkeypatch.setattr("nfstuned.daemon.sampler.time.monotonic", lambda: next(clock))
    for number in range(4):
        looks.file.write_text(texts[number % 2].replace(" /mnt/2 ", f" {point} "))
        if number == 1:
            folder.mkdir(parents=True)
        if number == 2:
            folder.rmdir()
        looks.sampler.sample(looks.snapshot, POLICY)
    entry = looks.entries[-1]
    assert entry["MESSAGE"].startswith("pvc-1, pod media/web-0 and 1 more: read ")
    fields = ("NAMESPACE", "PERSISTENTVOLUME", "POD", "PODS", "MOUNT_POINT")
    assert [entry[f"NFSTUNED_{name}"] for name in fields] == ["media", "pvc-1", "web-0", "1", point]
    assert "NFSTUNED_PERSISTENTVOLUMECLAIM" not in entry
    assert [volume.pod for volume in looks.sampler.volumes[entry["NFSTUNED_DEVICE"]]] == ["web-0"]


def test_the_rates_after_counters_that_could_not_be_read_are_of_all_the_time(looks: Looks) -> None:
    def fail() -> None:
        looks.file.unlink()
        looks.file.symlink_to("mountstats")
        looks.sampler.sample(looks.snapshot, POLICY)
        assert looks.sampler.due_at(10.0) == 115.0
        assert [problem.file for problem in looks.root.faults] == ["/proc/1/mountstats"]
        looks.file.unlink()

    (entry,) = looks.two(between=fail, times=(100.0, 105.0, 110.0))
    assert (float(entry["NFSTUNED_INTERVAL_S"]), float(entry["NFSTUNED_READ_BYTES_PER_S"])) == (10, 8_000_000)


def test_looks_between_two_samples_cost_as_well(looks: Looks) -> None:
    costs: list[float] = []
    clock = iter(range(100))
    looks.monkeypatch.setattr("nfstuned.daemon.sampler.time.thread_time", lambda: next(clock))

    def look() -> None:
        costs.append(looks.sampler.all_cost_s)
        looks.sampler.follow_requests(looks.snapshot, POLICY)
        costs.extend((looks.sampler.all_cost_s, looks.sampler.cost_s))

    looks.two(between=look, times=(100.0, 105.0, 110.0))
    assert costs == [1, 2, 1]


def test_others_can_read_what_the_service_saw_of_a_superblocks_reads(looks: Looks) -> None:
    looks.two()
    (used,) = (one for one in looks.snapshot.superblocks if one.mounts and one.mounts[0].point == "/mnt/2")
    # The capture has bytes, and no READ with a round trip.
    assert read_seen(looks.root) == {used.key: Seen()}


def test_files_of_the_state_that_cannot_be_written_are_reported_once(looks: Looks, tmp_path: Path) -> None:
    for name in ("reads.json", "stalled.json"):
        put(tmp_path / "run/nfstuned" / name / "file", "")
    looks.two(between=lambda: None)
    looks.two()
    assert looks.entries.texts(Message.UNREADABLE) == [
        "/run/nfstuned: files there cannot be written: Is a directory"
    ]


def test_an_entry_of_the_journal_is_a_line_of_the_file(looks: Looks, tmp_path: Path) -> None:
    put(tmp_path / "proc/self/mountinfo", MOUNTINFO)
    (entry,) = looks.two(replace(POLICY, sample_file="/samples.jsonl"))
    (line,) = (tmp_path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    sample = parse_line(line, "samples.jsonl", 1)
    assert isinstance(sample, Sample)
    assert sample == parse_entry(entry, "journal")
    assert sample.read_bytes_per_s == 8_000_000
    assert json.loads(line)["host"] == os.uname().nodename


def test_a_mount_with_damaged_counters_has_no_sample_and_one_report(looks: Looks) -> None:
    def damage() -> None:
        text = looks.file.read_text()
        for damaged in ("x", "xy"):
            text = _later(text)
            looks.file.write_text(text.replace("\tbytes:\t", f"\tbytes:\t{damaged}", 1))
            looks.sampler.sample(looks.snapshot, POLICY)

    entries = looks.two(between=damage, times=(100.0, 110.0, 120.0, 130.0))
    (entry,) = [entry for entry in entries if entry["MESSAGE_ID"] == Message.UNREADABLE.id]
    assert entry["NFSTUNED_REASON"].startswith("no sample of ")
    assert entry["NFSTUNED_FILE"] == "/proc/self/mountstats"


def test_a_look_is_due_an_interval_after_the_last_one(looks: Looks) -> None:
    """The daemon's loop ticks more often than that where the watchdog wants it."""
    looks.monkeypatch.setattr("nfstuned.daemon.sampler.time.monotonic", lambda: 100.0)
    assert looks.sampler.due_at(60.0) < 0
    looks.sampler.sample(looks.snapshot, POLICY)
    assert (looks.sampler.due_at(60.0), looks.sampler.due_at(2.0)) == (160.0, 102.0)


TO_FILE = Policy((), sample_file="/logs/samples.jsonl")
OTHER = replace(TO_FILE, sample_file="/elsewhere/samples.jsonl")


class Reports:
    """A sink over a tree, and what it told the journal."""

    def __init__(self, tree: Path) -> None:
        put(tree / "proc/self/mountinfo", MOUNTINFO)
        self.logs = tree / "logs"
        self.logs.mkdir()
        self.entries = Entries()
        self.sink = SampleSink(Root(str(tree)), self.entries.journal)

    def after(self, *samples: Sample, policy: Policy = TO_FILE) -> list[dict[str, str]]:
        self.entries.clear()
        self.sink.write(samples, policy)
        return list(self.entries)


@pytest.fixture
def reports(tmp_path: Path) -> Reports:
    return Reports(tmp_path)


def test_idle_mounts_and_no_file_touch_nothing(reports: Reports) -> None:
    reports.after()
    reports.after(SAMPLE, policy=Policy(()))
    assert list(reports.logs.iterdir()) == []


def test_a_failure_is_reported_once_and_its_end_with_the_lost_samples(reports: Reports) -> None:
    gone = reports.logs.rename(reports.logs.with_name("gone"))
    (failed,) = reports.after(SAMPLE, SAMPLE)
    assert failed["MESSAGE_ID"] == Message.SAMPLES_UNWRITTEN.id
    assert failed["NFSTUNED_FILE"] == "/logs/samples.jsonl"
    assert failed["NFSTUNED_REASON"] == "No such file or directory"
    assert reports.after(SAMPLE) == []
    assert reports.after() == []
    gone.rename(reports.logs)
    (back,) = reports.after(SAMPLE)
    assert back["MESSAGE_ID"] == Message.SAMPLES_WRITTEN.id
    assert back["NFSTUNED_LOST"] == "3"
    assert reports.after(SAMPLE) == []


def test_another_reason_or_file_is_reported_and_counts_anew(reports: Reports, tmp_path: Path) -> None:
    reports.logs.rmdir()
    reports.after(SAMPLE)
    reports.logs.symlink_to(tmp_path)
    (failed,) = reports.after(SAMPLE)
    assert failed["NFSTUNED_REASON"] == "/logs is a symbolic link; name its target"
    (failed,) = reports.after(SAMPLE, policy=OTHER)
    assert failed["NFSTUNED_FILE"] == OTHER.sample_file
    (tmp_path / "elsewhere").mkdir()
    (back,) = reports.after(SAMPLE, policy=OTHER)
    assert back["NFSTUNED_LOST"] == "1"


def test_a_file_that_was_taken_out_of_the_configuration_is_forgotten(reports: Reports) -> None:
    reports.logs.rmdir()
    reports.after(SAMPLE)
    assert reports.after(SAMPLE, policy=Policy(())) == []
    reports.logs.mkdir()
    assert reports.after(SAMPLE) == []


V41 = "v4.1 tcp 10.10.10.10:2049"
TASKS = "sys/kernel/debug/sunrpc/rpc_clnt/a/tasks"


class Host:
    """A host with one mount, whose requests wait while `waits` is true."""

    def __init__(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree, self.monkeypatch = tree, monkeypatch
        self.sent = Entries()
        asked(tree, "a", "")
        self.root = Root(str(tree))
        self.watch = StallWatch(self.root, Reporter(self.sent.journal))

    def look(
        self, seconds: float, *, waits: bool, mounted: Counted | None = None, gone: bool = False
    ) -> None:
        (self.tree / TASKS).write_text(WAITS if waits else "")
        look = at(seconds, mounted or mount(21 if waits else 20, 20))
        if gone:
            look = type(look)(look.time, seconds)
        self.watch.add_look(look, seconds + 60)

    def stall(self) -> None:
        """Look twice while a request waits: the stall is known after 15 s."""
        for seconds in (0, 15):
            self.look(seconds, waits=True)

    def told(self) -> list[tuple[str, str]]:
        return [(name, entry["MESSAGE"]) for name, entry in zip(self.sent.names(), self.sent, strict=True)]

    def known_at(self, now: float) -> Mapping[tuple[str, int | None], Stall] | None:
        """Return the stalls that another command learns at a time."""
        self.monkeypatch.setattr(time, "monotonic", lambda: now)
        found = read_stalls(self.root)
        return found.stalls if found is not None else None


def mount(sends: int, receives: int, **counts: int) -> Counted:
    return superblock("0:43", V41, transports=xprt(sends=sends, receives=receives), **counts)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def ended(seconds: int) -> tuple[str, str]:
    return "STALL_ENDED", f"/mnt/0:43: answers again after {seconds} s, server 10.10.10.10:2049"


def test_a_stall_is_reported_once_and_so_is_its_end_and_looks_are_soon_until_then(host: Host) -> None:
    for seconds in (0, 5, 10, 15, 20, 80):
        host.look(seconds, waits=True)
        assert host.watch.due_s == seconds + 5
    for seconds in (85, 145):
        host.look(seconds, waits=False, mounted=mount(22, 22, reads=11))
        assert host.watch.due_s == float("inf")
    stalled = "stalled: a request waits for an answer (WRITE), since 15 s, server 10.10.10.10:2049"
    assert host.told() == [("STALLED", f"/mnt/0:43: {stalled}"), ended(85)]
    begin, end = host.sent
    assert (begin["NFSTUNED_SINCE"], end["NFSTUNED_SINCE"]) == ("1000000000.0", "1000000000.0")
    assert (begin["NFSTUNED_REQUESTS"], begin["NFSTUNED_OPERATIONS"]) == ("1", "WRITE")
    assert (end["NFSTUNED_STALLED_S"], end["NFSTUNED_REASON"]) == ("85", "answered")


def test_a_server_in_its_grace_answers_and_nobody_is_served_before_its_end(host: Host) -> None:
    host.stall()
    for turn, seconds in enumerate((20, 35, 50, 65, 80), 1):
        refused = mount(21 + turn, 21 + turn, reads=10 + turn, refused=turn)
        host.look(seconds, waits=False, mounted=refused)
        assert host.watch.due_s == seconds + 5
    assert [stall.recovering for stall in (host.known_at(81.0) or {}).values()] == [True]
    assert host.sent.names() == ["STALLED"]
    host.look(85, waits=False, mounted=mount(30, 30, reads=16, refused=5))
    assert host.told()[1:] == [ended(85)]
    assert host.watch.due_s == float("inf")


def test_a_server_that_answers_everything_with_an_error_is_not_in_its_grace_for_ever(host: Host) -> None:
    """It came back without its export, and a monitor asks every 20 s."""
    host.stall()
    for turn, seconds in enumerate(range(20, 400, 20), 1):
        refused = mount(21 + turn, 21 + turn, reads=10 + turn, refused=turn)
        host.look(seconds, waits=False, mounted=refused)
    assert host.told()[1:] == [ended(320)]


def test_where_nobody_asks_any_more_the_recovery_ends(host: Host) -> None:
    host.stall()
    for seconds in (20, 40, 45):
        host.look(seconds, waits=False, mounted=mount(22, 22, renewals=2))
    assert host.sent.names() == ["STALLED", "STALL_ENDED"]


def test_a_server_that_is_silent_again_while_it_recovers_is_the_same_stall(host: Host) -> None:
    host.stall()
    host.look(20, waits=False, mounted=mount(22, 22, reads=11, refused=1))
    for seconds in (25, 40, 60):
        host.look(seconds, waits=True, mounted=mount(23, 22, reads=11, refused=1))
    assert [stall.since_s for stall in host.watch.stalled(60).stalls.values()] == [0.0]
    assert host.sent.names() == ["STALLED"]


def test_a_stall_without_an_answer_ends_as_given_up_or_unmounted(host: Host) -> None:
    host.stall()
    host.look(20, waits=False, mounted=mount(21, 20))
    for seconds in (30, 45):
        host.look(seconds, waits=True, mounted=mount(22, 20))
    host.look(50, waits=False, gone=True)
    reasons = [entry["NFSTUNED_REASON"] for entry in host.sent if "NFSTUNED_REASON" in entry]
    assert reasons == ["given up", "unmounted"]


def test_unreadable_tasks_are_reported_once_and_the_connections_are_followed(host: Host) -> None:
    for seconds in (0, 15, 30):
        (host.tree / TASKS).write_text(f"new format {seconds}\n")
        silent = superblock("0:43", "v3 tcp 10.10.10.10:2049", transports=xprt(sends=20 + (seconds > 0)))
        host.watch.add_look(at(seconds, silent), seconds + 60)
    assert host.sent.names() == ["UNREADABLE", "STALLED"]
    assert host.sent[1]["NFSTUNED_REQUESTS"] == "unknown"


def test_other_commands_learn_it_as_long_as_the_service_looks(host: Host) -> None:
    host.stall()
    assert host.known_at(16.0) == {("0:43", 43): Stall(0, 1, ("WRITE",))}
    assert (host.known_at(20.1 + LATE_S), host.known_at(14.0)) == (None, None)


def test_the_file_for_other_commands_is_never_stale(host: Host) -> None:
    file = host.tree / "run/nfstuned/stalled.json"
    written = set()
    for seconds in range(0, 300, 10):
        host.look(seconds, waits=False)
        written.add(file.stat().st_mtime_ns)
        assert (host.known_at(seconds), host.known_at(seconds + 9.9)) == ({}, {})
    assert 1 < len(written) < 30
    for seconds in (300, 315):
        host.look(seconds, waits=True)
    assert host.known_at(315.0)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"looked_s": 0, "next_s": 1e9, "stalled": [[1]]}', "[" * 10_000]
)
def test_a_damaged_file_is_no_file(host: Host, text: str) -> None:
    host.look(0, waits=False)
    (host.tree / "run/nfstuned/stalled.json").write_text(text)
    assert read_stalls(host.root) is None
