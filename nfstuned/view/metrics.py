"""Metrics: their names and meanings, totals, tuning state and the daemon as families, and their text format.

A superblock has at most 34 series and a transport group 7, so that a mount with a server of its own has 41.
Counters have few labels; `nfstuned_mount_info` has the others, to join on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from nfstuned.core.mounts.status import StatusRow
from nfstuned.core.samples.sample import ALL_KINDS
from nfstuned.model.metrics import (
    CountedPlace,
    MetricFamily,
    OpTotals,
    Point,
    Service,
    SuperblockTotals,
    Totals,
)
from nfstuned.model.mounts import PodVolume
from nfstuned.parse.fields import mask_secrets, quoted

_BUFFERED_READ, _BUFFERED_WRITTEN, _DIRECT_READ, _DIRECT_WRITTEN, _SERVER_READ, _SERVER_WRITTEN = range(6)
_KIB, _MS_PER_S = 1024, 1000
_UNUSED = OpTotals()

Value = Mapping[str, float | None] | float | None


class Metric(NamedTuple):
    """A metric: `value` gives a thing's number, or one for each value of the metric's own label."""

    name: str
    help: str
    value: Callable[[Any], Value]
    label: str = ""


def _io(buffered: int, direct: int) -> Callable[[SuperblockTotals], Value]:
    return lambda totals: {"buffered": totals.bytes[buffered], "direct": totals.bytes[direct]}


def _each_kind(value: Callable[[OpTotals], float | None]) -> Callable[[SuperblockTotals], Value]:
    return lambda totals: {kind: value(totals.kinds.get(kind, _UNUSED)) for kind in ALL_KINDS}


def _sum_kinds(value: Callable[[OpTotals], float]) -> Callable[[SuperblockTotals], Value]:
    return lambda totals: sum(value(kind) for kind in totals.kinds.values())


def _errors(totals: SuperblockTotals) -> Value:
    """Return the errors of each kind; no number where the kernel does not count them."""
    known = not totals.kinds or any(kind.errors is not None for kind in totals.kinds.values())
    return {kind: totals.kinds.get(kind, _UNUSED).errors or 0 for kind in ALL_KINDS} if known else {}


def _bytes(kib: int | None) -> float | None:
    return None if kib is None else float(kib * _KIB)


SERVICE = (
    Metric(
        "nfstuned_start_time_seconds",
        "When the service started, in Unix seconds.",
        lambda service: service.started,
    ),
    Metric(
        "nfstuned_last_sample_timestamp_seconds",
        "When the counters were read last, in Unix seconds: the time of all other metrics.",
        lambda service: service.sampled,
    ),
    Metric(
        "nfstuned_sample_interval_seconds",
        "The time between two samples.",
        lambda service: service.interval_s,
    ),
    Metric(
        "nfstuned_configuration_valid",
        "Whether the newest configuration is in use; 0 if it was refused.",
        lambda service: float(service.policy_valid),
    ),
    Metric(
        "nfstuned_sampling_cpu_seconds_total",
        "CPU time that sampling took.",
        lambda service: service.sampling_cpu_s,
    ),
    Metric(
        "nfstuned_textfile_failures_total",
        "How often a file of metrics could not be written.",
        lambda service: service.textfile_failures,
    ),
)

SUPERBLOCK = (
    Metric(
        "nfstuned_mount_first_seen_timestamp_seconds",
        (
            "When this superblock was first seen, in Unix seconds; its counters may continue from those of "
            "an earlier superblock."
        ),
        lambda totals: totals.since,
    ),
    Metric(
        "nfstuned_mount_read_bytes_total",
        "Bytes that programs read, from the page cache or past it.",
        _io(_BUFFERED_READ, _DIRECT_READ),
        "io",
    ),
    Metric(
        "nfstuned_mount_written_bytes_total",
        "Bytes that programs wrote, to the page cache or past it.",
        _io(_BUFFERED_WRITTEN, _DIRECT_WRITTEN),
        "io",
    ),
    Metric(
        "nfstuned_mount_server_read_bytes_total",
        "Bytes that the server sent for reads.",
        lambda totals: totals.bytes[_SERVER_READ],
    ),
    Metric(
        "nfstuned_mount_server_written_bytes_total",
        "Bytes that were sent to the server for writes.",
        lambda totals: totals.bytes[_SERVER_WRITTEN],
    ),
    Metric(
        "nfstuned_mount_operations_total", "Completed operations.", _each_kind(lambda kind: kind.ops), "kind"
    ),
    Metric(
        "nfstuned_mount_operation_errors_total",
        "Replies with an error, including those for missing files.",
        _errors,
        "kind",
    ),
    Metric(
        "nfstuned_mount_operation_rtt_seconds_total",
        "Time from the last transmission to the reply, summed over all operations.",
        _each_kind(lambda kind: kind.rtt_ms / _MS_PER_S),
        "kind",
    ),
    Metric(
        "nfstuned_mount_operation_execute_seconds_total",
        "Time from the beginning to the end, summed over all operations.",
        _each_kind(lambda kind: kind.execute_ms / _MS_PER_S),
        "kind",
    ),
    Metric(
        "nfstuned_mount_operation_queue_seconds_total",
        "Time from the beginning to the last transmission, summed over all operations.",
        _sum_kinds(lambda kind: kind.queue_ms / _MS_PER_S),
    ),
    Metric(
        "nfstuned_mount_retransmissions_total",
        "Retransmitted requests.",
        _sum_kinds(lambda kind: kind.retransmissions),
    ),
    Metric(
        "nfstuned_mount_timeouts_total",
        "Operations that began again after all their retries.",
        _sum_kinds(lambda kind: kind.timeouts),
    ),
    Metric(
        "nfstuned_mount_read_ahead_contested_total",
        "Changes of the read-ahead by other programs.",
        lambda totals: totals.contests,
    ),
)

TUNING = (
    Metric(
        "nfstuned_mount_read_ahead_bytes",
        (
            "The read-ahead as it was read; after a change by another program, its value before it was set "
            "again."
        ),
        lambda row: _bytes(row.read_ahead_kb),
    ),
    Metric(
        "nfstuned_mount_read_ahead_target_bytes",
        "The profile's read-ahead, or its value moved by reads; absent without a target and after an undo.",
        lambda row: None if row.hold else _bytes(row.read_ahead_target_kb),
    ),
    Metric(
        "nfstuned_mount_nconnect",
        "Connections that the first mount of the server asked for; later mounts share them.",
        lambda row: row.nconnect,
    ),
    Metric(
        "nfstuned_mount_nconnect_target",
        "Connections that the profile recommends.",
        lambda row: row.nconnect_target,
    ),
)


EFFECT: tuple[Metric, ...] = (
    Metric(
        "nfstuned_mount_change_read_ahead_bytes",
        "The read-ahead before and after its last change; absent if the load changed as well.",
        lambda pace: pace.read_ahead_kb * 1024,
    ),
    Metric(
        "nfstuned_mount_change_read_bytes_per_second",
        "Programs' reads in the last interval with reads before the change, and in the first one after it.",
        lambda pace: pace.read_bytes_per_s,
    ),
    Metric(
        "nfstuned_mount_change_read_rtt_seconds",
        "The mean round trip of READ in these intervals.",
        lambda pace: None if pace.rtt_ms is None else pace.rtt_ms / 1000,
    ),
    Metric(
        "nfstuned_mount_change_over_fetch_ratio",
        "Bytes from the server for each byte that programs read in these intervals.",
        lambda pace: pace.over_fetch_ratio,
    ),
)
"""The effect of the last change of a read-ahead: `when` is before or after."""
_WHEN = ("before", "after")
GROUP = (
    Metric(
        "nfstuned_transport_connections", "Connections that the kernel lists.", lambda group: len(group.lines)
    ),
    Metric(
        "nfstuned_transport_max_slots",
        "The largest number of requests that a connection ever had at once.",
        lambda group: max(
            (line.max_slots for line in group.lines if line.max_slots is not None), default=None
        ),
    ),
    Metric("nfstuned_transport_sends_total", "Requests sent.", lambda group: group.sends),
    Metric("nfstuned_transport_connects_total", "Connections made.", lambda group: group.connects),
    Metric(
        "nfstuned_transport_in_flight_total",
        (
            "Requests under way at each send, summed: its rate divided by the rate of sends is their mean "
            "number."
        ),
        lambda group: group.in_flight_sum,
    ),
    Metric(
        "nfstuned_transport_backlog_total",
        "Requests waiting for a slot at each send, summed, as in_flight.",
        lambda group: group.backlog_sum,
    ),
    Metric(
        "nfstuned_transport_upkeep_operations_total",
        "Operations of the client itself, such as the renewal of its lease.",
        lambda group: group.upkeep,
    ),
)


MOUNT = ("device", "mount_point")
_MISSING = "NFS412"
_MOST_PODS = 50
"""Of a mount, with a series of its volume."""


def families(totals: Totals, rows: Sequence[StatusRow], service: Service) -> Iterator[MetricFamily]:
    """Yield every family that has a series; `rows` are those of `status`, with the same superblocks."""
    by_device: dict[str, StatusRow] = {}
    for row in rows:
        by_device.setdefault(row.device, row)
    shown = {place: totals.superblocks[place] for place in totals.present}
    placed = {place: by_device[place.device] for place in shown if place.device in by_device}
    groups = [((name,), totals.groups[name]) for name in totals.groups_present]
    known = chain(
        (_family(metric, (), [((), service)]) for metric in SERVICE),
        _service(service, totals),
        _mounts(shown, placed, service),
        (_family(metric, MOUNT, shown.items()) for metric in SUPERBLOCK),
        (_family(metric, MOUNT, placed.items()) for metric in TUNING),
        (_family(metric, ("group",), groups) for metric in GROUP),
    )
    return (family for family in known if family.points)


def findings_families(counts: Mapping[tuple[str, str, str], int], time: float) -> tuple[MetricFamily, ...]:
    """Return the findings of a check: their number by rule, name and severity."""
    points = tuple(Point(labels, number) for labels, number in counts.items())
    absent = tuple(Point((), number) for (rule, *_), number in counts.items() if rule == _MISSING)
    found = "Findings of nfstuned check, by rule; 0 if it looked and found nothing."
    when = "When nfstuned check ran, in Unix seconds."
    gone = "Mounts that fstab or an enabled unit asks for and that are missing, as nfstuned check saw."
    return (
        MetricFamily("nfstuned_findings", found, ("rule", "name", "severity"), points),
        MetricFamily("nfstuned_findings_timestamp_seconds", when, (), (Point((), time),)),
        MetricFamily("nfstuned_mounts_missing", gone, (), absent),
    )


def _family(
    metric: Metric, labels: tuple[str, ...], things: Iterable[tuple[tuple[str, ...], object]]
) -> MetricFamily:
    points = []
    for place, thing in things:
        value = metric.value(thing)
        if isinstance(value, Mapping):
            points += [Point((*place, key), each) for key, each in value.items() if each is not None]
        elif value is not None:
            points.append(Point(place, value))
    own = (metric.label,) if metric.label else ()
    return MetricFamily(metric.name, metric.help, (*labels, *own), tuple(points))


def _service(service: Service, totals: Totals) -> Iterator[MetricFamily]:
    text = "The version of nfstuned that runs."
    points: tuple[Point, ...] = (Point((service.version,), 1.0),)
    yield MetricFamily("nfstuned_build_info", text, ("version",), points)
    text = "NFS superblocks, by whether they have metrics."
    points = (Point(("true",), len(totals.present)), Point(("false",), len(totals.left_out)))
    yield MetricFamily("nfstuned_mounts", text, ("exported",), points)
    text = "Superblocks without metrics, because prometheus.max_mounts others came first."
    points = (Point((), totals.left_out_total),)
    yield MetricFamily("nfstuned_mounts_left_out_total", text, (), points)
    text = "Entries in the journal, by their message."
    points = tuple(Point((name,), number) for name, number in sorted(service.messages.items()))
    yield MetricFamily("nfstuned_journal_messages_total", text, ("message",), points)


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
    text = "Each mount with all of its labels, for joins; group is the transport group."
    labels = (*MOUNT, "source", "group", "provider", "profile")
    yield MetricFamily("nfstuned_mount_info", text, labels, tuple(points))
    text = "Each volume that a kubelet mounted for a pod, for joins; without a name that no file has."
    named = [(place, name) for place in shown for name in service.volumes.get(place.device, ())[:_MOST_PODS]]
    pods = tuple(Point((*place, *(each or "" for each in name)), 1.0) for place, name in named)
    yield MetricFamily("nfstuned_mount_volume_info", text, (*MOUNT, *PodVolume._fields), pods)
    text = "1 if the read-ahead is left to another program that keeps changing it."
    marks = tuple(Point(tuple(place), float(place.device in service.left)) for place in shown)
    yield MetricFamily("nfstuned_mount_read_ahead_left", text, MOUNT, marks)
    text = "How long its users have waited for the server's answers; 0 if they do not wait."
    waits = tuple(Point(tuple(place), service.stalled.get(place.device, 0.0)) for place in shown)
    yield MetricFamily("nfstuned_mount_stalled_seconds", text, MOUNT, waits)
    changed = [(place, service.effects[place.device]) for place in shown if place.device in service.effects]
    paces = [((*place, when), getattr(effect, when)) for place, effect in changed for when in _WHEN]
    yield from (_family(metric, (*MOUNT, "when"), paces) for metric in EFFECT)


def exposition(shown: Iterable[MetricFamily]) -> str:
    r"""Return families in the text format of Prometheus.

    Secrets in labels are masked, and bytes that are not UTF-8 become `\xff`.
    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    lines = []
    for family in shown:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        for point in family.points:
            pairs = sorted(zip(family.labels, point.labels, strict=True))
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
            lines.append(f"{family.name}{f'{{{labels}}}' if labels else ''} {float(point.value)!r}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(label: str) -> str:
    shown = mask_secrets(label).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


FINDINGS = frozenset({"nfstuned_findings", "nfstuned_findings_timestamp_seconds", "nfstuned_mounts_missing"})
FINDINGS_MOST = 1 << 16
"""The most characters of a file of findings; a line for each rule needs a seventh."""
_LABEL = r'[a-z]+="(?:[^"\\]|\\.)*"'
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,2})?"
_LINE = re.compile(rf"# (?:HELP|TYPE) (\w+) .*|(\w+)(?:{{{_LABEL}(?:,{_LABEL})*}})? {_NUMBER}")


def findings_lines(text: str) -> str:
    """Return the lines about findings of `nfstuned check --format prometheus`, and no others.

    Raises ValueError for a line without the form of check's, and for text longer than FINDINGS_MOST.
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
