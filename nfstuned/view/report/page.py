"""The report: one HTML page that loads nothing, runs no script, and is well-formed XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from nfstuned import __version__
from nfstuned.core.samples.history import Axis
from nfstuned.core.samples.sample import amount, speed
from nfstuned.core.samples.series import MountSeries
from nfstuned.model.facts import Report
from nfstuned.model.finding import Finding
from nfstuned.model.samples import Event
from nfstuned.parse.fields import count
from nfstuned.view.check import verdict
from nfstuned.view.report.chart import PlotFrame, PlotLine, esc, spark
from nfstuned.view.report.mount import milliseconds, mount_section, ratio
from nfstuned.view.report.sheet import head_lines, zone_name
from nfstuned.view.words import TIME_FORM, duration

MOST_MOUNTS = 50
"""With charts; of more a browser would take minutes to draw the page."""
MOST_EVENTS = 500
_HEADINGS = (
    ("Mount", "text"),
    ("Server", "text"),
    ("Read and write over the time", "text"),
    ("In use", "number"),
    ("Read", "number"),
    ("Written", "number"),
    ("Peak read", "number"),
    ("Peak write", "number"),
    ("Over-fetch", "number"),
    ("Read RTT", "number"),
    ("Write RTT", "number"),
)


@dataclass(frozen=True, slots=True)
class Account:
    """What the page says beside the samples: the check's report and the service's events, or why not."""

    report: Report | None = None
    no_report: str = ""
    events: Sequence[Event] = ()
    no_events: str = ""
    damaged: int = 0
    """How many entries or lines could not be read."""


@dataclass(frozen=True, slots=True)
class Page:
    """All that is on the page."""

    title: str
    made: float
    """When, in Unix seconds."""
    start: float
    """The time that every chart shows, in Unix seconds: what was asked for, and all samples."""
    end: float
    axis: Axis | None
    mounts: Sequence[MountSeries]
    account: Account
    zone: tzinfo | None = None
    """None for the host's."""

    @property
    def frame(self) -> PlotFrame | None:
        """The time that every chart shows; None without samples."""
        if self.axis is None:
            return None
        return PlotFrame(self.start, max(self.end, self.start + 1.0), self.axis, self.zone)


def page_lines(page: Page) -> Iterator[str]:
    """Yield the page line by line; it is ASCII and what is UTF-8 in names."""
    yield from head_lines(page.title)
    yield f"<body><header><h1>{esc(page.title)}</h1>"
    span = f"{_moment(page, page.start)} to {_moment(page, page.end)}"
    yield f'<p class="meta">{esc(f"{span}, {zone_name(page.start, page.end, page.zone)}")}</p></header>'
    yield from _samples(page)
    yield from _findings(page)
    yield from _events(page)
    yield from _mounts(page)
    made = f"Made by nfstuned {__version__} at {_moment(page, page.made)}"
    yield f"<footer><p>{esc(f'{made} {zone_name(page.made, page.made, page.zone)}')}.</p></footer>"
    yield "</body></html>"


def _moment(page: Page, moment: float) -> str:
    return datetime.fromtimestamp(moment, page.zone).strftime(TIME_FORM)


def _samples(page: Page) -> Iterator[str]:
    """Yield the table of all mounts, and how to read it."""
    frame = page.frame
    if page.account.damaged:
        yield f'<p class="warning">{count(page.account.damaged, "damaged sample")} could not be read.</p>'
    if frame is None:
        yield "<p>There are no samples of this time: nothing was in use, or the service did not run.</p>"
        return
    point = duration(frame.axis.width_s)
    yield (
        f"<p>Each point of a line is the mean of {esc(point)}, weighted by time, over what was in use. "
        "Where there is no line, the mount was not in use, or the service did not run. "
        "Peaks are of single samples. Read and Written are what programs asked for and got.</p>"
    )
    yield '<div class="scroll"><table class="mounts"><thead><tr>'
    yield "".join(f'<th class="{kind}">{name}</th>' for name, kind in _HEADINGS)
    yield "</tr></thead><tbody>"
    drawn = {id(mount): number for number, mount in enumerate(_drawn(page), 1)}
    for mount in page.mounts:
        yield _row(mount, frame, drawn.get(id(mount)))
    yield "</tbody></table></div>"


