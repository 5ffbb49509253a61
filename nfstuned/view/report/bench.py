"""What bench measured as one HTML page that loads nothing, runs no script, and is well-formed XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo
from itertools import groupby

from nfstuned import __version__
from nfstuned.core.bench.against import Against
from nfstuned.core.samples.sample import speed
from nfstuned.model.bench import Bench
from nfstuned.view.bench import (
    HEADER,
    against_lines,
    comparisons,
    limits,
    policy_lines,
    rate_lines,
    shortcomings,
    table,
    throughput_text,
)
from nfstuned.view.bench_charts import LATENCY, THROUGHPUT, BarChart, Chart, charts, key_texts
from nfstuned.view.report import bars
from nfstuned.view.report.chart import esc, key
from nfstuned.view.report.sheet import head_lines, zone_name
from nfstuned.view.words import NONE, TIME_FORM, text

_NAMES_OF_ROWS = 2
"""Columns of the table that are words; the others are numbers."""
_BAR = "M1 0H23V8H1Z"
_INDENT = "    "
"""Before the lines of a configuration."""


def page_lines(bench: Bench, against: Against | None = None, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield the page line by line; `zone` None is the host's."""
    subject, title = bench.subject, f"{bench.subject.mount_point} measured"
    yield from head_lines(title, bars.STYLE)
    yield f"<body><header><h1>{esc(title)}</h1>"
    began = datetime.fromtimestamp(bench.time, zone).strftime(TIME_FORM)
    about = f": {bench.suite.about}" if bench.suite.about else ""
    moment = f"{began} {zone_name(bench.time, bench.time, zone)}"
    yield f'<p class="meta">{esc(f"{moment}, suite {bench.suite.name}{about}")}<br/>'
    host = f", {subject.host}, Linux {subject.kernel or NONE}"
    yield f"<code>{esc(subject.source)}</code>, {esc(subject.fstype)}{esc(host)}</p></header>"
    yield from _verdicts(bench)
    if against is not None:
        first, *others = against_lines(against)
        yield f'<h2 id="against">{esc(first.removesuffix(":"))}</h2>'
        yield from _bullets(others)
    yield from _pictures(bench)
    yield from _number_table(bench)
    yield from _subject(bench)
    made = f"Made by nfstuned {__version__}, from what fio and the kernel counted."
    yield f"<footer><p>{esc(made)}</p></footer>"
    yield "</body></html>"


def _verdicts(bench: Bench) -> Iterator[str]:
    verdicts = tuple(comparisons(bench)) or tuple(_results(bench))
    sentences = (*rate_lines(bench), *verdicts, *policy_lines(bench))
    for is_configuration, lines in groupby(sentences, lambda line: line.startswith(_INDENT)):
        if is_configuration:
            yield "<pre>" + "\n".join(esc(line.removeprefix(_INDENT)) for line in lines) + "</pre>"
        else:
            yield from _bullets(lines)
    yield from (f'<p class="warning">{esc(line)}</p>' for line in shortcomings(bench))
    reasons = tuple(limits(bench))
    if reasons:
        yield "<h3>What limits each job, by what the kernel counted meanwhile</h3>"
        yield from _bullets(reasons)


def _bullets(lines: Iterable[str]) -> Iterator[str]:
    items = "".join(f"<li>{esc(line)}</li>" for line in lines)
    if items:
        yield f'<ul class="verdicts">{items}</ul>'


def _results(bench: Bench) -> Iterator[str]:
    """Yield what each job delivered, where nothing was compared."""
    for job in bench.suite.jobs:
        for setting in bench.settings:
            middle, latency = (each.spread(bench, job, setting) for each in (THROUGHPUT, LATENCY))
            if middle is not None and latency is not None:
                after = f"each request {LATENCY.label(latency.median)}"
                yield f"{job.name}: {throughput_text(middle)}, {after}"


def _pictures(bench: Bench) -> Iterator[str]:
    pairs = tuple(charts(bench))
    if not pairs:
        return
    yield '<h2 id="pictures">Throughput and latency</h2>'
    yield f"<p>{esc(bars.HOW_TO_READ)}</p>"
    yield '<div class="charts">'
    for pair in pairs:
        for chart in pair:
            yield from _chart_figure(bench, chart)
    yield "</div>"


def _chart_figure(bench: Bench, chart: Chart) -> Iterator[str]:
    title = chart.title[0].upper() + chart.title[1:] if isinstance(chart, BarChart) else chart.title
    yield f'<figure class="half"><figcaption><h3>{esc(title)}</h3>'
    if isinstance(chart, BarChart) and len(bench.settings) > 1:
        for number, name in key_texts(bench):
            yield key(f"bar {bars.colour(number)}", _BAR, name)
    yield "</figcaption>"
    yield bars.svg(chart)
    yield "</figure>"


def _number_table(bench: Bench) -> Iterator[str]:
    rows = table(bench)
    if not rows:
        return
    yield '<h2 id="figures">All figures</h2>'
    yield "<p>Medians of the runs that count, with the least and the most of the throughput.</p>"
    yield '<div class="scroll"><table class="mounts"><thead><tr>'
    yield "".join(f'<th class="{_cell_class(column)}">{name}</th>' for column, name in enumerate(HEADER))
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = "".join(
            f'<td class="{_cell_class(column)}">{esc(cell)}</td>' for column, cell in enumerate(row)
        )
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"


def _cell_class(column: int) -> str:
    return "text" if column < _NAMES_OF_ROWS else "number"


def _subject(bench: Bench) -> Iterator[str]:
    """Yield what was measured, and where the jobs come from."""
    subject, rate = bench.subject, bench.rate_bytes_per_s
    rows = (
        ("Mount", subject.mount_point),
        ("Server", subject.source),
        ("Type", subject.fstype),
        ("Options", subject.options),
        ("Profile", subject.profile),
        ("Read-ahead before", f"{subject.read_ahead_kb} KiB" if subject.read_ahead_kb is not None else NONE),
        ("Connections", text(subject.connections)),
        ("Kernel", subject.kernel or NONE),
        ("fio", subject.fio or NONE),
        ("Host", subject.host or NONE),
        ("Runs of each job", text(bench.suite.repeats)),
        ("Rate limit", speed(rate) if rate is not None else "none"),
    )
    yield '<h2 id="subject">What was measured</h2>'
    yield '<div class="scroll"><table class="subject"><tbody>'
    for name, value in rows:
        yield f'<tr><th scope="row">{esc(name)}</th><td><code>{esc(value)}</code></td></tr>'
    yield "</tbody></table></div>"
    for source in bench.suite.sources:
        link = url = esc(source.url)
        if source.url.startswith("https://"):
            link = f'<a href="{url}" rel="noreferrer">{url}</a>'
        yield f"<p>The jobs are those of {esc(source.title)} ({link}, read {esc(source.read)}).</p>"
