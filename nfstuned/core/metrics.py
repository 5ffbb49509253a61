"""Totals, tuning state and the daemon itself as metric families: which names there are, and what they mean.

A superblock has at most 33 series and a transport group 7, so that a mount with a server of its own has 40.
Counters have few labels; `nfstuned_mount_info` has the others, to join on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from nfstuned.core.metricnames import GROUP, SERVICE, SUPERBLOCK, TUNING, Meaning
from nfstuned.model.metrics import Family, Kind, Point, Service
from nfstuned.model.status import StatusRow
from nfstuned.model.totals import Place, SuperblockTotals, Totals

MOST_SERIES = 40
"""Of one superblock and its transport group."""
MOUNT = ("device", "mount_point")


Things = Iterable[tuple[tuple[str, ...], object]]


def families(totals: Totals, rows: Sequence[StatusRow], service: Service) -> Iterator[Family]:
    """Yield every family that has a series; `rows` are those of `status`, with the same superblocks."""
    by_device: dict[str, StatusRow] = {}
    for row in rows:
        by_device.setdefault(row.device, row)
    shown = {place: totals.superblocks[place] for place in totals.present}
    placed = {place: by_device[place.device] for place in shown if place.device in by_device}
    groups = [((name,), totals.groups[name]) for name in totals.groups_present]
    found = chain(
        (_family(each, (), [((), service)]) for each in SERVICE),
        _service(service, totals),
        iter((_info(shown, placed), _left(shown, service.left))),
        (_family(each, MOUNT, shown.items()) for each in SUPERBLOCK),
        (_family(each, MOUNT, placed.items()) for each in TUNING),
        (_family(each, ("group",), groups) for each in GROUP),
    )
    return (family for family in found if family.points)


def findings_families(counts: Mapping[tuple[str, str, str], int], time: float) -> tuple[Family, ...]:
    """Return what a check found: by rule, name and severity how often, 0 where it found nothing."""
    points = tuple(Point(labels, number) for labels, number in counts.items())
    what = "What nfstuned check found, by rule; 0 where it looked and found nothing."
    when = "When nfstuned check looked, in Unix seconds."
    return (
        Family("nfstuned_findings", Kind.GAUGE, what, ("rule", "name", "severity"), points),
        Family("nfstuned_findings_timestamp_seconds", Kind.GAUGE, when, (), (Point((), time),)),
    )


def _family(
    meaning: Meaning, labels: tuple[str, ...], things: Iterable[tuple[tuple[str, ...], object]]
) -> Family:
    points = tuple(
        Point((*place, *more), value)
        for place, thing in things
        for more, value in meaning.values(thing)
        if value is not None
    )
    return Family(meaning.name, meaning.kind, meaning.help, (*labels, *meaning.more), points)


def _service(service: Service, totals: Totals) -> Iterator[Family]:
    text = "The version of nfstuned that runs."
    points: tuple[Point, ...] = (Point((service.version,), 1.0),)
    yield Family("nfstuned_build_info", Kind.GAUGE, text, ("version",), points)
    text = "NFS superblocks, by whether they have metrics."
    points = (Point(("true",), len(totals.present)), Point(("false",), len(totals.left_out)))
    yield Family("nfstuned_mounts", Kind.GAUGE, text, ("exported",), points)
    text = "Superblocks without metrics, because prometheus.max_mounts others were there first."
    points = (Point((), totals.left_out_total),)
    yield Family("nfstuned_mounts_left_out_total", Kind.COUNTER, text, (), points)
    text = "Entries in the journal, by what they say."
    points = tuple(Point((name,), number) for name, number in sorted(service.messages.items()))
    yield Family("nfstuned_journal_messages_total", Kind.COUNTER, text, ("message",), points)


def _info(shown: Mapping[Place, SuperblockTotals], rows: Mapping[Place, StatusRow]) -> Family:
    points = []
    for place, superblock in shown.items():
        row = rows.get(place)
        counted = superblock.counted
        provider, profile = (row.provider, row.profile or "") if row else ("", "")
        points.append(Point((*place, counted.source, counted.group, provider, profile), 1.0))
    text = "What is mounted where, to join on; group is the transport group."
    labels = (*MOUNT, "source", "group", "provider", "profile")
    return Family("nfstuned_mount_info", Kind.GAUGE, text, labels, tuple(points))


def _left(shown: Mapping[Place, SuperblockTotals], left: frozenset[str]) -> Family:
    text = "1 where the read-ahead is left to another program that keeps changing it."
    points = tuple(Point(tuple(place), float(place.device in left)) for place in shown)
    return Family("nfstuned_mount_read_ahead_left", Kind.GAUGE, text, MOUNT, points)
