"""The bandwidth-delay product of a superblock: its best throughput times its least round trip."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from nfstuned.core.samples.seen import SeenReads
from nfstuned.model.samples import Look, OpRate, Sample
from tests.core.tops import looks
from tests.parse.test_samples import SAMPLE


def product(links: SeenReads, now: Look, sent: float, rtt_ms: float | None) -> float | None:
    """Return the product after an interval in which the server sent so many bytes a second."""
    ops = {} if rtt_ms is None else {"READ": OpRate(8.0, rtt_ms, 0.1, 1.7, 0.0, 0.0)}
    sample: Sample = replace(SAMPLE, server_read_bytes_per_s=sent, ops=MappingProxyType(ops))
    return links.add(now, [sample])[0].bdp_bytes


def test_the_best_throughput_and_the_least_round_trip_of_different_intervals_count() -> None:
    links, now = SeenReads(), looks()[1]
    assert product(links, now, 0.0, None) is None
    assert product(links, now, 1e6, 20.0) == 20_000
    assert product(links, now, 25e6, 580.0) == 500_000
    assert product(links, now, 0.0, None) == 500_000
    assert product(links, now, 1e6, 10.0) == 250_000


def test_another_superblock_of_the_number_begins_anew() -> None:
    links, now = SeenReads(), looks()[1]
    product(links, now, 25e6, 20.0)
    others = tuple(replace(each, bdi=(each.bdi or 0) + 1) for each in now.superblocks)
    assert product(links, replace(now, superblocks=others), 1e6, 20.0) == 20_000
    assert product(links, now, 2e6, 20.0) == 40_000
