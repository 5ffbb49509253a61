"""A mount in the report: what it delivered, as charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nfstuned.core.samples.history import BOUNDS_MS
from nfstuned.core.samples.sample import ALL_KINDS, figure, speed
from nfstuned.core.samples.series import MountSeries
from nfstuned.model.samples import Event
from nfstuned.parse.fields import count
from nfstuned.view.report.chart import Chart, PlotFrame, PlotLine, esc, key, svg
from nfstuned.view.words import duration, printable

WIDE = 1320
_STYLES = ("s1", "s2", "s3", "s4")
_TITLES = {"read": "Reads", "write": "Writes", "metadata": "Metadata operations", "other": "Other operations"}
_MARKED_MOST = 100


def mount_section(
    mount: MountSeries, frame: PlotFrame, events: Iterable[Event], number: int
) -> Iterator[str]:
    """Yield a mount's heading and charts; those of what was never known are left out."""
    yield f'<h2 id="m{number}">{esc(mount.label)}</h2>'
    samples = f"{count(mount.samples, 'sample')}, in use for {duration(mount.used_s)}"
    over = f"{samples}, over {printable(mount.group)}"
    yield f'<p class="meta"><code>{esc(mount.source)}</code>, {esc(over)}</p>'
    for verdict in mount.read_ahead:
        text = str(verdict)
        yield f"<p>{esc(text[0].upper() + text[1:])}.</p>"
    yield '<div class="charts">'
    for chart in charts(mount, events):
        yield from figure_of(chart, frame)
    yield "</div>"
    yield from _mean_times(mount)


def _mean_times(mount: MountSeries) -> Iterator[str]:
    """Yield how many samples had which mean round trip, as a table."""
    if not mount.mean_times:
        return
    yield "<h3>Samples by the mean round trip of their operations</h3>"
    yield (
        "<p>A sample counts once, however many operations it is the mean of. Means of intervals are no "
        "percentiles of latency: single operations may have taken far longer.</p>"
    )
    yield '<div class="scroll"><table><thead><tr><th>Operations</th>'
    yield "".join(f'<th class="number">to {number(bound)} ms</th>' for bound in BOUNDS_MS)
    yield '<th class="number">above</th></tr></thead><tbody>'
    for kind, intervals in mount.mean_times:
        cells = "".join(f'<td class="number">{times or ""}</td>' for times in intervals)
        yield f"<tr><td>{kind}</td>{cells}</tr>"
    yield "</tbody></table></div>"


def figure_of(chart: Chart, frame: PlotFrame) -> Iterator[str]:
    """Yield a chart with its title and what its lines are."""
    yield f'<figure class="{"wide" if chart.width == WIDE else "half"}">'
    yield f"<figcaption><h3>{esc(chart.title)}</h3>"
    for line in chart.lines:
        yield key(f"line {line.style}", "M1 4H23", line.name)
    if chart.marks:
        yield key("mark", "M12 0V8", "what the service did to it")
    yield "</figcaption>"
    yield svg(chart, frame)
    yield "</figure>"


def charts(mount: MountSeries, events: Iterable[Event]) -> Iterator[Chart]:
    """Yield the throughput, and what else there is to be drawn of a mount."""
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
        marks=tuple((event.time, event.text) for event in events if about(event, mount))[-_MARKED_MOST:],
    )
    stalled = _lines(mount, ("stalled", "of the time, requests waited for the server's answer", "s3"))
    if stalled and mount.most["stalled"]:
        yield Chart("Stalled", stalled, lambda value: f"{number(value)} %", WIDE)
    yield from (chart for chart in _charts_where_known(mount) if chart.lines)


def about(event: Event, mount: MountSeries) -> bool:
    """Tell whether an event is about this mount; a device number alone may be another's by now."""
    return (event.mount_point or event.device) in mount.keys


def _charts_where_known(mount: MountSeries) -> Iterator[Chart]:
    """Yield all charts but the throughput; those of what was never known have no lines."""
    over_fetch = _lines(mount, ("over-fetch", "bytes sent for each that programs read", "s1"))
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
    yield Chart("Requests that a new one found", requests, number)
    trouble = (
        ("retrans", "sent again", "s1"),
        ("errors", "errors, a missing file among them", "s2"),
        ("timeouts", "timed out", "s3"),
    )
    happened = _lines(mount, *(series for series in trouble if mount.most.get(series[0])))
    yield Chart("Retransmissions, errors, timeouts", happened, _per_second)


def _lines(mount: MountSeries, *named: tuple[str, str, str]) -> tuple[PlotLine, ...]:
    """Return the known lines among `named`, each a key of the series, what it is called, and its style."""
    return tuple(
        PlotLine(text, style, mount.lines[name]) for name, text, style in named if name in mount.lines
    )


def number(value: float) -> str:
    """Return a number of a scale, whose steps are 1, 2 or 5 times a power of ten."""
    return f"{value:.6g}"


def _per_second(value: float) -> str:
    return f"{number(value)}/s"


def ratio(value: float | None) -> str:
    """Return a ratio for a table; a dash where it is not known."""
    return "-" if value is None else f"{value:.2f}"


def milliseconds(value: float | None) -> str:
    """Return a time for a table."""
    return "-" if value is None else f"{figure(value)} ms"
