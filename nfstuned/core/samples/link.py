"""The link to the server of each superblock, as the counters of its own reads have shown it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from nfstuned.core.samples.sample import rtt_ms
from nfstuned.model.samples import Look, Sample, SuperblockKey


class _Seen(NamedTuple):
    bytes_per_s: float = 0.0
    """The most that the server sent over an interval."""
    rtt_ms: float | None = None
    """The least mean round trip of READ over an interval."""

    def seen(self, sample: Sample) -> _Seen:
        sent, rtt = sample.server_read_bytes_per_s, rtt_ms(sample, "read")
        if not sent or not rtt:
            return self
        return _Seen(max(self.bytes_per_s, sent), rtt if self.rtt_ms is None else min(self.rtt_ms, rtt))


class SeenLinks:
    """Remembers each superblock's link for as long as the superblock lives."""

    def __init__(self) -> None:
        self._links: dict[SuperblockKey, _Seen] = {}

    def add(self, look: Look, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """Return the samples between the look before and `look`, each with its bandwidth-delay product."""
        keys = {superblock.device: superblock.key for superblock in look.superblocks}
        self._links = {key: self._links[key] for key in keys.values() if key in self._links}
        known = []
        for sample in samples:
            key = keys[sample.device]
            link = self._links.get(key, _Seen()).seen(sample)
            if link.rtt_ms is None:
                known.append(sample)
                continue
            self._links[key] = link
            known.append(replace(sample, bdp_bytes=link.bytes_per_s * link.rtt_ms / 1000))
        return tuple(known)
