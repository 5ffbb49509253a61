"""What interfaces and connections carried between two looks."""

from __future__ import annotations

from collections.abc import Mapping

from nfstuned.host.root import Root
from nfstuned.model.facts import Traffic
from nfstuned.model.kernel import MountStats
from nfstuned.model.work import Snapshot


def sends_between(
    snapshot: Snapshot, before: tuple[MountStats, ...], after: tuple[MountStats, ...]
) -> Mapping[str, tuple[int, ...]]:
    """Return per device what each connection sent; none where connections came or went."""
    del snapshot, before, after
    return {}


def observe_traffic(root: Root, names: tuple[str, ...]) -> tuple[Traffic, ...]:
    """Return the byte counters of interfaces."""
    del root, names
    return ()


def traffic_between(before: tuple[Traffic, ...], after: tuple[Traffic, ...]) -> tuple[Traffic, ...]:
    """Return what each interface carried; an interface that came or went is left out."""
    del before, after
    return ()
