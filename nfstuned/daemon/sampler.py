"""Throughput of each superblock between two ticks, to the journal and to a file."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from nfstuned.core.samples.rates import look, rates
from nfstuned.core.samples.sample import one_line, to_fields, to_line
from nfstuned.core.samples.stalls import used_of
from nfstuned.daemon.reporter import Reporter
from nfstuned.daemon.stall_watch import StallWatch
from nfstuned.errors import ParseError
from nfstuned.host.observe import observe_stanzas
from nfstuned.host.process import collector_paused
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.host.telemetry.sample_file import append
from nfstuned.model.kernel import Stanza
from nfstuned.model.mounts import Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Look, Sample, SampleFile


class SampleSink:
    """Appends samples to the policy's file, where it names a file. Never raises for want of a disk."""

    def __init__(self, root: Root, journal: Journal) -> None:
        self._root = root
        self._journal = journal
        self._failure: tuple[str, str] | None = None
        """The file and the reason of the failure that lasts."""
        self._lost = 0

    def write(self, samples: Sequence[Sample], policy: Policy) -> None:
        """Append the samples; without any, the file is not touched."""
        file = policy.sample_file
        if not file:
            self._failure, self._lost = None, 0
        if not file or not samples:
            return
        target = SampleFile(file, policy.sample_file_bytes, policy.sample_files_kept)
        done = append(self._root, target, [to_line(sample) for sample in samples])
        if done.reason:
            self._failed(file, done.reason, len(samples) - done.lines)
        elif self._failure is not None:
            self._recovered(file)

    def _failed(self, file: str, reason: str, lost: int) -> None:
        if self._failure is None or self._failure[0] != file:
            self._lost = 0
        self._lost += lost
        if self._failure != (file, reason):
            self._failure = (file, reason)
            text = f"{file}: samples cannot be written: {reason}; they are in the journal only"
            self._journal.send(Message.SAMPLES_UNWRITTEN, text, Priority.WARNING, file=file, reason=reason)

    def _recovered(self, file: str) -> None:
        lost = self._lost if self._failure is not None and self._failure[0] == file else 0
        self._failure, self._lost = None, 0
        text = f"{file}: samples are written again, {lost} are not in it"
        self._journal.send(Message.SAMPLES_WRITTEN, text, Priority.NOTICE, file=file, lost=lost)


class Sampler:
    """Keeps a look at mountstats and tells what happened since the look before; idle mounts are silent."""

    def __init__(self, root: Root, journal: Journal, stalls: StallWatch, reporter: Reporter) -> None:
        self._root = root
        self._journal = journal
        self._stalls = stalls
        self._reporter = reporter
        self._file = SampleSink(root, journal)
        self.last: Look | None = None
        self._asked_s = -math.inf
        self._stanzas: tuple[Stanza, ...] = ()
        self._damaged = frozenset[str]()
        """Why mounts had no sample last."""
        self.cost_s = 0.0
        """CPU time of the last sample's look and its rates, for all mounts together."""
        self.all_cost_s = 0.0
        """The same of all looks since the start, those between two samples among them."""

    def due_at(self, interval_s: float) -> float:
        """Return when the next look is due, in seconds of CLOCK_MONOTONIC: at once if there was none yet."""
        return self._asked_s + interval_s

    def sample(self, snapshot: Snapshot, policy: Policy) -> None:
        """Look at mountstats now; `snapshot` says which stanza belongs to which superblock.

        Where it cannot be read, the look before stays: the next rates are of all the time since.
        """
        started = time.thread_time()
        with collector_paused():
            now = self._look(snapshot)
            if now is None:
                self._asked_s = time.monotonic()
                return
            self._asked_s = now.monotonic_s
            self._stalls.see(now, self.due_at(policy.sample_interval_s))
            damaged: list[ParseError] = []
            samples = rates(self.last, now, damaged.append) if self.last is not None else ()
        self.last = now
        self.cost_s = time.thread_time() - started
        self.all_cost_s += self.cost_s
        self._tell_damage(damaged)
        used = used_of(samples, self.stalled_s)
        for sample in used:
            self._tell(sample)
        self._file.write(used, policy)

    @property
    def stalled_s(self) -> dict[str, float]:
        """By device: for how long a superblock has been stalled, at the last look."""
        stalled = self._stalls.stalled(self._stalls.seen_s)
        return {device: stalled.now_s - stall.since_s for (device, _), stall in stalled.stalls.items()}

    def look_again(self, snapshot: Snapshot, policy: Policy) -> bool:
        """Look at mountstats between two samples, for requests that wait; return whether there is news."""
        started = time.thread_time()
        before = self.stalled_s.keys()
        with collector_paused():
            now = self._look(snapshot)
            if now is not None:
                self._stalls.see(now, self.due_at(policy.sample_interval_s))
        self.all_cost_s += time.thread_time() - started
        return self.stalled_s.keys() != before

    def _look(self, snapshot: Snapshot) -> Look | None:
        """Return the counters as they are; None where they cannot be read."""
        stanzas = observe_stanzas(self._root, self._stanzas)
        if stanzas is None:
            return None
        self._stanzas = stanzas
        return look(snapshot, stanzas, time.time(), time.monotonic())

    def _tell_damage(self, damaged: Sequence[ParseError]) -> None:
        """Tell why a mount has no sample, once as long as it lasts."""
        for error in damaged:
            if str(error) not in self._damaged:
                self._reporter.unreadable(error)
        self._damaged = frozenset(map(str, damaged))

    def _tell(self, sample: Sample) -> None:
        """Send an entry: a line for people, and every number of `nfstuned.sample/1` as a field."""
        self._journal.send(
            Message.SAMPLE,
            one_line(sample),
            Priority.INFO,
            sampling_ms=round(self.cost_s * 1e3, 3),
            **to_fields(sample),
        )
