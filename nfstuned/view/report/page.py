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
from nfstuned.view.history import duration
from nfstuned.view.report.chart import PlotFrame, PlotLine, esc, spark
from nfstuned.view.report.mount import milliseconds, mount_section, ratio

STYLE = """
:root {
  color-scheme: light dark;
  --back: #ffffff; --card: #f6f8fa; --text: #1f2328; --faint: #59636e; --rule: #d1d9e0; --grid: #e4e8ec;
  --s1: #0969da; --s2: #bc4c00; --s3: #1a7f37; --s4: #8250df;
  --error: #cf222e; --warning: #9a6700; --advice: #0969da; --info: #59636e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #0d1117; --card: #151b23; --text: #e6edf3; --faint: #9198a1; --rule: #3d444d; --grid: #262c36;
    --s1: #58a6ff; --s2: #f0883e; --s3: #3fb950; --s4: #bc8cff;
    --error: #ff7b72; --warning: #d29922; --advice: #58a6ff; --info: #9198a1;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 90rem; padding: 1.5rem 2rem 4rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
h2 {
  margin: 3rem 0 .25rem; padding-top: .75rem; border-top: 1px solid var(--rule); font-size: 1.2rem;
  overflow-wrap: anywhere;
}
h3 { margin: 0; font-size: .9rem; font-weight: 600; }
p { margin: .25rem 0 .75rem; max-width: 75ch; }
a { color: var(--s1); text-decoration: none; }
a:hover { text-decoration: underline; }
.faint, .meta { color: var(--faint); }
.meta { max-width: none; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top; }
th { color: var(--faint); font-size: .8rem; font-weight: 600; border-bottom: 1px solid var(--rule); }
td { border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
.mounts { font-size: .9em; }
.mounts td:nth-child(-n+2) { min-width: 9rem; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.when, .severity { white-space: nowrap; overflow-wrap: normal; }
.charts {
  display: grid; gap: 1rem; margin-top: .75rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
}
.charts + h3 { margin-top: 1.5rem; }
figure {
  margin: 0; padding: .75rem 1rem; border: 1px solid var(--rule); border-radius: .5rem;
  background: var(--card); break-inside: avoid;
}
figure.wide { grid-column: 1 / -1; overflow-x: auto; }
figure.wide > svg { min-width: 58rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .15rem 1rem; align-items: baseline; margin-bottom: .35rem; }
.key { color: var(--faint); font-size: .8rem; }
.key svg { width: 1.5rem; height: .5rem; margin-right: .35rem; vertical-align: middle; }
svg { display: block; width: 100%; height: auto; }
.key svg { display: inline-block; }
svg.spark { width: 160px; height: 28px; }
svg text { fill: var(--faint); font-size: 12px; font-family: inherit; }
text.y { text-anchor: end; }
text.x { text-anchor: middle; }
.grid { stroke: var(--grid); }
.tick { stroke: var(--rule); }
.reference { stroke: var(--faint); stroke-dasharray: 2 3; }
.mark { stroke: var(--s4); stroke-width: 1.5; stroke-dasharray: 4 2; }
.line { fill: none; stroke-width: 1.75; stroke-linejoin: round; stroke-linecap: round; }
.dashed { stroke-dasharray: 5 4; stroke-width: 1.25; }
.s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); } .s3 { stroke: var(--s3); } .s4 { stroke: var(--s4); }
.severity { font-weight: 600; }
.error { color: var(--error); } .warning { color: var(--warning); }
.advice { color: var(--advice); } .info { color: var(--info); }
footer { margin-top: 3rem; padding-top: .75rem; border-top: 1px solid var(--rule); color: var(--faint); }
@media print {
  body { max-width: none; padding: 0; }
  h2 { break-after: avoid; }
  .scroll { overflow: visible; }
}
"""


MOST_MOUNTS = 50
"""With charts; of more a browser would take minutes to draw the page."""
MOST_EVENTS = 500
_FORM = "%Y-%m-%d %H:%M:%S"
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
    yield "<!DOCTYPE html>"
    yield '<html lang="en" xmlns="http://www.w3.org/1999/xhtml">'
    yield '<head><meta charset="utf-8"/>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
    yield f'<meta name="generator" content="nfstuned {__version__}"/>'
    yield f"<title>{esc(page.title)}</title>"
    yield f"<style>{STYLE}</style></head>"
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


def zone_name(start: float, end: float, zone: tzinfo | None = None) -> str:
    """Return the name of a time zone with its offset, both where it changed in between: "CET (UTC+01:00)"."""
    parts = []
    for moment in (start, end):
        local = datetime.fromtimestamp(moment, zone).astimezone(zone)
        offset = f"{local:%z}"
        parts.append(f"{local.tzname()} (UTC{offset[:3]}:{offset[3:5]})")
    return " to ".join(dict.fromkeys(parts))


def _moment(page: Page, moment: float) -> str:
    return datetime.fromtimestamp(moment, page.zone).strftime(_FORM)


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
    name = esc(mount.place)
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
