"""The report: one HTML page with the samples of each mount, the findings, and the changes by the service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import NamedTuple

from nfstuned.core.mounts.volumes import UNNAMED, volume_name, volume_paths
from nfstuned.core.samples.effect import effect_text
from nfstuned.core.samples.evidence import ENOUGH_BYTES, WASTE_RATIO
from nfstuned.core.samples.history import BOUNDS_MS, Axis, MountSeries
from nfstuned.core.samples.sample import ALL_KINDS, amount, figure, label_of, speed
from nfstuned.model.facts import Report, Severity
from nfstuned.model.mounts import KubeletNames
from nfstuned.model.samples import Event, ReadAheadStep
from nfstuned.parse.fields import count
from nfstuned.view.check import verdict_lines
from nfstuned.view.pages import WIDE, Chart, Mark, Plot, PlotFrame, PlotLine, render, zone_name
from nfstuned.view.words import DASH, TIME_FORM, duration

MOST_MOUNTS = 50
"""With charts; with more of them a browser would take minutes to draw the page."""
MOST_EVENTS = 500
_MOST_MARKS = 100
_HEADINGS = ("In use", "Read", "Written", "Peak read", "Peak write", "Over-fetch", "Read RTT", "Write RTT")
_RTTS = frozenset({"read-rtt", "write-rtt"})
_OVER_FETCH, _TIME_OF_EACH = "Over-fetch", ": mean time of each"
_STYLES = ("s1", "s2", "s3", "s4")
_TITLES = {"read": "Reads", "write": "Writes", "metadata": "Metadata operations", "other": "Other operations"}
_OF_READS = frozenset({_OVER_FETCH, f"{_TITLES['read']}{_TIME_OF_EACH}"})
"""The charts on which a read-ahead acts."""


@dataclass(frozen=True, slots=True)
class Account:
    """The page's content next to the samples: findings and the service's events, or why they are missing."""

    report: Report | None = None
    no_report: str = ""
    events: Sequence[Event] = ()
    no_events: str = ""
    damaged: int = 0
    """How many entries or lines could not be read."""


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a superblock, and its mount points where the name is a volume's."""

    text: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """The content of the page."""

    title: str
    made: float
    """When, in Unix seconds."""
    start: float
    """The time that every chart shows, in Unix seconds: the time that was asked for, and all samples."""
    end: float
    axis: Axis | None
    mounts: Sequence[MountSeries]
    account: Account
    zone: tzinfo | None = None
    """None for the host's."""
    names: KubeletNames = UNNAMED

    def name(self, points: Sequence[str]) -> _Name:
        """Return the name of a superblock at these mount points."""
        return _name(points, self.names)

    def series_name(self, mount: MountSeries) -> _Name:
        """Return the name of a superblock; its samples know pods that are gone."""
        names = self.names._replace(pods={**mount.pods, **self.names.pods})
        return _name(mount.points, names, mount.source)

    def moment(self, moment: float) -> str:
        """Return a time in the page's zone."""
        return datetime.fromtimestamp(moment, self.zone).strftime(TIME_FORM)


def _name(points: Sequence[str], names: KubeletNames, source: str = "") -> _Name:
    volume = volume_name(points, names, source)
    return _Name(volume, volume_paths(points, names)) if volume else _Name(label_of(points))


class Worst(NamedTuple):
    """The worst mount, the reason, and the figures that are not known of some mounts."""

    mount: MountSeries
    mark: str
    """"worst", or "slowest" where nothing is wrong and its round trip is the longest."""
    reason: str
    unknown: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A mount in the table."""

    mount: MountSeries
    name: _Name
    number: int | None
    """Of the section with its charts."""
    lines: tuple[PlotLine, ...]
    plot: Plot
    figures: tuple[tuple[str, str], ...]
    """With their headings."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A mount with its charts."""

    mount: MountSeries
    name: _Name
    about: str
    read_ahead: tuple[str, ...]
    charts: tuple[Chart, ...]


