"""Samples of each superblock's throughput, and of requests that wait: to the journal, a file and `status`."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from posixpath import dirname
from typing import NamedTuple

from nfstuned.core.mounts.volumes import pod_volumes
from nfstuned.core.samples.rates import make_look, rates
from nfstuned.core.samples.sample import named, one_line, to_fields, to_line
from nfstuned.core.samples.seen import SeenReads
from nfstuned.core.samples.stalls import (
    FOLLOW_S,
    RequestWatch,
    active_samples,
    follow,
    has_answered,
    has_completed,
    has_succeeded,
    is_pending,
    may_wait,
    stalls,
)
from nfstuned.daemon.reporter import Reporter
from nfstuned.errors import ParseError
from nfstuned.host.observe import do_nothing, observe_major_faults, observe_stanzas
from nfstuned.host.process import collector_paused
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority
from nfstuned.host.telemetry.sinks import append, write_seen, write_stalls
from nfstuned.host.volumes import KubeletFiles
from nfstuned.model.kernel import Stanza
from nfstuned.model.mounts import KubeletNames, PodVolume, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Counted, Look, Sample, SampleFile, SuperblockKey
from nfstuned.model.stalls import LATE_S, NOTHING_UNDER_WAY, STALLED, Requests, Stall, Stalled
from nfstuned.parse.proc.sunrpc import read_requests

NO_RETRY_S = 30.0
"""A stall is over after so long without a request: in the server's grace period the client retries at least
every 15 s (fs/nfs/nfs4proc.c, NFS4_POLL_RETRY_MAX)."""
LONGEST_GRACE_S = 300.0
"""No grace period is longer: a server that has answered for so long, if only with errors, works."""


class SampleSink:
    """Appends samples to the policy's file, if it names one. A disk that is full or absent raises nothing."""

    def __init__(self, root: Root, journal: Journal) -> None:
        self._root = root
        self._journal = journal
        self._failure: tuple[str, str] | None = None
        """The file that cannot be written at present, and the reason."""
        self._lost = 0

    def write(self, samples: Sequence[Sample], policy: Policy) -> None:
        """Append the samples; without any, the file is not touched."""
        file = policy.sample_file
        if not file:
            self._failure, self._lost = None, 0
        if not file or not samples:
            return
        if self._failure is not None and self._failure[0] != file:
            self._failure, self._lost = None, 0
        target = SampleFile(file, policy.sample_file_bytes, policy.sample_files_kept)
        host = os.uname().nodename
        done = append(self._root, target, [to_line(sample, host) for sample in samples])
        if done.reason:
            self._lost += len(samples) - done.lines
            if self._failure != (file, done.reason):
                self._failure = (file, done.reason)
                text = f"{file}: samples cannot be written: {done.reason}; they are in the journal only"
                self._journal.send(
                    Message.SAMPLES_UNWRITTEN, text, Priority.WARNING, file=file, reason=done.reason
                )
        elif self._failure is not None:
            text = f"{file}: samples are written again, {self._lost} are not in it"
            self._journal.send(Message.SAMPLES_WRITTEN, text, Priority.NOTICE, file=file, lost=self._lost)
            self._failure, self._lost = None, 0


class _Reported(NamedTuple):
    stall: Stall
    superblock: Counted
    active_s: float
    """The last look at which an operation of the superblock had ended or waited, of CLOCK_MONOTONIC."""
    waited_s: float
    """The last look at which a request of it waited."""


