"""The service's knowledge of each superblock's reads: its link to the server, and the effect of a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from nfstuned.core.samples.effect import effect, is_reading
from nfstuned.core.samples.sample import rtt_ms
from nfstuned.model.effect import Effect, Seen
from nfstuned.model.samples import Look, Sample, SuperblockKey


class _Past(NamedTuple):
    bytes_per_s: float = 0.0
    """The most that the server sent over an interval."""
    rtt_ms: float | None = None
    """The least mean round trip of READ over an interval."""
    last: Sample | None = None
    """The last with reads."""
    effect: Effect | None = None

    def after(self, sample: Sample) -> _Past:
        sent, rtt = sample.server_read_bytes_per_s, rtt_ms(sample, "read")
        past = self
        if sent and rtt:
            least = rtt if self.rtt_ms is None else min(self.rtt_ms, rtt)
            past = self._replace(bytes_per_s=max(self.bytes_per_s, sent), rtt_ms=least)
        if not is_reading(sample):
            return past
        found = effect(self.last, sample) if self.last is not None else None
        return past._replace(last=sample, effect=found or self.effect)

    @property
    def bdp_bytes(self) -> float | None:
        return None if self.rtt_ms is None else self.bytes_per_s * self.rtt_ms / 1000


class SeenReads:
    """Remembers each superblock's reads for as long as the superblock lives."""

    def __init__(self) -> None:
        self._past: dict[SuperblockKey, _Past] = {}

    def add(self, look: Look, samples: Iterable[Sample]) -> tuple[Sample, ...]:
        """Return the samples between the look before and `look`, each with its bandwidth-delay product."""
        keys = {superblock.device: superblock.key for superblock in look.superblocks}
        self._past = {key: self._past[key] for key in keys.values() if key in self._past}
        known = []
        for sample in samples:
            key = keys[sample.device]
            if sample.server_read_bytes_per_s:
                self._past[key] = self._past.get(key, _Past()).after(sample)
            past = self._past.get(key)
            known.append(replace(sample, bdp_bytes=past.bdp_bytes) if past else sample)
        return tuple(known)

    @property
    def effects(self) -> dict[str, Effect]:
        """By device: the effects that can be compared."""
        found = ((device, past.effect) for (device, _), past in self._past.items())
        return {device: shown for device, shown in found if shown is not None and not shown.unlike}

    @property
    def seen(self) -> dict[SuperblockKey, Seen]:
        """The superblocks with reads."""
        return {key: Seen(past.bdp_bytes, past.effect) for key, past in self._past.items()}
