"""Metrics: their names and meanings, totals, tuning state and the daemon as families, and their text format.

A superblock has at most 34 series and a transport group 7, so that a mount with a server of its own has 41.
Counters have few labels; `nfstuned_mount_info` has the others, to join on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from nfstuned.core.samples.sample import ALL_KINDS
from nfstuned.model.status import StatusRow
from nfstuned.model.totals import (
    CountedPlace,
    Kind,
    MetricFamily,
    OpTotals,
    Point,
    Service,
    SuperblockTotals,
    Totals,
)
from nfstuned.parse.fields import masked, quoted

_BUFFERED_READ, _BUFFERED_WRITTEN, _DIRECT_READ, _DIRECT_WRITTEN, _SERVER_READ, _SERVER_WRITTEN = range(6)
_KIB, _MS_PER_S = 1024, 1000
_UNUSED = OpTotals()

Values = Iterable[tuple[tuple[str, ...], float | None]]


class Meaning(NamedTuple):
    """A metric: `values` gives the numbers of one thing, each with the values of the labels in `more`."""

    name: str
    kind: Kind
    help: str
    values: Callable[[Any], Values]
    more: tuple[str, ...] = ()


def _single(value: Callable[[Any], float | None]) -> Callable[[Any], Values]:
    """Return the values of a metric that has no labels of its own."""
    return lambda thing: (((), value(thing)),)


def _io(buffered: int, direct: int) -> Callable[[SuperblockTotals], Values]:
    return lambda totals: ((("buffered",), totals.bytes[buffered]), (("direct",), totals.bytes[direct]))


def _each_kind(value: Callable[[OpTotals], float | None]) -> Callable[[SuperblockTotals], Values]:
    return lambda totals: (((kind,), value(totals.kinds.get(kind, _UNUSED))) for kind in ALL_KINDS)


def _all_kinds(value: Callable[[OpTotals], float]) -> Callable[[SuperblockTotals], Values]:
    return _single(lambda totals: sum(value(kind) for kind in totals.kinds.values()))


def _errors(totals: SuperblockTotals) -> Values:
    """Yield the errors of each kind; none where the kernel does not count them."""
    known = not totals.kinds or any(kind.errors is not None for kind in totals.kinds.values())
    if known:
        for kind in ALL_KINDS:
            yield (kind,), totals.kinds.get(kind, _UNUSED).errors or 0


def _bytes(kib: int | None) -> float | None:
    return None if kib is None else float(kib * _KIB)


SERVICE = (
    Meaning(
        "nfstuned_start_time_seconds", Kind.GAUGE, "When the service started, in Unix seconds.",
        _single(lambda service: service.started),
    ),
    Meaning(
        "nfstuned_last_sample_timestamp_seconds", Kind.GAUGE,
        "When the counters were read last, in Unix seconds: the time of all other metrics.",
        _single(lambda service: service.sampled),
    ),
    Meaning(
        "nfstuned_sample_interval_seconds", Kind.GAUGE, "The time between two samples.",
        _single(lambda service: service.interval_s),
    ),
    Meaning(
        "nfstuned_configuration_valid", Kind.GAUGE,
        "Whether the newest configuration is in use; 0 where it was refused.",
        _single(lambda service: float(service.policy_valid)),
    ),
    Meaning(
        "nfstuned_sampling_cpu_seconds_total", Kind.COUNTER, "CPU time that sampling took.",
        _single(lambda service: service.sampling_cpu_s),
    ),
    Meaning(
        "nfstuned_textfile_failures_total", Kind.COUNTER,
        "How often a file of metrics could not be written.",
        _single(lambda service: service.textfile_failures),
    ),
)  # fmt: skip

SUPERBLOCK = (
    Meaning(
        "nfstuned_mount_first_seen_timestamp_seconds", Kind.GAUGE,
        "When this superblock was first seen, in Unix seconds; its counters may hold an earlier one's.",
        _single(lambda totals: totals.since),
    ),
    Meaning(
        "nfstuned_mount_read_bytes_total", Kind.COUNTER,
        "Bytes that programs read, from the page cache or past it.",
        _io(_BUFFERED_READ, _DIRECT_READ), ("io",),
    ),
    Meaning(
        "nfstuned_mount_written_bytes_total", Kind.COUNTER,
        "Bytes that programs wrote, to the page cache or past it.",
        _io(_BUFFERED_WRITTEN, _DIRECT_WRITTEN), ("io",),
    ),
    Meaning(
        "nfstuned_mount_server_read_bytes_total", Kind.COUNTER, "Bytes that the server sent for reads.",
        _single(lambda totals: totals.bytes[_SERVER_READ]),
    ),
    Meaning(
        "nfstuned_mount_server_written_bytes_total", Kind.COUNTER,
        "Bytes that were sent to the server for writes.",
        _single(lambda totals: totals.bytes[_SERVER_WRITTEN]),
    ),
    Meaning(
        "nfstuned_mount_operations_total", Kind.COUNTER, "Operations that ended.",
        _each_kind(lambda kind: kind.ops), ("kind",),
    ),
    Meaning(
        "nfstuned_mount_operation_errors_total", Kind.COUNTER,
        "Replies with an error, a file that does not exist among them.",
        _errors, ("kind",),
    ),
    Meaning(
        "nfstuned_mount_operation_rtt_seconds_total", Kind.COUNTER,
        "Time from the last transmission to the reply, of all operations together.",
        _each_kind(lambda kind: kind.rtt_ms / _MS_PER_S), ("kind",),
    ),
    Meaning(
        "nfstuned_mount_operation_execute_seconds_total", Kind.COUNTER,
        "Time from the beginning to the end, of all operations together.",
        _each_kind(lambda kind: kind.execute_ms / _MS_PER_S), ("kind",),
    ),
    Meaning(
        "nfstuned_mount_operation_queue_seconds_total", Kind.COUNTER,
        "Time from the beginning to the last transmission, of all operations together.",
        _all_kinds(lambda kind: kind.queue_ms / _MS_PER_S),
    ),
    Meaning(
        "nfstuned_mount_retransmissions_total", Kind.COUNTER, "Requests that were sent again.",
        _all_kinds(lambda kind: kind.retransmissions),
    ),
    Meaning(
        "nfstuned_mount_timeouts_total", Kind.COUNTER,
        "Operations that had to begin again after all their retries.",
        _all_kinds(lambda kind: kind.timeouts),
    ),
    Meaning(
        "nfstuned_mount_read_ahead_contested_total", Kind.COUNTER,
        "How often another program was found to have changed the read-ahead.",
        _single(lambda totals: totals.contests),
    ),
)  # fmt: skip

TUNING = (
    Meaning(
        "nfstuned_mount_read_ahead_bytes", Kind.GAUGE,
        "The read-ahead as it was found; where another program changed it, before it was set again.",
        _single(lambda row: _bytes(row.read_ahead_kb)),
    ),
    Meaning(
        "nfstuned_mount_read_ahead_target_bytes", Kind.GAUGE,
        "The read-ahead that the profile asks for; absent where it asks for none or was undone.",
        _single(lambda row: None if row.undone else _bytes(row.read_ahead_target_kb)),
    ),
    Meaning(
        "nfstuned_mount_nconnect", Kind.GAUGE,
        "Connections that the first mount of the server asked for; later ones share them.",
        _single(lambda row: row.nconnect),
    ),
    Meaning(
        "nfstuned_mount_nconnect_target", Kind.GAUGE, "Connections that the profile recommends.",
        _single(lambda row: row.nconnect_target),
    ),
)  # fmt: skip


GROUP = (
    Meaning(
        "nfstuned_transport_connections", Kind.GAUGE, "Connections that the kernel lists.",
        _single(lambda group: len(group.lines)),
    ),
    Meaning(
        "nfstuned_transport_max_slots", Kind.GAUGE, "The most requests that a connection ever had at once.",
        _single(lambda group: max(
            (line.max_slots for line in group.lines if line.max_slots is not None), default=None
        )),
    ),
    Meaning(
        "nfstuned_transport_sends_total", Kind.COUNTER, "Requests that were sent.",
        _single(lambda group: group.sends),
    ),
    Meaning(
        "nfstuned_transport_connects_total", Kind.COUNTER, "Connections that were made.",
        _single(lambda group: group.connects),
    ),
    Meaning(
        "nfstuned_transport_in_flight_total", Kind.COUNTER,
        "For each request sent, how many it found under way: rate by that of sends is their mean number.",
        _single(lambda group: group.in_flight_sum),
    ),
    Meaning(
        "nfstuned_transport_backlog_total", Kind.COUNTER,
        "For each request sent, how many it found waiting for a slot: a sum as in_flight.",
        _single(lambda group: group.backlog_sum),
    ),
    Meaning(
        "nfstuned_transport_upkeep_operations_total", Kind.COUNTER,
        "Operations of the client itself, such as the renewal of its lease.",
        _single(lambda group: group.upkeep),
    ),
)  # fmt: skip


MOST_SERIES = 41
"""Of one superblock and its transport group."""
MOUNT = ("device", "mount_point")
_MISSING = "NFS412"


def families(totals: Totals, rows: Sequence[StatusRow], service: Service) -> Iterator[MetricFamily]:
    """Yield every family that has a series; `rows` are those of `status`, with the same superblocks."""
    by_device: dict[str, StatusRow] = {}
    for row in rows:
        by_device.setdefault(row.device, row)
    shown = {place: totals.superblocks[place] for place in totals.present}
    placed = {place: by_device[place.device] for place in shown if place.device in by_device}
    groups = [((name,), totals.groups[name]) for name in totals.groups_present]
    known = chain(
        (_family(each, (), [((), service)]) for each in SERVICE),
        _service(service, totals),
        _mounts(shown, placed, service),
        (_family(each, MOUNT, shown.items()) for each in SUPERBLOCK),
        (_family(each, MOUNT, placed.items()) for each in TUNING),
        (_family(each, ("group",), groups) for each in GROUP),
    )
    return (family for family in known if family.points)


def findings_families(counts: Mapping[tuple[str, str, str], int], time: float) -> tuple[MetricFamily, ...]:
    """Return the findings of a check: their number by rule, name and severity."""
    points = tuple(Point(labels, number) for labels, number in counts.items())
    missing = tuple(Point((), number) for (rule, *_), number in counts.items() if rule == _MISSING)
    found = "Findings of nfstuned check, by rule; 0 where it looked and found nothing."
    when = "When nfstuned check looked, in Unix seconds."
    gone = "Mounts that fstab or an enabled unit asks for and nobody has made, as nfstuned check found."
    return (
        MetricFamily("nfstuned_findings", Kind.GAUGE, found, ("rule", "name", "severity"), points),
        MetricFamily("nfstuned_findings_timestamp_seconds", Kind.GAUGE, when, (), (Point((), time),)),
        MetricFamily("nfstuned_mounts_missing", Kind.GAUGE, gone, (), missing),
    )


def _family(
    meaning: Meaning, labels: tuple[str, ...], things: Iterable[tuple[tuple[str, ...], object]]
) -> MetricFamily:
    points = tuple(
        Point((*place, *more), value)
        for place, thing in things
        for more, value in meaning.values(thing)
        if value is not None
    )
    return MetricFamily(meaning.name, meaning.kind, meaning.help, (*labels, *meaning.more), points)


def _service(service: Service, totals: Totals) -> Iterator[MetricFamily]:
    text = "The version of nfstuned that runs."
    points: tuple[Point, ...] = (Point((service.version,), 1.0),)
    yield MetricFamily("nfstuned_build_info", Kind.GAUGE, text, ("version",), points)
    text = "NFS superblocks, by whether they have metrics."
    points = (Point(("true",), len(totals.present)), Point(("false",), len(totals.left_out)))
    yield MetricFamily("nfstuned_mounts", Kind.GAUGE, text, ("exported",), points)
    text = "Superblocks without metrics, because prometheus.max_mounts others were there first."
    points = (Point((), totals.left_out_total),)
    yield MetricFamily("nfstuned_mounts_left_out_total", Kind.COUNTER, text, (), points)
    text = "Entries in the journal, by their message."
    points = tuple(Point((name,), number) for name, number in sorted(service.messages.items()))
    yield MetricFamily("nfstuned_journal_messages_total", Kind.COUNTER, text, ("message",), points)


def _mounts(
    shown: Mapping[CountedPlace, SuperblockTotals], rows: Mapping[CountedPlace, StatusRow], service: Service
) -> Iterator[MetricFamily]:
    """Yield each mount with its labels, and whether it is left to another program, and whether it waits."""
    points = []
    for place, superblock in shown.items():
        row = rows.get(place)
        counted = superblock.counted
        provider, profile = (row.provider, row.profile or "") if row else ("", "")
        points.append(Point((*place, counted.source, counted.group, provider, profile), 1.0))
    text = "Each mount with all of its labels, to join on; group is the transport group."
    labels = (*MOUNT, "source", "group", "provider", "profile")
    yield MetricFamily("nfstuned_mount_info", Kind.GAUGE, text, labels, tuple(points))
    text = "1 where the read-ahead is left to another program that keeps changing it."
    marks = tuple(Point(tuple(place), float(place.device in service.left)) for place in shown)
    yield MetricFamily("nfstuned_mount_read_ahead_left", Kind.GAUGE, text, MOUNT, marks)
    text = "For how long its users have waited for the server's answers; 0 where they do not."
    waits = tuple(Point(tuple(place), service.stalled.get(place.device, 0.0)) for place in shown)
    yield MetricFamily("nfstuned_mount_stalled_seconds", Kind.GAUGE, text, MOUNT, waits)


def exposition(found: Iterable[MetricFamily]) -> str:
    r"""Return families in the text format of Prometheus.

    Secrets in labels are masked, and bytes that are not UTF-8 become `\xff`.
    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    lines = []
    for family in found:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind.value}"]
        for point in family.points:
            pairs = sorted(zip(family.labels, point.labels, strict=True))
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
            lines.append(f"{family.name}{f'{{{labels}}}' if labels else ''} {float(point.value)!r}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(label: str) -> str:
    shown = masked(label).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


FINDINGS = frozenset({"nfstuned_findings", "nfstuned_findings_timestamp_seconds", "nfstuned_mounts_missing"})
FINDINGS_MOST = 1 << 16
"""Characters of a file of findings: a line for each rule has an eighth of it."""
_LABEL = r'[a-z]+="(?:[^"\\]|\\.)*"'
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,2})?"
_LINE = re.compile(rf"# (?:HELP|TYPE) (\w+) .*|(\w+)(?:{{{_LABEL}(?:,{_LABEL})*}})? {_NUMBER}")


def findings_lines(text: str) -> str:
    """Return the lines about findings of `nfstuned check --format prometheus`, and no others.

    Raises ValueError where the text is not in the format of `exposition`, or longer than FINDINGS_MOST.
    """
    if len(text) > FINDINGS_MOST:
        raise ValueError(f"longer than {FINDINGS_MOST} characters")
    lines = []
    for line in text.removesuffix("\n").split("\n") if text else ():
        matched = _LINE.fullmatch(line)
        if matched is None:
            raise ValueError(f"not the text format of Prometheus: {quoted(line)}")
        if (matched[1] or matched[2]) in FINDINGS:
            lines.append(line)
    return "".join(f"{line}\n" for line in lines)
