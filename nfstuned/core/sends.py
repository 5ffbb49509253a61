"""What each connection of a superblock sent between two looks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nfstuned.errors import ParseError
from nfstuned.model.samples import Look
from nfstuned.parse.mountstats import parse_transports


def sends_between(earlier: Look, later: Look) -> Mapping[str, tuple[int, ...]]:
    """Return per device what each connection sent, in the kernel's order.

    A superblock that is another one now has none, nor one whose connections came, went or began anew, or
    whose stanza is damaged.
    """
    known = {(counted.device, counted.bdi): counted.stats for counted in earlier.superblocks}
    found: dict[str, tuple[int, ...]] = {}
    for counted in later.superblocks:
        stats = known.get((counted.device, counted.bdi))
        try:
            now = parse_transports(counted.stats.transports)
            before = parse_transports(stats.transports) if stats is not None else ()
        except ParseError:
            continue
        if len(before) == len(now):
            sent = tuple(new.sends - old.sends for old, new in zip(before, now, strict=True))
            if min(sent, default=-1) >= 0:
                found[counted.device] = sent
    return MappingProxyType(found)
