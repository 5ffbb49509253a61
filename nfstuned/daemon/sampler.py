"""Throughput of each superblock between two ticks, to the journal and to a file."""

from __future__ import annotations

import math
import time

from nfstuned.core.rates import look, rates
from nfstuned.core.samples import is_idle, one_line, to_fields
from nfstuned.daemon.samplesink import SampleSink
from nfstuned.host.journal import Journal, Message, Priority
from nfstuned.host.observe import observe_stanzas
from nfstuned.host.root import Root
from nfstuned.host.uncollected import uncollected
from nfstuned.model.kernel import Stanza
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Look, Sample
from nfstuned.model.work import Snapshot


class Sampler:
    """Keeps one look at mountstats and tells what happened since the one before; idle mounts are silent."""

    def __init__(self, root: Root, journal: Journal) -> None:
        self._root = root
        self._journal = journal
        self._file = SampleSink(root, journal)
        self.last: Look | None = None
        self._stanzas: tuple[Stanza, ...] = ()
        self.cost_s = 0.0
        """CPU time of the last look and its rates, for all mounts together."""
        self.all_cost_s = 0.0
        """The same of all looks since the start."""

    def due_at(self, interval_s: float) -> float:
        """Return when the next look is due, in seconds of CLOCK_MONOTONIC: at once if there was none yet."""
        return self.last.monotonic_s + interval_s if self.last is not None else -math.inf

    def sample(self, snapshot: Snapshot, policy: Policy) -> None:
        """Look at mountstats now; `snapshot` says which stanza belongs to which superblock."""
        started = time.thread_time()
        with uncollected():
            self._stanzas = observe_stanzas(self._root, self._stanzas)
            now = look(snapshot, self._stanzas, time.time(), time.monotonic())
            samples = rates(self.last, now) if self.last is not None else ()
        self.last = now
        self.cost_s = time.thread_time() - started
        self.all_cost_s += self.cost_s
        used = [sample for sample in samples if not is_idle(sample)]
        for sample in used:
            self._tell(sample)
        self._file.write(used, policy)

    def _tell(self, sample: Sample) -> None:
        """Send one entry: a line for people, and every number of `nfstuned.sample/1` as a field."""
        self._journal.send(
            Message.SAMPLE,
            one_line(sample),
            Priority.INFO,
            sampling_ms=round(self.cost_s * 1e3, 3),
            **to_fields(sample),
        )
