"""Throughput of each superblock between two ticks, to the journal."""

from __future__ import annotations

import time

from nfstuned.core.rates import is_idle, look, one_line, rates
from nfstuned.host.journal import INFO, Journal, Message
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
            INFO,
            DEVICE=sample.device,
            MOUNT_POINT=sample.mount_points[0] if sample.mount_points else None,
            SOURCE=sample.source,
            INTERVAL_S=round(sample.interval_s, 3),
            READ_BYTES_PER_S=round(sample.read_bytes_per_s),
            WRITE_BYTES_PER_S=round(sample.write_bytes_per_s),
            SERVER_READ_BYTES_PER_S=round(sample.server_read_bytes_per_s),
            SERVER_WRITE_BYTES_PER_S=round(sample.server_write_bytes_per_s),
            CONNECTIONS=sample.transport.connections,
        )