def report_page(page: Page) -> Iterator[str]:
    """Yield the page line by line."""
    account, zone = page.account, page.zone
    events = account.events[-MOST_EVENTS:]
    frame = page.axis and PlotFrame(page.start, max(page.end, page.start + 1.0), page.axis, zone)
    # Many mounts: those that moved most have charts, in the table's order.
    most = sorted(page.mounts, key=lambda mount: -(mount.read_bytes + mount.written_bytes))[:MOST_MOUNTS]
    drawn = [mount for mount in page.mounts if any(mount is each for each in most)] if frame else []
    numbers = {id(mount): number for number, mount in enumerate(drawn, 1)}
    report = account.report
    rows = [_row(mount, page, frame, numbers.get(id(mount))) for mount in page.mounts] if frame else []
    worst = worst_mount(page.mounts, report)
    findings = report.diagnosis.findings if report else ()
    return render(
        "report.jinja",
        title=page.title,
        span=f"{page.moment(page.start)} to {page.moment(page.end)}, {zone_name(page.start, page.end, zone)}",
        made=f"{page.moment(page.made)} {zone_name(page.made, page.made, zone)}",
        point=duration(page.axis.width_s) if page.axis else "",
        account=account,
        headings=_HEADINGS,
        rows=rows,
        worst=worst,
        worst_row=next((row for row in rows if worst and row.mount is worst.mount), None),
        verdict=list(verdict_lines(report)) if report else [],
        findings=[(finding, page.name((finding.subject,))) for finding in findings],
        events=[(page.moment(event.time), event.text) for event in events],
        earlier_events=len(account.events) - len(events),
        plot=frame and frame.plot,
        sections=[_section(mount, page) for mount in drawn],
        bounds=[number(bound) for bound in BOUNDS_MS],
        mounts_without_charts=len(page.mounts) - len(drawn) if frame else 0,
    )


def worst_mount(mounts: Sequence[MountSeries], report: Report | None) -> Worst | None:
    """Return the worst of some mounts; None where no figure puts one of them last.

    A mount with more errors of the check is worse; of mounts with as many, the one that was stalled for more
    of its time, then the one with more over-fetch, and then the one with the longest mean round trip. That a
    round trip is the longest says nothing about a mount without others.
    """
    findings = report.diagnosis.findings if report else ()
    errors = Counter(finding.subject for finding in findings if finding.severity is Severity.ERROR)
    ranks = [_rank(mount, errors) for mount in mounts]
    at = max(range(len(ranks)), key=ranks.__getitem__, default=0)
    number, stalled, over_fetch, rtt_ms = ranks[at] if ranks else (0, 0.0, 0.0, 0.0)
    reasons = (
        (number, f"nfstuned check finds {count(number, 'error')} of this mount now"),
        (stalled, f"its server left requests unanswered for {figure(stalled)} % of its time in use"),
        (over_fetch, f"its server sent {over_fetch:.2f} times the bytes that programs read"),
        (
            rtt_ms and len(ranks) > 1,
            f"its reads or writes have the longest mean round trip, {figure(rtt_ms)} ms",
        ),
    )
    reason = next((text for value, text in reasons if value), None)
    if reason is None:
        return None
    unknown = (
        "" if report else "errors",
        _unknown("time stalled", sum("stalled" not in mount.means for mount in mounts)),
        _unknown("round trip", sum(not _RTTS & mount.means.keys() for mount in mounts)),
    )
    mark = "worst" if number or stalled or over_fetch else "slowest"
    return Worst(mounts[at], mark, reason, ", ".join(filter(None, unknown)))


def _unknown(figure: str, number: int) -> str:
    return f"the {figure} of {count(number, 'mount')}" if number else ""


def _rank(mount: MountSeries, errors: Mapping[str, int]) -> tuple[int, float, float, float]:
    """Return a mount's errors, percent of time stalled, over-fetch where it is waste, and round trip."""
    over_fetch = _over_fetch(mount) or 0.0
    wasted = over_fetch >= WASTE_RATIO and mount.server_read_bytes >= ENOUGH_BYTES
    return (
        sum(errors[key] for key in mount.keys),
        mount.means.get("stalled", 0.0),
        over_fetch if wasted else 0.0,
        max((mount.means[name] for name in _RTTS & mount.means.keys()), default=0.0),
    )


def _over_fetch(mount: MountSeries) -> float | None:
    return mount.server_read_bytes / mount.read_bytes if mount.read_bytes >= 1 else None


def _row(mount: MountSeries, page: Page, frame: PlotFrame, number: int | None) -> _Row:
    read, write = (_lines(mount, (name, name, style)) for name, style in (("read", "s1"), ("write", "s2")))
    over_fetch = _over_fetch(mount)
    figures = (
        duration(mount.used_s),
        amount(mount.read_bytes),
        amount(mount.written_bytes),
        speed(mount.most.get("read", 0.0)),
        speed(mount.most.get("write", 0.0)),
        DASH if over_fetch is None else f"{over_fetch:.2f}",
        *(
            DASH if mean is None else f"{figure(mean)} ms"
            for mean in (mount.means.get("read-rtt"), mount.means.get("write-rtt"))
        ),
    )
    lines = (*read, *write)
    named = tuple(zip(_HEADINGS, figures, strict=True))
    return _Row(mount, page.series_name(mount), number, lines, frame.spark(lines), named)