def _row(mount: MountSeries, frame: PlotFrame, number: int | None) -> str:
    name = esc(mount.label)
    lines = [
        PlotLine(key, style, mount.lines.get(key, ())) for key, style in (("read", "s1"), ("write", "s2"))
    ]
    over_fetch = mount.server_read_bytes / mount.read_bytes if mount.read_bytes >= 1 else None
    numbers = (
        duration(mount.used_s),
        amount(mount.read_bytes),
        amount(mount.written_bytes),
        speed(mount.most.get("read", 0.0)),
        speed(mount.most.get("write", 0.0)),
        ratio(over_fetch),
        milliseconds(mount.means.get("read-rtt")),
        milliseconds(mount.means.get("write-rtt")),
    )
    first = f'<a href="#m{number}">{name}</a>' if number is not None else name
    cells = (
        f"<td>{first}</td>",
        f"<td><code>{esc(mount.source)}</code></td>",
        f"<td>{spark(lines, frame)}</td>",
        *(f'<td class="number">{esc(text)}</td>' for text in numbers),
    )
    return f"<tr>{''.join(cells)}</tr>"


def _drawn(page: Page) -> list[MountSeries]:
    """Return the mounts that have charts, in the table's order: of many those that moved most."""
    most = sorted(page.mounts, key=lambda mount: -(mount.read_bytes + mount.written_bytes))[:MOST_MOUNTS]
    chosen = {id(mount) for mount in most}
    return [mount for mount in page.mounts if id(mount) in chosen]


def _mounts(page: Page) -> Iterator[str]:
    frame = page.frame
    if frame is None:
        return
    drawn = _drawn(page)
    for number, mount in enumerate(drawn, 1):
        yield from mount_section(mount, frame, page.account.events, number)
    left = len(page.mounts) - len(drawn)
    if left:
        yield f"<p>Charts are of the {len(drawn)} mounts that moved most; {left} more are in the table.</p>"


def _findings(page: Page) -> Iterator[str]:
    yield '<h2 id="findings">What is wrong on this host now</h2>'
    report = page.account.report
    if report is None:
        yield f"<p>{esc(page.account.no_report)}</p>"
        return
    yield "".join(f"<p>{esc(line)}</p>" for line in verdict(report))
    if report.diagnosis.findings:
        yield '<div class="scroll"><table><thead><tr>'
        yield "<th>Severity</th><th>Rule</th><th>Where</th><th>What, and what to do</th></tr></thead><tbody>"
        yield from map(_finding, report.diagnosis.findings)
        yield "</tbody></table></div>"


def _finding(finding: Finding) -> str:
    remedy = f"<br/>Remedy: <code>{esc(finding.remedy)}</code>" if finding.remedy else ""
    source = esc(finding.source)
    if finding.source.startswith("https://"):
        source = f'<a href="{source}" rel="noreferrer">{source}</a>'
    cited = f"<br/>Source: {source}" if source else ""
    severity = finding.severity.value
    return (
        f'<tr><td class="severity {severity}">{severity}</td>'
        f"<td>{esc(finding.rule)}<br/>{esc(finding.name)}</td><td>{esc(finding.subject)}</td>"
        f"<td>{esc(finding.message)}{remedy}{cited}</td></tr>"
    )


def _events(page: Page) -> Iterator[str]:
    yield '<h2 id="changes">What the service did</h2>'
    if page.account.no_events:
        yield f"<p>{esc(page.account.no_events)}</p>"
        return
    events = page.account.events[-MOST_EVENTS:]
    left = len(page.account.events) - len(events)
    if left:
        yield f"<p>The last {len(events)} entries; {left} earlier ones are in the journal.</p>"
    if not events:
        yield "<p>The journal has nothing about it in this time.</p>"
        return
    yield '<div class="scroll"><table><thead><tr><th>Time</th><th>What</th></tr></thead><tbody>'
    for event in events:
        yield f'<tr><td class="when">{esc(_moment(page, event.time))}</td><td>{esc(event.text)}</td></tr>'
    yield "</tbody></table></div>"
    yield '<p class="faint">What <code>nfstuned apply</code> changed by hand is not among them.</p>'
