"""Throughput of each superblock between two ticks, to the journal."""

from __future__ import annotations

import time

from nfstuned.core.rates import look, rates
from nfstuned.core.samples import is_idle, one_line
from nfstuned.host.journal import Journal, Message, Priority
from nfstuned.host.observe import observe_stats
from nfstuned.host.root import Root
from nfstuned.model.samples import Look, Sample
from nfstuned.model.work import Snapshot


class Sampler:
    """Keeps one look at mountstats and tells what happened since the one before; idle mounts are silent."""

    def __init__(self, root: Root, journal: Journal) -> None:
        self._root = root
        self._journal = journal
        self._before: Look | None = None

    def sample(self, snapshot: Snapshot) -> None:
        """Look at mountstats now; `snapshot` says which stanza belongs to which superblock."""
        stats, _ = observe_stats(self._root)
        now = look(snapshot, stats, time.time(), time.monotonic())
        if self._before is not None:
            for sample in rates(self._before, now):
                if not is_idle(sample):
                    self._tell(sample)
        self._before = now

    def _tell(self, sample: Sample) -> None:
        self._journal.send(
            Message.SAMPLE,
            one_line(sample),
            Priority.INFO,
            device=sample.device,
            mount_point=sample.mount_points[0] if sample.mount_points else None,
            source=sample.source,
            interval_s=round(sample.interval_s, 3),
            read_bytes_per_s=round(sample.read_bytes_per_s),
            write_bytes_per_s=round(sample.write_bytes_per_s),
            server_read_bytes_per_s=round(sample.server_read_bytes_per_s),
            server_write_bytes_per_s=round(sample.server_write_bytes_per_s),
            connections=sample.transport.connections,
        )