def _section(mount: MountSeries, page: Page) -> _Section:
    texts = [*map(str, mount.read_ahead), *map(effect_text, mount.effects)]
    return _Section(
        mount,
        page.series_name(mount),
        f"{count(mount.samples, 'sample')}, in use for {duration(mount.used_s)}, over {mount.group}",
        tuple(f"{text[0].upper()}{text[1:]}." for text in texts),
        tuple(mount_charts(mount, page.account.events)),
    )


def mount_charts(mount: MountSeries, events: Iterable[Event]) -> Iterator[Chart]:
    """Yield the throughput, and the other known figures of a mount."""
    # A device number alone may be another mount's by now.
    own = [event for event in events if (event.mount_point or event.device) in mount.keys]
    steps = [*_marked_steps(mount.steps, own)]
    others = [Mark(event.time, event.text) for event in own if event.step is None]
    yield Chart(
        "Throughput",
        _lines(
            mount,
            ("read", "read by programs", "s1"),
            ("server-read", "read from the server", "s1 dashed"),
            ("write", "written by programs", "s2"),
            ("server-write", "written to the server", "s2 dashed"),
        ),
        lambda value: speed(value).replace(".0 ", " "),
        WIDE,
        marks=tuple(sorted((*steps, *others)))[-_MOST_MARKS:],
    )
    stalled = _lines(mount, ("stalled", "of the time, requests waited for the server's answer", "s3"))
    if stalled and mount.most["stalled"]:
        yield Chart("Stalled", stalled, lambda value: f"{number(value)} %", WIDE)
    for chart in _other_charts(mount):
        if chart.lines:
            yield replace(chart, marks=tuple(steps)[-_MOST_MARKS:]) if chart.title in _OF_READS else chart


def _marked_steps(steps: Iterable[ReadAheadStep], events: Sequence[Event]) -> Iterator[Mark]:
    """Yield the changes of a read-ahead: the service's, and those of others that the samples show."""
    known = [(event.step, event.text) for event in events if event.step]
    for step, text in known:
        yield Mark(step.until, text, _change(step))
    for step in steps:
        if not any(
            each.new_kb == step.new_kb and step.after <= each.until <= step.until for each, _ in known
        ):
            yield Mark(step.until, f"read-ahead {_change(step)}, as the samples show", _change(step))


def _change(step: ReadAheadStep) -> str:
    return f"{step.old_kb} -> {step.new_kb} KiB"


def _other_charts(mount: MountSeries) -> Iterator[Chart]:
    """Yield all charts but the throughput; a chart of figures that were never known has no lines."""
    over_fetch = _lines(mount, ("over-fetch", "bytes sent for each byte that programs read", "s1"))
    yield Chart(_OVER_FETCH, over_fetch, number, reference=1.0)
    for kind, title in _TITLES.items():
        times = _lines(
            mount,
            (f"{kind}-exe", "execute, all of it", "s3"),
            (f"{kind}-rtt", "round trip", "s1"),
            (f"{kind}-queue", "queue, until sent", "s2"),
        )
        yield Chart(f"{title}{_TIME_OF_EACH}", times, lambda value: f"{number(value)} ms")
    styles = zip(ALL_KINDS, _STYLES, strict=True)
    operations = _lines(mount, *((f"{kind}-ops", kind, style) for kind, style in styles))
    yield Chart("Operations by kind", operations, _per_second)
    connections = _lines(mount, ("connections", "of all mounts of the server together", "s1"))
    yield Chart("Connections", connections, number)
    requests = _lines(mount, ("in-flight", "under way", "s1"), ("backlog", "waiting for a slot", "s2"))
    yield Chart("Requests under way when a new one is sent", requests, number)
    trouble = (
        ("retrans", "sent again", "s1"),
        ("errors", "errors, including missing files", "s2"),
        ("timeouts", "timed out", "s3"),
    )
    happened = _lines(mount, *(series for series in trouble if mount.most.get(series[0])))
    yield Chart("Retransmissions, errors, timeouts", happened, _per_second)


def _lines(mount: MountSeries, *named: tuple[str, str, str]) -> tuple[PlotLine, ...]:
    """Return the known lines among `named`: the key of the series, the name of the line, and its style."""
    return tuple(
        PlotLine(text, style, mount.lines[name]) for name, text, style in named if name in mount.lines
    )


def number(value: float) -> str:
    """Return a number of a scale with steps of 1, 2 or 5 times a power of ten."""
    return f"{value:.6g}"


def _per_second(value: float) -> str:
    return f"{number(value)}/s"
