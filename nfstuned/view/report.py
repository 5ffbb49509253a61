"""The report: one HTML page with the samples of each mount, the findings, and the changes by the service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from nfstuned.core.samples.effect import effect_text
from nfstuned.core.samples.history import BOUNDS_MS, Axis, MountSeries
from nfstuned.core.samples.sample import ALL_KINDS, amount, figure, speed
from nfstuned.model.facts import Report
from nfstuned.model.samples import Event
from nfstuned.parse.fields import count
from nfstuned.view.check import verdict_lines
from nfstuned.view.pages import WIDE, Chart, Plot, PlotFrame, PlotLine, render, zone_name
from nfstuned.view.words import DASH, TIME_FORM, duration

MOST_MOUNTS = 50
"""With charts; with more of them a browser would take minutes to draw the page."""
MOST_EVENTS = 500
_MOST_MARKS = 100
_HEADINGS = ("In use", "Read", "Written", "Peak read", "Peak write", "Over-fetch", "Read RTT", "Write RTT")
_STYLES = ("s1", "s2", "s3", "s4")
_TITLES = {"read": "Reads", "write": "Writes", "metadata": "Metadata operations", "other": "Other operations"}


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

    def moment(self, moment: float) -> str:
        """Return a time in the page's zone."""
        return datetime.fromtimestamp(moment, self.zone).strftime(TIME_FORM)


@dataclass(frozen=True, slots=True)
class _Row:
    """A mount in the table."""

    mount: MountSeries
    number: int | None
    """Of the section with its charts."""
    lines: tuple[PlotLine, ...]
    plot: Plot
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    """A mount with its charts."""

    mount: MountSeries
    about: str
    read_ahead: tuple[str, ...]
    charts: tuple[tuple[Chart, Plot], ...]


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
    return render(
        "report.jinja",
        title=page.title,
        span=f"{page.moment(page.start)} to {page.moment(page.end)}, {zone_name(page.start, page.end, zone)}",
        made=f"{page.moment(page.made)} {zone_name(page.made, page.made, zone)}",
        point=duration(page.axis.width_s) if page.axis else "",
        account=account,
        headings=_HEADINGS,
        rows=[_row(mount, frame, numbers.get(id(mount))) for mount in page.mounts] if frame else [],
        verdict=list(verdict_lines(report)) if report else [],
        findings=report.diagnosis.findings if report else (),
        events=[(page.moment(event.time), event.text) for event in events],
        earlier_events=len(account.events) - len(events),
        sections=[_section(mount, frame, account.events) for mount in drawn] if frame else [],
        bounds=[number(bound) for bound in BOUNDS_MS],
        mounts_without_charts=len(page.mounts) - len(drawn) if frame else 0,
    )


def _row(mount: MountSeries, frame: PlotFrame, number: int | None) -> _Row:
    read, write = (_lines(mount, (name, name, style)) for name, style in (("read", "s1"), ("write", "s2")))
    over_fetch = mount.server_read_bytes / mount.read_bytes if mount.read_bytes >= 1 else None
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
    return _Row(mount, number, lines, frame.spark(lines), figures)


def _section(mount: MountSeries, frame: PlotFrame, events: Iterable[Event]) -> _Section:
    texts = [*map(str, mount.read_ahead), *map(effect_text, mount.effects)]
    return _Section(
        mount,
        f"{count(mount.samples, 'sample')}, in use for {duration(mount.used_s)}, over {mount.group}",
        tuple(text[0].upper() + text[1:] for text in texts),
        tuple((chart, frame.plot(chart)) for chart in mount_charts(mount, events)),
    )


def mount_charts(mount: MountSeries, events: Iterable[Event]) -> Iterator[Chart]:
    """Yield the throughput, and the other known figures of a mount."""
    # A device number alone may be another mount's by now.
    own = [event for event in events if (event.mount_point or event.device) in mount.keys]
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
        marks=tuple((event.time, event.text) for event in own)[-_MOST_MARKS:],
    )
    stalled = _lines(mount, ("stalled", "of the time, requests waited for the server's answer", "s3"))
    if stalled and mount.most["stalled"]:
        yield Chart("Stalled", stalled, lambda value: f"{number(value)} %", WIDE)
    yield from (chart for chart in _other_charts(mount) if chart.lines)


def _other_charts(mount: MountSeries) -> Iterator[Chart]:
    """Yield all charts but the throughput; a chart of figures that were never known has no lines."""
    over_fetch = _lines(mount, ("over-fetch", "bytes sent for each byte that programs read", "s1"))
    yield Chart("Over-fetch", over_fetch, number, reference=1.0)
    for kind, title in _TITLES.items():
        times = _lines(
            mount,
            (f"{kind}-exe", "execute, all of it", "s3"),
            (f"{kind}-rtt", "round trip", "s1"),
            (f"{kind}-queue", "queue, until sent", "s2"),
        )
        yield Chart(f"{title}: mean time of each", times, lambda value: f"{number(value)} ms")
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