class StallWatch:
    """Follows the requests from look to look. A file that cannot be read or written raises nothing."""

    def __init__(self, root: Root, reporter: Reporter) -> None:
        self._root = root
        self._reporter = reporter
        self._watch = RequestWatch()
        self._reported: dict[SuperblockKey, _Reported] = {}
        self._unreadable = False
        """Whether the unreadable requests were reported."""
        self.looked_s = 0.0
        """The time of the last look, of CLOCK_MONOTONIC."""
        self.due_s = math.inf
        """The time of a look before the next sample, of CLOCK_MONOTONIC; infinite where nothing waits."""
        self._fresh_until_s = -math.inf
        """The time until which the written file, without a stalled superblock, is fresh."""

    def stalled(self, now_s: float) -> Stalled:
        """Return the superblocks that wait, as of the last look."""
        return Stalled(now_s, {key: each.stall for key, each in self._reported.items()})

    def add_look(self, look: Look, next_s: float) -> None:
        """Report the stalls that a look shows, and the ends of others; the next look is due at `next_s`."""
        now_s = self.looked_s = look.monotonic_s
        before, self._watch = self._watch, follow(self._watch, look, self._requests(look))
        stalled = stalls(self._watch)
        superblocks = {superblock.key: superblock for superblock in look.superblocks}
        for key in self._reported.keys() - stalled.keys():
            self._check_end(key, superblocks.get(key), before, look)
        for key, stall in stalled.items():
            known = self._reported.get(key)
            if known is None:
                self._reporter.stalled(superblocks[key], stall, look)
            since_s = stall.since_s if known is None else known.stall.since_s
            stall = stall._replace(since_s=since_s)  # noqa: PLW2901 - the same stall, with its beginning
            self._reported[key] = _Reported(stall, superblocks[key], now_s, now_s)
        self.due_s = now_s + FOLLOW_S if self._reported or is_pending(self._watch) else math.inf
        self._write(look, min(next_s, self.due_s))

    def _check_end(self, key: SuperblockKey, now: Counted | None, before: RequestWatch, look: Look) -> None:
        """Report the end of a stall without waiting requests, unless the server is in its grace period."""
        stall, known, active_s, waited_s = self._reported[key]
        if now is None:
            why = "unmounted"
        elif not stall.recovering and not has_answered(now.group, before, look):
            why = "given up"
        else:
            why = "answered"
            if not has_succeeded(known.stats, now.stats):
                now_s = look.monotonic_s
                active_s = now_s if has_completed(known.stats, now.stats) else active_s
                if now_s - active_s < NO_RETRY_S and now_s - waited_s < LONGEST_GRACE_S:
                    self._reported[key] = _Reported(stall._replace(recovering=True), now, active_s, waited_s)
                    return
        del self._reported[key]
        self._reporter.stall_ended(known, stall, look, why)

    def _requests(self, look: Look) -> Requests | None:
        if not may_wait(self._watch, look):
            return NOTHING_UNDER_WAY
        try:
            return read_requests(self._root, [superblock.device for superblock in look.superblocks])
        except ParseError as error:
            if not self._unreadable:
                self._reporter.unreadable(error)
            self._unreadable = True
            return None

    def _write(self, look: Look, next_s: float) -> None:
        """Write the stalled superblocks for others, an empty list only when the old file gets stale."""
        stalled = self.stalled(look.monotonic_s)
        if not stalled.stalls and next_s <= self._fresh_until_s:
            return
        try:
            write_stalls(self._root, stalled, next_s)
            self._fresh_until_s = -math.inf if stalled.stalls else next_s + LATE_S / 2
        except OSError as error:
            self._reporter.fault(_unwritable(error), look.monotonic_s)


def _unwritable(error: OSError) -> ParseError:
    """Return the fault of the folder, so that its files have one entry."""
    why = f"files there cannot be written: {error.strerror or error}"
    return ParseError(f"/{dirname(STALLED)}", 0, why)


class Sampler:
    """Looks at mountstats and sends the rates since the look before, without idle mounts."""

    def __init__(self, root: Root, journal: Journal, reporter: Reporter) -> None:
        self._root = root
        self._journal = journal
        self._reporter = reporter
        self.stalls = StallWatch(root, reporter)
        self.serve_events: Callable[[], None] = do_nothing
        """Called again and again during a sample, as during a look of the tuner."""
        self._file = SampleSink(root, journal)
        self.last: Look | None = None
        self._sampled_s = -math.inf
        self._stanzas: tuple[Stanza, ...] = ()
        self.reads = SeenReads()
        self._kubelet = KubeletFiles(root)
        self.volumes: dict[str, tuple[PodVolume, ...]] = {}
        """By device: the volumes of pods, at the last sample."""
        self._damaged = frozenset[str]()
        """The errors in the last look at mountstats, which left mounts without a sample."""
        self.cost_s = 0.0
        """The CPU time of the last look and its rates, for all mounts."""
        self.all_cost_s = 0.0
        """The CPU time of all looks since the start, with those between two samples."""
        self._served_s = 0.0
        """The CPU time of events during the present sample, which is no cost of it."""

    def due_at(self, interval_s: float) -> float:
        """Return when the next sample is due, in seconds of CLOCK_MONOTONIC: at once before the first."""
        return self._sampled_s + interval_s

    def sample(self, snapshot: Snapshot, policy: Policy) -> Sequence[Sample]:
        """Look at mountstats now, and return the samples; `snapshot` has the superblock of each stanza.

        Where it cannot be read, the look before stays, and the next rates are since that look.
        """
        started, self._served_s = time.thread_time(), 0.0
        damaged: list[ParseError] = []
        with collector_paused():
            now = self._look(snapshot)
            self._sampled_s = now.monotonic_s if now is not None else time.monotonic()
            if now is None:
                return ()
            self.stalls.add_look(now, self.due_at(policy.sample_interval_s))
            before = self.last if self.last is not None else now
            samples = rates(before, now, damaged.append, self._serve)
            self._name_volumes(now)
            samples = self.reads.add(now, samples)
            samples = tuple(named(sample, self.volumes.get(sample.device, ())) for sample in samples)
        self.last = now
        self.cost_s = time.thread_time() - started - self._served_s
        self.all_cost_s += self.cost_s
        for error in damaged:
            if str(error) not in self._damaged:
                self._reporter.unreadable(error)
        self._damaged = frozenset(map(str, damaged))
        active = active_samples(samples, self.stalled_s)
        for sample in active:
            self.serve_events()
            self._send(sample)
        self._file.write(active, policy)
        if active:
            self._write_seen()
        return active

    def _serve(self) -> None:
        started = time.thread_time()
        self.serve_events()
        self._served_s += time.thread_time() - started

    def _name_volumes(self, look: Look) -> None:
        pods = self._kubelet.pods(point for each in look.superblocks for point in each.mount_points)
        names = KubeletNames(pods, {})
        found = (
            (each.device, pod_volumes(each.mount_points, names, each.source)) for each in look.superblocks
        )
        self.volumes = {device: volumes for device, volumes in found if volumes}

    def _write_seen(self) -> None:
        try:
            write_seen(self._root, self.reads.seen)
        except OSError as error:
            self._reporter.fault(_unwritable(error), self._sampled_s)

    @property
    def stalled_s(self) -> dict[str, float]:
        """The seconds since the beginning of each stall, at the last look, by device."""
        stalled = self.stalls.stalled(self.stalls.looked_s)
        return {device: stalled.now_s - stall.since_s for (device, _), stall in stalled.stalls.items()}

    def follow_requests(self, snapshot: Snapshot, policy: Policy) -> bool:
        """Look at waiting requests between two samples; return whether the stalled superblocks changed."""
        started = time.thread_time()
        before = self.stalled_s.keys()
        with collector_paused():
            now = self._look(snapshot)
            if now is not None:
                self.stalls.add_look(now, self.due_at(policy.sample_interval_s))
        self.all_cost_s += time.thread_time() - started
        return self.stalled_s.keys() != before

    def _look(self, snapshot: Snapshot) -> Look | None:
        """Return the counters as they are; None where they cannot be read."""
        stanzas = observe_stanzas(self._root, self._stanzas)
        if stanzas is None:
            return None
        self._stanzas = stanzas
        faults = observe_major_faults(self._root)
        return make_look(snapshot, stanzas, time.time(), time.monotonic(), faults)

    def _send(self, sample: Sample) -> None:
        """Send an entry: a line for people, and every number of `nfstuned.sample/1` as a field."""
        self._journal.send(
            Message.SAMPLE,
            one_line(sample),
            Priority.INFO,
            sampling_ms=round(self.cost_s * 1e3, 3),
            **to_fields(sample),
        )
